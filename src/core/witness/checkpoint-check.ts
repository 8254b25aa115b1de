/** Checks the checkpoints of a record: their own chain, their roots and signatures, and their anchors. */
import { ChainCheck } from './chain-check.ts';
import {
  byResource,
  type Checkpoint,
  checkpointProblem,
  type CheckpointSignature,
  checkpointText,
  headsRoot,
} from './checkpoint.ts';
import { type Digest, NO_ENTRY } from './entry.ts';
import type { ExportEnd } from './lines.ts';
import type { Finding } from './verifier.ts';

/** The problem with a signature of this text; undefined if the trusted key made it. */
export type VerifySignature = (text: string, signature: CheckpointSignature) => string | undefined;

/** An entry that was the head of its chain, according to a checkpoint. */
export interface Wanted {
  readonly hash: string;
  /** The number of the checkpoint. */
  readonly number: number;
  readonly from?: number;
  readonly tree?: string;
}

export class CheckpointCheck {
  /** By resource, then by entry number. */
  readonly wanted = new Map<string, Map<number, Wanted>>();
  /** The last entries of chains that a checkpoint has closed. */
  readonly closed = new Map<string, Wanted & { readonly seq: number }>();
  readonly #digest: Digest;
  readonly #verifySignature: VerifySignature | undefined;
  readonly #anchors: ReadonlyMap<number, Checkpoint>;
  readonly #chain = new ChainCheck(NO_ENTRY);
  #count = 0;
  #signed = 0;
  #anchored = 0;
  /** The first unsigned checkpoint after the last signed one: a later signature vouches for all before it. */
  #unsigned: number | undefined;
  /** The first chain that was closed by a checkpoint for which no signature vouches. */
  #closedUnsigned: Finding | undefined;

  constructor(digest: Digest, verifySignature: VerifySignature | undefined, anchors: readonly Checkpoint[]) {
    this.#digest = digest;
    this.#verifySignature = verifySignature;
    this.#anchors = new Map(anchors.map((anchor) => [anchor.number, anchor]));
  }

  get counts(): { readonly checkpoints: number; readonly signed: number; readonly anchored: number } {
    return { checkpoints: this.#count, signed: this.#signed, anchored: this.#anchored };
  }

  /** Whether a checkpoint can be trusted: with a key, one after the last signature cannot. */
  isVouched(number: number): boolean {
    return this.#verifySignature === undefined || this.#unsigned === undefined || number < this.#unsigned;
  }

  /** Whether the next checkpoints are read only to settle a suspect. */
  get isSuspect(): boolean {
    return this.#chain.isSuspect;
  }

  /** What happened to the suspect, once no more checkpoints follow. */
  verdict(): Finding | undefined {
    const found = this.#chain.verdict();
    return found && { kind: found.kind, checkpoint: found.seq, why: found.why };
  }

  add(checkpoint: Checkpoint): Finding | undefined {
    const problem = checkpointProblem(checkpoint);
    if (problem !== undefined) return { kind: 'changed', why: `a checkpoint: ${problem}` };
    this.#count += 1;
    const { number, previous, hash } = checkpoint;
    const own = this.#ownFinding(checkpoint);
    if (this.isSuspect && own !== undefined) return undefined;
    if (own !== undefined) return { ...own, checkpoint: number };
    const found = this.#chain.add({ seq: number, previous, hash });
    if (found !== undefined) return { kind: found.kind, checkpoint: found.seq, why: found.why };
    if (this.isSuspect) return undefined;
    return this.#anchorFinding(checkpoint) ?? this.#enter(checkpoint);
  }

  /** Finds at the end of a record that the last checkpoints were cut off, or differ from the anchored ones. */
  endFinding({ checkpoints, checkpoint }: ExportEnd): Finding | undefined {
    const { seq, hash } = this.#chain;
    if ((checkpoint?.number ?? 0) > seq) {
      const number = seq + 1;
      return {
        kind: 'truncated',
        checkpoint: number,
        why: `there were ${checkpoint?.number}, and the record ends with ${seq}`,
      };
    }
    if (checkpoint === undefined && seq > 0)
      return {
        kind: 'inserted',
        checkpoint: this.#chain.first?.seq ?? seq,
        why: 'the end of the record knows of none',
      };
    if (checkpoint !== undefined && checkpoint.number < seq)
      return {
        kind: 'inserted',
        checkpoint: checkpoint.number + 1,
        why: `the record ended with ${checkpoint.number}`,
      };
    if (checkpoint !== undefined && checkpoint.hash !== hash)
      return { kind: 'changed', checkpoint: seq, why: 'the record ended with another one' };
    if (checkpoints !== this.#count)
      return { kind: 'missing', checkpoint: 1, why: `the record says it has ${checkpoints}, and has ${this.#count}` };
    for (const number of this.#anchors.keys()) {
      if (number > seq)
        return { kind: 'not-covered', checkpoint: number, why: `it was anchored, and the record ends with ${seq}` };
    }
    if (this.#verifySignature === undefined) return undefined;
    if (this.#signed > 0) return this.#closedUnsigned;
    if (this.#unsigned === undefined)
      return { kind: 'bad-signature', why: 'a key was given, and there is no checkpoint' };
    return { kind: 'bad-signature', checkpoint: this.#unsigned, why: 'neither it nor a later one is signed' };
  }

  #ownFinding(checkpoint: Checkpoint): Finding | undefined {
    const { hash, heads, root, chains, entries, signature } = checkpoint;
    const text = checkpointText(checkpoint);
    if (this.#digest(text) !== hash) return { kind: 'changed', why: 'its hash is not that of its content' };
    if (heads !== undefined) {
      const sum = heads.reduce((sum, { seq }) => sum + seq, 0);
      if (heads.some((head, i) => i > 0 && byResource(heads[i - 1] ?? head, head) >= 0))
        return { kind: 'changed', why: 'its heads are not in the order of their resources' };
      if (heads.length !== chains || sum !== entries || headsRoot(heads, this.#digest) !== root)
        return { kind: 'changed', why: 'its root is not that of its heads' };
    }
    if (this.#verifySignature === undefined) return undefined;
    if (signature === undefined) {
      this.#unsigned ??= checkpoint.number;
      return undefined;
    }
    const why = this.#verifySignature(text, signature);
    if (why !== undefined) return { kind: 'bad-signature', why };
    this.#signed += 1;
    this.#unsigned = undefined;
    this.#closedUnsigned = undefined;
    return undefined;
  }

  #anchorFinding({ number, previous, hash }: Checkpoint): Finding | undefined {
    // Checkpoints are trimmed too; the first remaining one still names the hash of the one before it.
    const before = this.#count === 1 ? this.#anchors.get(number - 1) : undefined;
    if (before !== undefined && before.hash !== previous)
      return { kind: 'changed', checkpoint: number - 1, why: 'another one was anchored' };
    const anchor = this.#anchors.get(number);
    if (anchor === undefined) return undefined;
    if (anchor.hash !== hash) return { kind: 'changed', checkpoint: number, why: 'another one was anchored' };
    this.#anchored += 1;
    return undefined;
  }

  #enter({ number, heads = [] }: Checkpoint): Finding | undefined {
    for (const { resource, seq, hash, from, tree, closed } of heads) {
      const known = this.wanted.get(resource) ?? new Map<number, Wanted>();
      this.wanted.set(resource, known);
      const said = known.get(seq);
      if (said !== undefined && said.hash !== hash)
        return {
          kind: 'changed',
          resource,
          seq,
          checkpoint: number,
          why: `checkpoint ${said.number} has another hash for it`,
        };
      if (closed === true) {
        // Later entries may belong to another chain of the same name.
        this.wanted.set(resource, new Map());
        this.closed.set(resource, { seq, hash, number });
        if (!this.isVouched(number))
          this.#closedUnsigned ??= {
            ...{ kind: 'not-covered', checkpoint: number, resource, seq },
            why: `it closes ${resource}, and neither it nor a later one is signed`,
          };
      } else if (said?.tree === undefined) {
        const whole = from !== undefined && tree !== undefined && { from, tree };
        known.set(seq, { hash, number: said?.number ?? number, ...whole });
      }
    }
    return undefined;
  }
}
