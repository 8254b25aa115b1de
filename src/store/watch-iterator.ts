/**
 * The reading side of every engine's watch: calls of `next` that wait, the failure that ends the watch, and its end.
 *
 *     open ── fail() ──▶ failed: what came before can still be read, then `next` rejects once ──▶ ended
 *       └──── end(), return(), signal aborts ────────────────────────────────────────────────────▶ ended
 */
import type { Changes, Revision, Watch } from './contract.ts';

type Step = IteratorResult<Changes, undefined>;

interface Reader {
  readonly resolve: (step: Step) => void;
  readonly reject: (error: unknown) => void;
}

const DONE: Step = { done: true, value: undefined };

export abstract class WatchIterator implements Watch, AsyncIterator<Changes, undefined> {
  abstract readonly since: Revision;
  readonly #signal: AbortSignal;
  /** Calls of `next` that wait for a change, oldest first. */
  readonly #readers: Reader[] = [];
  #failure: Error | undefined;
  #isEnded = false;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.end);
  }

  /** The next changes that are here, if any. It may call `fail` instead. */
  protected abstract take(): Changes | undefined;

  /** Called once, when the watch ends. */
  protected abstract ended(): void;

  [Symbol.asyncIterator](): AsyncIterator<Changes, undefined> {
    return this;
  }

  get isOpen(): boolean {
    return !this.#isEnded && this.#failure === undefined;
  }

  next(): Promise<Step> {
    if (this.#isEnded) return Promise.resolve(DONE);
    const changes = this.take();
    if (changes !== undefined) return Promise.resolve({ done: false, value: changes });
    // `take` may have ended it.
    if (this.#isEnded) return Promise.resolve(DONE);
    const failure = this.#failure;
    if (failure === undefined) return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
    this.end();
    return Promise.reject(failure);
  }

  return(): Promise<Step> {
    this.end();
    return Promise.resolve(DONE);
  }

  /** Ends the watch with an error, which exactly one call of `next` throws. */
  fail(error: Error): void {
    if (!this.isOpen) return;
    this.#failure = error;
    const reader = this.#readers.shift();
    if (reader === undefined) return;
    this.end();
    reader.reject(error);
  }

  readonly end = (): void => {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#signal.removeEventListener('abort', this.end);
    this.ended();
    for (const reader of this.#readers.splice(0)) reader.resolve(DONE);
  };

  /** Gives the changes to the oldest call of `next` that waits. Returns false if none waits. */
  protected give(changes: Changes): boolean {
    const reader = this.#readers.shift();
    reader?.resolve({ done: false, value: changes });
    return reader !== undefined;
  }
}
