/** Locks over HTTP. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import type { ModeOutcome } from '../../runtime/holds/terms.ts';
import { actorOf, refuseForeign } from '../acting.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { type Answer, Problem } from '../problem.ts';
import { answer, anyObject, asking, grant, holder, settings, token, waiting, waitMs } from '../schemas.ts';
import {
  acquire,
  afterChange,
  base,
  breaking,
  byClaim,
  holdLost,
  looking,
  notOwner,
  params,
  rulesTold,
  WAITS,
} from './holds.ts';

const mode = z.enum(['exclusive', 'shared']).describe('Alone, or together with other readers.');
const path = base('lock');
const tag = 'locks';
const tokenAnswer = z.object({ outcome: z.string(), resource: z.string(), holder: z.string(), token: z.int() });

export const locks: readonly Operation[] = [
  ...looking(
    'lock',
    'All locks that are held, waited for or configured, at one revision of the store.',
    'Who holds it, since when and why, and who waits. A lock that was never used is free.',
    { isFree: z.boolean() },
  ),
  operation({
    ...{ id: 'lock.acquire', method: 'post', path: `${path}/acquire`, tag, role: 'worker', params },
    summary: 'Acquire a lock',
    description:
      'Waits in the queue for at most `waitMs`, then answers 202 with a ticket. The same request with the ticket goes on ' +
      'waiting in the same place, at any server of the store. A request whose ticket is not sent again within 60 s, or the time of the ' +
      'hold, leaves the queue. With `wait: false` the server refuses at once if the lock is held. A holder that asks again gets the same ' +
      'hold with the same token, or with a new one if it could only read until now (`upgraded`).',
    body: z.strictObject({ holder, mode: mode.optional(), ...asking }),
    answers: {
      200: { description: 'Acquired.', schema: z.object({ ...grant, mode }) },
      202: { description: 'The request waits, and keeps its place in the queue.', schema: waiting },
    },
    problems: [...WAITS, 'upgrade-conflict'],
    run: (call) => acquire(call, call.box.lock(call.params.name), call.body),
  }),
  ...byClaim('lock'),
  operation({
    ...{ id: 'lock.upgrade', method: 'post', path: `${path}/upgrade`, tag, role: 'worker', params },
    summary: 'Make a shared hold exclusive',
    description:
      'Waits until the other readers have left, ahead of waiting writers, and keeps the hold alive meanwhile. The token changes. ' +
      'When the wait is over, it keeps no place: ask again.',
    body: z.strictObject({ holder, token, waitMs: waitMs.optional() }),
    answers: answer('Exclusive from now on.', tokenAnswer),
    problems: ['busy', 'timed-out', 'upgrade-conflict', 'deadlock', 'lost', 'gone', 'not-owner', 'attached'],
    async run({ box, caller, signal, params: { name }, body: { waitMs: longest = 0, ...claim } }) {
      refuseForeign(caller, claim.holder);
      const lock = box.lock(name);
      return modeTold(lock.resource, claim.holder, await lock.upgrade(claim, { waitMs: longest, signal }));
    },
  }),
  operation({
    ...{ id: 'lock.downgrade', method: 'post', path: `${path}/downgrade`, tag, role: 'worker', params },
    summary: 'Make an exclusive hold shared',
    description: 'No other holder gets the lock in between; waiting readers join. The token stays the same.',
    body: z.strictObject({ holder, token }),
    answers: answer('Shared from now on.', tokenAnswer),
    problems: ['gone', 'not-owner', 'attached'],
    async run({ box, caller, params: { name }, body }) {
      refuseForeign(caller, body.holder);
      const lock = box.lock(name);
      return modeTold(lock.resource, body.holder, await lock.downgrade(body));
    },
  }),
  operation({
    ...{ id: 'lock.configure', method: 'put', path: `${path}/settings`, tag, role: 'administrator', params },
    summary: 'Set rules that bind every holder',
    description:
      'They apply from the next grant on, whatever a holder asks for. Fields left out stay as they are; null removes a limit.',
    body: z.strictObject(settings),
    answers: answer('The rules.', anyObject),
    async run({ box, caller, params: { name }, body }) {
      const lock = box.lock(name);
      await lock.configure(given(body) as never, { by: actorOf(caller, undefined) });
      const now = await lock.inspect().catch((error: unknown) => {
        throw afterChange(lock.resource, error);
      });
      return rulesTold(lock.resource, now);
    },
  }),
  breaking('lock'),
];

function modeTold(resource: string, who: string, outcome: ModeOutcome): Answer {
  if ('token' in outcome) return ok({ outcome: outcome.kind, resource, holder: who, token: outcome.token });
  if (outcome.kind === 'lost') throw holdLost(resource);
  if (outcome.kind !== 'attached') throw notOwner(resource);
  const why = 'a running process holds it, and only that process can change its mode';
  throw new Problem('attached', `${resource}: ${why}`, { resource });
}
