/**
 * A watch is a cursor into the shared history, not a queue of its own, so a slow reader costs no memory.
 *
 *     level    the reader has everything: each commit is offered to the watch
 *     behind   the cursor is at a revision that the reader has not read: commits skip the watch
 *
 * Compaction does not harm a level watch, however long it was quiet: it needs only future changes.
 */
import { Failure } from '../../failure.ts';
import type { Changes, KeyRange, Revision } from '../contract.ts';
import { rangeTest } from '../key-order.ts';
import { WatchIterator } from '../watch-iterator.ts';
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

  /** Called by every commit. Readers run later, as promises do, and never in the middle of a transaction. */
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

export class MemoryWatch extends WatchIterator {
  readonly since: Revision;
  readonly #watches: Watches;
  readonly #history: History;
  readonly #isWanted: (key: string) => boolean;
  readonly #onEnd: () => void;
  #cursor: Revision | 'level' = 'level';

  constructor(
    watches: Watches,
    history: History,
    range: KeyRange,
    since: Revision,
    signal: AbortSignal,
    onEnd: () => void,
  ) {
    super(signal);
    this.#watches = watches;
    this.#history = history;
    this.#isWanted = rangeTest(range);
    this.since = since;
    this.#onEnd = onEnd;
    // If `since` is compacted already, the cursor stays there and the first `next` fails.
    if (since < history.compacted) this.#cursor = since + 1;
    else this.#seek(since + 1);
  }

  protected take(): Changes | undefined {
    const revision = this.#cursor;
    if (revision === 'level') return undefined;
    const { compacted } = this.#history;
    if (revision <= compacted) {
      const told = `revision ${revision} is compacted, and so is all history up to ${compacted}: list again`;
      this.fail(new Failure('compacted', told));
      return undefined;
    }
    const changes = this.#history.at(revision, this.#isWanted) ?? [];
    this.#seek(revision + 1);
    return { revision, changes };
  }

  /** Moves the cursor to the next revision that concerns this watch. */
  #seek(from: Revision): void {
    this.#cursor = this.#history.find(from, this.#isWanted) ?? 'level';
    if (this.#cursor === 'level') this.#watches.caughtUp(this);
  }

  /** Offers a new revision to a watch that was level. Returns whether it still is. */
  offer(revision: Revision, changed: Changed): boolean {
    const changes = select(changed, this.#isWanted);
    if (changes === undefined || this.give({ revision, changes })) return true;
    this.#cursor = revision;
    return false;
  }

  protected ended(): void {
    this.#watches.forget(this);
    this.#onEnd();
  }
}
