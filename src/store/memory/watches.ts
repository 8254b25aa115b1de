/**
 * A watch is a cursor into the one history, not a queue of its own; a reader that dawdles costs nothing but its place.
 *
 *     level    has been given all there is for it: each commit asks whether it concerns it
 *     behind   there is something for it at its cursor: it reads history at its own pace, and commits pass it by
 *
 * Whoever is level is not harmed when history is forgotten, however long it was quiet: it needs only what is to come.
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
    return new MemoryWatch(this, this.#history, range, since, signal, onEnd);
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
  #cursor: Revision | 'level' = 'level';
  #ended = false;

  constructor(
    watches: Watches,
    history: History,
    range: KeyRange,
    since: Revision,
    signal: AbortSignal,
    onEnd: () => void,
  ) {
    this.#watches = watches;
    this.#history = history;
    this.#isWanted = rangeTest(range);
    this.since = since;
    this.#signal = signal;
    this.#onEnd = onEnd;
    signal.addEventListener('abort', this.end);
    // What it wants is forgotten already: it stays where it is, and whoever reads it is told.
    if (since < history.compacted) this.#cursor = since + 1;
    else this.#seek(since + 1);
  }

  [Symbol.asyncIterator](): AsyncIterator<Changes, undefined> {
    return this;
  }

  next(): Promise<IteratorResult<Changes, undefined>> {
    if (this.#ended) return Promise.resolve(DONE);
    const revision = this.#cursor;
    if (revision === 'level') return new Promise((resolve) => this.#readers.push(resolve));
    if (revision <= this.#history.compacted) return Promise.reject(this.#overtaken(revision));
    const changes = this.#history.at(revision, this.#isWanted) ?? [];
    this.#seek(revision + 1);
    return Promise.resolve({ done: false, value: { revision, changes } });
  }

  return(): Promise<IteratorResult<Changes, undefined>> {
    this.end();
    return Promise.resolve(DONE);
  }

  #overtaken(wanted: Revision): Failure {
    this.end();
    return new Failure(
      'compacted',
      `revision ${wanted} is forgotten, as is all history up to ${this.#history.compacted}: list again`,
    );
  }

  /** Goes to the next revision that there is for it. */
  #seek(from: Revision): void {
    this.#cursor = this.#history.find(from, this.#isWanted) ?? 'level';
    if (this.#cursor === 'level') this.#watches.caughtUp(this);
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
