/**
 * A checkpoint ties the heads of all chains together: its root is that of a Merkle tree over them, and it names the checkpoint
 * before it. A checkpoint that is signed, or kept where writers of the store cannot reach it, shows whether the entries that it
 * covers have changed.
 *
 *     chains      lock/main ●──●──●     task/7 ●──●
 *                             │                │
 *     checkpoint 2 { root: ───┴────────────────┘, previous: hash of checkpoint 1, signature? }
 */
import { isRecord } from '../shape.ts';
import { shown } from '../shown.ts';
import { canonical } from './canonical.ts';
import { type ChainHead, type Digest, headProblem, isHash, NO_ENTRY } from './entry.ts';
import { merkleRoot } from './merkle.ts';

/** The head of a chain as a checkpoint covers it. */
export interface CoveredHead {
  /** The resource of the chain. */
  readonly resource: string;
  /** The last entry that is covered. */
  readonly seq: number;
  /** The hash of that entry. */
  readonly hash: string;
  /** The first entry that this checkpoint covers and the one before it did not. */
  readonly from?: number;
  /** The Merkle root over the hashes of the entries `from` to `seq`; proofs of single entries lead to it. */
  readonly tree?: string;
  /**
   * All entries of the chain were trimmed, and its resource is gone. Maintenance may drop the chain: later checkpoints do not
   * list it, and a resource of the same name begins a new chain.
   */
  readonly closed?: true;
}

/** The signature of a checkpoint. */
export interface CheckpointSignature {
  /** The id of the key: the first 16 digits of the SHA-256 of the raw public key. */
  readonly key: string;
  /** The signature of the text that is hashed, in base64. */
  readonly ed25519: string;
}

/** The state of all chains at one moment. */
export interface Checkpoint {
  /** The version of the format: 1. */
  readonly v: 1;
  /** From 1. */
  readonly number: number;
  /** When, in milliseconds since 1970. */
  readonly time: number;
  /** The hash of the checkpoint before it; 64 zeros for the first. */
  readonly previous: string;
  /** The Merkle root over the heads. */
  readonly root: string;
  /** How many chains it covers. */
  readonly chains: number;
  /** How many entries these chains have had, including trimmed ones. */
  readonly entries: number;
  /** The SHA-256 of the canonical JSON of all the above. */
  readonly hash: string;
  /** The heads under the root, in the order of their resources; left out where only the hash matters. */
  readonly heads?: readonly CoveredHead[];
  /** Made with a key that the writers of the store do not have. */
  readonly signature?: CheckpointSignature;
}

/** Signs the text that is hashed. */
export type Signer = (text: string) => CheckpointSignature;

/** Makes the checkpoint of these heads that follows `previous`. The order of the heads does not matter. */
export function nextCheckpoint(
  previous: Pick<Checkpoint, 'number' | 'hash'> | undefined,
  heads: readonly CoveredHead[],
  time: number,
  digest: Digest,
  sign?: Signer,
): Checkpoint {
  const sorted = heads.filter(({ seq }) => seq > 0).sort(byResource);
  const body = {
    v: 1,
    number: (previous?.number ?? 0) + 1,
    time,
    previous: previous?.hash ?? NO_ENTRY,
    root: headsRoot(sorted, digest),
    chains: sorted.length,
    entries: sorted.reduce((sum, { seq }) => sum + seq, 0),
  } as const;
  const text = checkpointText(body);
  const signature = sign?.(text);
  return { ...body, hash: digest(text), heads: sorted, ...(signature && { signature }) };
}

/** Makes the head that a checkpoint covers; `hashes` are those of the entries since `from`, without a gap. */
export function coveredHead(
  { resource, seq, hash }: ChainHead,
  from: number,
  hashes: readonly string[],
  digest: Digest,
): CoveredHead {
  const isWhole = hashes.length > 0 && hashes.length === seq - from + 1 && hashes.at(-1) === hash;
  return isWhole ? { resource, seq, hash, from, tree: merkleRoot(hashes, digest) } : { resource, seq, hash };
}

/** The text that is hashed and signed. */
export function checkpointText(checkpoint: Omit<Checkpoint, 'hash'>): string {
  const { v, number, time, previous, root, chains, entries } = checkpoint;
  return canonical({ v, number, time, previous, root, chains, entries });
}

/** The anchored form of a checkpoint: one line, without the heads. */
export function checkpointAnchor({ heads: _heads, ...checkpoint }: Checkpoint): string {
  return canonical(checkpoint);
}

/** The root over heads that are sorted. */
export function headsRoot(heads: readonly CoveredHead[], digest: Digest): string {
  return merkleRoot(
    heads.map((head) => headLeaf(head, digest)),
    digest,
  );
}

export function headLeaf({ resource, seq, hash, from, tree, closed }: CoveredHead, digest: Digest): string {
  return digest(`\u0000${canonical({ resource, seq, hash, from, tree, closed })}`);
}

/** Compares by UTF-16 code units, as canonical JSON sorts its keys. */
export function byResource(a: { readonly resource: string }, b: { readonly resource: string }): number {
  return a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : 0;
}

const FIELDS = new Set([
  ...['v', 'number', 'time', 'previous', 'root', 'chains', 'entries', 'hash', 'heads', 'signature'],
]);

/** Says why a value is not a checkpoint; undefined if it is one. Does not check its hash and its root. */
export function checkpointProblem(value: unknown): string | undefined {
  if (!isRecord(value)) return `it is ${shown(value)}, not an object`;
  if (value['v'] !== 1) return `v is ${shown(value['v'])}; this signalbox reads 1`;
  // A clock may be set to a time before 1970.
  const least = { number: 1, time: Number.NEGATIVE_INFINITY, chains: 0, entries: 0 };
  for (const [field, from] of Object.entries(least)) {
    if (!Number.isSafeInteger(value[field]) || (value[field] as number) < from)
      return `${field} is ${shown(value[field])}; expected a whole number`;
  }
  for (const field of ['previous', 'root', 'hash']) {
    if (!isHash(value[field])) return `${field} is ${shown(value[field])}; expected 64 hexadecimal digits`;
  }
  for (const key in value) if (!FIELDS.has(key)) return `${shown(key)} is no field of a checkpoint`;
  const { heads = [], signature } = value;
  if (!Array.isArray(heads)) return `heads is ${shown(heads)}; expected a list`;
  for (let i = 0; i < heads.length; i++) {
    const problem = coveredProblem(heads[i]);
    if (problem !== undefined) return `heads[${i}]: ${problem}`;
  }
  return signature === undefined ? undefined : signatureProblem(signature);
}

export function coveredProblem(value: unknown): string | undefined {
  const problem = headProblem(value);
  if (problem !== undefined) return problem;
  const { seq, from, tree, closed } = value as Readonly<Record<string, unknown>>;
  if (closed !== undefined && closed !== true) return `closed is ${shown(closed)}; expected true`;
  if (from === undefined && tree === undefined) return undefined;
  const isWithin = Number.isSafeInteger(from) && (from as number) >= 1 && (from as number) <= (seq as number);
  if (!isWithin) return `from is ${shown(from)}; expected 1 to ${shown(seq)}`;
  return isHash(tree) ? undefined : `tree is ${shown(tree)}; expected 64 hexadecimal digits`;
}

function signatureProblem(value: unknown): string | undefined {
  const isSigned = isRecord(value) && typeof value['key'] === 'string' && typeof value['ed25519'] === 'string';
  return isSigned ? undefined : `signature is ${shown(value)}; expected key and ed25519`;
}
