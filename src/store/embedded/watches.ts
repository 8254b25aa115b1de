/**
 * A watch is a cursor into the history that all processes share. It looks further when its process is woken, and its
 * reader reads at its own pace.
 */
import type { Changes, KeyRange, Revision } from '../contract.ts';
import { rangeTest } from '../key-order.ts';
import { WatchIterator } from '../watch-iterator.ts';

/** Returns the changes of a range after a revision, and the revision up to which they are complete. */
export type Look = (
  since: Revision,
  range: KeyRange,
) => { readonly asOf: Revision; readonly changes: readonly Changes[] };

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

  protected take(): Changes | undefined {
    if (this.#ready.length === 0) this.lookFurther();
    return this.#ready.shift();
  }

  /** Called when any process wrote: looks in the file for changes that concern this watch. */
  lookFurther(): void {
    // A slow reader finds the rest in the file when it gets there.
    while (this.isOpen && this.#ready.length < READ_AHEAD) {
      try {
        const { asOf, changes } = this.#look(this.#cursor, this.range);
        const last = changes.at(-1);
        if (last === undefined) {
          this.#cursor = Math.max(this.#cursor, asOf);
          return;
        }
        this.#cursor = last.revision;
        for (const each of changes) this.#deliver(each);
      } catch (error) {
        this.fail(error as Error);
      }
    }
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
