/** Publishes a task: checks its data and terms, and writes it unless a task of its id exists. */
import {
  hasTerms,
  type Json,
  nameProblem,
  requestProblem,
  statusOf,
  type Task,
  type TaskStatus,
  type Terms,
  termsOf,
  withTerms,
  shapeProblem,
} from '../../core/index.ts';
import { Failure, refuseInvalid } from '../../failure.ts';
import type { Revision, TransactionResult } from '../../store/index.ts';
import { flag, shortText, valuesProblem } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { writeOnce } from '../write/write-once.ts';
import { taskDeeds } from './witnessed.ts';
import { taskResource } from './keys.ts';
import { readTask, taskIn } from './reading.ts';
import { publishTransaction } from './writing.ts';

const PUBLISH = [
  'capabilities',
  'priority',
  'dependsOn',
  'retries',
  'backoffMs',
  'lossLimit',
  'by',
  'traceId',
  'sensitive',
];

/** The terms of a task: who may claim it, when, and how often. */
export interface PublishOptions extends Partial<Terms> {
  /** Who publishes the task; shown to people. */
  readonly by?: string;
  /** The trace that the task belongs to; that of this process, if not given. */
  readonly traceId?: string;
  /** The witness enters only hashes of its data, its result and its reasons. */
  readonly sensitive?: boolean;
}

/** What `publish` answers. */
export type PublishOutcome =
  | { readonly kind: 'published'; readonly id: string }
  /** A task of this id exists; it was not changed. */
  | { readonly kind: 'exists'; readonly id: string; readonly status: TaskStatus };

/** The data with its terms in it. Throws `invalid` if either is not what a task may have. */
export function dataToPublish(id: string, data: Json, options: PublishOptions): Json {
  const { by, traceId, sensitive, ...terms } = options;
  refuseInvalid(
    nameProblem(id, 'task') ??
      shapeProblem(options, PUBLISH) ??
      requestProblem({ holder: by }) ??
      valuesProblem({ traceId, sensitive }, { traceId: shortText, sensitive: flag }),
  );
  const whole = withTerms(data, terms);
  if (whole.problem !== undefined) throw new Failure('invalid', `${taskResource(id)}: ${whole.problem}`);
  if (termsOf(whole.data).terms.dependsOn.includes(id)) {
    throw new Failure(
      'invalid',
      `${taskResource(id)}: dependsOn names the task itself, so it could never begin; leave it out`,
    );
  }
  return whole.data;
}

export async function publishTask(
  runtime: Runtime,
  id: string,
  data: Json,
  { by, traceId: trace = runtime.witness.trace, sensitive = false }: PublishOptions,
  wrote: (revision: Revision) => void,
): Promise<PublishOutcome> {
  const at = runtime.clock.now();
  const publication = runtime.options.newId();
  const events = [{ type: 'task:published', at, holder: by ?? '' }];
  const bookkeeping = {
    attempts: 0,
    publication,
    publishedAt: at,
    ...(by !== undefined && { publishedBy: by }),
    ...(trace !== undefined && { trace }),
    ...(sensitive && { sensitive: true as const }),
    events,
  };
  const transaction = publishTransaction(id, data, bookkeeping, !hasTerms(termsOf(data).terms));
  const published: PublishOutcome = { kind: 'published', id };
  const deeds = taskDeeds(
    { id, bookkeeping: { entry: bookkeeping, mod: 0 } },
    { actor: by ?? runtime.sender.id, command: 'publish', outcome: 'published', events, data },
  );
  return writeOnce<Task | undefined, PublishOutcome>(runtime, {
    // The first pass reads nothing: the write compares that there is no such task.
    read: (isFirst) => (isFirst ? undefined : readTask(runtime, id)),
    found: (task) => (task?.bookkeeping?.entry.publication === publication ? published : undefined),
    decide: (task, doubt) => {
      if (task?.data === undefined) {
        const landed = ({ revision }: TransactionResult): PublishOutcome => {
          wrote(revision);
          return published;
        };
        return { kind: 'write', transaction, deeds, landed, overtaken: ({ results }) => taskIn(id, results) };
      }
      // A claim made without reading the task overwrites who published it, until the claim ends.
      const isUnsigned = task.bookkeeping?.entry.publication === undefined && isSame(task.data.json, data);
      if (doubt !== undefined && isUnsigned) throw inDoubt(id, doubt);
      return { kind: 'answer', answer: { kind: 'exists', id, status: statusOf(task) } };
    },
    until: runtime.giveUpAt(),
  });
}

function isSame(found: Json | undefined, data: Json): boolean {
  return found !== undefined && JSON.stringify(found) === JSON.stringify(data);
}

function inDoubt(id: string, cause: unknown): Failure {
  const what =
    'the store did not answer the publication; a task with this id and data exists now and is already claimed';
  return new Failure('outcome-unknown', `${taskResource(id)}: ${what}, so it may be this one or an earlier one`, {
    cause,
  });
}
