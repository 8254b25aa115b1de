/**
 * The entries in order of their keys. The order changes only when a key arrives that has no place yet, or when places
 * are cleared: not when a key is put again, nor when it is deleted and comes back.
 *
 *     low ''                 low 'q/lock/b/…'       low 'r/lock/…'
 *     [ a… q/lock/a/… ]      [ q/lock/b/… q/… ]     [ r/lock/… ]         chunks
 *
 * Finding a key takes one binary search over the chunks' lows and one in a chunk.
 */
import { compareKeys, NO_END } from '../key-order.ts';
import { WideMap } from '../wide-map.ts';
import { Chunk } from './chunk.ts';
import { type Entry, isLive } from './entry.ts';
import type { Part } from './part.ts';

/** Where a range was found to lie, all in one chunk. */
interface Slice extends Part {
  readonly end: string;
  readonly version: number;
}

/** Longer chunks cost more to insert into, shorter ones more to find. */
const FULL = 64;
/** How many entries of deleted keys a range read may have to walk past. */
const FEW_PLACES = 8;
/** How many slices are remembered, even in a small store. */
const FEW_SLICES = 1024;

export class SortedEntries {
  readonly #chunks: Chunk[] = [new Chunk('', [])];
  readonly #slices = new WideMap<Slice>();
  #size = 0;
  /** As long as all keys here are plain, `<` orders any key against them. */
  #plain = true;

  add(entry: Entry): void {
    if (!entry.isPlain) this.#plain = false;
    const number = this.#chunkOf(entry.key);
    const chunk = this.#chunks[number] as Chunk;
    chunk.insert(this.#positionIn(chunk, entry.key), entry);
    this.#size++;
    if (chunk.entries.length > FULL) this.#chunks.splice(number + 1, 0, chunk.split());
  }

  /** Clears, in the chunk of this entry, all entries whose keys do not exist. */
  clearAround(entry: Entry): void {
    if (entry.chunk !== undefined) this.#clear(entry.chunk);
  }

  #clear(chunk: Chunk): void {
    this.#size -= chunk.clear();
    if (chunk.entries.length === 0 && chunk.low !== '') this.#chunks.splice(this.#chunkOf(chunk.low), 1);
  }

  /**
   * Every acquire and release asks whether a queue is empty, most often for a range around which nothing moved. Then
   * the place of the range is known, and only the entries in it are checked, most often none.
   */
  isEmpty(first: string, end: string): boolean {
    const slice = this.#slices.get(first);
    if (slice === undefined || slice.version !== slice.chunk.version || slice.end !== end)
      return this.#lookWhetherEmpty(first, end);
    const { entries } = slice.chunk;
    for (let at = slice.from; at < slice.to; at++) if (isLive(entries[at])) return false;
    // A long queue has ended. Its entries are cleared; otherwise, every later acquire would walk past them.
    if (slice.to - slice.from > FEW_PLACES) this.#clear(slice.chunk);
    return true;
  }

  #lookWhetherEmpty(first: string, end: string): boolean {
    const number = this.#chunkOf(first);
    for (;;) {
      const next = this.#chunks[number + 1];
      if (next === undefined || !this.#isBeforeEnd(next.low, end)) break;
      if (isLive(next.entries[0])) return false;
      this.#clear(next);
    }
    const chunk = this.#chunks[number] as Chunk;
    const from = this.#positionIn(chunk, first);
    const to = end === NO_END ? chunk.entries.length : this.#positionIn(chunk, end);
    if (this.#slices.size >= Math.max(FEW_SLICES, this.#size)) this.#slices.clear();
    this.#slices.set(first, { end, chunk, version: chunk.version, from, to });
    return !chunk.entries.slice(from, to).some(isLive);
  }

  /** The first parts of the range if they have `enough` keys that exist, otherwise all of them. */
  partsOf(first: string, end: string, enough = Number.POSITIVE_INFINITY): Part[] {
    const parts: Part[] = [];
    let found = 0;
    const head = this.#chunkOf(first);
    const tail = end === NO_END ? this.#chunks.length - 1 : this.#chunkOf(end);
    for (let number = head; number <= tail && found < enough; number++) {
      const chunk = this.#chunks[number] as Chunk;
      const from = number === head ? this.#positionIn(chunk, first) : 0;
      const to = number === tail && end !== NO_END ? this.#positionIn(chunk, end) : chunk.entries.length;
      if (from < to) parts.push({ chunk, from, to });
      // Only part of the first chunk may be in the range.
      if (number > head) found += chunk.live;
    }
    return parts;
  }

  /** The chunk that has, or would have, this key: the last one whose `low` is not after it. */
  #chunkOf(key: string): number {
    const chunks = this.#chunks;
    let low = 1;
    let high = chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isBefore(key, (chunks[middle] as Chunk).low)) high = middle;
      else low = middle + 1;
    }
    return low - 1;
  }

  /** The position of the first entry in the chunk that is not before the key. */
  #positionIn({ entries }: Chunk, key: string): number {
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isBefore((entries[middle] as Entry).key, key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #isBefore(a: string, b: string): boolean {
    return this.#plain ? a < b : compareKeys(a, b) < 0;
  }

  #isBeforeEnd(key: string, end: string): boolean {
    return end === NO_END || this.#isBefore(key, end);
  }
}
