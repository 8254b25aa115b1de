/**
 * The cache of all tasks, kept up to date by the feed, so that a worker finds the next task without asking the store.
 * The cache may lag behind: a claim compares that the task is still as it was read.
 */
import {
  blockersOf,
  isFinished,
  NO_BOOKKEEPING,
  NO_TERMS,
  statusOf,
  type Task,
  type TaskBookkeeping,
  type TaskData,
  type TaskStatus,
  type Terms,
  unpublished,
} from '../../core/index.ts';
import type { Change, Changes, Revision } from '../../store/index.ts';
import { compareKeys } from '../../store/key-order.ts';
import type { Runtime } from '../runtime.ts';
import type { FeedListener, TaskFeed } from './feed.ts';
import { partOf } from './keys.ts';
import { ClaimableTasks } from './claimable-tasks.ts';
import { type Page, readTasks, taskPages, withPart } from './reading.ts';
import { Slices } from '../slices.ts';
import { persistently } from '../write/write-once.ts';

/** Stands for bookkeeping whose content is no longer kept. */
const FORGOTTEN: TaskBookkeeping = { ...NO_BOOKKEEPING };

/** A change of one task. */
export interface Turn {
  readonly before: Task;
  readonly after: Task;
  readonly revision: Revision;
}

/** Gets the changes of tasks, in order. */
export interface TaskCacheListener {
  turned(turn: Turn): void;
  /** The task existed when the cache was first filled. */
  found(task: Task): void;
  /** All that the task depends on is complete now. */
  unblocked(task: Task): void;
  /** Changes were missed. What is different now follows as turns. */
  missed(): void;
  /** All changes that have arrived are delivered. */
  settled(): void;
}

export class TaskCache implements FeedListener {
  readonly claimable = new ClaimableTasks();
  readonly #runtime: Runtime;
  readonly #feed: TaskFeed;
  readonly #listener: TaskCacheListener;
  readonly #tasks = new Map<string, Task>();
  /** The tasks that depend on each task. */
  readonly #dependents = new Map<string, Set<string>>();
  /** Changes that arrive while the list is being read. */
  #early: Changes[] | undefined = [];
  /** The revision of each page of the list, to skip changes that the page already includes. */
  #listed: readonly Omit<Page, 'pairs'>[] = [];
  /** Finished tasks that are pending again, since which revision; their content is being read again. */
  readonly #reopened = new Map<string, { readonly task: Task; readonly since: Revision }>();
  #starting: Promise<void> | undefined;
  /** The first list is being read, or was. */
  #filling: Promise<void> | undefined;
  isStarted = false;
  #delivered: Revision = 0;

  constructor(runtime: Runtime, feed: TaskFeed, listener: TaskCacheListener) {
    this.#runtime = runtime;
    this.#feed = feed;
    this.#listener = listener;
  }

  async start(): Promise<void> {
    try {
      await (this.#starting ??= this.#start());
    } catch (error) {
      this.#starting = undefined;
      this.#filling = undefined;
      throw error;
    }
  }

  async #start(): Promise<void> {
    await this.#feed.listen(this);
    await (this.#filling = this.#fill());
  }

  async #fill(): Promise<void> {
    const slices = new Slices(this.#runtime);
    const { tasks, revision } = await this.#list(slices);
    for (const task of tasks.values()) {
      await slices.next();
      this.#set(task);
    }
    for (const task of tasks.values()) {
      await slices.next();
      this.#place(task.id);
      this.#listener.found(task);
    }
    this.isStarted = true;
    this.#delivered = revision;
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const changes of early) this.changes(changes);
  }

  /** The cache has every change up to this revision. */
  get asOf(): Revision {
    let asOf = this.#delivered;
    for (const { since } of this.#reopened.values()) asOf = Math.min(asOf, since - 1);
    return asOf;
  }

  get(id: string): Task | undefined {
    return this.#tasks.get(id);
  }

  values(): Iterable<Task> {
    return this.#tasks.values();
  }

  status(id: string): TaskStatus | undefined {
    const task = this.#tasks.get(id);
    return task?.data === undefined ? undefined : statusOf(task);
  }

  /** The tasks that depend on this one and are not complete: a failed one may be tried again. */
  dependentsOf(id: string): readonly string[] {
    return [...(this.#dependents.get(id) ?? [])];
  }

  changes(changes: Changes): void {
    if (this.#early !== undefined) return void this.#early.push(changes);
    const { revision } = changes;
    const touched = new Map<string, Task>();
    for (const change of changes.changes) {
      const key = change.kind === 'put' ? change.pair.key : change.key;
      const id = partOf(key)?.id;
      if (id === undefined || this.#isListed(key, revision)) continue;
      const before = touched.get(id) ?? this.#reopened.get(id)?.task ?? this.#tasks.get(id) ?? unpublished(id);
      touched.set(id, changed(before, change));
    }
    for (const after of touched.values()) {
      if (hasNoContent(after) && !isFinished(after)) this.#reopen(after, revision);
      else this.#turn(after, revision);
    }
    this.#delivered = revision;
    this.#listener.settled();
  }

  async resync(): Promise<Revision> {
    if (this.#filling === undefined) {
      const { revision } = await this.#runtime.store.health(this.#runtime.stopped);
      // A list that begins after this includes all that was missed.
      if (this.#filling === undefined) return revision;
    }
    // The first list may have read a page before the changes that were missed, so the cache reads all again.
    await this.#filling;
    const slices = new Slices(this.#runtime);
    const { tasks, revision } = await this.#list(slices);
    this.#listener.missed();
    // The latest page counts: changes up to its revision are skipped later, so a waiter for one of them hears of it now.
    const latest = Math.max(revision, ...this.#listed.map((page) => page.revision));
    for (const id of [...this.#tasks.keys()]) if (!tasks.has(id)) this.#turn(unpublished(id), latest);
    const inOrder = [...tasks.values()].sort((a, b) => (a.data?.published ?? 0) - (b.data?.published ?? 0));
    for (const task of inOrder) this.#turn(task, latest);
    this.#delivered = Math.max(this.#delivered, revision);
    this.#listener.settled();
    return revision;
  }

  /** Reads page by page while tasks change: the feed delivers what changes after the first page's revision. */
  async #list(slices: Slices): Promise<{ readonly tasks: ReadonlyMap<string, Task>; readonly revision: Revision }> {
    const tasks = new Map<string, Task>();
    const listed: Omit<Page, 'pairs'>[] = [];
    for await (const { pairs, last, revision } of taskPages(this.#runtime)) {
      listed.push({ last, revision });
      for (const pair of pairs) {
        await slices.next();
        const id = partOf(pair.key)?.id;
        if (id !== undefined) tasks.set(id, withPart(tasks.get(id) ?? unpublished(id), pair));
      }
    }
    this.#listed = listed;
    return { tasks, revision: listed[0]?.revision ?? 0 };
  }

  #isListed(key: string, revision: Revision): boolean {
    if (this.#listed.length === 0) return false;
    if (this.#listed.every((page) => page.revision < revision)) {
      this.#listed = [];
      return false;
    }
    const page = this.#listed.find(({ last }) => last === undefined || compareKeys(key, last) <= 0);
    return page !== undefined && revision <= page.revision;
  }

  /** Reads a reopened task before listeners hear of it: the cache keeps no content of finished tasks. */
  #reopen(task: Task, since: Revision): void {
    const { id } = task;
    const earlier = this.#reopened.get(id);
    this.#reopened.set(id, { task, since: earlier?.since ?? since });
    if (earlier !== undefined) return;
    const runtime = this.#runtime;
    const read = persistently(runtime, Number.POSITIVE_INFINITY, () => readTasks(runtime, [id]));
    void read.then(
      ({ tasks: [found], revision }) => {
        const waiting = this.#reopened.get(id)?.task;
        if (waiting === undefined || found === undefined) return;
        this.#turn(withContentOf(waiting, found), revision);
        this.#listener.settled();
      },
      () => {
        this.#reopened.delete(id);
        this.#listener.settled();
      },
    );
  }

  #turn(after: Task, revision: Revision): void {
    const { id } = after;
    const wasReopened = this.#reopened.delete(id);
    const before = this.#tasks.get(id) ?? unpublished(id);
    this.#set(after);
    // The terms of the task may have changed.
    if (before.data?.mod !== after.data?.mod) this.claimable.delete(id);
    this.#place(id);
    this.#listener.turned({ before, after, revision });
    if (!wasReopened && this.#statusIn(before) === this.#statusIn(after)) return;
    for (const other of this.#dependents.get(id) ?? []) {
      const wasReady = this.claimable.has(other);
      this.#place(other);
      // The cache showed a reopened task as complete, while the store refused its dependents as blocked.
      const wasBlocked = wasReopened || !wasReady;
      if (wasBlocked && this.claimable.has(other)) this.#listener.unblocked(this.#tasks.get(other) as Task);
    }
  }

  #statusIn(task: Task): TaskStatus | undefined {
    return task.data === undefined ? undefined : statusOf(task);
  }

  #set(task: Task): void {
    const { id } = task;
    const before = this.#tasks.get(id);
    if (before !== undefined) {
      for (const other of before.data?.terms.dependsOn ?? []) this.#forgetDependent(other, id);
    }
    if (isGone(task)) return void this.#tasks.delete(id);
    const kept = isFinished(task) ? withoutContent(task) : task;
    this.#tasks.set(id, kept);
    for (const other of kept.data?.terms.dependsOn ?? []) {
      this.#dependents.set(other, (this.#dependents.get(other) ?? new Set()).add(id));
    }
  }

  #forgetDependent(id: string, dependent: string): void {
    const dependents = this.#dependents.get(id);
    dependents?.delete(dependent);
    if (dependents?.size === 0) this.#dependents.delete(id);
  }

  /** Keeps the task among the claimable ones exactly while it can be claimed. */
  #place(id: string): void {
    const task = this.#tasks.get(id);
    const canBeClaimed =
      task?.data !== undefined &&
      statusOf(task) === 'pending' &&
      blockersOf(task, (other) => this.status(other)).length === 0;
    if (!canBeClaimed) return this.claimable.delete(id);
    if (!this.claimable.has(id)) this.claimable.add(id, task.data);
  }
}

function changed(task: Task, change: Change): Task {
  if (change.kind === 'put') return withPart(task, change.pair);
  const part = partOf(change.key)?.part;
  if (part === undefined) return task;
  return { ...task, [part === 'signalbox' ? 'bookkeeping' : part]: undefined };
}

function isGone({ data, owner, status, bookkeeping }: Task): boolean {
  return data === undefined && owner === undefined && status === undefined && bookkeeping === undefined;
}

/**
 * Drops the content of a finished task: only how it ended matters, and there may be very many. A failed task may be tried
 * again, so what it depends on is still known, and is not forgotten before it.
 */
function withoutContent(task: Task): Task {
  const { data, bookkeeping } = task;
  const dependsOn = statusOf(task) === 'failed' ? (data?.terms.dependsOn ?? []) : [];
  const terms = dependsOn.length === 0 ? NO_TERMS : { ...NO_TERMS, dependsOn };
  return {
    ...task,
    ...(data !== undefined && { data: new NoContent(data, terms) }),
    ...(bookkeeping !== undefined && { bookkeeping: { mod: bookkeeping.mod, entry: FORGOTTEN } }),
  };
}

class NoContent implements TaskData {
  readonly json = undefined;
  readonly terms: Terms;
  readonly problem = undefined;
  readonly published: Revision;
  readonly mod: Revision;

  constructor({ published, mod }: TaskData, terms: Terms) {
    this.terms = terms;
    this.published = published;
    this.mod = mod;
  }
}

function hasNoContent({ data, bookkeeping }: Task): boolean {
  return data instanceof NoContent || bookkeeping?.entry === FORGOTTEN;
}

/** A read of another revision is not used: the content of this one comes, or came, with the change that made it. */
function withContentOf(task: Task, { data, bookkeeping }: Task): Task {
  return {
    ...task,
    data: task.data?.mod === data?.mod ? data : task.data,
    bookkeeping: task.bookkeeping?.mod === bookkeeping?.mod ? bookkeeping : task.bookkeeping,
  };
}
