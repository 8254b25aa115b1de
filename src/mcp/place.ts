/**
 * Tickets and task ids. They carry everything that is needed to go on with a wait, so that any server of the store can, and no
 * server keeps state between two requests. They grant nothing: the server checks their content like a new request.
 */
import { z } from 'zod';
import { conditionProblem, type Condition, nameProblem } from '../core/index.ts';
import { shown } from '../failure.ts';
import { Problem } from '../server/problem.ts';
import { MOST_WAIT_SECONDS } from './tools/fields.ts';

const name = z.string().refine((text) => nameProblem(text, 'name') === undefined);
const DAY_MS = 86_400_000;
/** Every time up to here is a date, also a while later. */
const time = z
  .number()
  .min(0)
  .max(8.64e15 - 2 * DAY_MS);
const times = { since: time, until: time };
/** The longest wait that a tool accepts. */
export const LONGEST_WAIT_MS = MOST_WAIT_SECONDS * 1000;

/** A request for a lock or slots that waits in the queue. */
const queued = z.strictObject({
  of: z.literal('hold'),
  kind: z.enum(['lock', 'semaphore']),
  name,
  holder: name,
  ticket: name,
  ...times,
});
/** A worker that waits for a task. It has no place in a queue, because any worker may get any task. */
const claiming = z.strictObject({
  of: z.literal('claim'),
  id: name,
  holder: name,
  task: name.optional(),
  capabilities: z.array(z.string().max(200)).max(100).optional(),
  ...times,
});
/** A wait until a condition holds. */
const guarding = z.strictObject({
  of: z.literal('guard'),
  holder: name.optional(),
  condition: z.custom<Condition>((value) => conditionProblem(value) === undefined),
  ...times,
});
const place = z.discriminatedUnion('of', [queued, claiming, guarding]);

export type QueuePlace = z.infer<typeof queued>;
export type ClaimPlace = z.infer<typeof claiming>;
export type GuardPlace = z.infer<typeof guarding>;
export type Place = QueuePlace | ClaimPlace | GuardPlace;

const PREFIX = 'sbx-';
/** A task id is also sent in a header. */
export const LONGEST_PLACE = 6_000;

export function placeText(of: Place): string {
  return PREFIX + Buffer.from(JSON.stringify(of)).toString('base64url');
}

export function placeIn(text: string): Place {
  const found = text.startsWith(PREFIX) && text.length <= LONGEST_PLACE ? parsed(text.slice(PREFIX.length)) : undefined;
  if (found !== undefined) return found;
  throw new Problem('invalid-input', `${shown(text)} is not a ticket of signalbox; pass it exactly as it was answered`);
}

/** Reads the ticket of a wait in a queue; refuses any other. */
export function queuePlaceIn(text: string): QueuePlace {
  const found = placeIn(text);
  if (found.of === 'hold') return found;
  const what = 'this is the id of a task that waits for something else; it is not a ticket for a lock';
  throw new Problem('invalid-input', what);
}

function parsed(text: string): Place | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    const found = place.safeParse(value).data as Place | undefined;
    return found !== undefined && found.until - found.since <= LONGEST_WAIT_MS ? found : undefined;
  } catch {
    return undefined;
  }
}
