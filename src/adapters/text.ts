/** Bytes as text. */
import { Failure, shown } from '../failure.ts';

/**
 * A stray byte in a log must not keep a guard from finding what it looks for: it becomes U+FFFD. But what has NULs in it
 * is no text, or text in another encoding, and `it does not contain that` would be wrong.
 */
export function textOf(bytes: Buffer, path: string): string {
  if (bytes.includes(0)) throw new Failure('invalid', `${shown(path)} is not text in UTF-8: it has NUL bytes`);
  return new TextDecoder().decode(bytes);
}
