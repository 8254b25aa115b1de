/** Tasks of the store, for agents that share work: publish, claim, finish. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import type { Json } from '../../core/index.ts';
import { randomHex } from '../../host/random.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import { actorOf, refuseForeign } from '../../server/acting.ts';
import type { ClaimPlace } from '../place.ts';
import { NOTHING_NEXT, refused, type Told, told } from '../result.ts';
import type { ClaimedTask } from '../seat.ts';
import { type TaskMade, type Tool, tool, type ToolCall, WRITES, WRITES_ONCE } from '../tool.ts';
import { isCutShort, reporting, waitEnd, waitOf } from '../waiting.ts';
import {
  calling,
  capabilities,
  holder,
  newHolder,
  priority,
  reason,
  spoken,
  task,
  token,
  waitSeconds,
} from './fields.ts';

const json = z.unknown();

const claimInput = z.strictObject({
  task: task.optional().describe('This task; if not given, the best one that fits.'),
  holder: newHolder,
  capabilities: capabilities.describe('What you can do; you get no task that needs anything else.'),
  waitSeconds: waitSeconds.describe('How long to wait for a task; 0 if not given.'),
});
type Claim = z.infer<typeof claimInput>;

const finishInput = z.strictObject({
  task,
  token,
  holder,
  outcome: z.enum(['complete', 'fail', 'release']),
  result: json.optional().describe('complete: any JSON, kept with the task.'),
  reason: reason.optional().describe('fail: what went wrong.'),
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
      task,
      data: json.optional().describe('What the worker needs to know: any JSON.'),
      capabilities: capabilities.describe('A worker needs all of these to claim it.'),
      priority,
      dependsOn: z.array(task).max(100).optional().describe('It can be claimed once these tasks are complete.'),
      retries: z.int().min(0).max(1_000).optional().describe('How often to try it again after a failure; 0.'),
      holder: holder.optional().describe('Who publishes it; shown to people.'),
    }),
    output: { task: z.string() },
    annotations: WRITES_ONCE,
    async run({ task: id, data = {}, holder: who, ...terms }, { box, caller }) {
      const by = actorOf(caller, who);
      const outcome = await box.tasks.publish(id, data as Json, { ...(given(terms) as object), by });
      const next = `See how it goes: call ${calling('status', { task: id })}`;
      if (outcome.kind === 'published') return told('published', `task/${id} can be claimed now.`, next, { task: id });
      const message = `There is a task ${id} already, which is ${outcome.status}; it was not changed.`;
      return told('exists', message, `Choose another id, or look at it: call ${calling('status', { task: id })}`, {
        task: id,
      });
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
  const { waitSeconds: seconds = 0, holder: named, ...asked } = input;
  const { seat, caller, clock, takesTasks } = call;
  const who = named ?? call.newHolder();
  refuseForeign(caller, who);
  const wait = waitOf(call, seconds * 1000);
  const what = asked.task === undefined ? 'a task that fits' : `task/${asked.task}`;
  const message = `You wait for ${what}.`;
  const claiming = seat.claim({ ...asked, holder: who, waitMs: wait.blockMs, signal: waitEnd(call) });
  const found = await reporting(call, wait.blockMs, () => message, claiming).catch((error: unknown) => {
    if (isOver(error) || (isCutShort(call) && isAborted(error))) return undefined;
    throw error;
  });
  if (found !== undefined) return handedOver(call, found);
  const goesOn = wait.goesOn || (wait.totalMs > 0 && isCutShort(call));
  if (goesOn && takesTasks) {
    const since = clock.now();
    const times = { since, until: since + wait.totalMs };
    const place: ClaimPlace = { of: 'claim', id: randomHex(8), holder: who, ...asked, ...times } as ClaimPlace;
    return { task: place, message };
  }
  return noneTold({ ...asked, holder: who }, goesOn);
}

/** Releases a claim that the client cannot have heard of. */
async function handedOver({ box, signal }: ToolCall, found: ClaimedTask): Promise<Told> {
  const { task: id, token: number } = found;
  if (signal.aborted) await box.tasks.release(id, { token: number });
  return claimedTold(found);
}

export function claimedTold({ task: id, holder: who, token: number, attempt, data, ttlMs }: ClaimedTask): Told {
  const keep =
    ttlMs === undefined ? '' : ` To keep it, call something with your holder at least every ${spoken(ttlMs)}.`;
  return told(
    'claimed',
    `task/${id} is yours, as ${who}${attempt > 1 ? `; it is attempt ${attempt}` : ''}.${keep}`,
    `Do it, then call ${calling('finish', { task: id, token: number, holder: who, outcome: 'complete' })}`,
    { task: id, holder: who, token: number, attempt, data: data ?? null, ttlMs },
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

function isAborted(error: unknown): boolean {
  return error instanceof NotAcquired && error.refusal.kind === 'aborted';
}

async function finish(input: Finish, { box, caller }: ToolCall): Promise<Told> {
  const { task: id, token: number, holder: who, outcome: how, result, reason: why = 'it failed', retry } = input;
  refuseForeign(caller, who);
  const named = { holder: who, token: number };
  const ended =
    how === 'complete'
      ? await box.tasks.complete(id, named, result)
      : how === 'fail'
        ? await box.tasks.fail(id, named, why, given({ retry }))
        : await box.tasks.release(id, named);
  switch (ended.kind) {
    case 'not-owner':
      return refused(
        'not-owner',
        `task/${id}: this holder and token do not have it any more. Nothing was changed.`,
        'Another worker may be doing it. Drop it, and call claim for another task.',
        { task: id },
      );
    case 'completed':
      return told(
        'completed',
        `task/${id} is complete.`,
        `Call ${calling('claim', { holder: who })} for the next one.`,
        { task: id },
      );
    case 'failed':
      return told('failed', `task/${id} has failed for good.`, NOTHING_NEXT, { task: id });
    case 'retried':
      return told('retried', `task/${id} will be tried again; ${ended.retriesLeft} retries are left.`, NOTHING_NEXT, {
        task: id,
      });
    case 'released':
      return told('released', `task/${id} can be claimed by others.`, NOTHING_NEXT, { task: id });
  }
}
