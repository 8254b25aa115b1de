/**
 * A watch is a cursor into the one history, not a queue of its own; a reader that dawdles costs nothing but its place.
 *
 *     level    has been given everything: each commit asks whether it concerns it
 *     behind   something it wants lies at or after its cursor: it reads history at its own pace, commits pass it by
 *
 * Whoever is level is not harmed by history being forgotten, however long it has been quiet: it needs only what is to come.
 */
import { Failure } from '../../failure.ts';
import type { Changes, KeyRange, Revision, Watch } from '../contract.ts';
import { rangeTest } from '../key-order.ts';
import { type Changed, type History, select } from './history.ts';

export class Watches {
  readonly #history: History;
  readonly #level: MemoryWatch[] = [];

  constructor(history: History) {
    this.#history = history;
  }

  open(range: KeyRange, since: Revision, signal: AbortSignal, onEnd: () => void): MemoryWatch {
    const watch = new MemoryWatch(this, this.#history, range, since, signal, onEnd);
    if (since >= this.#history.revision) this.#level.push(watch);
    return watch;
  }

  /** Called by every commit. What it wakes runs later, as promises do: never in the middle of a transaction. */
  announce(revision: Revision, changed: Changed): void {
    const level = this.#level;
    let i = 0;
    while (i < level.length) {
      const watch = level[i] as MemoryWatch;
      if (revision <= watch.since || watch.offer(revision, changed)) i++;
      else this.#removeAt(i);
    }
  }

  caughtUp(watch: MemoryWatch): void {
    this.#level.push(watch);
  }

  forget(watch: MemoryWatch): void {
    const at = this.#level.indexOf(watch);
    if (at >= 0) this.#removeAt(at);
  }

  #removeAt(at: number): void {
    const last = this.#level.pop() as MemoryWatch;
    if (at < this.#level.length) this.#level[at] = last;
  }
}

type Reader = (result: IteratorResult<Changes, undefined>) => void;

const DONE: IteratorResult<Changes, undefined> = { done: true, value: undefined };

export class MemoryWatch implements Watch, AsyncIterator<Changes, undefined> {
  readonly since: Revision;
  readonly #watches: Watches;
  readonly #history: History;
  readonly #isWanted: (key: string) => boolean;
  readonly #signal: AbortSignal;
  readonly #onEnd: () => void;
  /** Calls of `next` that wait for something to happen. */
  readonly #readers: Reader[] = [];
  /** When behind: the first revision not yet looked at. */
  #cursor: Revision | 'level';
  #ended = false;

  constructor(watches: Watches, history: History, range: KeyRange, since: Revision, signal: AbortSignal, onEnd: () => void) {
    this.#watches = watches;
    this.#history = history;
    this.#isWanted = rangeTest(range);
    this.since = since;
    this.#cursor = since >= history.revision ? 'level' : since + 1;
    this.#signal = signal;
    this.#onEnd = onEnd;
    signal.addEventListener('abort', this.end);
  }

  [Symbol.asyncIterator](): AsyncIterator<Changes, undefined> {
    return this;
  }

  next(): Promise<IteratorResult<Changes, undefined>> {
    if (this.#ended) return Promise.resolve(DONE);
    if (this.#cursor !== 'level') {
      if (this.#cursor <= this.#history.compacted) return Promise.reject(this.#overtaken(this.#cursor));
      const changes = this.#read(this.#cursor);
      if (changes !== undefined) return Promise.resolve({ done: false, value: changes });
    }
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  return(): Promise<IteratorResult<Changes, undefined>> {
    this.end();
    return Promise.resolve(DONE);
  }

  #overtaken(wanted: Revision): Failure {
    this.end();
    return new Failure('compacted', `revision ${wanted} is forgotten, as is all history up to ${this.#history.compacted}: list again`);
  }

  #read(from: Revision): Changes | undefined {
    const changes = this.#history.next(from, this.#isWanted);
    if (changes === undefined) {
      this.#cursor = 'level';
      this.#watches.caughtUp(this);
    } else {
      this.#cursor = changes.revision + 1;
    }
    return changes;
  }

  /** A new revision, to a watch that was level. Answers whether it still is. */
  offer(revision: Revision, changed: Changed): boolean {
    const changes = select(changed, this.#isWanted);
    if (changes === undefined) return true;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ done: false, value: { revision, changes } });
      return true;
    }
    this.#cursor = revision;
    return false;
  }

  readonly end = (): void => {
    if (this.#ended) return;
    this.#ended = true;
    this.#signal.removeEventListener('abort', this.end);
    this.#watches.forget(this);
    this.#onEnd();
    for (const reader of this.#readers.splice(0)) reader(DONE);
  };
}
