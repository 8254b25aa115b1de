/** Who wants to hear of tasks that can be done. Each is told in order, from a queue of its own: a slow one delays nobody. */
import type { TaskView } from './view.ts';

/** Why a task is told: it is new, it is pending again, or what it depended on is complete. */
export type TaskNotice =
  | { readonly why: 'published' | 'released' | 'requeued' | 'unblocked' | 'pending'; readonly task: TaskView }
  /** Something was missed. What has changed meanwhile, or all that is pending now, is told next. */
  | { readonly why: 'resync' };

export type TaskHandler = (notice: TaskNotice) => void | Promise<void>;

export const LONGEST_QUEUE = 1000;

export class TaskSubscriber {
  readonly #handler: TaskHandler;
  readonly #pending: () => Iterable<TaskView>;
  #queue: TaskNotice[] = [];
  /** Its queue overflowed: all that is pending is told one by one instead of what was in it. */
  #overflowed = false;
  #catchingUp: Iterator<TaskView> | undefined;
  #draining = false;
  #stopped = false;

  /** `pending`: all that can be told of now, for one who has missed something. */
  constructor(handler: TaskHandler, pending: () => Iterable<TaskView>) {
    this.#handler = handler;
    this.#pending = pending;
  }

  tell(notice: TaskNotice): void {
    if (this.#stopped) return;
    if (this.#queue.length >= LONGEST_QUEUE) return this.#overflow();
    this.#queue.push(notice);
    this.#wake();
  }

  /** Begins with all that is pending now. */
  catchUp(): void {
    this.#catchingUp = this.#pending()[Symbol.iterator]();
    this.#wake();
  }

  stop(): void {
    this.#stopped = true;
    this.#queue = [];
  }

  #overflow(): void {
    this.#queue = [{ why: 'resync' }];
    this.#overflowed = true;
    this.#catchingUp = undefined;
    this.#wake();
  }

  #wake(): void {
    if (this.#draining) return;
    this.#draining = true;
    queueMicrotask(() => void this.#drain());
  }

  #next(): TaskNotice | undefined {
    const task = this.#catchingUp?.next();
    if (task !== undefined && task.done !== true) return { why: 'pending', task: task.value };
    this.#catchingUp = undefined;
    return this.#queue.shift();
  }

  async #drain(): Promise<void> {
    for (let notice = this.#next(); notice !== undefined && !this.#stopped; notice = this.#next()) {
      try {
        await this.#handler(notice);
      } catch (error) {
        // A bug in a handler is its own: told the way an event listener's is, and the next one still comes.
        queueMicrotask(() => {
          throw error;
        });
      }
      if (notice.why !== 'resync' || !this.#overflowed) continue;
      this.#overflowed = false;
      this.#catchingUp = this.#pending()[Symbol.iterator]();
    }
    this.#draining = false;
  }
}
