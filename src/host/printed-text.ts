/**
 * Turns what a program prints into text. Bytes that are not UTF-8 are written as `\xff`: a replacement character would
 * look the same for all of them, and as if the program itself had printed it.
 */
import { isUtf8 } from 'node:buffer';

/** Decodes bytes that come in pieces: a character may be split between two of them. */
export class PrintedText {
  #rest: Buffer = Buffer.alloc(0);

  write(chunk: Buffer): string {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const whole = withoutBrokenEnd(bytes);
    // Copied, because a short piece would keep the whole chunk that it was cut from.
    this.#rest = Buffer.from(bytes.subarray(whole.length));
    return printedText(whole);
  }

  /** Returns the bytes of a character that was not completed. */
  end(): string {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return printedText(rest);
  }
}

export function printedText(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8');
  const pieces: string[] = [];
  let start = 0;
  for (let at = 0; at < bytes.length;) {
    const length = lengthOf(bytes[at] ?? 0);
    if (length === 1 || (length > 1 && isUtf8(bytes.subarray(at, at + length)))) {
      at += length;
      continue;
    }
    pieces.push(bytes.toString('utf8', start, at), `\\x${(bytes[at] ?? 0).toString(16).padStart(2, '0')}`);
    at += 1;
    start = at;
  }
  return pieces.join('') + bytes.toString('utf8', start);
}

/** The length of the character that begins with this byte; zero if none does. */
function lengthOf(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc0) return 0;
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Drops a broken character: in UTF-8, a character has at most three bytes after its first. */
export function withoutBrokenBeginning(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && isContinuation(bytes[start])) start++;
  return bytes.subarray(start);
}

export function withoutBrokenEnd(bytes: Buffer): Buffer {
  let last = bytes.length - 1;
  while (last > bytes.length - 4 && isContinuation(bytes[last])) last--;
  return bytes.length - last < lengthOf(bytes[last] ?? 0) ? bytes.subarray(0, Math.max(0, last)) : bytes;
}
