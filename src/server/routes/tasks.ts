/** Tasks over HTTP. Claims are detached: a worker renews its claim until it has completed or failed the task. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { tokenHolder } from '../../core/index.ts';
import { taskJson } from '../../json/task.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { EndOutcome } from '../../runtime/tasks/claim.ts';
import type { DetachedClaim } from '../../runtime/tasks/dispatch.ts';
import { endedBy } from '../../runtime/tasks/end-request.ts';
import type { Forgetting } from '../../runtime/tasks/unclaimed.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { actorOf, refuseForeign, refuseUnlessAdministrator } from '../acting.ts';
import { type Caller, ok, type Operation, operation } from '../operation.ts';
import { type Answer, Problem } from '../problem.ts';
import { answer, anyObject, holder, id, maybe, priority, reason, renewed, token, ttlMs, waitMs } from '../schemas.ts';
import { renewalTold } from './holds.ts';

const tag = 'tasks';
const path = '/v1/tasks/{id}';
const params = z.strictObject({ id });
const capabilities = z.array(z.string()).max(100).describe('Such as `code-analysis:rust`.');
const claimName = { holder: holder.optional(), token: token.optional() };
const data = z.unknown().describe('Any JSON, for the worker.');

const claimBody = z.strictObject({
  holder,
  capabilities: capabilities.optional(),
  ttlMs: ttlMs.optional(),
  waitMs: waitMs.optional(),
});
const claimAnswer = z.object({
  outcome: z.literal('claimed'),
  task: z.string(),
  holder: z.string(),
  token: z.int(),
  ttlMs: z.number(),
  renewWithinMs: z.number(),
  attempt: z.int(),
  data,
});
const outcomeAnswer = z.looseObject({ outcome: z.string(), task: z.string() });

export const tasks: readonly Operation[] = [
  operation({
    ...{ id: 'task.list', method: 'get', path: '/v1/tasks', tag, role: 'viewer' },
    summary: 'List tasks',
    description:
      'In the order of publication; with `limit` or `after`, a page in the order of the ids. `next` begins the next page.',
    query: z.strictObject({
      status: z.enum(['pending', 'running', 'complete', 'failed']).optional(),
      limit: z.coerce.number().int().min(1).max(1000).optional().meta({ type: 'integer' }),
      after: id.optional(),
    }),
    answers: answer('The tasks.', { tasks: z.array(anyObject), next: z.string().nullable() }),
    async run({ box, query }) {
      const found = await box.tasks.list(given(query) as never);
      const isFull = query.limit !== undefined && found.length >= query.limit;
      return ok({ tasks: found.map(taskJson), next: isFull ? (found.at(-1)?.id ?? null) : null });
    },
  }),
  operation({
    ...{ id: 'task.publish', method: 'post', path: '/v1/tasks', tag, role: 'worker' },
    summary: 'Publish a task',
    description: 'Wakes every worker that waits. If the id exists, the server refuses, and leaves that task as it is.',
    body: z.strictObject({
      id,
      data: data.optional(),
      by: holder.optional().describe('Who publishes it; shown to people.'),
      capabilities: capabilities.optional(),
      priority: priority.optional(),
      dependsOn: z.array(id).optional().describe('It can be claimed once these are complete.'),
      retries: z.int().min(0).optional().describe('How often to try it again after a failure; 0 if not given.'),
      backoffMs: maybe(z.number().min(0), 'The pause before the first retry; each later one is twice as long.'),
      lossLimit: maybe(
        z.int().min(1),
        'The task fails once this many workers have died while they had it; 3 if not given.',
      ),
      traceId: z.string().min(1).max(200).optional().describe('The trace that it belongs to.'),
      sensitive: z.boolean().optional().describe('The witness enters only hashes of its data, result and reasons.'),
    }),
    answers: answer('Published.', outcomeAnswer, 201),
    problems: ['exists'],
    async run({ box, caller, body: { id: task, data: content = {}, by, ...terms } }) {
      const outcome = await box.tasks.publish(task, content as never, {
        ...(given(terms) as object),
        by: actorOf(caller, by),
      });
      if (outcome.kind === 'published') return ok({ outcome: outcome.kind, task }, 201);
      const what = `task/${task}: this id is taken by a task that is ${outcome.status}; that task was not changed`;
      throw new Problem('exists', what, { task, taskStatus: outcome.status });
    },
  }),
  operation({
    ...{ id: 'task.claim-next', method: 'post', path: '/v1/tasks/claim', tag, role: 'worker' },
    summary: 'Claim the next task',
    description:
      'The best pending task that this worker can do. With `waitMs` it waits for one. A worker keeps no place between two requests, ' +
      'because any worker may get any task: just ask again.',
    body: claimBody,
    answers: answer('Claimed.', claimAnswer),
    problems: ['none', 'timed-out'],
    async run({ box, caller, signal, body: { waitMs: longest = 0, ...body } }) {
      refuseForeign(caller, body.holder);
      return claimed(
        box.tasks.claimNextDetached({ ...(given(body) as typeof body & object), waitMs: longest, signal } as never),
      );
    },
  }),
  operation({
    ...{ id: 'task.show', method: 'get', path, tag, role: 'viewer', params },
    summary: 'Show a task',
    description: 'Status, data, owner, attempts and result of the task, with every change up to `revision`.',
    answers: answer('The task.', z.looseObject({ revision: z.int(), task: z.string(), status: z.string() })),
    problems: ['no-such-thing'],
    async run({ box, params: { id: task } }) {
      const { revision } = await box.health();
      const found = await box.tasks.show(task);
      if (found === undefined) throw noSuchTask(task, { revision });
      return ok({ revision, ...taskJson(found) });
    },
  }),
  operation({
    ...{ id: 'task.claim', method: 'post', path: `${path}/claim`, tag, role: 'worker', params },
    summary: 'Claim a task',
    description: 'However many workers claim it, exactly one gets it.',
    body: claimBody,
    answers: answer('Claimed.', claimAnswer),
    problems: ['missing', 'taken', 'finished', 'blocked', 'unfit', 'timed-out'],
    async run({ box, caller, signal, params: { id: task }, body: { waitMs: longest = 0, ...body } }) {
      refuseForeign(caller, body.holder);
      return claimed(box.tasks.claimDetached(task, { ...(given(body) as object), waitMs: longest, signal } as never));
    },
  }),
  operation({
    ...{ id: 'task.renew', method: 'post', path: `${path}/renew`, tag, role: 'worker', params },
    summary: 'Renew a claim',
    description:
      'Extends the claim by its full time. A worker that does not renew in time loses the claim, and the task is pending again.',
    body: z.strictObject(claimName),
    answers: answer('Renewed.', renewed),
    problems: ['gone', 'not-owner'],
    async run({ box, caller, params: { id: task }, body }) {
      refuseForeign(caller, body.holder);
      return renewalTold(`task/${task}`, await box.tasks.renew(task, given(body)));
    },
  }),
  operation({
    ...{ id: 'task.complete', method: 'post', path: `${path}/complete`, tag, role: 'worker', params },
    summary: 'Complete a task',
    description: 'Only its owner can do that. An old token changes nothing.',
    body: z.strictObject({ ...claimName, result: z.unknown().optional().describe('Any JSON.') }),
    answers: answer('Complete.', outcomeAnswer),
    problems: ['not-owner'],
    async run({ box, caller, request, params: { id: task }, body: { result, ...claim } }) {
      refuseForeign(caller, claim.holder);
      return endTold(task, await box.tasks.complete(task, endedBy(request, given(claim)), result));
    },
  }),
  operation({
    ...{ id: 'task.fail', method: 'post', path: `${path}/fail`, tag, role: 'worker', params },
    summary: 'Fail a task',
    description:
      'The task is pending again while it has retries left, else failed; with `retry: false` it fails at once.',
    body: z.strictObject({ ...claimName, reason, retry: z.boolean().optional() }),
    answers: answer('Failed, or to be tried again.', outcomeAnswer),
    problems: ['not-owner'],
    async run({ box, caller, request, params: { id: task }, body: { reason: why, retry, ...claim } }) {
      refuseForeign(caller, claim.holder);
      return endTold(task, await box.tasks.fail(task, endedBy(request, given(claim)), why, given({ retry })));
    },
  }),
  operation({
    ...{ id: 'task.release', method: 'post', path: `${path}/release`, tag, role: 'worker', params },
    summary: 'Give a task back',
    description:
      'Another worker may then claim it; this does not count as an attempt. `force` takes it from its owner and needs an administrator; with `token`, ' +
      'only if that claim still has it.',
    body: z.strictObject({ ...claimName, force: z.boolean().optional(), reason: reason.optional() }),
    answers: answer('Released.', outcomeAnswer),
    problems: ['not-owner', 'wrong-state'],
    async run({ box, caller, request, params: { id: task }, body: { force, reason: why, ...claim } }) {
      if (force === true) return forced(box, caller, task, claim, why);
      refuseForeign(caller, claim.holder);
      return endTold(task, await box.tasks.release(task, endedBy(request, given(claim))));
    },
  }),
  requeueing('retry', 'Try a failed task again', 'Makes a failed task pending again, with all its retries.'),
  requeueing(
    'requeue',
    'Do a task again',
    'Makes a task pending again that no worker has. The server drops the result of a complete task, so a token that is bound to ' +
      'holders may requeue only tasks that one of its holders published.',
  ),
  operation({
    ...{ id: 'task.forget', method: 'delete', path, tag, role: 'worker', params },
    summary: 'Forget a task',
    description:
      'Deletes a task that no worker has, and its result; its id is free again. The server refuses while other tasks depend on it. A ' +
      'token that is bound to holders may delete only tasks that one of its holders published.',
    answers: answer('Forgotten.', outcomeAnswer),
    problems: ['no-such-thing', 'wrong-state'],
    async run({ box, caller, params: { id: task } }) {
      const { kind: outcome, ...details } = await box.tasks.forget(task, await forgetting(box, caller, task));
      if (outcome === 'forgotten') return ok({ outcome, task });
      if (outcome === 'missing') throw noSuchTask(task);
      throw new Problem(
        'wrong-state',
        `task/${task}: it cannot be forgotten: ${outcome}`,
        told(task, outcome, details),
      );
    },
  }),
];

/**
 * Limits what a bound token may delete to tasks that one of its holders published. The store compares the publisher again, because
 * another client may meanwhile have published a new task under the same id.
 */
async function forgetting(box: Signalbox, caller: Caller, task: string): Promise<Forgetting> {
  const by = tokenHolder(caller.name);
  if (caller.holders === undefined) return { by };
  return { by, publishedBy: await ownPublisher(box, caller, task) };
}

/** Answers who published the task; refuses a bound token that may not act for this publisher. */
async function ownPublisher(box: Signalbox, caller: Caller, task: string): Promise<string> {
  const found = await box.tasks.show(task);
  if (found === undefined) throw noSuchTask(task);
  const { publishedBy } = found;
  if (publishedBy === undefined) {
    const why = 'so a token that is bound to holders may not change it; use another token';
    throw new Problem('foreign-holder', `task/${task}: the store does not say who published it, ${why}`);
  }
  refuseForeign(caller, publishedBy);
  return publishedBy;
}

function requeueing(how: 'retry' | 'requeue', summary: string, description: string): Operation {
  return operation({
    ...{ id: `task.${how}`, method: 'post', path: `${path}/${how}`, tag, role: 'worker', params, summary, description },
    body: z.strictObject({
      by: holder.optional(),
      attempts: maybe(z.int().min(0), 'The number that you saw; a task that was claimed since stays as it is.'),
    }),
    answers: answer('Pending again.', outcomeAnswer),
    problems: ['no-such-thing', 'wrong-state'],
    async run({ box, caller, params: { id: task }, body: { by, ...expected } }) {
      const actor = actorOf(caller, by);
      // A requeue drops the result of a complete task, as forgetting does; a retry drops nothing.
      if (how === 'requeue' && caller.holders !== undefined) await ownPublisher(box, caller, task);
      const { kind: outcome, ...details } = await box.tasks[how](task, { ...given(expected), by: actor });
      if (outcome === 'requeued') return ok({ outcome, task, ...details });
      if (outcome === 'missing') throw noSuchTask(task);
      throw new Problem('wrong-state', `task/${task}: it stays as it is: ${outcome}`, told(task, outcome, details));
    },
  });
}

async function claimed(claiming: Promise<DetachedClaim>): Promise<Answer> {
  const { id: task, ...claim } = await claiming.catch((error: unknown) => {
    // A wait for the next task that runs out of time found none.
    if (error instanceof NotAcquired && error.resource === 'task' && error.refusal.kind === 'timed-out') {
      throw new NotAcquired('task', { kind: 'none' });
    }
    throw error;
  });
  return ok({ outcome: 'claimed', task, ...claim });
}

function endTold(task: string, { kind: outcome, ...details }: EndOutcome): Answer {
  if (outcome !== 'not-owner') return ok({ outcome, task, ...details });
  throw new Problem('not-owner', `task/${task}: this token and holder do not have it`, told(task, outcome, details));
}

async function forced(
  box: Signalbox,
  caller: Caller,
  task: string,
  { holder: who, token: expected }: { readonly holder?: string | undefined; readonly token?: number | undefined },
  why = '',
): Promise<Answer> {
  refuseUnlessAdministrator(caller, 'force');
  const by = { holder: actorOf(caller, who), reason: why, ...given({ token: expected }) };
  const outcome = await box.tasks.forceRelease(task, by);
  if (outcome.kind === 'released') return ok({ outcome: 'released', task, owner: outcome.owner });
  if (outcome.status === 'running') {
    const what = `task/${task}: token ${expected} does not have it any more; nothing was taken`;
    throw new Problem('wrong-state', what, { task, taskStatus: outcome.status });
  }
  throw new Problem('wrong-state', `task/${task}: no worker has it`, { task });
}

function noSuchTask(task: string, more: object = {}): Problem {
  return new Problem('no-such-thing', `there is no task ${task}`, { task, ...more });
}

/** Renames the status of the task, because `status` is that of the HTTP answer. */
function told(task: string, outcome: string, found: object): Readonly<Record<string, unknown>> {
  const { status: taskStatus, ...details } = found as { readonly status?: unknown };
  return { task, outcome, ...details, ...given({ taskStatus }) };
}
