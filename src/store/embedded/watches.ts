/**
 * A watch is a cursor into the history that all processes share. It looks further when its process is woken, and its
 * reader reads at its own pace.
 */
import { Failure } from '../../failure.ts';
import type { Changes, KeyRange, Revision } from '../contract.ts';
import { rangeTest } from '../key-order.ts';
import { WatchIterator } from '../watch-iterator.ts';
import type { Cursor, News } from './engine.ts';

/** Reads what is new to a watch. */
export type Look = (cursor: Cursor) => News | Failure;

/** How many revisions are read ahead; the rest stays in the file. */
const READ_AHEAD = 256;

export class EmbeddedWatch extends WatchIterator {
  readonly since: Revision;
  readonly range: KeyRange;
  readonly #isWanted: (key: string) => boolean;
  readonly #look: Look;
  readonly #onEnd: (watch: EmbeddedWatch) => void;
  readonly #ready: Changes[] = [];
  #cursor: Revision;
  /** The file may have more for this watch than was read: the watch begins in the past, or its reader is slow. */
  #isBehind = true;

  constructor(
    range: KeyRange,
    since: Revision,
    look: Look,
    signal: AbortSignal,
    onEnd: (watch: EmbeddedWatch) => void,
  ) {
    super(signal);
    this.range = range;
    this.since = since;
    this.#cursor = since;
    this.#isWanted = rangeTest(range);
    this.#look = look;
    this.#onEnd = onEnd;
  }

  get cursor(): Cursor {
    return { since: this.#cursor, range: this.range };
  }

  protected take(): Changes | undefined {
    if (this.#ready.length === 0 && this.#isBehind) this.lookFurther();
    return this.#ready.shift();
  }

  /** Looks in the file for changes that concern this watch. */
  lookFurther(): void {
    while (this.takesMore()) {
      try {
        if (this.#receive(this.#look(this.cursor))) return;
      } catch (error) {
        this.fail(error as Error);
      }
    }
  }

  /** Takes the news that was read for all watches at once; if that reading failed, reads its own. */
  receive(news: News | Failure | undefined): void {
    if (news === undefined || (this.takesMore() && !this.#receive(news))) this.lookFurther();
  }

  /** Whether to read more for it now. A slow reader finds the rest in the file when it gets there. */
  takesMore(): boolean {
    this.#isBehind = true;
    return this.isOpen && this.#ready.length < READ_AHEAD;
  }

  /** Returns whether that is all there is. */
  #receive(news: News | Failure): boolean {
    if (news instanceof Failure) {
      this.fail(news);
      return true;
    }
    const { asOf, changes, isAll } = news;
    const upTo = isAll ? asOf : (changes.at(-1)?.revision ?? 0);
    // Since this was read, another watch may have ended, and its write may have made this one look.
    const unseen = changes.filter(({ revision }) => revision > this.#cursor);
    this.#cursor = Math.max(this.#cursor, upTo);
    this.#isBehind = !isAll;
    for (const each of unseen) this.#deliver(each);
    return isAll;
  }

  /** Takes a revision that this process wrote, mostly without reading the file. Returns whether the file must be read. */
  offer(made: Changes): boolean {
    if (made.revision <= this.#cursor) return false;
    const changes = made.changes.filter((change) =>
      this.#isWanted(change.kind === 'put' ? change.pair.key : change.key),
    );
    const isNext = made.revision === this.#cursor + 1 && this.#ready.length < READ_AHEAD;
    if (!isNext) return changes.length > 0;
    this.#cursor = made.revision;
    if (changes.length > 0) this.#deliver({ revision: made.revision, changes });
    return false;
  }

  #deliver(changes: Changes): void {
    if (!this.give(changes)) this.#ready.push(changes);
  }

  protected ended(): void {
    this.#ready.length = 0;
    this.#onEnd(this);
  }
}
