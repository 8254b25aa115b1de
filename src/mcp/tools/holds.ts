/** Tools for a lock or slots that the agent has: renew, release; and break_lock. */
import { z } from 'zod';
import { Problem } from '../../server/problem.ts';
import { actorOf, refuseForeign } from '../../server/acting.ts';
import { queuePlaceIn } from '../place.ts';
import { NOTHING_NEXT, refused, STOP, type Told, told } from '../result.ts';
import { resourceOf } from '../seat.ts';
import { TAKES, type Tool, tool, type ToolCall, WRITES_ONCE } from '../tool.ts';
import { holder, kind, maxHoldMinutes, name, reason, spoken, ticket, token } from './fields.ts';

const renewInput = z.strictObject({
  holder,
  name: name.optional(),
  kind,
  token: token.optional(),
  maxHoldMinutes: maxHoldMinutes.describe('Extend the limit: you may hold it for this long from now on. Needs name.'),
});
type Renew = z.infer<typeof renewInput>;

const releaseInput = z.strictObject({
  name: name.optional(),
  kind,
  holder: holder.optional(),
  token: token.optional(),
  ticket: ticket.optional().describe('Give up waiting instead: the ticket that acquire answered.'),
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
      name,
      kind,
      reason: reason.describe('Why; the holders that lose it see this, and it is recorded.'),
      holder: holder.optional().describe('Who takes it away; recorded.'),
    }),
    output: { resource: z.string(), broken: z.int() },
    annotations: TAKES,
    async run({ name: called, kind: which = 'lock', reason: why, holder: who }, { box, caller }) {
      const one = resourceOf(box, { kind: which, name: called });
      const { resource } = one;
      const { broken } = await one.break({ holder: actorOf(caller, who), reason: why });
      if (broken === 0)
        return told('already-free', `${resource} is not held; nothing was changed.`, NOTHING_NEXT, { resource });
      return told('broken', `${resource} was taken from ${broken} holder(s).`, 'Call acquire if you need it.', {
        ...{ resource, broken },
      });
    },
  }),
];

async function renew(input: Renew, { seat, caller }: ToolCall): Promise<Told> {
  const { holder: who, name: called, kind: which = 'lock', token: number, maxHoldMinutes: minutes } = input;
  refuseForeign(caller, who);
  const held = await seat.touch(who);
  if (called === undefined) {
    if (minutes !== undefined) throw new Problem('invalid-input', 'maxHoldMinutes needs name: it extends one hold');
    if (held.length === 0)
      return refused('lost', `${who} holds nothing.`, 'Call acquire if you need something.', { holds: held });
    const all = held.map(({ resource }) => resource).join(', ');
    return told('renewed', `${who} still holds ${all}.`, 'Go on, and release each when you are done.', { holds: held });
  }
  const resource = `${which}/${called}`;
  const known = number ?? held.find((one) => one.resource === resource)?.token;
  if (known === undefined) return refused('lost', `${who} does not hold ${resource} any more.`, STOP, { resource });
  const maxHoldMs = minutes === undefined ? undefined : minutes * 60_000;
  const outcome = await seat.renew({ kind: which, name: called }, { holder: who, token: known }, maxHoldMs);
  if (outcome.kind === 'lost') {
    return refused('lost', `${resource} is lost${outcome.why === undefined ? '' : `: ${outcome.why}`}.`, STOP, {
      resource,
    });
  }
  if (outcome.kind === 'not-owner') return notOwnerTold(resource);
  const limit = outcome.maxHoldMs === undefined ? '' : ` It may be held for ${spoken(outcome.maxHoldMs)} from now on.`;
  return told('renewed', `${who} still holds ${resource}.${limit}`, 'Go on, and release it when you are done.', {
    resource,
  });
}

function notOwnerTold(resource: string): Told {
  return refused(
    'not-owner',
    `${resource}: this holder and token do not have it. Nothing was changed.`,
    'If you held it, it was lost: stop the work that needed it. Call status to see who has it.',
    { resource },
  );
}

async function release(input: Release, { seat, caller }: ToolCall): Promise<Told> {
  const { name: called, kind: which = 'lock', holder: who, token: number, ticket: text } = input;
  if (text !== undefined) {
    if (called !== undefined || number !== undefined) {
      throw new Problem(
        'invalid-input',
        'ticket gives up waiting, name and token give back a hold; pass one or the other',
      );
    }
    const place = queuePlaceIn(text);
    refuseForeign(caller, place.holder);
    const resource = `${place.kind}/${place.name}`;
    const wasThere = await seat.withdraw(place);
    const message = wasThere ? `You left the line for ${resource}.` : `You were not in line for ${resource} any more.`;
    return told('withdrawn', message, NOTHING_NEXT, { resource });
  }
  if (called === undefined || who === undefined) {
    throw new Problem(
      'invalid-input',
      'pass name and holder (and the token) to give back a hold, or ticket to give up waiting',
    );
  }
  refuseForeign(caller, who);
  const resource = `${which}/${called}`;
  const outcome = await seat.release(
    { kind: which, name: called },
    { holder: who, ...(number !== undefined && { token: number }) },
  );
  switch (outcome.kind) {
    case 'released':
      return told('released', `You gave back ${resource}.`, NOTHING_NEXT, { resource });
    case 'not-owner':
      return notOwnerTold(resource);
    case 'already-free':
      return told(
        'already-free',
        `${resource} is free. You gave it back before, or you lost it meanwhile.`,
        'If you did not release it yourself, check the work that you did under it.',
        { resource },
      );
    case 'ambiguous':
      return refused(
        'ambiguous',
        `${who} has ${resource} ${outcome.tokens.length} times.`,
        'Call release with one of these tokens.',
        { resource, tokens: outcome.tokens },
      );
  }
}
