/**
 * A map in which no step takes long, whatever its size. A `Map` that grows past a power of two, or shrinks to a part of
 * it, moves all its entries at once: with a million entries that blocks the event loop for a tenth of a second.
 */

/** Up to this many entries, one map has them all: moving them takes a few milliseconds. */
const MOST_IN_ONE = 16_384;
/** How many maps share the entries from then on, each so small that nobody notices its growth. */
const PARTS = 256;

export class WideMap<V> {
  #whole: Map<string, V> | undefined = new Map();
  #parts: readonly Map<string, V>[] = [];
  #inParts = 0;

  get(key: string): V | undefined {
    return (this.#whole ?? this.#partOf(key)).get(key);
  }

  set(key: string, value: V): void {
    const whole = this.#whole;
    if (whole === undefined) {
      const part = this.#partOf(key);
      this.#inParts -= part.size;
      part.set(key, value);
      this.#inParts += part.size;
      return;
    }
    whole.set(key, value);
    if (whole.size > MOST_IN_ONE) this.#divide(whole);
  }

  delete(key: string): boolean {
    if (this.#whole !== undefined) return this.#whole.delete(key);
    const isDeleted = this.#partOf(key).delete(key);
    if (isDeleted) this.#inParts -= 1;
    return isDeleted;
  }

  clear(): void {
    this.#whole = new Map();
    this.#parts = [];
    this.#inParts = 0;
  }

  /** As in a `Map`, entries may be deleted during the iteration. The order is that of insertion only while there are few. */
  *values(): Iterable<V> {
    if (this.#whole !== undefined) yield* this.#whole.values();
    else for (const part of this.#parts) yield* part.values();
  }

  get size(): number {
    return this.#whole?.size ?? this.#inParts;
  }

  /** The number of entries that the next step may have to move. */
  get largestPart(): number {
    return this.#whole?.size ?? Math.max(...this.#parts.map(({ size }) => size));
  }

  #divide(whole: ReadonlyMap<string, V>): void {
    this.#parts = Array.from({ length: PARTS }, () => new Map<string, V>());
    this.#whole = undefined;
    this.#inParts = whole.size;
    for (const [key, value] of whole) this.#partOf(key).set(key, value);
  }

  #partOf(key: string): Map<string, V> {
    return this.#parts[partNumber(key)] as Map<string, V>;
  }
}

/** Uses FNV-1a, which spreads names that differ in a single character at any place. */
function partNumber(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  // The upper bits depend most on every character.
  return (hash >>> 16) & (PARTS - 1);
}
