/** Who has subscribed to tasks, and what they are told. */
import { statusOf, type Task } from '../../core/index.ts';
import type { Subscription } from '../subscription.ts';
import type { TaskCache, Turn } from './task-cache.ts';
import { type TaskHandler, type TaskNotice, TaskSubscriber } from './subscription.ts';
import { type TaskView, viewOf } from './view.ts';

export class Notifier {
  readonly #cache: TaskCache;
  readonly #subscribers = new Set<TaskSubscriber>();

  constructor(cache: TaskCache) {
    this.#cache = cache;
  }

  async subscribe(handler: TaskHandler, pending: boolean): Promise<Subscription> {
    await this.#cache.start();
    const subscriber = new TaskSubscriber(handler, () => this.#pending());
    if (pending) subscriber.catchUp();
    this.#subscribers.add(subscriber);
    const unsubscribe = (): void => {
      subscriber.stop();
      this.#subscribers.delete(subscriber);
    };
    return { unsubscribe, [Symbol.dispose]: unsubscribe };
  }

  turned(turn: Turn): void {
    const why = reasonOf(turn);
    if (why !== undefined && this.#subscribers.size > 0) this.tell({ why, task: this.view(turn.after) });
  }

  tell(notice: TaskNotice): void {
    for (const subscriber of this.#subscribers) subscriber.tell(notice);
  }

  view(task: Task): TaskView {
    return viewOf(task, (id) => this.#cache.status(id));
  }

  stop(): void {
    for (const subscriber of this.#subscribers) subscriber.stop();
  }

  /** In the order in which they were published; those that are not pending any more when they are come to are left out. */
  *#pending(): Iterable<TaskView> {
    const now = [...this.#cache.values()].filter((task) => task.data !== undefined && statusOf(task) === 'pending');
    now.sort((a, b) => (a.data?.published ?? 0) - (b.data?.published ?? 0));
    for (const id of now.map((task) => task.id)) {
      const task = this.#cache.get(id);
      if (task?.data !== undefined && statusOf(task) === 'pending') yield this.view(task);
    }
  }
}

/** Why those who wait for tasks are told of this turn; undefined if they are not. */
function reasonOf({ before, after }: Turn): 'published' | 'released' | 'requeued' | undefined {
  if (after.data === undefined) return undefined;
  if (before.data === undefined || before.data.published !== after.data.published) return 'published';
  if (statusOf(after) !== 'pending' || statusOf(before) === 'pending') return undefined;
  const isTold = before.bookkeeping?.mod !== after.bookkeeping?.mod;
  const types = isTold ? (after.bookkeeping?.entry.events ?? []).map(({ type }) => type) : [];
  if (types.includes('task:released')) return 'released';
  // A worker of another kind says so by the status; whoever dies says nothing.
  return !isTold && after.status?.word === 'pending' && before.status?.mod !== after.status.mod
    ? 'released'
    : 'requeued';
}
