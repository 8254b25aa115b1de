/** Writes to tasks that no worker has: they are pending again, or forgotten. */
import { decideForget, decideRequeue, type ForgetRefusal, type RequeueRefusal, type Task } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import type { Doer } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { writeOnce } from '../write/write-once.ts';
import { taskDeeds } from './witnessed.ts';
import { readTask, taskIn } from './reading.ts';
import { forgetTransaction, idleTransaction } from './writing.ts';

/** What `retry` and `requeue` answer. */
export type RequeueOutcome =
  | { readonly kind: 'requeued'; readonly was: 'pending' | 'complete' | 'failed' }
  | RequeueRefusal;

/** What `forget` answers. */
export type ForgetOutcome =
  | { readonly kind: 'forgotten' }
  /** Tasks that are not complete depend on it, and could never begin without it. A failed one may be tried again. */
  | { readonly kind: 'needed'; readonly by: readonly string[] }
  | ForgetRefusal;

type Wrote = (revision: Revision) => void;

export function requeueTask(
  runtime: Runtime,
  id: string,
  { only, by, attempts }: { only: 'failed' | 'any'; by: string; attempts: number | undefined },
  wrote: Wrote,
): Promise<RequeueOutcome> {
  const request = runtime.options.newId();
  let was: Extract<RequeueOutcome, { kind: 'requeued' }>['was'] = 'pending';
  return writeOnce<Task, RequeueOutcome>(runtime, {
    read: () => readTask(runtime, id),
    // A claim keeps the mark, so a requeue whose answer got lost is found although a worker has the task by now.
    found: (task) => (task.bookkeeping?.entry.requeue === request ? { kind: 'requeued', was } : undefined),
    decide: (task) => {
      const decided = decideRequeue(task, only, { by, request, attempts, now: runtime.clock.now() });
      if (decided.kind !== 'write') return { kind: 'answer', answer: decided };
      const word = task.status?.word;
      was = word === 'complete' || word === 'failed' ? word : 'pending';
      return {
        kind: 'write',
        transaction: idleTransaction(task, decided),
        deeds: taskDeeds(task, {
          actor: by === '' ? runtime.sender.id : by,
          command: only === 'failed' ? 'retry' : 'requeue',
          outcome: 'requeued',
          events: decided.bookkeeping.events,
          detail: { was },
        }),
        landed: ({ revision }) => {
          wrote(revision);
          return { kind: 'requeued', was };
        },
        overtaken: ({ results }) => taskIn(id, results),
      };
    },
    until: runtime.giveUpAt(),
  });
}

/** Who forgets a task, and who must have published it. */
export interface Forgetting extends Doer {
  /** Forgets the task only if this publisher published it. */
  readonly publishedBy?: string;
}

/** `expected`: the task has to be as it was when this was decided; without it, any version of it is forgotten. */
export function forgetTask(
  runtime: Runtime,
  id: string,
  wrote: Wrote,
  expected?: Task,
  { by = runtime.sender.id, publishedBy }: Forgetting = {},
): Promise<ForgetOutcome> {
  let sent: Task | undefined;
  return writeOnce<Task, ForgetOutcome>(runtime, {
    read: (isFirst) => (isFirst && expected !== undefined ? expected : readTask(runtime, id)),
    decide: (task, doubt) => {
      // Gone, or published again since: the attempt without an answer has deleted it.
      const isGone = task.data?.published !== sent?.data?.published;
      if (doubt !== undefined && sent !== undefined && isGone) return forgotten;
      const isOther = expected !== undefined && task.status?.mod !== expected.status?.mod;
      const isOfOther = publishedBy !== undefined && task.bookkeeping?.entry.publishedBy !== publishedBy;
      if (isOther || isOfOther) return { kind: 'answer', answer: { kind: 'missing' } };
      const decided = decideForget(task);
      if (decided.kind !== 'forget') return { kind: 'answer', answer: decided };
      sent = task;
      return {
        kind: 'write',
        transaction: forgetTransaction(task),
        deeds: taskDeeds(task, { actor: by, command: 'forget', outcome: 'forgotten' }),
        landed: ({ revision }) => {
          wrote(revision);
          return forgotten.answer;
        },
        overtaken: ({ results }) => taskIn(id, results),
      };
    },
    until: runtime.giveUpAt(),
  });
}

const forgotten = { kind: 'answer', answer: { kind: 'forgotten' } } as const;
