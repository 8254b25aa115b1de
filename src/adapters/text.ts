/** Reads bytes as text. */
import { Failure, shown } from '../failure.ts';

/**
 * A stray byte in a log becomes U+FFFD and must not keep a guard from finding its text. But a file with NULs is not text, or
 * is text in another encoding, and the answer "it does not contain that" would be wrong.
 */
export function textOf(bytes: Buffer, path: string): string {
  if (bytes.includes(0)) throw new Failure('invalid', `${shown(path)} is not text in UTF-8: it has NUL bytes`);
  return new TextDecoder().decode(bytes);
}
