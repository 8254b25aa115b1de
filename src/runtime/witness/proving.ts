/** Verifies and exports the record of the witness from the store. Loaded on first use. */
import { isRecord } from '../../core/index.ts';
import {
  checkpointLine,
  endLine,
  type ExportEnd,
  entryLine,
  entryProblem,
  headerLine,
  type Proving,
  proofOf,
  type Verification,
  Verifier,
  type VerifierOptions,
  type WitnessEntry,
} from '../../core/witness/index.ts';
import { sha256 } from '../../host/index.ts';
import type { KeyValue } from '../../store/index.ts';
import { chainPath, entryKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { entriesIn, placeOf, readEntry } from './chains.ts';
import { readCheckpoints } from './checkpoints.ts';
import { eachPart, partsOfRecord, wholeRecord } from './whole-record.ts';

/** Called now and then while a long record is read. */
export type Progress = (entries: number) => void;

const PROGRESS_EVERY = 1000;

export function verify(
  runtime: Runtime,
  options: Omit<VerifierOptions, 'digest'>,
  progress?: Progress,
): Promise<Verification> {
  return wholeRecord(runtime, async (parts) => {
    const verifier = new Verifier({ digest: sha256, ...options });
    const end = await eachPart(parts, (part) => {
      if ('checkpoint' in part) return verifier.checkpoint(part.checkpoint);
      verifyEntry(verifier, part.entry);
      if (verifier.entries % PROGRESS_EVERY === 0) progress?.(verifier.entries);
    });
    verifier.end(end);
    return verifier.finish();
  });
}

/** Passes the entry to the verifier; undefined if it is not an entry, which the verifier reports. */
export function verifyEntry(verifier: Verifier, pair: KeyValue): WitnessEntry | undefined {
  const found = valueIn(pair);
  const problem = entryProblem(found);
  const entry = found as WitnessEntry;
  if (problem === undefined && pair.key === entryKey(chainPath(entry.resource), entry.seq)) {
    verifier.entry(entry);
    return entry;
  }
  verifier.noEntry(placeOf(pair.key) ?? {}, problem ?? `${pair.key} holds entry ${entry.seq} of ${entry.resource}`);
  return undefined;
}

/** Parsed JSON, or the text itself if it is not JSON. */
function valueIn({ value }: KeyValue): unknown {
  try {
    return value.json;
  } catch {
    return value.text;
  }
}

export async function proof(runtime: Runtime, entry: { resource: string; seq: number }): Promise<Proving> {
  const { resource, seq } = entry;
  const found = await readEntry(runtime, resource, seq);
  if (found === undefined) return { problem: `there is no entry ${seq} of ${resource}; it may have been trimmed` };
  const hashes: string[] = [];
  let first: number | undefined;
  for await (const one of entriesIn(runtime, resource)) {
    first ??= one.seq;
    hashes.push(one.hash);
  }
  return proofOf(found, { first: first ?? 1, hashes }, await readCheckpoints(runtime), sha256);
}

/** The lines of an export, without their line ends. Throws before the last line if the record was trimmed meanwhile. */
export async function* exportLines(
  runtime: Runtime,
  about: { readonly by: string; readonly store?: string; readonly only?: readonly string[] },
): AsyncGenerator<string, void> {
  const { only } = about;
  const isWanted = (resource: string | undefined): boolean =>
    only === undefined || (resource !== undefined && only.includes(resource));
  yield headerLine({ v: 1, time: runtime.clock.now(), ...about }, sha256);
  const parts = partsOfRecord(runtime);
  let end: ExportEnd | undefined;
  let entries = 0;
  while (end === undefined) {
    const { done, value } = await parts.next();
    if (done === true) end = value;
    else if ('checkpoint' in value) yield checkpointLine(value.checkpoint);
    else if (isWanted(placeOf(value.entry.key)?.resource)) {
      yield exported(value.entry);
      entries += 1;
    }
  }
  yield endLine({ ...end, entries, heads: end.heads.filter(({ resource }) => isWanted(resource)) }, sha256);
}

/** Exports a value that is not an entry unchanged: it is evidence, and `verify` names it. */
function exported(pair: KeyValue): string {
  const found = valueIn(pair);
  if (entryProblem(found) === undefined) return entryLine(found as WitnessEntry);
  return JSON.stringify({ ...(isRecord(found) ? found : { key: pair.key, found }), kind: 'entry' });
}
