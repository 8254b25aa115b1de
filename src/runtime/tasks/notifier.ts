/** Tells subscribers of tasks that can be done. Each has a queue of its own, so a slow subscriber delays nobody. */
import { isBackingOff, type Json, statusOf, type Task } from '../../core/index.ts';
import { SubscriberQueue } from '../subscriber-queue.ts';
import { type Subscription, subscription } from '../subscription.ts';
import { type TaskView, viewOf } from './reading.ts';
import type { Runtime } from '../runtime.ts';
import { sharesOneClock } from '../session/session.ts';
import type { TaskCache, Turn } from './task-cache.ts';

/** Why a subscriber hears of a task: it is new, it is pending again, or what it depended on is complete. */
export type TaskNotice<Data = Json, Result = Json> =
  | {
      readonly why: 'published' | 'released' | 'requeued' | 'unblocked' | 'pending';
      readonly task: TaskView<Data, Result>;
    }
  /** The subscriber missed something. What has changed meanwhile, or all that is pending now, comes next. */
  | { readonly why: 'resync' };

/** Called for each task that can be done; the next call waits until it is done. */
export type TaskHandler<Data = Json, Result = Json> = (notice: TaskNotice<Data, Result>) => void | Promise<void>;

export class Notifier {
  readonly #runtime: Runtime;
  readonly #cache: TaskCache;
  readonly #subscribers = new Set<SubscriberQueue<TaskNotice>>();

  constructor(runtime: Runtime, cache: TaskCache) {
    this.#runtime = runtime;
    this.#cache = cache;
  }

  /** `pending`: whether the subscriber begins with the tasks that are pending already. */
  async subscribe(handler: TaskHandler, pending: boolean): Promise<Subscription> {
    await this.#cache.start();
    const called: TaskHandler = (notice) => {
      if (notice.why === 'published') this.reached(notice.task.publishedAt, this.#cache.get(notice.task.id));
      return handler(notice);
    };
    const subscriber = new SubscriberQueue(called, () => this.#resync());
    if (pending) subscriber.restart(this.#pending());
    this.#subscribers.add(subscriber);
    return subscription(() => {
      subscriber.stop();
      this.#subscribers.delete(subscriber);
    });
  }

  /** A task has reached its worker. Two machines have two clocks: across machines, only tasks of this process are measured. */
  reached(publishedAt: number | undefined, task: Task | undefined): void {
    const { measures, clock, store } = this.#runtime;
    if (publishedAt === undefined) return;
    if (sharesOneClock(store)) return measures.took('publishToCallback', clock.now() - publishedAt);
    measures.arrived('publishToCallback', task?.data?.published ?? 0, clock.monotonic());
  }

  turned(turn: Turn): void {
    const why = reasonOf(turn);
    if (why !== undefined && this.#subscribers.size > 0) this.tell({ why, task: this.view(turn.after) });
  }

  tell(notice: TaskNotice): void {
    for (const subscriber of this.#subscribers) subscriber.add(notice);
  }

  view(task: Task): TaskView {
    return viewOf(task, (id) => this.#cache.status(id));
  }

  stop(): void {
    for (const subscriber of this.#subscribers) subscriber.stop();
  }

  /** After an overflow the subscriber gets all that is pending, in place of the notices that were dropped. */
  *#resync(): Iterable<TaskNotice> {
    yield { why: 'resync' };
    yield* this.#pending();
  }

  /** In order of publication. A task that is no longer pending when its turn comes is left out. */
  *#pending(): Iterable<TaskNotice> {
    const now = [...this.#cache.values()].filter((task) => task.data !== undefined && statusOf(task) === 'pending');
    now.sort((a, b) => (a.data?.published ?? 0) - (b.data?.published ?? 0));
    for (const id of now.map((task) => task.id)) {
      const task = this.#cache.get(id);
      if (task?.data !== undefined && statusOf(task) === 'pending') yield { why: 'pending', task: this.view(task) };
    }
  }
}

/** Why subscribers hear of this turn; undefined if they do not. */
function reasonOf({ before, after }: Turn): 'published' | 'released' | 'requeued' | undefined {
  if (after.data === undefined) return undefined;
  if (before.data === undefined || before.data.published !== after.data.published) return 'published';
  if (statusOf(after) !== 'pending' || isBackingOff(after)) return undefined;
  // Subscribers hear of it when the pause is over: before that no worker could claim it.
  if (isBackingOff(before)) return 'requeued';
  if (statusOf(before) === 'pending') return undefined;
  const hasNewEntry = before.bookkeeping?.mod !== after.bookkeeping?.mod;
  const types = hasNewEntry ? (after.bookkeeping?.entry.events ?? []).map(({ type }) => type) : [];
  if (types.includes('task:released')) return 'released';
  // A worker that is not signalbox releases a task by writing its status; a worker that dies writes nothing.
  return !hasNewEntry && after.status?.word === 'pending' && before.status?.mod !== after.status.mod
    ? 'released'
    : 'requeued';
}
