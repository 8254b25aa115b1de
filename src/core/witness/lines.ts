/**
 * An export: JSON Lines. A header, the checkpoints from the oldest to the newest, the entries chain by chain, each chain in order
 * and in one piece, and an end. Every line has its own hash, and the end has the heads and counts, so that a verifier notices a
 * missing tail.
 *
 *     {"kind":"header","v":1,…}
 *     {"kind":"checkpoint","number":1,…}
 *     {"kind":"entry","resource":"lock/main","seq":1,…}
 *     {"kind":"entry","resource":"lock/main","seq":2,…}
 *     {"kind":"end","heads":[{"resource":"lock/main","seq":2,"hash":…}],"entries":2,…}
 */
import { isRecord } from '../shape.ts';
import { shown } from '../shown.ts';
import { canonical } from './canonical.ts';
import type { Checkpoint } from './checkpoint.ts';
import { type ChainHead, type Digest, entryText, headProblem, isHash, type WitnessEntry } from './entry.ts';

/** The first line of an export. */
export interface ExportHeader {
  readonly v: 1;
  /** When it was made, in milliseconds since 1970. */
  readonly time: number;
  /** The program that made it: `signalbox 0.1.0`. */
  readonly by: string;
  /** The store, without passwords; for people. */
  readonly store?: string;
  /** Set if the export contains only these resources. */
  readonly only?: readonly string[];
}

/** The last line of an export. */
export interface ExportEnd {
  /** Where each chain ended at the time of the export, and how far it was trimmed. */
  readonly heads: readonly ChainHead[];
  /** How many entries the export has. */
  readonly entries: number;
  /** How many checkpoints the export has. */
  readonly checkpoints: number;
  /** The newest checkpoint. */
  readonly checkpoint?: { readonly number: number; readonly hash: string };
}

export function headerLine(header: ExportHeader, digest: Digest): string {
  return sealed({ kind: 'header', ...header }, digest);
}

export function entryLine(entry: WitnessEntry): string {
  return entryText(entry, 'entry');
}

export function checkpointLine(checkpoint: Checkpoint): string {
  return canonical({ kind: 'checkpoint', ...checkpoint });
}

export function endLine(end: ExportEnd, digest: Digest): string {
  return sealed({ kind: 'end', ...end }, digest);
}

/** Adds the hash to a header or an end. */
function sealed(line: Readonly<Record<string, unknown>>, digest: Digest): string {
  return canonical({ ...line, hash: digest(canonical(line)) });
}

/** Whether the hash of a header or an end is that of its other fields. */
export function isSealed(line: Readonly<Record<string, unknown>>, digest: Digest): boolean {
  const { hash, ...rest } = line;
  return hash === digest(canonical(rest));
}

export function endProblem(value: Readonly<Record<string, unknown>>): string | undefined {
  const { heads, entries, checkpoints, checkpoint } = value;
  if (!Array.isArray(heads)) return `heads is ${shown(heads)}; expected a list`;
  for (let i = 0; i < heads.length; i++) {
    const problem = headProblem(heads[i]);
    if (problem !== undefined) return `heads[${i}]: ${problem}`;
  }
  if (!Number.isSafeInteger(entries)) return `entries is ${shown(entries)}; expected a number`;
  if (!Number.isSafeInteger(checkpoints)) return `checkpoints is ${shown(checkpoints)}; expected a number`;
  if (checkpoint === undefined) return undefined;
  const isPlace = isRecord(checkpoint) && Number.isSafeInteger(checkpoint['number']) && isHash(checkpoint['hash']);
  return isPlace ? undefined : `checkpoint is ${shown(checkpoint)}; expected number and hash`;
}
