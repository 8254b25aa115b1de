/** Reads a range, given as the parts of the chunks that it touches, in order. */
import { type Chunk, insertByAge } from './chunk.ts';
import { compareAge, isLive, type LiveEntry } from './entry.ts';

export interface Part {
  readonly chunk: Chunk;
  /** The first position and the one after the last. */
  readonly from: number;
  readonly to: number;
}

export function countIn(parts: readonly Part[]): number {
  let count = 0;
  for (const { chunk, from, to } of parts) {
    if (isWhole(chunk, from, to)) count += chunk.live;
    else for (let at = from; at < to; at++) if (isLive(chunk.entries[at])) count++;
  }
  return count;
}

export function byKey(parts: readonly Part[], limit = Number.POSITIVE_INFINITY): LiveEntry[] {
  const found: LiveEntry[] = [];
  for (const { chunk, from, to } of parts) {
    for (let at = from; at < to; at++) {
      if (found.length >= limit) return found;
      const entry = chunk.entries[at];
      if (isLive(entry)) found.push(entry);
    }
  }
  return found;
}

/** Sorts by age, oldest first. In whole chunks it looks only at entries that may be among the oldest `limit`. */
export function byAge(parts: readonly Part[], limit: number): LiveEntry[] {
  const oldest: LiveEntry[] = [];
  for (const { chunk, from, to } of parts) {
    if (isWhole(chunk, from, to)) {
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

/** Keeps the entry if it is among the `limit` oldest so far; returns whether it is. */
function keepIfOld(oldest: LiveEntry[], entry: LiveEntry, limit: number): boolean {
  if (oldest.length === limit) {
    if (limit === 0 || compareAge(entry, oldest[limit - 1] as LiveEntry) > 0) return false;
    oldest.pop();
  }
  insertByAge(oldest, entry);
  return true;
}

function isWhole(chunk: Chunk, from: number, to: number): boolean {
  return to - from === chunk.entries.length;
}
