/** How a claim ends: fenced by its token, found again by the id of the request if the answer got lost. */
import {
  claimEntryOf,
  type ClaimName,
  decideEnd,
  type Ending,
  type NotOwner,
  notOwner,
  type Task,
  type TaskBook,
  type Token,
} from '../../core/index.ts';
import type { Operation, Revision } from '../../store/index.ts';
import { encode, type Letter, mailboxKey, processOf } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { readTasks, taskIn } from './reading.ts';
import { Sending } from './sending.ts';
import { endTransaction } from './writing.ts';

export type TaskReleaseOutcome = { readonly kind: 'released' } | NotOwner;
export type CompleteOutcome = { readonly kind: 'completed' } | NotOwner;
export type FailOutcome =
  | { readonly kind: 'failed'; readonly attempts: number }
  /** It is pending again. */
  | { readonly kind: 'retried'; readonly attempts: number; readonly retriesLeft: number }
  | NotOwner;
export type EndOutcome = TaskReleaseOutcome | CompleteOutcome | FailOutcome;

/**
 * `known`: the task as its owner knows it; then one round trip is all it takes. `request`: who has been told nothing may say
 * it again under the same name, and is told what became of it.
 */
export async function endClaim(
  runtime: Runtime,
  id: string,
  claim: ClaimName,
  ending: Ending,
  known: Task | undefined,
  wrote: (revision: Revision) => void,
  request = runtime.options.newId(),
): Promise<EndOutcome> {
  const sending = new Sending(runtime);
  let sentFor: Token | undefined;
  let task = known;
  let isFresh = false;
  return sending.persistently(async () => {
    for (;;) {
      if (task === undefined) {
        [task] = (await readTasks(runtime, [id])).tasks as [Task];
        isFresh = true;
      }
      const ended = task.book?.entry.ended;
      // An earlier attempt, whose answer got lost, has done it.
      if (ended?.request === request) return outcomeOf(task, task.book?.entry as TaskBook);
      const decided = decideEnd(task, claim, ending, { request, now: runtime.clock.now() });
      if (decided.kind !== 'write') {
        // Whoever has ended it since has overwritten how we did, if we did.
        if (isFresh && sentFor !== undefined && sending.doubt !== undefined && (ended?.token ?? 0) > sentFor) {
          throw sending.doubt;
        }
        if (isFresh) return notOwner(task);
        task = undefined;
        continue;
      }
      const before = task;
      task = undefined;
      sentFor = before.owner?.token;
      const result = await sending.send(endTransaction(before, decided, lettersTo(runtime, before, ending)));
      if (result.succeeded) {
        wrote(result.revision);
        await cleanUp(runtime, before, ending);
        return outcomeOf(before, decided.book);
      }
      task = taskIn(id, result.results);
      isFresh = true;
    }
  });
}

function outcomeOf({ data }: Task, { ended, attempts }: TaskBook): EndOutcome {
  switch (ended?.how) {
    case 'completed':
      return { kind: 'completed' };
    case 'failed':
      return { kind: 'failed', attempts };
    case 'retried':
      return { kind: 'retried', attempts, retriesLeft: Math.max(0, (data?.terms.retries ?? 0) + 1 - attempts) };
    case 'released':
    case 'forced':
    case undefined:
      return { kind: 'released' };
  }
}

/** Whoever works on it in another process is told that it does so no longer. */
function lettersTo(runtime: Runtime, task: Task, ending: Ending): readonly Operation[] {
  const { owner } = task;
  const claim = claimEntryOf(task);
  if (claim === undefined || claim.detached === true || owner === undefined || owner.lease === null) return [];
  const process = processOf(claim.id);
  if (process === runtime.sender.id) return [];
  const key = mailboxKey(process);
  const loss = { id: claim.id, token: owner.token, ...lossOf(ending) };
  const letter: Letter = { answers: [], losses: [loss] };
  return [
    {
      do: 'transaction',
      compare: [{ key, target: 'version', is: '>', than: 0 }],
      success: [{ do: 'put', key, value: encode(letter), lease: 'keep' }],
      failure: [],
    },
  ];
}

function lossOf(ending: Ending): Pick<Letter['losses'][number], 'why' | 'by' | 'reason'> {
  if (ending.how !== 'force') return { why: 'released-elsewhere' };
  return { why: 'forced', by: ending.by, reason: ending.reason };
}

async function cleanUp(runtime: Runtime, task: Task, ending: Ending): Promise<void> {
  const { owner } = task;
  const claim = claimEntryOf(task);
  if (claim === undefined) return;
  runtime.holds.get(claim.id)?.lose(lossOf(ending));
  // Nothing hangs on the lease of a detached claim any more.
  const lease = claim.detached === true ? (owner?.lease ?? null) : null;
  if (lease !== null) await runtime.store.revokeLease(lease).catch(() => undefined);
}
