/** Verifies, seals and exports the record of the witness as the store has it. Loaded when it is first asked for. */
import {
  type ChainHead,
  type Checkpoint,
  checkpointLine,
  coveredHead,
  type CoveredHead,
  endLine,
  type ExportEnd,
  entryLine,
  entryProblem,
  headerLine,
  nextCheckpoint,
  type Proving,
  proofOf,
  type Signer,
  type Verification,
  Verifier,
  type VerifierOptions,
  type WitnessEntry,
} from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { sha256 } from '../../host/index.ts';
import type { Runtime } from '../runtime.ts';
import { entriesIn, readEntry, readHeads } from './chains.ts';
import { readCheckpoints, writeCheckpoint } from './checkpoints.ts';

const byResource = (one: ChainHead, other: ChainHead): number => (one.resource < other.resource ? -1 : 1);

/** Called now and then while a long record is read. */
export type Progress = (entries: number) => void;

const PROGRESS_EVERY = 1000;

/** What a pass through the record gets to see: checkpoints, then the entries up to the ends, then the end. */
interface Passing {
  checkpoint(checkpoint: Checkpoint): void;
  entry(entry: WitnessEntry): void;
}

async function pass(runtime: Runtime, passing: Passing, progress?: Progress): Promise<ExportEnd> {
  const heads = await readHeads(runtime);
  const checkpoints = await readCheckpoints(runtime);
  for (const checkpoint of checkpoints) passing.checkpoint(checkpoint);
  let entries = 0;
  for await (const entry of entriesIn(runtime)) {
    // What was written since the ends were read belongs to the next pass.
    if (entry.seq > (heads.get(entry.resource)?.seq ?? 0) && heads.has(entry.resource)) continue;
    if (!heads.has(entry.resource) && (await isNew(runtime, entry.resource))) continue;
    passing.entry(entry);
    entries += 1;
    if (entries % PROGRESS_EVERY === 0) progress?.(entries);
  }
  const newest = checkpoints.at(-1);
  return {
    heads: [...heads.values()].sort(byResource),
    entries,
    checkpoints: checkpoints.length,
    ...(newest && { checkpoint: { number: newest.number, hash: newest.hash } }),
  };
}

/** Whether a chain has come to be since the ends were read. Entries that no end ever names were put there by somebody else. */
async function isNew(runtime: Runtime, resource: string): Promise<boolean> {
  return (await readHeads(runtime)).has(resource);
}

export async function verify(
  runtime: Runtime,
  options: Omit<VerifierOptions, 'digest'>,
  progress?: Progress,
): Promise<Verification> {
  const verifier = new Verifier({ digest: sha256, ...options });
  const end = await pass(runtime, verifying(verifier), progress);
  verifier.end(end);
  return verifier.finish();
}

function verifying(verifier: Verifier): Passing {
  return {
    checkpoint: (checkpoint) => verifier.checkpoint(checkpoint),
    entry: (entry) => {
      const problem = entryProblem(entry);
      if (problem === undefined) verifier.entry(entry);
      else verifier.line(JSON.stringify({ ...entry, kind: 'entry' }));
    },
  };
}

/** Checks the record, and seals it. A record that does not verify is not sealed: that would vouch for what is wrong with it. */
export async function checkpoint(runtime: Runtime, sign?: Signer): Promise<Checkpoint> {
  for (;;) {
    const verifier = new Verifier({ digest: sha256 });
    const verified = verifying(verifier);
    const covered = new Map<string, number>();
    const hashes = new Map<string, string[]>();
    let last: Checkpoint | undefined;
    const end = await pass(runtime, {
      checkpoint: (one) => {
        verified.checkpoint(one);
        last = one;
        for (const head of one.heads ?? []) covered.set(head.resource, head.seq);
      },
      entry: (entry) => {
        verified.entry(entry);
        if (entry.seq <= (covered.get(entry.resource) ?? 0)) return;
        const since = hashes.get(entry.resource);
        if (since === undefined) hashes.set(entry.resource, [entry.hash]);
        else since.push(entry.hash);
      },
    });
    verifier.end(end);
    const { finding } = verifier.finish();
    if (finding !== undefined) {
      const where = finding.resource === undefined ? '' : ` (${finding.resource}, entry ${finding.seq ?? '?'})`;
      throw new Failure(
        'inconsistent',
        `the record of the witness does not verify: ${finding.kind}${where}: ${finding.why}; no checkpoint was made`,
      );
    }
    const heads = end.heads.map((head): CoveredHead => {
      const from = (covered.get(head.resource) ?? head.trimmed?.seq ?? 0) + 1;
      return coveredHead(head as ChainHead, from, hashes.get(head.resource) ?? [], sha256);
    });
    const made = nextCheckpoint(last, heads, Math.round(runtime.clock.now()), sha256, sign);
    if (await writeCheckpoint(runtime, made)) return made;
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

/** The lines of an export, without their line ends. */
export async function* exportLines(
  runtime: Runtime,
  about: { readonly by: string; readonly store?: string },
): AsyncGenerator<string, void> {
  yield headerLine({ v: 1, time: runtime.clock.now(), ...about }, sha256);
  const heads = await readHeads(runtime);
  const checkpoints = await readCheckpoints(runtime);
  for (const one of checkpoints) yield checkpointLine(one);
  let entries = 0;
  for await (const entry of entriesIn(runtime)) {
    if (entry.seq > (heads.get(entry.resource)?.seq ?? 0)) continue;
    yield entryLine(entry);
    entries += 1;
  }
  const newest = checkpoints.at(-1);
  yield endLine(
    {
      heads: [...heads.values()].sort(byResource),
      entries,
      checkpoints: checkpoints.length,
      ...(newest && { checkpoint: { number: newest.number, hash: newest.hash } }),
    },
    sha256,
  );
}
