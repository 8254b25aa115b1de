/**
 * Keys are ordered by their UTF-8 bytes, as etcd and SQLite order them; that is the order of code points. JavaScript's
 * `<` goes by UTF-16 units and disagrees in one place: where a surrogate, which stands for a code point above U+FFFF,
 * meets a unit from U+E000 up. So `<` is right whenever one of the two keys is *plain*: free of both.
 */
import type { KeyRange } from './contract.ts';

/** The end of a range that has no end: every key from the first on. No key comes before `'\0'`, so no other meaning is lost. */
export const NO_END = '\0';

/** Written as the bounds of one class, so that the engine can answer for a one-byte string without looking at it. */
const NOT_PLAIN = /[\ud800-\uffff]/;

export function isPlain(key: string): boolean {
  return !NOT_PLAIN.test(key);
}

export function compareKeys(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Lifts the surrogates above the units that follow them. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

export function isInRange(key: string, range: KeyRange): boolean {
  if (range.end === undefined) return key === range.key;
  if (compareKeys(key, range.key) < 0) return false;
  return range.end === NO_END || compareKeys(key, range.end) < 0;
}

/** Prepares the test for a range that is asked about often; it costs no more than `<` wherever `<` is right. */
export function rangeTest(range: KeyRange): (key: string) => boolean {
  const { key: first, end } = range;
  if (end === undefined) return (key) => key === first;
  if (!isPlain(first) || !isPlain(end)) return (key) => isInRange(key, range);
  if (end === NO_END) return (key) => key >= first;
  return (key) => key >= first && key < end;
}

/** Whether the range ends before it begins, so that no key can be in it. */
export function isBackwards(range: KeyRange): boolean {
  return range.end !== undefined && range.end !== NO_END && compareKeys(range.key, range.end) >= 0;
}
