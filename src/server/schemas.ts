/** Schemas that several operations share. */
import { z } from 'zod';
import { HIGHEST_PRIORITY, LARGEST_METADATA_BYTES, LOWEST_PRIORITY } from '../core/request.ts';
import { LONGEST_NAME, LONGEST_TOKEN_NAME, nameProblem, TICKET_MS } from '../core/index.ts';

/** What an operation answers: any schema, or the fields of an object. */
export function answer(
  description: string,
  content: z.ZodType | z.ZodRawShape,
  status = 200,
): Readonly<Record<number, { readonly description: string; readonly schema: z.ZodType }>> {
  return { [status]: { description, schema: content instanceof z.ZodType ? content : z.object(content) } };
}

/** A field that may be left out. */
export function maybe<T extends z.ZodType>(type: T, description: string): z.ZodOptional<T> {
  return type.optional().describe(description);
}

/** The longest time that a request waits before it answers with a ticket. */
export const LONGEST_WAIT_MS = 45_000;
export const DEFAULT_WAIT_MS = 30_000;

export function named(what: string, description: string, longest = LONGEST_NAME): z.ZodType<string> {
  return z
    .string()
    .superRefine((value, context) => {
      const problem = nameProblem(value, what, longest);
      if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
    })
    .meta({ description, minLength: 1, maxLength: longest });
}

export const name = named('name', 'Its name: 1 to 200 printable characters; in a path, percent-encoded.');
export const holder = named('holder', 'Who holds it or waits for it, such as `agent:7`.');
export const id = named('id', 'Its id: 1 to 200 printable characters; in a path, percent-encoded.');
export const tokenName = named(
  'name',
  `What people call it: 1 to ${LONGEST_TOKEN_NAME} printable characters.`,
  LONGEST_TOKEN_NAME,
);
export const ticket = named('ticket', 'The ticket that an earlier request answered.');

const ms = (description: string): z.ZodNumber =>
  z.number().positive().max(Number.MAX_SAFE_INTEGER).describe(description);

export const ttlMs = ms('It ends if it is not renewed for this long; 60 s if not given.');
export const ticketMs = z
  .number()
  .positive()
  .max(TICKET_MS)
  .describe(
    `The request leaves the queue if nobody asks for its ticket for this long: ${TICKET_MS} ms, or the time of the hold, whichever is shorter.`,
  );
export const maxHoldMs = ms('It ends after this time, even if it is renewed.');
export const token = z.int().min(1).describe('The token that came with the grant.');
export const priority = z
  .int()
  .min(LOWEST_PRIORITY)
  .max(HIGHEST_PRIORITY)
  .describe('Higher goes first; 0 if not given.');
export const reason = z.string().max(LARGEST_METADATA_BYTES).describe('Why; people and programs that wait can see it.');
export const metadata = z.unknown().describe('Any JSON, at most 64 KiB; kept and shown with the hold.');
export const waitMs = z
  .number()
  .min(0)
  .max(LONGEST_WAIT_MS)
  .describe(`How long this request waits before it answers, at most ${LONGEST_WAIT_MS} ms.`);
export const strategy = z
  .enum(['retry', 'fail-fast', 'steal-stale', 'force'])
  .describe('What to do if it is not free; `steal-stale` and `force` need the role administrator.');

export const within = z
  .array(holder)
  .max(100)
  .describe('Other holders that wait for this one to release, so that a deadlock through them is found too.');

/** How to ask for a lock or slots, apart from the holder. */
export const asking = {
  ttlMs: ttlMs.optional(),
  wait: z.boolean().optional().describe('Whether to wait in the queue; true if not given.'),
  waitMs: waitMs.optional(),
  ticket: ticket.optional(),
  ticketMs: ticketMs.optional(),
  priority: priority.optional(),
  reason: reason.optional(),
  metadata: metadata.optional(),
  sensitive: z.boolean().optional().describe('The witness enters only salted hashes of reason and metadata.'),
  maxHoldMs: maxHoldMs.optional(),
  strategy: strategy.optional(),
  within: within.optional(),
};

export const settings = {
  onStale: z
    .enum(['reclaim', 'alert'])
    .optional()
    .describe('Whether the next in line gets a stale hold, or a person decides.'),
  maxHoldMs: ms('No hold lasts longer than this; null removes the limit.').nullable().optional(),
  ttlMs: ms('Detached holds last this long without a renewal; null leaves it to each request.').nullable().optional(),
};

const heldBy = z.looseObject({
  holder: z.string(),
  token: z.int(),
  acquiredAt: z.number().describe('Milliseconds since 1970, by the clock of the process that acquired it.'),
  reason: z.string().optional(),
});

export const grant = {
  outcome: z.enum(['acquired', 'reclaimed', 'extended', 'upgraded', 'already-held', 'increased']),
  resource: z.string(),
  id: z
    .string()
    .describe('Of the hold, unique for all time. It stays the same when the holder asks again or upgrades.'),
  holder: z.string(),
  token: z.int().describe('Pass it to what the lock protects, which can then refuse a smaller one.'),
  ttlMs: z.number(),
  renewWithinMs: z.number().describe('Renew the hold within this time, and within the same time after each renewal.'),
  maxHoldMs: z.number().optional(),
};

export const waiting = z.object({
  outcome: z.literal('waiting'),
  resource: z.string(),
  holder: z.string(),
  ticket: z.string().describe('Send it with the next request to go on waiting; it keeps the place in the queue.'),
  position: z.int().nullable().describe('From 1; null if it is not known.'),
  holders: z.array(heldBy),
});

export const renewed = z.object({
  outcome: z.enum(['refreshed', 'attached']),
  resource: z.string(),
  ttlMs: z.number(),
  renewWithinMs: z.number().optional(),
});

/** An answer that is any JSON object; docs/cli.md lists its fields, because the command line prints the same. */
export const anyObject = z.looseObject({});
