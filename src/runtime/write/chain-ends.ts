/** The ends of the witness's chains, as far as this process knows them: the next entry follows the end. */
import { NO_ENTRY } from '../../core/witness/index.ts';
import type { Revision } from '../../store/index.ts';
import type { Head } from '../layout.ts';

/** The end of a chain, as far as this process knows. */
export interface ChainEnd extends Head {
  /** The mod revision of the head key, which the write has to compare; undefined if it compares a document instead. */
  readonly keyMod: Revision | undefined;
  /**
   * The revision at which it was read, in a write of many resources, which has no room for so many comparisons: nobody deletes
   * a record, and so writes a head key, without writing the horizon first. See `nothingForgotten` in `commit.ts`.
   */
  readonly asOf?: Revision;
}

/** A first guess: no entry, as of a resource that was never used. The write compares it, so a wrong guess costs a race. */
export const NO_CHAIN: ChainEnd = { seq: 0, hash: NO_ENTRY, keyMod: 0 };

/** How many ends of chains are remembered: tasks that are published and forgotten come and go. */
const REMEMBERED = 10_000;

interface Seen {
  readonly end: ChainEnd;
  /** A revision at which this was the end. */
  readonly at: Revision;
}

/** The ends of chains that this process has seen last. */
export class ChainEnds {
  readonly #seen = new Map<string, Seen>();

  /** The newest that is known: what this process has seen, or what it was just told. */
  newest(path: string, told = NO_CHAIN): ChainEnd {
    const seen = this.#seen.get(path);
    return seen === undefined || (told.keyMod ?? 0) > seen.at ? told : seen.end;
  }

  /**
   * Takes up an end, unless a newer one is known: two writes of one process may be answered in either order. `disproved`: the
   * end that this one shows to be wrong. It is not kept, whatever its revision: a store that was restored counts from an older one.
   */
  saw(path: string, end: ChainEnd, at: Revision, disproved?: ChainEnd): void {
    const before = this.#seen.get(path);
    if (before !== undefined && before.at > at && before.end !== disproved) return;
    this.#seen.delete(path);
    this.#seen.set(path, { end, at });
    if (this.#seen.size > REMEMBERED) this.#seen.delete(this.#seen.keys().next().value as string);
  }
}
