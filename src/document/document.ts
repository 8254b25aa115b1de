/**
 * Reads a document from a file as a value, and finds the line and column of every part of it.
 *
 *     text ──YAML 1.2, of which JSON is a part──▶ value ──the caller checks its meaning──▶ problems with paths
 *                                                                                              │
 *                          FILE:LINE:COLUMN: what is wrong  ◀────────────placeOf───────────────┘
 */
import type { Path, Problem } from '../core/index.ts';
import { inOrder, type Place, type PlacedProblem } from './place.ts';
import { readText } from './text.ts';

export interface Document {
  /** The name shown to people. */
  readonly file: string;
  /** Plain JSON: no dates, no sets, no class instances. */
  readonly value: unknown;
  /** Where the entry begins; for a missing entry, where its parent begins. */
  placeOf(path: Path): Place;
}

export type ReadDocument =
  | { readonly ok: true; readonly document: Document }
  | { readonly ok: false; readonly problems: readonly PlacedProblem[] };

/** The most mistakes that are reported at once. */
export const MOST_TOLD = 20;

/** Never throws, whatever is in the file. Loads the YAML parser with the first document. */
export async function readDocument(given: string | Uint8Array, file: string): Promise<ReadDocument> {
  const read = readText(given);
  if (!read.ok) return read;
  const { readYaml } = await import('./yaml.ts');
  const answer = readYaml(read.text);
  if (!answer.ok) return { ok: false, problems: inOrder(answer.problems) };
  return { ok: true, document: { file, value: answer.value, placeOf: answer.placeOf } };
}

/** `FILE:LINE:COLUMN: what is wrong`, in the order of the file. */
export function toldAll(file: string, problems: readonly PlacedProblem[]): readonly string[] {
  const all = inOrder(problems).map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
  const more = all.length - MOST_TOLD;
  return more > 0 ? [...all.slice(0, MOST_TOLD), `${file}: and ${more} more`] : all;
}

export function placed({ placeOf }: Document, problems: readonly Problem[]): readonly PlacedProblem[] {
  return inOrder(problems.map(({ path, message }) => ({ ...placeOf(path), message })));
}
