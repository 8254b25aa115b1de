/**
 * The keys of the bus are plain keys, which other programs on the same store can use too. Inside signalbox they have a slash
 * in front, which keeps them apart from its own keys; on etcd they are stored as given.
 */
import { Failure, shown } from '../../failure.ts';
import type { KeyRange } from '../../store/index.ts';

const PLAIN = '/';
const LONGEST_KEY = 4096;

export function plainKey(key: unknown): string {
  if (typeof key !== 'string' || key === '' || key.length > LONGEST_KEY || /[\p{Surrogate}\0]/u.test(key)) {
    throw new Failure('invalid', `the key is ${shown(key)}; expected a text of 1 to ${LONGEST_KEY} characters`);
  }
  return PLAIN + key;
}

export function keyOf(plain: string): string {
  return plain.slice(PLAIN.length);
}

/** All keys that begin with `prefix`, whatever it ends in. */
export function plainRange(prefix: unknown): KeyRange & { readonly end: string } {
  return rangeOf(plainKey(prefix));
}

export const ALL_PLAIN = rangeOf(PLAIN);

function rangeOf(key: string): KeyRange & { readonly end: string } {
  const points = [...key];
  for (;;) {
    const last = points.pop()?.codePointAt(0) as number;
    // No character follows this one, so the end of the range follows the one before it.
    if (last === 0x10ffff) continue;
    // Surrogates are not characters.
    const next = last === 0xd7ff ? 0xe000 : last + 1;
    return { key, end: points.join('') + String.fromCodePoint(next) };
  }
}
