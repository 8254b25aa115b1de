/** Each resource takes two of the 128 comparisons that a transaction may have, and the horizon takes one. */
const MOST_AT_ONCE = 63;
/** Stores limit the size of a request. */
const MOST_BYTES = 1_000_000;

/** Parts that fit into one transaction each. */
export function* chunksOf<T>(all: readonly T[], textOf: (one: T) => string): Iterable<readonly T[]> {
  let chunk: T[] = [];
  let bytes = 0;
  for (const one of all) {
    const size = Buffer.byteLength(textOf(one));
    if (chunk.length === MOST_AT_ONCE || (chunk.length > 0 && bytes + size > MOST_BYTES)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(one);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}
