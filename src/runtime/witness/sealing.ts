/**
 * Makes checkpoints. Reads and checks only the entries that the previous checkpoint did not cover: the others were checked when
 * it was made, and `verify` compares them with the checkpoints.
 */
import { isRecord } from '../../core/index.ts';
import {
  type ChainHead,
  type Checkpoint,
  coveredHead,
  type CoveredHead,
  type Finding,
  nextCheckpoint,
  NO_ENTRY,
  type Signer,
  Verifier,
} from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { sha256 } from '../../host/index.ts';
import { always, type Read, type ReadResult } from '../../store/index.ts';
import { chainPath, corrupt, headKey, RECORDS, STATES } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { taskKeys } from '../tasks/keys.ts';
import { entriesOf, readHeads } from './chains.ts';
import { readCheckpoint, readSealed, writeCheckpoint } from './checkpoints.ts';
import { verifyEntry } from './proving.ts';
import { trimsOf } from './whole-record.ts';

/** How many chains one transaction looks at: a task has four keys besides the end of its chain, and 128 reads are allowed. */
const LOOKED_AT = 20;

export interface Sealing {
  readonly sign?: Signer | undefined;
  /**
   * Leaves a damaged chain as the previous checkpoint had it, and goes on with the others. Without this, a damaged chain keeps
   * the whole record from being sealed.
   */
  readonly skip?: (finding: Finding) => void;
}

/** Checks the new entries and seals them. Does not seal a chain that fails, because that would vouch for the damage. */
export async function checkpoint(runtime: Runtime, { sign, skip }: Sealing = {}): Promise<Checkpoint> {
  const skipped = new Set<string>();
  for (;;) {
    const trims = await trimsOf(runtime);
    const before = await readSealed(runtime);
    const last = before.number === 0 ? undefined : await readCheckpoint(runtime, before.number);
    if (last === undefined && before.number > 0) {
      // Other processes may have sealed the record again and trimmed this checkpoint between the two reads.
      if ((await readSealed(runtime)).mod !== before.mod) continue;
      throw corrupt(`checkpoint ${before.number}`, 'it is not there');
    }
    const { heads, entryBytes, finding } = await newHeads(runtime, last, before.entryBytes, skipped);
    if (finding === undefined) {
      const made = nextCheckpoint(last, heads, Math.round(runtime.clock.now()), sha256, sign);
      if (await writeCheckpoint(runtime, made, before, entryBytes, trims.mod)) return made;
      continue;
    }
    // Another process may have sealed or trimmed the record between the reads, so this need not be damage.
    if ((await readSealed(runtime)).mod !== before.mod || (await trimsOf(runtime)).mod !== trims.mod) continue;
    if (skip === undefined || finding.resource === undefined || skipped.has(finding.resource)) throw notSealed(finding);
    skip(finding);
    skipped.add(finding.resource);
  }
}

function notSealed({ kind, resource, seq, why }: Finding): Failure {
  const where = resource === undefined ? '' : ` (${resource}, entry ${seq ?? '?'})`;
  return new Failure(
    'inconsistent',
    `the record of the witness does not verify: ${kind}${where}: ${why}; no checkpoint was made`,
  );
}

/** The heads for the next checkpoint and the average size of an entry, or the problem with the entries that it would cover. */
async function newHeads(
  runtime: Runtime,
  last: Checkpoint | undefined,
  meanBefore: number,
  skipped: ReadonlySet<string>,
): Promise<{ readonly heads: readonly CoveredHead[]; readonly entryBytes: number; readonly finding?: Finding }> {
  const covered = new Map((last?.heads ?? []).map((head) => [head.resource, head]));
  const ends = await readHeads(runtime);
  const chains = [...ends.values()]
    .filter(({ resource }) => !skipped.has(resource))
    .map((head) => startOf(head, covered));
  const grown = chains.filter(({ head, start }) => head.seq > start.seq);
  const hashes = new Map<string, string[]>();
  const verifier = new Verifier({ digest: sha256 });
  // Treats covered entries as trimmed: the entries after them must follow. A closed chain may not have been dropped yet, and the
  // checkpoint still vouches for its last entry.
  const trusted = [...covered.values()].filter(({ resource }) => !skipped.has(resource));
  if (last !== undefined) verifier.checkpoint(nextCheckpoint(undefined, trusted, 0, sha256));
  const stretches = grown.map(({ head, start }) => ({ resource: head.resource, after: start.seq, last: head.seq }));
  let entries = 0;
  let bytes = 0;
  for await (const pair of entriesOf(runtime, stretches)) {
    const entry = verifyEntry(verifier, pair);
    if (entry === undefined) break;
    entries += 1;
    bytes += pair.key.length + pair.value.text.length;
    const since = hashes.get(entry.resource);
    if (since === undefined) hashes.set(entry.resource, [entry.hash]);
    else since.push(entry.hash);
  }
  verifier.end(endOf(chains, entries, last === undefined ? undefined : trusted));
  const { finding } = verifier.finish();
  if (finding !== undefined) return { heads: [], entryBytes: 0, finding };
  const closing = await closable(
    runtime,
    chains.flatMap(({ head }) => (head.trimmed?.seq === head.seq ? [head] : [])),
  );
  const heads = chains.map(({ head, start }): CoveredHead => {
    const whole = coveredHead(head, start.seq + 1, hashes.get(head.resource) ?? [], sha256);
    return closing.has(head.resource) ? { ...whole, closed: true } : whole;
  });
  const kept = [...covered.values()].filter(({ resource }) => skipped.has(resource));
  const covering = chains.reduce((sum, { head, start }) => sum + start.seq - (head.trimmed?.seq ?? 0), 0);
  const known = meanBefore === 0 ? 0 : covering;
  const entryBytes = Math.round((known * meanBefore + bytes) / Math.max(1, known + entries));
  return { entryBytes, heads: [...heads, ...kept.map(({ from: _from, tree: _tree, ...head }) => head)] };
}

interface Chain {
  readonly head: ChainHead;
  /** The last entry that needs no check, because it is covered or was trimmed. */
  readonly start: { readonly seq: number; readonly hash: string };
}

function startOf(head: ChainHead, covered: ReadonlyMap<string, CoveredHead>): Chain {
  const { trimmed = { seq: 0, hash: NO_ENTRY } } = head;
  const before = covered.get(head.resource);
  // A closed chain may have been dropped since; then this is another chain of the same name.
  if (before === undefined || before.closed === true || before.seq < trimmed.seq) return { head, start: trimmed };
  return { head, start: { seq: before.seq, hash: before.hash } };
}

function endOf(chains: readonly Chain[], entries: number, trusted: readonly CoveredHead[] | undefined) {
  const heads = chains.map(({ head: { resource, seq, hash }, start }) => ({
    ...{ resource, seq, hash },
    ...(start.seq > 0 && { trimmed: start }),
  }));
  const last = trusted === undefined ? undefined : nextCheckpoint(undefined, trusted, 0, sha256);
  return {
    heads,
    entries,
    checkpoints: last === undefined ? 0 : 1,
    ...(last !== undefined && { checkpoint: { number: last.number, hash: last.hash } }),
  };
}

/** Picks the chains whose resource is gone and that get no more entries; every entry of these chains was trimmed. */
async function closable(runtime: Runtime, heads: readonly ChainHead[]): Promise<ReadonlySet<string>> {
  const closing = new Set<string>();
  const candidates = heads.filter(({ resource }) => documentsOf(resource).length > 0);
  for (let place = 0; place < candidates.length; place += LOOKED_AT) {
    const some = candidates.slice(place, place + LOOKED_AT);
    const reads = some.flatMap(({ resource }): Read[] => [
      { do: 'read', key: headKey(chainPath(resource)) },
      ...documentsOf(resource).map((key): Read => ({ do: 'read', key, countOnly: true })),
    ]);
    const { results } = await runtime.store.transaction(always(reads), runtime.stopped);
    let at = 0;
    for (const { resource } of some) {
      const { pairs } = results[at++] as ReadResult;
      const documents = documentsOf(resource).map(() => (results[at++] as ReadResult).count);
      const end = pairs[0]?.value.json;
      const isLeased = isRecord(end) && end['isLeased'] === true;
      if (pairs.length > 0 && !isLeased && documents.every((count) => count === 0)) closing.add(resource);
    }
  }
  return closing;
}

/** The keys that a resource has while it exists; none for a resource whose chain is never dropped. */
export function documentsOf(resource: string): readonly string[] {
  const slash = resource.indexOf('/');
  switch (resource.slice(0, slash)) {
    case 'lock':
    case 'semaphore':
      return [RECORDS + chainPath(resource)];
    case 'member':
    case 'pipeline':
      return [STATES + chainPath(resource)];
    case 'task':
      return Object.values(taskKeys(resource.slice(slash + 1)));
    case 'token':
      return [`k/${chainPath(resource)}`];
    default:
      return [];
  }
}
