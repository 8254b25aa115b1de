/**
 * Documents: what somebody wrote in a file, as a value, with a way back to the line and column of every part of it.
 *
 *     text ──YAML 1.2, of which JSON is a part──▶ value ──whoever knows what it should be──▶ problems with paths
 *                                                                                              │
 *                          FILE:LINE:COLUMN: what is wrong  ◀────────────placeOf───────────────┘
 */
import type { Path, Problem } from '../core/index.ts';
import { inOrder, type Place, type PlacedProblem } from './place.ts';
import { readText } from './text.ts';

export interface Document {
  /** As it is told to people. */
  readonly file: string;
  /** Plain JSON: no dates, no sets, no objects with a past. */
  readonly value: unknown;
  /** Where the entry begins; of what is missing, where that begins in which it is. */
  placeOf(path: Path): Place;
}

export type ReadDocument =
  | { readonly ok: true; readonly document: Document }
  | { readonly ok: false; readonly problems: readonly PlacedProblem[] };

/** Who made more mistakes than these mends them first. */
export const MOST_TOLD = 20;

/** Never throws on anything that can be in a file. What YAML needs is loaded with the first document. */
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
