/** How a claim ends: fenced by its token, found again by the id of the request if the answer got lost. */
import {
  claimEntryOf,
  type ClaimName,
  decideEnd,
  type Ending,
  type NotOwner,
  notOwner,
  type Task,
  type TaskBookkeeping,
  type Token,
} from '../../core/index.ts';
import type { Operation, Revision } from '../../store/index.ts';
import { encode, type Letter, mailboxKey, processOf } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { readTasks, taskIn } from './reading.ts';
import { writeOnce } from '../write/write-once.ts';
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
  let sentFor: Token | undefined;
  return writeOnce<{ readonly task: Task; readonly isFresh: boolean }, EndOutcome>(runtime, {
    read: async (isFirst) => {
      if (isFirst && known !== undefined) return { task: known, isFresh: false };
      return { task: (await readTasks(runtime, [id])).tasks[0] as Task, isFresh: true };
    },
    decide: ({ task, isFresh }, doubt) => {
      const ended = task.bookkeeping?.entry.ended;
      // An earlier attempt, whose answer got lost, has done it; or an earlier call under the same name.
      if (ended?.request === request) {
        return { kind: 'answer', answer: outcomeOf(task, task.bookkeeping?.entry as TaskBookkeeping) };
      }
      const decided = decideEnd(task, claim, ending, { request, now: runtime.clock.now() });
      if (decided.kind === 'write') {
        sentFor = task.owner?.token;
        return {
          kind: 'write',
          transaction: endTransaction(task, decided, lettersTo(runtime, task, ending)),
          landed: async ({ revision }) => {
            wrote(revision);
            await cleanUp(runtime, task, ending);
            return outcomeOf(task, decided.bookkeeping);
          },
          overtaken: ({ results }) => ({ task: taskIn(id, results), isFresh: true }),
        };
      }
      if (!isFresh) return { kind: 'look' };
      // Whoever has ended it since has overwritten how we did, if we did.
      if (sentFor !== undefined && doubt !== undefined && (ended?.token ?? 0) > sentFor) throw doubt;
      return { kind: 'answer', answer: notOwner(task) };
    },
    // No fence: the owner's key is compared, and no later one is the same.
    until: runtime.giveUpAt(),
  });
}

function outcomeOf({ data }: Task, { ended, attempts }: TaskBookkeeping): EndOutcome {
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
  runtime.holdings.holds.get(claim.id)?.lose(lossOf(ending));
  // Nothing hangs on the lease of a detached claim any more.
  const lease = claim.detached === true ? (owner?.lease ?? null) : null;
  if (lease !== null) await runtime.store.revokeLease(lease).catch(() => undefined);
}
