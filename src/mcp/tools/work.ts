/** Tasks of the store, for agents that share work: publish, claim, finish. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import type { Json } from '../../core/index.ts';
import { randomHex } from '../../host/random.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import { actorOf, refuseForeign } from '../../server/acting.ts';
import type { ClaimPlace } from '../place.ts';
import { calling, NOTHING_NEXT, refused, spoken, type Told, told } from '../result.ts';
import type { ClaimedTask } from '../seat.ts';
import { type TaskMade, type Tool, tool, type ToolCall, WRITES, WRITES_ONCE } from '../tool.ts';
import { isCutShort, reporting, waitEnd, waitOf } from '../waiting.ts';
import * as field from './fields.ts';

const json = z.unknown();

const claimInput = z.strictObject({
  task: field.task.optional().describe('This task; if not given, the best one that fits.'),
  holder: field.newHolder,
  capabilities: field.capabilities.describe('What you can do; you get no task that needs anything else.'),
  waitSeconds: field.waitSeconds.describe('How long to wait for a task; 0 if not given.'),
});
type Claim = z.infer<typeof claimInput>;

const finishInput = z.strictObject({
  task: field.task,
  token: field.token,
  holder: field.holder,
  outcome: z.enum(['complete', 'fail', 'release']),
  result: json.optional().describe('complete: any JSON, kept with the task.'),
  reason: field.reason.optional().describe('fail: what went wrong.'),
  retry: z.boolean().optional().describe('fail: false fails it for good.'),
});
type Finish = z.infer<typeof finishInput>;

export const work: readonly Tool[] = [
  tool({
    name: 'publish',
    title: 'Publish a task',
    description:
      'Put a piece of work on the shared list, so that one agent or worker claims it. A task with an id that exists ' +
      'is not changed (status exists).',
    role: 'worker',
    input: z.strictObject({
      task: field.task,
      data: json.optional().describe('What the worker needs to know: any JSON.'),
      capabilities: field.capabilities.describe('A worker needs all of these to claim it.'),
      priority: field.priority,
      dependsOn: z.array(field.task).max(100).optional().describe('It can be claimed once these tasks are complete.'),
      retries: z.int().min(0).max(1_000).optional().describe('How often to try it again after a failure; 0.'),
      holder: field.holder.optional().describe('Who publishes it; shown to people.'),
    }),
    output: { task: z.string() },
    annotations: WRITES_ONCE,
    async run({ task, data = {}, holder, ...terms }, { box, caller }) {
      const by = actorOf(caller, holder);
      const outcome = await box.tasks.publish(task, data as Json, { ...(given(terms) as object), by });
      const look = calling('status', { task });
      if (outcome.kind === 'published')
        return told('published', `task/${task} can be claimed now.`, `See how it goes: call ${look}`, { task });
      const message = `There is a task ${task} already, which is ${outcome.status}; it was not changed.`;
      return told('exists', message, `Choose another id, or look at it: call ${look}`, { task });
    },
  }),
  tool({
    name: 'claim',
    title: 'Claim a task',
    description:
      'Take a task from the shared list to do it yourself: the one you name, or the best that fits. No other worker gets it meanwhile. ' +
      'Status claimed: do what data says, then call finish. Status none: there is nothing to do now.',
    role: 'worker',
    input: claimInput,
    annotations: WRITES,
    run: claim,
  }),
  tool({
    name: 'finish',
    title: 'Finish a task',
    description:
      'End your claim: complete (with a result), fail (with a reason; it is tried again while it has retries), or release ' +
      '(give it back undone, for another).',
    role: 'worker',
    input: finishInput,
    output: { task: z.string() },
    annotations: WRITES_ONCE,
    run: finish,
  }),
];

async function claim(input: Claim, call: ToolCall): Promise<Told | TaskMade> {
  const { waitSeconds = 0, holder = call.newHolder(), ...asked } = input;
  const { seat, caller, clock, takesTasks } = call;
  refuseForeign(caller, holder);
  const wait = waitOf(call, waitSeconds * 1000);
  const what = asked.task === undefined ? 'a task that fits' : `task/${asked.task}`;
  const message = `You wait for ${what}.`;
  const claiming = seat.claim({ ...asked, holder, waitMs: wait.blockMs, signal: waitEnd(call) });
  const found = await reporting(call, wait.blockMs, () => message, claiming).catch((error: unknown) => {
    const isAborted = error instanceof NotAcquired && error.refusal.kind === 'aborted';
    if (isOver(error) || (isCutShort(call) && isAborted)) return undefined;
    throw error;
  });
  if (found !== undefined) return handedOver(call, found);
  const goesOn = wait.goesOn || (wait.totalMs > 0 && isCutShort(call));
  if (goesOn && takesTasks) {
    const since = clock.now();
    const times = { since, until: since + wait.totalMs };
    const place: ClaimPlace = { of: 'claim', id: randomHex(8), holder, ...asked, ...times } as ClaimPlace;
    return { task: place, message };
  }
  return noneTold({ ...asked, holder }, goesOn);
}

/** Releases a claim that the client cannot have heard of. */
async function handedOver({ box, signal }: ToolCall, found: ClaimedTask): Promise<Told> {
  const { task, token } = found;
  if (signal.aborted) await box.tasks.release(task, { token });
  return claimedTold(found);
}

export function claimedTold({ task, holder, token, attempt, data, ttlMs }: ClaimedTask): Told {
  const keep =
    ttlMs === undefined ? '' : ` To keep it, call something with your holder at least every ${spoken(ttlMs)}.`;
  return told(
    'claimed',
    `task/${task} is yours, as ${holder}${attempt > 1 ? `; it is attempt ${attempt}` : ''}.${keep}`,
    `Do it, then call ${calling('finish', { task, token, holder, outcome: 'complete' })}`,
    { task, holder, token, attempt, data: data ?? null, ttlMs },
  );
}

export function noneTold(asked: Claim, goesOn: boolean): Told {
  const what = asked.task === undefined ? 'no task can be claimed now' : `task/${asked.task} cannot be claimed now`;
  const again = calling('claim', { ...asked, waitSeconds: 45 });
  const next = goesOn ? `Go on waiting: call ${again}` : `Do something else, or wait for one: call ${again}`;
  return told('none', `${what}.`.replace(/^n/, 'N'), next, { holder: asked.holder });
}

/** Answers a wait that found no task. It keeps no place, because any worker may get any task. */
export function isOver(error: unknown): boolean {
  return error instanceof NotAcquired && (error.refusal.kind === 'timed-out' || error.refusal.kind === 'none');
}

async function finish(input: Finish, { box, caller }: ToolCall): Promise<Told> {
  const { task, token, holder, outcome: how, result, reason = 'it failed', retry } = input;
  refuseForeign(caller, holder);
  const named = { holder, token };
  const ended =
    how === 'complete'
      ? await box.tasks.complete(task, named, result)
      : how === 'fail'
        ? await box.tasks.fail(task, named, reason, given({ retry }))
        : await box.tasks.release(task, named);
  switch (ended.kind) {
    case 'not-owner': {
      const message = `task/${task}: this holder and token do not have it any more. Nothing was changed.`;
      const next = 'Another worker may be doing it. Drop it, and call claim for another task.';
      return refused('not-owner', message, next, { task });
    }
    case 'completed': {
      const next = `Call ${calling('claim', { holder })} for the next one.`;
      return told('completed', `task/${task} is complete.`, next, { task });
    }
    case 'failed':
      return told('failed', `task/${task} has failed for good.`, NOTHING_NEXT, { task });
    case 'retried': {
      const message = `task/${task} will be tried again; ${ended.retriesLeft} retries are left.`;
      return told('retried', message, NOTHING_NEXT, { task });
    }
    case 'released':
      return told('released', `task/${task} can be claimed by others.`, NOTHING_NEXT, { task });
  }
}
