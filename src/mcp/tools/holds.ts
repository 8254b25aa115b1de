/** Tools for a lock or slots that the agent has: renew, release; and break_lock. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { Problem } from '../../server/problem.ts';
import { actorOf, refuseForeign } from '../../server/acting.ts';
import { queuePlaceIn } from '../place.ts';
import { NOTHING_NEXT, refused, spoken, STOP, type Told, told } from '../result.ts';
import { resourceOf } from '../seat.ts';
import { TAKES, type Tool, tool, type ToolCall, WRITES_ONCE } from '../tool.ts';
import * as field from './fields.ts';

const renewInput = z.strictObject({
  holder: field.holder,
  name: field.name.optional(),
  kind: field.kind,
  token: field.token.optional(),
  maxHoldMinutes: field.maxHoldMinutes.describe(
    'Extend the limit: you may hold it for this long from now on. Needs name.',
  ),
});
type Renew = z.infer<typeof renewInput>;

const releaseInput = z.strictObject({
  name: field.name.optional(),
  kind: field.kind,
  holder: field.holder.optional(),
  token: field.token.optional(),
  ticket: field.ticket.optional().describe('Give up waiting instead: the ticket that acquire answered.'),
});
type Release = z.infer<typeof releaseInput>;

export const holds: readonly Tool[] = [
  tool({
    name: 'renew',
    title: 'Keep what you hold',
    description:
      'Check that you still hold something, and keep it: one lock or semaphore by name and token, or everything that ' +
      'the holder has. With maxHoldMinutes it may be held that much longer from now on. Status lost: stop, another may have it.',
    role: 'worker',
    input: renewInput,
    output: { holds: z.array(z.object({ resource: z.string(), token: z.int() })), resource: z.string() },
    annotations: WRITES_ONCE,
    renewsHolder: true,
    run: renew,
  }),
  tool({
    name: 'release',
    title: 'Give it back',
    description:
      'Give back a lock or slots as soon as you are done, so that the next in line can go on; or give up waiting, by the ticket.',
    role: 'worker',
    input: releaseInput,
    output: { resource: z.string() },
    annotations: WRITES_ONCE,
    run: release,
  }),
  tool({
    name: 'break_lock',
    title: 'Take a lock away',
    description:
      'Take a lock or semaphore away from all its holders. Only if your user told you to: a holder that is still working ' +
      'loses it in the middle. A dead holder needs no break: its lock becomes free by itself.',
    role: 'administrator',
    input: z.strictObject({
      name: field.name,
      kind: field.kind,
      reason: field.reason.describe('Why; the holders that lose it see this, and it is recorded.'),
      holder: field.holder.optional().describe('Who takes it away; recorded.'),
    }),
    output: { resource: z.string(), broken: z.int() },
    annotations: TAKES,
    async run({ name, kind = 'lock', reason, holder }, { box, caller }) {
      const one = resourceOf(box, { kind, name });
      const { resource } = one;
      const { broken } = await one.break({ holder: actorOf(caller, holder), reason });
      if (broken === 0)
        return told('already-free', `${resource} is not held; nothing was changed.`, NOTHING_NEXT, { resource });
      const message = `${resource} was taken from ${broken} holder(s).`;
      return told('broken', message, 'Call acquire if you need it.', { resource, broken });
    },
  }),
];

async function renew(input: Renew, { seat, caller }: ToolCall): Promise<Told> {
  const { holder, name, kind = 'lock', token, maxHoldMinutes: minutes } = input;
  refuseForeign(caller, holder);
  const holds = await seat.touch(holder);
  if (name === undefined) {
    if (minutes !== undefined) throw new Problem('invalid-input', 'maxHoldMinutes needs name: it extends one hold');
    if (holds.length === 0)
      return refused('lost', `${holder} holds nothing.`, 'Call acquire if you need something.', { holds });
    const all = holds.map(({ resource }) => resource).join(', ');
    return told('renewed', `${holder} still holds ${all}.`, 'Go on, and release each when you are done.', { holds });
  }
  const resource = `${kind}/${name}`;
  const known = token ?? holds.find((one) => one.resource === resource)?.token;
  if (known === undefined) return refused('lost', `${holder} does not hold ${resource} any more.`, STOP, { resource });
  const maxHoldMs = minutes === undefined ? undefined : minutes * 60_000;
  const outcome = await seat.renew({ kind, name }, { holder, token: known }, maxHoldMs);
  if (outcome.kind === 'lost') {
    const why = outcome.why === undefined ? '' : `: ${outcome.why}`;
    return refused('lost', `${resource} is lost${why}.`, STOP, { resource });
  }
  if (outcome.kind === 'not-owner') return notOwnerTold(resource);
  const limit = outcome.maxHoldMs === undefined ? '' : ` It may be held for ${spoken(outcome.maxHoldMs)} from now on.`;
  const message = `${holder} still holds ${resource}.${limit}`;
  return told('renewed', message, 'Go on, and release it when you are done.', { resource });
}

function notOwnerTold(resource: string): Told {
  return refused(
    'not-owner',
    `${resource}: this holder and token do not have it. Nothing was changed.`,
    'If you held it, it was lost: stop the work that needed it. Call status to see who has it.',
    { resource },
  );
}

async function release({ name, kind = 'lock', holder, token, ticket }: Release, call: ToolCall): Promise<Told> {
  const { seat, caller } = call;
  if (ticket !== undefined) {
    const one = 'ticket gives up waiting, name and token give back a hold; pass one or the other';
    if (name !== undefined || token !== undefined) throw new Problem('invalid-input', one);
    return withdraw(ticket, call);
  }
  if (name === undefined || holder === undefined) {
    const missing = 'pass name and holder (and the token) to give back a hold, or ticket to give up waiting';
    throw new Problem('invalid-input', missing);
  }
  refuseForeign(caller, holder);
  const resource = `${kind}/${name}`;
  const outcome = await seat.release({ kind, name }, { holder, ...given({ token }) });
  switch (outcome.kind) {
    case 'released':
      return told('released', `You gave back ${resource}.`, NOTHING_NEXT, { resource });
    case 'not-owner':
      return notOwnerTold(resource);
    case 'already-free': {
      const message = `${resource} is free. You gave it back before, or you lost it meanwhile.`;
      const next = 'If you did not release it yourself, check the work that you did under it.';
      return told('already-free', message, next, { resource });
    }
    case 'ambiguous': {
      const { tokens } = outcome;
      const message = `${holder} has ${resource} ${tokens.length} times.`;
      return refused('ambiguous', message, 'Call release with one of these tokens.', { resource, tokens });
    }
  }
}

async function withdraw(ticket: string, { seat, caller }: ToolCall): Promise<Told> {
  const place = queuePlaceIn(ticket);
  refuseForeign(caller, place.holder);
  const resource = `${place.kind}/${place.name}`;
  const wasThere = await seat.withdraw(place);
  const message = wasThere ? `You left the line for ${resource}.` : `You were not in line for ${resource} any more.`;
  return told('withdrawn', message, NOTHING_NEXT, { resource });
}
