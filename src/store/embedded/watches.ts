/**
 * A watch is a cursor into the history that all processes share: everything up to it has been looked through. It looks
 * further when its process is woken, and reads at its own pace.
 */
import type { Failure } from '../../failure.ts';
import type { Changes, KeyRange, Revision, Watch } from '../contract.ts';
import { rangeTest } from '../key-order.ts';

type Reader = {
  readonly resolve: (result: IteratorResult<Changes, undefined>) => void;
  readonly reject: (error: unknown) => void;
};

/** What was changed in a range after a revision, and up to which revision that is all there is. */
export type Look = (
  since: Revision,
  range: KeyRange,
) => { readonly asOf: Revision; readonly changes: readonly Changes[] };

const DONE: IteratorResult<Changes, undefined> = { done: true, value: undefined };
/** So many are read ahead; the rest waits in the file. */
const READ_AHEAD = 256;

export class EmbeddedWatch implements Watch, AsyncIterator<Changes, undefined> {
  readonly since: Revision;
  readonly range: KeyRange;
  readonly #isWanted: (key: string) => boolean;
  readonly #look: Look;
  readonly #signal: AbortSignal;
  readonly #onEnd: (watch: EmbeddedWatch) => void;
  readonly #ready: Changes[] = [];
  readonly #readers: Reader[] = [];
  #cursor: Revision;
  #failure: unknown;
  #ended = false;

  constructor(
    range: KeyRange,
    since: Revision,
    look: Look,
    signal: AbortSignal,
    onEnd: (watch: EmbeddedWatch) => void,
  ) {
    this.range = range;
    this.since = since;
    this.#cursor = since;
    this.#isWanted = rangeTest(range);
    this.#look = look;
    this.#signal = signal;
    this.#onEnd = onEnd;
    signal.addEventListener('abort', this.end);
  }

  [Symbol.asyncIterator](): AsyncIterator<Changes, undefined> {
    return this;
  }

  next(): Promise<IteratorResult<Changes, undefined>> {
    if (this.#ready.length === 0 && this.#failure === undefined && !this.#ended) this.lookFurther();
    const changes = this.#ready.shift();
    if (changes !== undefined) return Promise.resolve({ done: false, value: changes });
    if (this.#failure !== undefined) return Promise.reject(this.#fail());
    if (this.#ended) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<Changes, undefined>> {
    this.end();
    return Promise.resolve(DONE);
  }

  /** Something was written: by whom, and whether it concerns this watch, is found out by looking. */
  lookFurther(): void {
    // One that reads slowly finds the rest in the file when it gets there.
    while (!this.#ended && this.#failure === undefined && this.#ready.length < READ_AHEAD) {
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
        this.refuse(error as Failure);
      }
    }
  }

  /** Made by this very process: mostly it need not be looked for in the file. Answers whether it still may have to. */
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

  /** Whoever reads it on is told this. */
  refuse(failure: unknown): void {
    this.#failure ??= failure;
    const reader = this.#readers.shift();
    reader?.reject(this.#fail());
  }

  #deliver(changes: Changes): void {
    const reader = this.#readers.shift();
    if (reader !== undefined) reader.resolve({ done: false, value: changes });
    else this.#ready.push(changes);
  }

  /** Told once; after that it is over. */
  #fail(): Error {
    const failure = this.#failure as Error;
    this.#failure = undefined;
    this.end();
    return failure;
  }

  readonly end = (): void => {
    if (this.#ended) return;
    this.#ended = true;
    this.#ready.length = 0;
    this.#signal.removeEventListener('abort', this.end);
    this.#onEnd(this);
    for (const { resolve } of this.#readers.splice(0)) resolve(DONE);
  };
}
