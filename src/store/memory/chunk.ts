/** A run of neighbouring entries, short enough that making room in it costs little. */
import { compareAge, type Entry, isLive, type LiveEntry } from './entry.ts';

export class Chunk {
  /** The chunk holds the keys from here up to the next chunk's `low`; that of the first chunk is the empty string. */
  low: string;
  readonly entries: Entry[];
  /** Raised when entries move: positions known from before no longer hold. */
  version = 0;
  /** How many of the keys exist. */
  live = 0;
  /**
   * The existing keys by age: made when first asked for and kept up to date from then on. Every handoff reads a long
   * queue this way.
   */
  #byAge: LiveEntry[] | undefined = undefined;

  constructor(low: string, entries: Entry[]) {
    this.low = low;
    this.entries = entries;
    for (const entry of entries) {
      entry.chunk = this;
      if (isLive(entry)) this.live++;
    }
  }

  insert(at: number, entry: Entry): void {
    entry.chunk = this;
    insertAt(this.entries, at, entry);
    this.version++;
  }

  cameToBe(entry: LiveEntry): void {
    this.live++;
    if (this.#byAge !== undefined) insertByAge(this.#byAge, entry);
  }

  ceased(entry: LiveEntry): void {
    this.live--;
    if (this.#byAge !== undefined) this.#byAge.splice(this.#byAge.indexOf(entry), 1);
  }

  get byAge(): readonly LiveEntry[] {
    this.#byAge ??= this.entries.filter(isLive).sort(compareAge);
    return this.#byAge;
  }

  /** Moves the upper half to a new chunk. */
  split(): Chunk {
    const upper = this.entries.splice(this.entries.length >>> 1);
    const above = new Chunk((upper[0] as Entry).key, upper);
    this.live -= above.live;
    this.#byAge = undefined;
    this.version++;
    return above;
  }

  /** Takes out the entries whose keys do not exist, and returns how many there were. */
  clear(): number {
    const { entries } = this;
    let kept = 0;
    for (const entry of entries) {
      if (isLive(entry)) entries[kept++] = entry;
      else entry.chunk = undefined;
    }
    const cleared = entries.length - kept;
    entries.length = kept;
    // Keys cleared at the front belong to the chunk before again: a range that ends there then lies in that chunk alone.
    if (kept > 0 && this.low !== '') this.low = (entries[0] as Entry).key;
    this.version++;
    return cleared;
  }
}

/** Searches from the end: a new key is the youngest, except for others of the same transaction. */
export function insertByAge(byAge: LiveEntry[], entry: LiveEntry): void {
  let at = byAge.length;
  while (at > 0 && compareAge(byAge[at - 1] as LiveEntry, entry) > 0) at--;
  insertAt(byAge, at, entry);
}

/** Does what `splice` does for one element, at a third of the cost. */
function insertAt<T>(list: T[], at: number, item: T): void {
  list.push(item);
  for (let i = list.length - 1; i > at; i--) list[i] = list[i - 1] as T;
  list[at] = item;
}
