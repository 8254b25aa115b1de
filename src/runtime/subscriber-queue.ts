/**
 * Hands items to one subscriber's handler: in order, one at a time, and never on the path of the watch, so that a slow
 * handler delays nobody else.
 *
 *     add ──▶ queue ──▶ handler
 *      └ full: the queue is emptied, and what `onOverflow` answers comes first
 *
 * Nothing is lost silently: what `onOverflow` answers begins with an item that says so.
 */

/** Items that come before the queue. A generator runs only when the handler is ready for its next item. */
export type Source<T> = Iterable<T> | AsyncIterable<T>;

export const LONGEST_QUEUE = 1000;

export class SubscriberQueue<T> {
  readonly #handler: (item: T) => void | Promise<void>;
  readonly #onOverflow: (dropped: readonly T[]) => Source<T>;
  #items: T[] = [];
  #first: Iterator<T> | AsyncIterator<T> | undefined;
  #isDraining = false;
  #isStopped = false;

  /** `onOverflow`: what the handler gets in place of the items that the queue has no room for. */
  constructor(handler: (item: T) => void | Promise<void>, onOverflow: (dropped: readonly T[]) => Source<T>) {
    this.#handler = handler;
    this.#onOverflow = onOverflow;
  }

  add(...items: readonly T[]): void {
    if (this.#isStopped) return;
    if (this.#items.length + items.length > LONGEST_QUEUE) return this.restart(this.#onOverflow(items));
    this.#items.push(...items);
    this.#wake();
  }

  /** Empties the queue. `source` comes next, then what is added from now on. */
  restart(source: Source<T>): void {
    this.#items = [];
    this.#first = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
    this.#wake();
  }

  /** The handler is not called again. */
  stop(): void {
    this.#isStopped = true;
    this.#items = [];
    this.#first = undefined;
  }

  #wake(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    queueMicrotask(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    while (!this.#isStopped) {
      const first = this.#first;
      if (first === undefined) {
        const item = this.#items.shift();
        if (item === undefined) break;
        await this.#handle(item);
        continue;
      }
      const next = await first.next();
      if (next.done !== true) await this.#handle(next.value);
      // An overflow in the meantime has put another source there.
      else if (this.#first === first) this.#first = undefined;
    }
    this.#isDraining = false;
  }

  async #handle(item: T): Promise<void> {
    if (this.#isStopped) return;
    try {
      await this.#handler(item);
    } catch (error) {
      // Reports a bug in the handler as Node reports one in an event listener. The next item still comes.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
