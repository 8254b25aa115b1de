/** Compares a record with its end: finds chains that were cut off, trimmed without a checkpoint, or made up. */
import type { CheckpointCheck } from './checkpoint-check.ts';
import { type ChainHead, NO_ENTRY } from './entry.ts';
import type { ExportEnd } from './lines.ts';
import type { Finding } from './verifier.ts';

/** The counts of a verification. */
export interface VerifiedCounts {
  /** Entries that were read. */
  readonly entries: number;
  /** Chains that had entries. */
  readonly chains: number;
  /** Checkpoints that were read. */
  readonly checkpoints: number;
  /** Checkpoints signed with the given key. */
  readonly signed: number;
  /** Checkpoints that were also found in the anchor. */
  readonly anchored: number;
  /** Entries that a checkpoint covers; only their chain vouches for the others. */
  readonly covered: number;
  /** Entries that a signed checkpoint covers, if a key was given; else the same as `covered`. */
  readonly vouched: number;
  /** Entries that were trimmed and that a checkpoint vouches for. */
  readonly trimmed: number;
}

/** The result of a verification. */
export interface Verification extends VerifiedCounts {
  /** The first problem, if there is one. */
  readonly finding?: Finding;
}

/** What the verifier keeps of a chain that it has read. */
export interface ClosedChain {
  readonly first: number;
  /** The hash that its first entry names as the previous one. */
  readonly before: string;
  readonly seq: number;
  readonly hash: string;
}

/** What the verifier has read of a record. */
export interface Seen {
  readonly chains: ReadonlyMap<string, ClosedChain>;
  readonly checkpoints: CheckpointCheck;
  readonly entries: number;
  readonly end: ExportEnd | undefined;
  /** Set if the record contains only these resources. */
  readonly only: ReadonlySet<string> | undefined;
}

export function endFindingOf(seen: Seen): Finding | undefined {
  const { end, chains, checkpoints, entries } = seen;
  if (end === undefined) return cutOff(chains);
  const ofCheckpoints = checkpoints.endFinding(end);
  if (ofCheckpoints !== undefined) return ofCheckpoints;
  for (const head of end.heads) {
    const finding = headFinding(head, seen);
    if (finding !== undefined) return finding;
  }
  const heads = new Map(end.heads.map((head) => [head.resource, head]));
  for (const [resource, { first }] of chains) {
    if (!heads.has(resource))
      return { kind: 'inserted', resource, seq: first, why: 'the end of the record knows no such chain' };
  }
  const uncovered = coverFinding(heads, seen);
  if (uncovered !== undefined || end.entries === entries) return uncovered;
  return { kind: 'missing', why: `the record says it has ${end.entries} entries, and has ${entries}` };
}

function cutOff(chains: Seen['chains']): Finding {
  const last = [...chains].at(-1);
  const after = last === undefined ? 'before the first entry' : `after entry ${last[1].seq} of ${last[0]}`;
  return {
    kind: 'truncated',
    why: `the record ends ${after}: its last line, with the heads of all chains, is missing`,
  };
}

function headFinding(head: ChainHead, seen: Seen): Finding | undefined {
  const { resource, seq, hash, trimmed = { seq: 0, hash: NO_ENTRY } } = head;
  const chain = seen.chains.get(resource) ?? { first: trimmed.seq + 1, before: trimmed.hash, ...trimmed };
  const { first, before } = chain;
  const found = (kind: Finding['kind'], at: number, why: string): Finding => ({ kind, resource, seq: at, why });
  if (first > trimmed.seq + 1) return found('missing', trimmed.seq + 1, `the chain begins with ${first}`);
  if (chain.seq < seq)
    return found('truncated', chain.seq + 1, `the chain had ${seq} entries, and ends with ${chain.seq}`);
  if (chain.seq > seq) return found('inserted', seq + 1, `the chain had ${seq} entries, and goes on to ${chain.seq}`);
  if (chain.hash !== hash) return found('changed', seq, 'the chain ended with another hash');
  if (first === trimmed.seq + 1 && before !== trimmed.hash)
    return found('changed', first, 'it follows another entry than the last that was trimmed');
  return first === 1 ? undefined : trimFinding(resource, { seq: first - 1, hash: before }, seen.checkpoints);
}

/** Requires a checkpoint that covers the last trimmed entry or a later one. */
function trimFinding(
  resource: string,
  last: { readonly seq: number; readonly hash: string },
  checkpoints: CheckpointCheck,
): Finding | undefined {
  const said = checkpoints.wanted.get(resource);
  const closed = checkpoints.closed.get(resource);
  const exact = said?.get(last.seq) ?? (closed?.seq === last.seq ? closed : undefined);
  if (exact !== undefined && exact.hash !== last.hash)
    return { kind: 'changed', resource, seq: last.seq, why: `checkpoint ${exact.number} has another hash for it` };
  // A later checkpoint was compared with its entry, and the chain leads there from here.
  const later = [...(said ?? [])].filter(([seq]) => seq > last.seq).map(([, { number }]) => number);
  const covering = exact === undefined ? later : [exact.number, ...later];
  if (covering.some((number) => checkpoints.isVouched(number))) return undefined;
  const why =
    covering.length === 0
      ? 'the entries up to it were trimmed, and no checkpoint covers them'
      : `the entries up to it were trimmed, and neither checkpoint ${covering[0]} nor a later one is signed`;
  return { kind: 'not-covered', resource, seq: last.seq, why };
}

/** Requires every entry that a checkpoint covers, unless the record contains only other resources. */
function coverFinding(heads: ReadonlyMap<string, ChainHead>, { checkpoints, only }: Seen): Finding | undefined {
  for (const [resource, said] of checkpoints.wanted) {
    if (only !== undefined && !only.has(resource)) continue;
    const most = heads.get(resource)?.seq ?? 0;
    for (const [seq, { number }] of said) {
      if (seq > most)
        return {
          kind: 'truncated',
          resource,
          seq,
          why: `checkpoint ${number} covers it, and the record ends with ${most}`,
        };
    }
  }
  return undefined;
}

export function countsOf({ chains, checkpoints, entries, end }: Seen): VerifiedCounts {
  let covered = 0;
  let vouched = 0;
  let trimmed = 0;
  for (const [resource, { first, seq }] of chains) {
    trimmed += first - 1;
    let last = 0;
    let lastVouched = 0;
    for (const [at, { number }] of checkpoints.wanted.get(resource) ?? []) {
      if (at > seq) continue;
      last = Math.max(last, at);
      if (checkpoints.isVouched(number)) lastVouched = Math.max(lastVouched, at);
    }
    covered += Math.max(0, last - first + 1);
    vouched += Math.max(0, lastVouched - first + 1);
  }
  for (const { resource, trimmed: gone } of end?.heads ?? []) if (!chains.has(resource)) trimmed += gone?.seq ?? 0;
  return { entries, chains: chains.size, ...checkpoints.counts, covered, vouched, trimmed };
}
