/** Semaphores over HTTP. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { type Drain, drainTold } from '../../core/index.ts';
import type { ResizeResult } from '../../runtime/holds/semaphore.ts';
import { actorOf } from '../acting.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { Problem } from '../problem.ts';
import { answer, anyObject, asking, grant, holder, maybe, reason, settings, waiting } from '../schemas.ts';
import { acquire, afterChange, base, breaking, byClaim, looking, params, rulesTold, WAITS } from './holds.ts';

const path = base('semaphore');
const tag = 'semaphores';
const drained = z.object({
  by: z.string(),
  at: z.string(),
  reason: z.string(),
  revision: z.int().describe('Identifies this drain of the semaphore.'),
});
const capacity = z.int().min(1).describe('How many slots there are.');

export const semaphores: readonly Operation[] = [
  ...looking(
    'semaphore',
    'All semaphores, at one revision of the store.',
    'Who holds which slots, since when and why, and who waits. A semaphore that was never used has no slots.',
    { availableSlots: z.int() },
  ),
  operation({
    ...{ id: 'semaphore.acquire', method: 'post', path: `${path}/acquire`, tag, role: 'worker', params },
    summary: 'Acquire slots',
    description:
      'As with locks: waits for at most `waitMs`, then answers 202 with a ticket. `weight` is the total wanted, not an ' +
      'addition. The first request sets the capacity; a later request that names another is refused.',
    body: z.strictObject({
      holder,
      weight: z.int().min(1).optional().describe('How many slots in total; 1 if not given.'),
      capacity: capacity.optional(),
      ...asking,
    }),
    answers: {
      200: {
        description: 'Acquired.',
        schema: z.object({
          ...grant,
          weight: z.int(),
          slots: z
            .array(z.int())
            .describe('Numbers from 0 that no other hold has at the same time: for ports, databases.'),
        }),
      },
      202: { description: 'The request waits, and keeps its place in the queue.', schema: waiting },
    },
    problems: WAITS,
    run(call) {
      const { capacity: slots, ...body } = call.body;
      return acquire(call, call.box.semaphore(call.params.name, given({ capacity: slots })), body);
    },
  }),
  ...byClaim('semaphore'),
  operation({
    ...{ id: 'semaphore.configure', method: 'put', path: `${path}/settings`, tag, role: 'administrator', params },
    summary: 'Set the capacity, and rules that bind every holder',
    description:
      'A capacity below the number of slots in use takes effect as holders release. Fields left out stay as they are; null removes a limit.',
    body: z.strictObject({
      capacity: capacity.optional(),
      fromCapacity: maybe(z.int().min(0), 'The capacity that you saw. If it has changed since, the answer is 409.'),
      ...settings,
    }),
    answers: answer('The rules.', anyObject),
    problems: ['wrong-state'],
    async run({ box, caller, params: { name }, body: { capacity: slots, fromCapacity: from, ...rules } }) {
      if (from !== undefined && slots === undefined) {
        throw new Problem('invalid-input', 'fromCapacity needs capacity; name the capacity to set as well');
      }
      const one = box.semaphore(name);
      const by = actorOf(caller, undefined);
      const changes = given(rules);
      let isChanged = false;
      try {
        if (slots !== undefined) {
          refuseUnlessResized(one.resource, await one.resize(slots, { by, ...given({ from }) }));
          isChanged = true;
        }
        if (Object.keys(changes).length > 0) {
          await one.configure(changes as never, { by });
          isChanged = true;
        }
        const now = await one.inspect();
        return rulesTold(one.resource, now, { capacity: now.capacity });
      } catch (error) {
        throw isChanged ? afterChange(one.resource, error) : error;
      }
    },
  }),
  operation({
    ...{ id: 'semaphore.drain', method: 'post', path: `${path}/drain`, tag, role: 'administrator', params },
    summary: 'Grant nothing new',
    description:
      'Until you undo the drain, requests wait, tries are refused with 409, and holders keep their slots. A second drain ' +
      'changes nothing: the first one stays.',
    body: z.strictObject({ reason, holder: holder.optional() }),
    answers: answer('Who stopped every grant, when and why.', {
      outcome: z.enum(['drained', 'already-drained']),
      resource: z.string(),
      drained,
    }),
    async run({ box, caller, params: { name }, body }) {
      const one = box.semaphore(name);
      const done = await one.drain({ holder: actorOf(caller, body.holder), reason: body.reason });
      return ok({ outcome: done.kind, resource: one.resource, drained: drainJson(done.drain) });
    },
  }),
  operation({
    ...{ id: 'semaphore.undrain', method: 'post', path: `${path}/undrain`, tag, role: 'administrator', params },
    summary: 'Grant again',
    description:
      'Waiting requests go first. `revision` is that of the drain that you saw: if there is another drain now, it stays, and the answer is 409.',
    body: z.strictObject({
      holder: holder.optional(),
      revision: z.int().min(0).optional().describe('The `drained.revision` that you saw.'),
    }),
    answers: answer('The drain that was undone.', { outcome: z.literal('undrained'), resource: z.string(), drained }),
    problems: ['wrong-state'],
    async run({ box, caller, params: { name }, body }) {
      const one = box.semaphore(name);
      const { resource } = one;
      const { revision } = body;
      const done = await one.undrain({ holder: actorOf(caller, body.holder), ...given({ revision }) });
      if (done.kind === 'undrained') return ok({ outcome: done.kind, resource, drained: drainJson(done.drain) });
      const why =
        done.kind === 'not-drained'
          ? 'it is not drained, so there is nothing to undo'
          : `nothing was undone: meanwhile it was ${drainTold(done.drain)}`;
      const now = 'drain' in done ? drainJson(done.drain) : null;
      throw new Problem('wrong-state', `${resource}: ${why}`, { resource, outcome: done.kind, drained: now });
    },
  }),
  breaking('semaphore'),
];

function refuseUnlessResized(resource: string, done: ResizeResult): void {
  if (done.kind === 'resized') return;
  const { kind: outcome, capacity: now, asked } = done;
  const what = `${resource}: nothing was changed, because its capacity is ${now}, not ${asked}`;
  throw new Problem('wrong-state', what, { resource, outcome, capacity: now });
}

function drainJson(drain: Drain): z.infer<typeof drained> {
  return { ...drain, at: new Date(drain.at).toISOString() };
}
