/**
 * The entries in order of their keys. It changes only when a key comes that is not in it yet, or a place is cleared:
 * not when a key is put again, nor when it is deleted and comes back.
 *
 *     low ''                 low 'q/lock/b/…'       low 'r/lock/…'
 *     [ a… q/lock/a/… ]      [ q/lock/b/… q/… ]     [ r/lock/… ]
 *
 * Finding a key takes one binary search over the chunks' lows and one in a chunk.
 */
import { compareKeys, isPlain, NO_END } from '../key-order.ts';
import { Chunk, FULL, insertByAge } from './chunk.ts';
import { compareAge, type Entry, isLive, type LiveEntry } from './entry.ts';

/** Where a range lies, if it lies in one chunk. */
interface Slice {
  readonly end: string;
  readonly chunk: Chunk;
  readonly version: number;
  readonly from: number;
  readonly to: number;
}

interface Part {
  readonly chunk: Chunk;
  readonly from: number;
  readonly to: number;
}

const FEW_PLACES = 8;
/** So many slices are remembered whatever the size of the store. */
const FEW_SLICES = 1024;

export class SortedEntries {
  readonly #chunks: Chunk[] = [new Chunk('', [])];
  readonly #slices = new Map<string, Slice>();
  #size = 0;
  /** As long as all keys here are plain, `<` orders any key against them. */
  #plain = true;

  add(entry: Entry): void {
    if (this.#plain && !isPlain(entry.key)) this.#plain = false;
    const number = this.#chunkOf(entry.key);
    const chunk = this.#chunks[number] as Chunk;
    chunk.insert(this.#positionIn(chunk, entry.key), entry);
    this.#size++;
    if (chunk.entries.length <= FULL) return;
    const upper = chunk.halve();
    this.#chunks.splice(number + 1, 0, new Chunk((upper[0] as Entry).key, upper));
  }

  /** Takes out all of a chunk's entries whose keys do not exist. */
  #clear(chunk: Chunk): void {
    this.#size -= chunk.clear();
    if (chunk.entries.length === 0 && chunk.low !== '') this.#chunks.splice(this.#chunkOf(chunk.low), 1);
  }

  clearAround(entry: Entry): void {
    if (entry.chunk !== undefined) this.#clear(entry.chunk);
  }

  /**
   * "Nobody waits" is asked in every acquire and release, mostly of ranges around which nothing moved: then it is
   * known where the range lies, and only the places in it are looked at, mostly none.
   */
  isEmpty(first: string, end: string): boolean {
    const slice = this.#slices.get(first);
    if (slice === undefined || slice.version !== slice.chunk.version || slice.end !== end) return this.#lookWhetherEmpty(first, end);
    const { entries } = slice.chunk;
    for (let at = slice.from; at < slice.to; at++) if ((entries[at] as Entry).pair !== undefined) return false;
    // A queue that was long and is over: nobody shall walk past the places of those who waited at every acquire from now on.
    if (slice.to - slice.from > FEW_PLACES) this.#clear(slice.chunk);
    return true;
  }

  #lookWhetherEmpty(first: string, end: string): boolean {
    const number = this.#chunkOf(first);
    const chunk = this.#chunks[number] as Chunk;
    for (;;) {
      const next = this.#chunks[number + 1];
      if (next === undefined || !this.#isBeforeEnd(next.low, end)) break;
      if (isLive(next.entries[0])) return false;
      this.#clear(next);
    }
    const from = this.#positionIn(chunk, first);
    const to = end === NO_END ? chunk.entries.length : this.#positionIn(chunk, end);
    if (this.#slices.size >= Math.max(FEW_SLICES, this.#size)) this.#slices.clear();
    this.#slices.set(first, { end, chunk, version: chunk.version, from, to });
    return !chunk.entries.slice(from, to).some(isLive);
  }

  count(first: string, end: string): number {
    let count = 0;
    for (const { chunk, from, to } of this.#partsOf(first, end)) {
      if (to - from === chunk.entries.length) count += chunk.live;
      else for (let at = from; at < to; at++) if (isLive(chunk.entries[at])) count++;
    }
    return count;
  }

  /** Those in a range whose keys exist, by key, at most `limit` of them. */
  byKey(first: string, end: string, limit = Number.POSITIVE_INFINITY): LiveEntry[] {
    const found: LiveEntry[] = [];
    for (const { chunk, from, to } of this.#partsOf(first, end)) {
      for (let at = from; at < to && found.length < limit; at++) {
        const entry = chunk.entries[at];
        if (isLive(entry)) found.push(entry);
      }
    }
    return found;
  }

  /** The oldest of them. */
  byAge(first: string, end: string, limit: number): LiveEntry[] {
    const oldest: LiveEntry[] = [];
    for (const { chunk, from, to } of this.#partsOf(first, end)) {
      if (to - from === chunk.entries.length) {
        for (const entry of chunk.byAge) if (!keepIfOld(oldest, entry, limit)) break;
      } else {
        for (let at = from; at < to; at++) {
          const entry = chunk.entries[at];
          if (isLive(entry)) keepIfOld(oldest, entry, limit);
        }
      }
    }
    return oldest;
  }

  /** Each chunk that the range touches, and which part of it. */
  #partsOf(first: string, end: string): Part[] {
    const parts: Part[] = [];
    const head = this.#chunkOf(first);
    const tail = end === NO_END ? this.#chunks.length - 1 : this.#chunkOf(end);
    for (let number = head; number <= tail; number++) {
      const chunk = this.#chunks[number] as Chunk;
      const from = number === head ? this.#positionIn(chunk, first) : 0;
      const to = number === tail && end !== NO_END ? this.#positionIn(chunk, end) : chunk.entries.length;
      if (from < to) parts.push({ chunk, from, to });
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

  /** Of the first entry in the chunk that is not before the key. */
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

/** Whether it is among the `limit` oldest so far. */
function keepIfOld(oldest: LiveEntry[], entry: LiveEntry, limit: number): boolean {
  if (oldest.length === limit) {
    if (compareAge(entry, oldest[limit - 1] as LiveEntry) > 0) return false;
    oldest.pop();
  }
  insertByAge(oldest, entry);
  return true;
}
