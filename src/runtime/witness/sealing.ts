/**
 * Makes checkpoints. A checkpoint vouches for what the one before it did not cover, so only that is read and checked: what
 * was covered before has been checked then, and `verify` compares it with the checkpoints.
 */
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
import { isObject } from '../stored.ts';
import { taskKeys } from '../tasks/keys.ts';
import { entriesOf, readHeads } from './chains.ts';
import { readCheckpoint, readSealed, writeCheckpoint } from './checkpoints.ts';
import { verifyEntry } from './proving.ts';
import { trimsOf } from './whole-record.ts';

/** Chains that one transaction looks at: a task has four keys besides the end of its chain, and 128 reads are allowed. */
const LOOKED_AT = 20;

export interface Sealing {
  readonly sign?: Signer | undefined;
  /** Leaves a damaged chain as the checkpoint before had it, and goes on with the others. Without it, nothing is sealed. */
  readonly skip?: (finding: Finding) => void;
}

/** Checks what is new, and seals it. A chain that does not verify is not sealed: that would vouch for what is wrong with it. */
export async function checkpoint(runtime: Runtime, { sign, skip }: Sealing = {}): Promise<Checkpoint> {
  const skipped = new Set<string>();
  for (;;) {
    const trims = await trimsOf(runtime);
    const before = await readSealed(runtime);
    const last = before.number === 0 ? undefined : await readCheckpoint(runtime, before.number);
    if (last === undefined && before.number > 0) throw corrupt(`checkpoint ${before.number}`, 'it is not there');
    const { heads, entryBytes, finding } = await newHeads(runtime, last, before.entryBytes, skipped);
    if (finding === undefined) {
      const made = nextCheckpoint(last, heads, Math.round(runtime.clock.now()), sha256, sign);
      if (await writeCheckpoint(runtime, made, before, entryBytes, trims.mod)) return made;
      continue;
    }
    // Another process has sealed or trimmed the record between the reads: nothing needs to be wrong.
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

/** The heads for the next checkpoint and what an entry takes on average, or what is wrong with what it would cover. */
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
  // What was covered counts as trimmed here: the entries after it must follow it. A chain that was closed has perhaps not been
  // dropped since, and its last entry is still vouched for.
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
  /** The last entry that needs no more check: it is covered, or was trimmed. */
  readonly start: { readonly seq: number; readonly hash: string };
}

function startOf(head: ChainHead, covered: ReadonlyMap<string, CoveredHead>): Chain {
  const { trimmed = { seq: 0, hash: NO_ENTRY } } = head;
  const before = covered.get(head.resource);
  // A chain that was closed may have been dropped since, and this is another one of the same name.
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

/** Those of these chains, of which every entry was trimmed, whose resource is gone and that nobody will enter anything in. */
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
      const isLeased = isObject(end) && end['isLeased'] === true;
      if (pairs.length > 0 && !isLeased && documents.every((count) => count === 0)) closing.add(resource);
    }
  }
  return closing;
}

/** The keys that a resource has for as long as it exists; none, of what is never dropped. */
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
