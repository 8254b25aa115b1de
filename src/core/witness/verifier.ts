/**
 * Verifies a record of the witness as a stream, line by line or entry by entry, and names the first problem. It keeps the heads
 * of all chains and the checkpoints' hashes for them, but no entries.
 */
import { objectIn } from '../shape.ts';
import { shown } from '../shown.ts';
import { escaped, escapeOf } from './canonical.ts';
import { ChainCheck, type FindingKind, type LinkFinding } from './chain-check.ts';
import { type Checkpoint, checkpointProblem } from './checkpoint.ts';
import { CheckpointCheck, type VerifySignature, type Wanted } from './checkpoint-check.ts';
import { type Digest, entryHash, entryProblem, NO_ENTRY, type WitnessEntry } from './entry.ts';
import { endProblem, type ExportEnd, isSealed } from './lines.ts';
import { merkleRoot } from './merkle.ts';
import { type ClosedChain, countsOf, endFindingOf, type Seen, type Verification } from './record-end.ts';

/** The first problem of a record. */
export interface Finding {
  /** The kind of damage. */
  readonly kind: FindingKind;
  /** The chain that it concerns, if it concerns one. */
  readonly resource?: string;
  /** The entry of that chain. */
  readonly seq?: number;
  /** The checkpoint that it concerns, if it concerns one. */
  readonly checkpoint?: number;
  /** The line of the export where the verifier noticed it. */
  readonly line?: number;
  /** The problem in a sentence. */
  readonly why: string;
}

export interface VerifierOptions {
  readonly digest: Digest;
  /**
   * Checks that the trusted key signed a checkpoint. If given, at least one checkpoint must be signed: it vouches for itself and
   * all before it.
   */
  readonly verifySignature?: VerifySignature;
  /** Checkpoints kept elsewhere. */
  readonly anchors?: readonly Checkpoint[];
}

interface OpenChain {
  readonly resource: string;
  readonly check: ChainCheck;
  /** The hashes that checkpoints have for this chain, by the number of the entry. */
  readonly wanted: ReadonlyMap<number, Wanted> | undefined;
  /** The hashes since the last checkpoint, if a checkpoint has a tree of them. */
  hashes: string[];
}

export class Verifier {
  readonly #digest: Digest;
  readonly #checkpoints: CheckpointCheck;
  readonly #closed = new Map<string, ClosedChain>();
  #chain: OpenChain | undefined;
  #finding: Finding | undefined;
  /** A suspect is pending: the verifier reads on only to settle it. */
  #isSettling = false;
  #suspectLine = 0;
  #entries = 0;
  #line = 0;
  /** Escapes the strings of the current entry. */
  #escape = escaped;
  #hasHeader = false;
  #only: ReadonlySet<string> | undefined;
  #end: ExportEnd | undefined;
  /** A line that is not JSON: the end of a cut file, if nothing follows. */
  #unreadable: Finding | undefined;

  constructor({ digest, verifySignature, anchors = [] }: VerifierOptions) {
    this.#digest = digest;
    this.#checkpoints = new CheckpointCheck(digest, verifySignature, anchors);
  }

  /** Whether more of the record can change the verdict. */
  get isDecided(): boolean {
    return this.#finding !== undefined;
  }

  /** How many entries have been read. */
  get entries(): number {
    return this.#entries;
  }

  /** Reads a line of an export. */
  line(text: string): void {
    this.#line += 1;
    if (this.#finding !== undefined) return;
    if (this.#unreadable !== undefined) return this.#found(this.#unreadable);
    const line = objectIn(text);
    this.#escape = escapeOf(text);
    if (this.#isSettling) {
      this.#readOn(line ?? {});
      return;
    }
    if (line === undefined) {
      this.#unreadable = this.#at({ kind: 'changed', why: `${this.#where()} is no JSON object` });
      return;
    }
    this.#read(line);
  }

  /** Looks only for links that settle the suspect. */
  #readOn(line: Readonly<Record<string, unknown>>): void {
    const { kind, ...rest } = line;
    if (kind === 'entry' && entryProblem(rest) === undefined) this.entry(rest as unknown as WitnessEntry);
    if (kind === 'checkpoint' && checkpointProblem(rest) === undefined) this.checkpoint(rest as unknown as Checkpoint);
  }

  #read(line: Readonly<Record<string, unknown>>): void {
    const { kind } = line;
    if (!this.#hasHeader && kind !== 'header')
      return this.#found({
        kind: 'missing',
        why: `the header is missing: ${this.#where()} has the kind ${shown(kind)}`,
      });
    if (this.#end !== undefined) return this.#afterEnd(line);
    switch (kind) {
      case 'entry': {
        const problem = entryProblem(line, true);
        if (problem !== undefined) return this.#found({ kind: 'changed', why: `${this.#where()}: ${problem}` });
        return this.entry(line as unknown as WitnessEntry);
      }
      case 'checkpoint': {
        const { kind: _kind, ...checkpoint } = line;
        return this.checkpoint(checkpoint as unknown as Checkpoint);
      }
      case 'header':
        return this.#header(line);
      case 'end': {
        const problem = endProblem(line) ?? (this.#isSealed(line) ? undefined : 'its hash is not that of its content');
        if (problem !== undefined)
          return this.#found({ kind: 'changed', why: `the end, ${this.#where()}: ${problem}` });
        return this.end(line as unknown as ExportEnd);
      }
      default:
        return this.#found({ kind: 'changed', why: `${this.#where()} has the kind ${shown(kind)}` });
    }
  }

  #header(line: Readonly<Record<string, unknown>>): void {
    if (this.#hasHeader) return this.#found({ kind: 'inserted', why: `${this.#where()} is a second header` });
    if (line['v'] !== 1 || !this.#isSealed(line))
      return this.#found({
        kind: 'changed',
        why: 'the header: its hash is not that of its content, or it is not of version 1',
      });
    this.#hasHeader = true;
    if (Array.isArray(line['only'])) this.#only = new Set(line['only'] as string[]);
  }

  /** Checkpoints come before the entries, from the oldest to the newest. */
  checkpoint(checkpoint: Checkpoint): void {
    if (this.#finding !== undefined) return;
    if (this.#chain !== undefined) {
      if (this.#isSettling) return;
      const why = `checkpoint ${shown(checkpoint.number)} comes after entries`;
      return this.#found({ kind: 'reordered', checkpoint: checkpoint.number, why });
    }
    const finding = this.#checkpoints.add(checkpoint);
    if (finding !== undefined) this.#found(finding);
    if (this.#checkpoints.isSuspect) this.#suspect();
  }

  /** The entries of a chain come in order, without entries of other chains in between. */
  entry(entry: WitnessEntry): void {
    if (this.#finding !== undefined) return;
    if (this.#isSettling) return this.#settle(entry);
    this.#entries += 1;
    const { resource, seq, hash } = entry;
    if (!this.#hasItsHash(entry))
      return this.#found({ kind: 'changed', resource, seq, why: 'its hash is not that of its content' });
    const late = this.#open(resource);
    if (late !== undefined) return this.#found({ ...late(entry), resource, seq });
    const chain = this.#chain as OpenChain;
    const finding = chain.check.add(entry);
    if (finding !== undefined) return this.#found({ ...finding, resource });
    if (chain.check.isSuspect) this.#suspect();
    else if (chain.wanted !== undefined) this.#compare(chain, chain.wanted, seq, hash);
  }

  /** Reports a value that stands in the place of an entry and is not one. */
  noEntry(place: Pick<Finding, 'resource' | 'seq'>, why: string): void {
    this.#found({ kind: 'changed', ...place, why });
  }

  /** Reads where the chains should end. Nothing may follow. */
  end(end: ExportEnd): void {
    this.#end = end;
  }

  finish(): Verification {
    // A problem that the end reveals belongs to no line.
    this.#line = this.#suspectLine;
    if (this.#isSettling) {
      const found = this.#chain?.check.verdict();
      const finding =
        found === undefined ? this.#checkpoints.verdict() : { ...found, resource: this.#chain?.resource ?? '' };
      if (finding !== undefined) this.#found(finding);
    }
    this.#close();
    if (this.#unreadable !== undefined && this.#end !== undefined) this.#found(this.#unreadable);
    if (this.#finding === undefined) {
      const finding = endFindingOf(this.#seen());
      if (finding !== undefined) this.#found(finding);
    }
    return { ...countsOf(this.#seen()), ...(this.#finding && { finding: this.#finding }) };
  }

  /** Makes the check of a chain; tests plant a bug here. */
  protected newChain(): ChainCheck {
    return new ChainCheck(NO_ENTRY);
  }

  #isSealed(line: Readonly<Record<string, unknown>>): boolean {
    try {
      return isSealed(line, this.#digest);
    } catch {
      return false; // half a surrogate pair, which has no canonical form
    }
  }

  #hasItsHash(entry: WitnessEntry): boolean {
    try {
      return entryHash(entry, this.#digest, this.#escape) === entry.hash;
    } catch {
      return false;
    }
  }

  #suspect(): void {
    if (!this.#isSettling) this.#suspectLine = this.#line;
    this.#isSettling = true;
  }

  #settle(entry: WitnessEntry): void {
    if (entry.resource === this.#chain?.resource && this.#hasItsHash(entry)) this.#chain.check.add(entry);
  }

  /** Switches to the chain of an entry; if that chain has already ended, returns the problem. */
  #open(resource: string): ((entry: WitnessEntry) => LinkFinding) | undefined {
    if (this.#chain?.resource === resource) return undefined;
    const closed = this.#closed.get(resource);
    if (closed !== undefined) return (entry) => lateFinding(entry, closed);
    this.#close();
    const wanted = this.#checkpoints.wanted.get(resource);
    this.#chain = { resource, check: this.newChain(), wanted, hashes: [] };
    return undefined;
  }

  #close(): void {
    if (this.#chain === undefined) return;
    const { resource, check } = this.#chain;
    const { first, seq, hash } = check;
    if (first !== undefined) this.#closed.set(resource, { first: first.seq, before: first.previous, seq, hash });
    this.#chain = undefined;
  }

  /** Compares an entry with the hashes that checkpoints have for it. */
  #compare(chain: OpenChain, wanted: ReadonlyMap<number, Wanted>, seq: number, hash: string): void {
    chain.hashes.push(hash);
    const said = wanted.get(seq);
    if (said === undefined) return;
    const { hashes, resource } = chain;
    chain.hashes = [];
    const { number, from, tree } = said;
    if (said.hash !== hash)
      return this.#found({ kind: 'changed', resource, seq, why: `checkpoint ${number} has another hash for it` });
    // A tree over trimmed entries cannot be computed again.
    if (tree === undefined || from === undefined || hashes.length < seq - from + 1) return;
    if (merkleRoot(hashes.slice(from - seq - 1), this.#digest) === tree) return;
    const why = `the tree of its entries ${from} to ${seq} of ${resource} is another`;
    this.#found({ kind: 'not-covered', checkpoint: number, resource, seq, why });
  }

  #afterEnd(line: Readonly<Record<string, unknown>>): void {
    const entry =
      line['kind'] === 'entry' && entryProblem(line, true) === undefined
        ? (line as unknown as WitnessEntry)
        : undefined;
    if (entry === undefined) return this.#found({ kind: 'inserted', why: `${this.#where()} comes after the end` });
    const { resource, seq, previous } = entry;
    this.#close();
    const closed = this.#closed.get(resource);
    const isNext = seq === (closed?.seq ?? 0) + 1 && previous === (closed?.hash ?? NO_ENTRY);
    this.#found({ kind: isNext ? 'reordered' : 'inserted', resource, seq, why: 'it comes after the end' });
  }

  #seen(): Seen {
    return {
      chains: this.#closed,
      checkpoints: this.#checkpoints,
      entries: this.#entries,
      end: this.#end,
      only: this.#only,
    };
  }

  #where(): string {
    const chain = this.#chain;
    return `line ${this.#line}${chain === undefined ? '' : ` (after entry ${chain.check.seq} of ${chain.resource})`}`;
  }

  #at(finding: Finding): Finding {
    return this.#line === 0 ? finding : { ...finding, line: this.#line };
  }

  #found(finding: Finding): void {
    this.#finding ??= finding.line === undefined ? this.#at(finding) : finding;
  }
}

function lateFinding({ seq, hash, previous }: WitnessEntry, closed: ClosedChain): LinkFinding {
  if (seq > closed.seq || (seq < closed.first && hash === closed.before))
    return { kind: 'reordered', seq, why: 'it comes after entries of another chain' };
  if (seq === closed.seq && hash !== closed.hash)
    return { kind: 'forked', seq, why: 'two different ones have this number' };
  return {
    kind: 'inserted',
    seq,
    why: `its chain had ended with ${closed.seq} (${previous === closed.hash ? 'which it follows' : 'which it does not follow'})`,
  };
}
