/**
 * Proves to a reader who has neither the store nor the other entries that an entry is in the record:
 *
 *     entry ──path──▶ tree of the entries that the checkpoint added to its chain
 *                     └─ head { resource, seq, hash, from, tree } ──path──▶ root of the checkpoint ──▶ signature, anchor
 *
 * Both paths grow with the logarithm of the trees: some 40 hashes for a million entries of a million chains. The chain itself
 * would prove the same, but only with every entry in between and its content.
 */
import { isRecord } from '../shape.ts';
import { shown } from '../shown.ts';
import {
  type Checkpoint,
  checkpointProblem,
  checkpointText,
  type CoveredHead,
  coveredProblem,
  headLeaf,
  headsRoot,
} from './checkpoint.ts';
import type { VerifySignature } from './checkpoint-check.ts';
import { type Digest, entryHash, entryProblem, isHash, type WitnessEntry } from './entry.ts';
import { merklePath, merkleRoot, rootByPath } from './merkle.ts';

/** A proof that an entry is in the record. */
export interface InclusionProof {
  /** `proof`. */
  readonly kind: 'proof';
  /** The version of the format: 1. */
  readonly v: 1;
  /** The entry that it proves. */
  readonly entry: WitnessEntry;
  /** From the entry to the tree of its head. Empty if the entry is the head. */
  readonly entryPath: readonly string[];
  /** The head of its chain in the checkpoint. */
  readonly head: CoveredHead;
  /** The place of the head among all heads of the checkpoint, from 0. */
  readonly headIndex: number;
  /** From the head to the root of the checkpoint. */
  readonly headPath: readonly string[];
  /** The checkpoint, without its heads. */
  readonly checkpoint: Checkpoint;
}

/** The proof, or why there is none. */
export type Proving = { readonly proof: InclusionProof } | { readonly problem: string };

/**
 * Uses the oldest checkpoint that covers the entry. `checkpoints` come with their heads; `hashes` are those of the chain's
 * entries from number `first` on.
 */
export function proofOf(
  entry: WitnessEntry,
  chain: { readonly first: number; readonly hashes: readonly string[] },
  checkpoints: readonly Checkpoint[],
  digest: Digest,
): Proving {
  const { resource, seq } = entry;
  for (const { heads = [], ...checkpoint } of checkpoints) {
    const headIndex = heads.findIndex((head) => head.resource === resource);
    const head = heads[headIndex];
    if (head === undefined || head.seq < seq || (head.from ?? head.seq) > seq) continue;
    const entryPath = pathTo(head, seq, chain, digest);
    if (entryPath === undefined) continue;
    if (headsRoot(heads, digest) !== checkpoint.root)
      return { problem: `the heads of checkpoint ${checkpoint.number} do not lead to its root` };
    const leaves = heads.map((one) => headLeaf(one, digest));
    const headPath = merklePath(leaves, headIndex, digest);
    return { proof: { kind: 'proof', v: 1, entry, entryPath, head, headIndex, headPath, checkpoint } };
  }
  return { problem: `no checkpoint with its heads covers entry ${seq} of ${resource}` };
}

function pathTo(
  { seq, from, tree }: CoveredHead,
  wanted: number,
  { first, hashes }: { readonly first: number; readonly hashes: readonly string[] },
  digest: Digest,
): readonly string[] | undefined {
  if (from === undefined || tree === undefined) return wanted === seq ? [] : undefined;
  if (from < first) return undefined;
  const segment = hashes.slice(from - first, seq - first + 1);
  return merkleRoot(segment, digest) === tree ? merklePath(segment, wanted - from, digest) : undefined;
}

/** Finds what is wrong with a proof; undefined if it holds. Checks signature and anchor if a key or anchors are given. */
export function proofProblem(
  value: unknown,
  digest: Digest,
  by: { readonly verifySignature?: VerifySignature; readonly anchors?: readonly Checkpoint[] } = {},
): string | undefined {
  const malformed = shapeProblem(value);
  if (malformed !== undefined) return malformed;
  const { entry, entryPath, head, headIndex, headPath, checkpoint } = value as InclusionProof;
  if (entryHash(entry, digest) !== entry.hash) return 'the hash of the entry is not that of its content';
  const inChain = chainProblem(entry, head, entryPath, digest);
  if (inChain !== undefined) return inChain;
  if (rootByPath(headLeaf(head, digest), headIndex, checkpoint.chains, headPath, digest) !== checkpoint.root)
    return 'the head of the chain does not lead to the root of the checkpoint';
  return vouchProblem(checkpoint, digest, by);
}

function chainProblem(
  entry: WitnessEntry,
  head: CoveredHead,
  path: readonly string[],
  digest: Digest,
): string | undefined {
  const { resource, seq, hash, from = seq, tree } = head;
  if (resource !== entry.resource) return `the head is that of ${resource}, not of ${entry.resource}`;
  if (entry.seq < from || entry.seq > seq) return `the head covers the entries ${from} to ${seq}, not ${entry.seq}`;
  if (entry.seq === seq && entry.hash !== hash) return 'the head has another hash for the entry';
  if (tree === undefined) return undefined;
  const root = rootByPath(entry.hash, entry.seq - from, seq - from + 1, path, digest);
  return root === tree ? undefined : 'the entry does not lead to the tree of its chain';
}

function vouchProblem(
  checkpoint: Checkpoint,
  digest: Digest,
  { verifySignature, anchors }: Parameters<typeof proofProblem>[2] & object,
): string | undefined {
  const text = checkpointText(checkpoint);
  const { number, hash, signature } = checkpoint;
  if (digest(text) !== hash) return 'the hash of the checkpoint is not that of its content';
  const why = signature === undefined ? 'it is not signed' : verifySignature?.(text, signature);
  if (verifySignature !== undefined && why !== undefined) return `checkpoint ${number}: ${why}`;
  if (anchors === undefined) return undefined;
  return anchors.some((anchor) => anchor.hash === hash) ? undefined : `checkpoint ${number} was not anchored`;
}

function shapeProblem(value: unknown): string | undefined {
  if (!isRecord(value) || value['kind'] !== 'proof' || value['v'] !== 1) return 'it is no proof of version 1';
  const { entry, entryPath, head, headIndex, headPath, checkpoint } = value;
  for (const [name, path] of Object.entries({ entryPath, headPath })) {
    if (!Array.isArray(path) || !path.every((hash) => isHash(hash)))
      return `${name} is ${shown(path)}; expected hashes`;
  }
  if (!Number.isSafeInteger(headIndex)) return `headIndex is ${shown(headIndex)}; expected a whole number`;
  const problems = {
    entry: entryProblem(entry),
    head: coveredProblem(head),
    checkpoint: checkpointProblem(checkpoint),
  };
  const [name, problem] = Object.entries(problems).find(([, problem]) => problem !== undefined) ?? [];
  return name === undefined ? undefined : `${name}: ${problem}`;
}
