/**
 * Reads tasks: from their four keys to the task that the core decides on, and to the view that users get.
 *
 * The keys are plain, so another program may have written anything there, and its mistake must not bring down a reader.
 * What is malformed counts as absent.
 */
import {
  type Blocker,
  blockersOf,
  claimEntryOf,
  decideRepair,
  type Event,
  isBackingOff,
  isOwned,
  type Json,
  NO_BOOKKEEPING,
  NO_TERMS,
  statusOf,
  type Task,
  type TaskBookkeeping,
  type TaskData,
  type TaskStatus,
  type TaskWrite,
  type Terms,
  termsOf,
  type Token,
  unpublished,
  isCount,
  isTime,
  isRecord,
} from '../../core/index.ts';
import {
  always,
  type KeyValue,
  type Operation,
  type OperationResult,
  pairIn,
  readPages,
  type Revision,
} from '../../store/index.ts';
import { fullPages } from '../../store/operations.ts';
import { processOf } from '../layout.ts';
import { ownCopy } from '../own-copy.ts';
import type { Runtime } from '../runtime.ts';
import { ALL_TASKS, partOf, taskKeys } from './keys.ts';

/** Each page costs etcd a walk over all keys, and a long page blocks the event loop. */
const PAGES = fullPages(500, 2500);

/** The task with one of its keys replaced by what was read. */
export function withPart(task: Task, pair: KeyValue): Task {
  switch (partOf(pair.key)?.part) {
    case 'data':
      return { ...task, data: new ReadData(pair) };
    case 'owner': {
      const { createRevision: token, modRevision: mod, lease } = pair;
      return { ...task, owner: { holder: pair.value.text, token, mod, lease } };
    }
    case 'status':
      return { ...task, status: { word: pair.value.text, mod: pair.modRevision } };
    case 'signalbox':
      return { ...task, bookkeeping: new ReadBookkeeping(pair) };
    case undefined:
      return task;
  }
}

type Content = Pick<TaskData, 'json' | 'terms' | 'problem'>;

/** Parses the data when it is first needed: nobody looks into that of most finished tasks. */
class ReadData implements TaskData {
  readonly published: Revision;
  readonly mod: Revision;
  readonly #pair: KeyValue;
  #content: Content | undefined;

  constructor(pair: KeyValue) {
    this.published = pair.createRevision;
    this.mod = pair.modRevision;
    this.#pair = pair;
  }

  get json(): Json | undefined {
    return this.#read().json;
  }

  get terms(): Terms {
    return this.#read().terms;
  }

  get problem(): string | undefined {
    return this.#read().problem;
  }

  #read(): Content {
    this.#content ??= contentOf(this.#pair);
    return this.#content;
  }
}

/** Another program may have written data that is not JSON. */
function contentOf(pair: KeyValue): Content {
  try {
    const json = pair.value.json as Json;
    const { terms, problem } = termsOf(json);
    return { json, terms, problem };
  } catch {
    return { json: undefined, ...termsOf(undefined), problem: 'its data is not JSON' };
  }
}

/** Parses the bookkeeping when it is first needed: a cache of many tasks looks into that of few. */
class ReadBookkeeping {
  readonly mod: Revision;
  readonly #pair: KeyValue;
  #entry: TaskBookkeeping | undefined;

  constructor(pair: KeyValue) {
    this.mod = pair.modRevision;
    this.#pair = pair;
  }

  get entry(): TaskBookkeeping {
    this.#entry ??= bookkeepingIn(this.#pair);
    return this.#entry;
  }
}

function bookkeepingIn(pair: KeyValue): TaskBookkeeping {
  try {
    return bookkeepingOf(pair.value.json);
  } catch {
    return NO_BOOKKEEPING;
  }
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const hasFields =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isRecord(value) && Object.entries(fields).every(([name, isRight]) => isRight(value[name]));

const FIELDS: Readonly<Record<Exclude<keyof TaskBookkeeping, 'attempts' | 'events' | 'result'>, Check>> = {
  failures: isCount,
  losses: isCount,
  retryAt: isTime,
  requeue: isText,
  publication: isText,
  publishedAt: isTime,
  publishedBy: isText,
  claim: hasFields({ id: isText, holder: isText, at: isTime }),
  ended: hasFields({ token: isCount, request: isText, how: isText }),
  reason: isText,
  endedAt: isTime,
  trace: isText,
  sensitive: (value) => value === true,
  head: hasFields({ seq: isCount, hash: isText }),
};

const isEvent: Check = hasFields({
  type: (type) => typeof type === 'string' && type.startsWith('task:'),
  at: isTime,
  holder: isText,
});

function bookkeepingOf(json: unknown): TaskBookkeeping {
  if (!isRecord(json)) return NO_BOOKKEEPING;
  const { attempts, events, ...rest } = json;
  const right = Object.entries(rest).filter(([name, value]) => FIELDS[name as keyof typeof FIELDS]?.(value) ?? true);
  return {
    ...Object.fromEntries(right),
    attempts: isCount(attempts) ? attempts : 0,
    events: Array.isArray(events) ? (events as Event[]).filter(isEvent) : [],
  };
}

export function readsOf(id: string): readonly Operation[] {
  return Object.values(taskKeys(id)).map((key) => ({ do: 'read', key }));
}

/** `results` include those of `readsOf`. */
export function taskIn(id: string, results: readonly OperationResult[]): Task {
  const parts = Object.values(taskKeys(id)).flatMap((key) => pairIn(results, key) ?? []);
  return parts.reduce(withPart, unpublished(id));
}

export async function readTasks(
  runtime: Runtime,
  ids: readonly string[],
): Promise<{ readonly tasks: readonly Task[]; readonly revision: Revision }> {
  const { results, revision } = await runtime.store.transaction(always(ids.flatMap(readsOf)), runtime.stopped);
  runtime.saw(revision);
  return { tasks: ids.map((id) => taskIn(id, results)), revision };
}

export async function readTask(runtime: Runtime, id: string): Promise<Task> {
  return (await readTasks(runtime, [id])).tasks[0] as Task;
}

/** A transaction has room for the keys of this number of tasks. */
export const READ_AT_ONCE = 30;

/** Any number of tasks, some at a time: each part may be of a later revision than the one before. */
export async function readManyTasks(runtime: Runtime, ids: readonly string[]): Promise<ReadonlyMap<string, Task>> {
  const read = new Map<string, Task>();
  for (let first = 0; first < ids.length; first += READ_AT_ONCE) {
    const { tasks } = await readTasks(runtime, ids.slice(first, first + READ_AT_ONCE));
    for (const task of tasks) read.set(task.id, task);
  }
  return read;
}

/** The status of each of these tasks; undefined for a task that does not exist, or that was not read. */
export function statusIn(tasks: ReadonlyMap<string, Task>): (id: string) => TaskStatus | undefined {
  return (id) => {
    const task = tasks.get(id);
    return task?.data === undefined ? undefined : statusOf(task);
  };
}

/** One page of the keys of all tasks. Each page may be of a later revision than the one before. */
export interface Page {
  /** The last key that the page covers; undefined for the last page, which covers all keys after the one before. */
  readonly last: string | undefined;
  readonly revision: Revision;
  readonly pairs: readonly KeyValue[];
}

export async function* taskPages(runtime: Runtime): AsyncIterable<Page> {
  const { store, stopped } = runtime;
  for await (const { pairs, more, revision } of readPages(store, ALL_TASKS, PAGES, stopped)) {
    yield { last: more ? pairs.at(-1)?.key : undefined, revision, pairs };
  }
}

/** All tasks, read page by page. */
export async function readAllTasks(runtime: Runtime): Promise<ReadonlyMap<string, Task>> {
  const tasks = new Map<string, Task>();
  for await (const { pairs } of taskPages(runtime)) {
    for (const pair of pairs) {
      const id = partOf(pair.key)?.id;
      if (id !== undefined) tasks.set(id, withPart(tasks.get(id) ?? unpublished(id), pair));
    }
  }
  return tasks;
}

/** A task as users see it. */
export interface TaskView<Data = Json, Result = Json> extends Terms {
  /** Its id. */
  readonly id: string;
  /** How far it is. */
  readonly status: TaskStatus;
  /** Undefined where another program has written something that is not JSON. */
  readonly data: Data | undefined;
  /** Why no worker can claim it although it is pending. */
  readonly blockedBy: readonly Blocker[];
  /** The worker that does it, or did. */
  readonly owner: string | undefined;
  /** The token of its claim. */
  readonly token: Token | undefined;
  /** False if the owner has no lease: should it die, the task stays its own until a person frees it. */
  readonly isLeased: boolean;
  /** The session that its claim ends with; undefined if the claim has a lease of its own, or is that of another program; not known through a server. */
  readonly session: string | undefined;
  /** How often it was claimed. */
  readonly attempts: number;
  /** How many attempts a worker reported as failed since it was published or requeued. */
  readonly failures: number;
  /** In how many attempts the worker died or lost its claim since then. */
  readonly losses: number;
  /** When the pause before the next attempt ends, by the clock of the process that reported the failure. */
  readonly retryAt: number | undefined;
  /** What its worker completed it with. */
  readonly result: Result | undefined;
  /** Why it failed, the last time it did. */
  readonly reason: string | undefined;
  /** When it was published, by the clock of the process that did; workers that are not signalbox leave no times. */
  readonly publishedAt: number | undefined;
  /** Who published it, if that was said. */
  readonly publishedBy: string | undefined;
  /** When it was claimed, by the clock of the worker. */
  readonly claimedAt: number | undefined;
  /** When it ended, by the clock of the worker. */
  readonly endedAt: number | undefined;
}

/** As users see it: a task that has lost its last worker has failed, even if no process has written that down yet. */
export function shownStatusOf(task: Task): TaskStatus {
  return lostTooOften(task) === undefined ? statusOf(task) : 'failed';
}

/** What is going to be written down about a task that has lost too many workers. */
function lostTooOften(task: Task): TaskWrite['bookkeeping'] | undefined {
  const repair = decideRepair(task, task.bookkeeping?.entry.claim?.at ?? 0);
  return repair?.status === 'failed' ? repair.bookkeeping : undefined;
}

/** `status`: of the tasks that this one depends on. */
export function viewOf(task: Task, status: (id: string) => TaskStatus | undefined): TaskView {
  const { data, owner, bookkeeping } = task;
  const lost = lostTooOften(task);
  const now = lost === undefined ? statusOf(task) : 'failed';
  const entry = lost ?? bookkeeping?.entry;
  const isRunning = now === 'running';
  const claim = claimEntryOf(task);
  return {
    id: task.id,
    status: now,
    data: ownCopy(data?.json),
    ...(data?.terms ?? NO_TERMS),
    blockedBy: now === 'pending' ? blockersOf(task, status) : [],
    owner: isOwned(task) ? owner?.holder : undefined,
    token: isOwned(task) ? owner?.token : undefined,
    isLeased: isOwned(task) && owner?.lease !== null,
    session: isRunning && claim !== undefined && claim.detached !== true ? processOf(claim.id) : undefined,
    attempts: entry?.attempts ?? 0,
    failures: entry?.failures ?? 0,
    losses: entry?.losses ?? 0,
    retryAt: isBackingOff(task) ? entry?.retryAt : undefined,
    result: now === 'complete' ? entry?.result : undefined,
    reason: entry?.reason,
    publishedAt: entry?.publishedAt,
    publishedBy: entry?.publishedBy,
    claimedAt: claim?.at,
    endedAt: isRunning || lost !== undefined ? undefined : entry?.endedAt,
  };
}
