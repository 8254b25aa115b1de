/**
 * Writes canonical JSON (RFC 8785): one text for each value, so that any program computes the same hash. Keys are sorted by their
 * UTF-16 code units, there is no white space, and strings and numbers look as in ECMAScript.
 */
import type { Json } from '../machine.ts';
import { shown } from '../shown.ts';

/** Characters that need an escape in a string: quotes, backslashes, control characters, and perhaps half a surrogate pair. */
const NEEDS_CARE = /["\\\u0000-\u001f\ud800-\udfff]/;
const HALF_PAIR = /\p{Cs}/u;
const HALF_PAIRS = /\p{Cs}/gu;

/** Escapes a text for its place between quotes. */
export type Escape = (text: string) => string;

/** Throws a TypeError for values that JSON cannot express: NaN, Infinity, half a surrogate pair, a function, a circular value. */
export function canonical(value: unknown): string {
  return write(value, escaped, 0);
}

/** The same for a value that was parsed from a text; `escape` is what `escapeOf` returned for that text. */
export function canonicalAgain(value: unknown, escape: Escape): string {
  return write(value, escape, 0);
}

/**
 * Chooses how to escape the strings of a value that was parsed from this text. Most texts contain no escape, so no string needs
 * one, and one look at the text spares a look at each string.
 */
export function escapeOf(json: string): Escape {
  return json.includes('\\') || !isWellFormed(json) ? escaped : (text) => text;
}

/** `isWellFormed` of ES2024, which every supported Node has. It costs nothing for a text without characters past U+00FF. */
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

/** Deeper than any value that signalbox accepts, and far from overflowing the stack. */
const DEEPEST = 500;

function write(value: unknown, escape: Escape, depth: number): string {
  if (typeof value === 'string') return `"${escape(value)}"`;
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (value === null) return 'null';
  if (typeof value !== 'object') throw new TypeError(`${shown(value)} is no JSON`);
  if (depth > DEEPEST) throw new TypeError(`a value is nested more than ${DEEPEST} deep`);
  return Array.isArray(value) ? writeList(value, escape, depth + 1) : writeFields(value as Fields, escape, depth + 1);
}

type Fields = Readonly<Record<string, unknown>>;

function writeList(values: readonly unknown[], escape: Escape, depth: number): string {
  let text = '[';
  for (let i = 0; i < values.length; i++) {
    if (i > 0) text += ',';
    text += write(values[i], escape, depth);
  }
  return `${text}]`;
}

function writeFields(fields: Fields, escape: Escape, depth: number): string {
  const keys = Object.keys(fields);
  if (keys.length > 1) keys.sort();
  let text = '';
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const value = fields[key];
    if (value === undefined) continue;
    text += `${text === '' ? '"' : ',"'}${escape(key)}":${write(value, escape, depth)}`;
  }
  return `{${text}}`;
}

export function escaped(text: string): string {
  if (!NEEDS_CARE.test(text)) return text;
  if (HALF_PAIR.test(text)) throw new TypeError('half a surrogate pair is no text');
  return JSON.stringify(text).slice(1, -1);
}

/**
 * Converts a value to JSON that has a canonical form, because the witness must not refuse what a lock accepts: drops what
 * JSON.stringify drops, and replaces half a surrogate pair with U+FFFD. Undefined if JSON.stringify returns undefined.
 */
export function plain(value: unknown): Json | undefined {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return undefined;
  // JSON.stringify writes `\ud` in lower case only to escape half a pair. An escaped backslash before `ud` merely takes the slow
  // path without need.
  return text.includes('\\ud') ? mended(JSON.parse(text) as Json) : (JSON.parse(text) as Json);
}

function mended(value: Json): Json {
  if (typeof value === 'string') return wellFormed(value);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(mended);
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [wellFormed(key), mended(field as Json)]));
}

/** Replaces half a surrogate pair with U+FFFD. */
export function wellFormed(text: string): string {
  return HALF_PAIR.test(text) ? text.replace(HALF_PAIRS, '\ufffd') : text;
}
