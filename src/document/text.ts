/** Checks a document's text before it is parsed: its size, its encoding, and invisible characters. */
import { Lines, type PlacedProblem } from './place.ts';

export const LARGEST_BYTES = 1_048_576;

export type ReadText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problems: readonly PlacedProblem[] };

/** Characters that YAML forbids: controls other than tabs and line ends, lone surrogates, non-characters. */
const UNSEEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]|\r(?!\n)|\p{Cs}/u;

export function readText(given: string | Uint8Array): ReadText {
  const bytes = typeof given === 'string' ? new TextEncoder().encode(given) : given;
  if (bytes.length > LARGEST_BYTES) {
    return refused(1, 1, `it has more than ${LARGEST_BYTES} bytes, and no more are accepted`);
  }
  // Text is not encoded first: that would turn half of a surrogate pair into another character, and hide it.
  const decoded = typeof given === 'string' ? given : decode(given);
  if (decoded === undefined) return refused(1, 1, 'it is not UTF-8; expected text in UTF-8');
  const text = decoded.startsWith('\ufeff') ? decoded.slice(1) : decoded;
  const unseen = UNSEEN.exec(text);
  if (unseen === null) return { ok: true, text };
  const { line, column } = new Lines(text).placeOf(unseen.index);
  return refused(line, column, unseenTold(unseen[0]));
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function unseenTold(character: string): string {
  if (character === '\r') return 'a line ends with CR alone; expected LF, or CR and LF';
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `here is the character U+${code}, which nobody can see; in text it is written as an escape between double quotes`;
}

function refused(line: number, column: number, message: string): ReadText {
  return { ok: false, problems: [{ line, column, message }] };
}
