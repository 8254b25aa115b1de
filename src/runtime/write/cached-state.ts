/**
 * The writer's cached state of its resource: a snapshot, and how fresh it is. Three things advance it: what the writer reads,
 * what other processes report, and what the writer commits.
 */
import { type Answer, NONE } from '../../core/index.ts';
import {
  type KeyValue,
  Operations,
  type OperationResult,
  type ReadResult,
  type Revision,
  type TransactionResult,
} from '../../store/index.ts';
import type { Commit } from './commit.ts';
import type { AnyMachine, Decision } from './decision.ts';
import { NO_CHAIN, type Report, type ResourceKeys } from '../layout.ts';
import type { Coordinated } from '../../core/machines.ts';
import type { Runtime } from '../runtime.ts';
import type { AnyCommand, AnyOutcome, Ticket } from './pending-command.ts';
import { headIn } from './witness.ts';
import {
  type AnySnapshot,
  leasesOf,
  marksAfter,
  marksOf,
  MOST_LEASES,
  namesEntry,
  queueFrom,
  type QueueReads,
  readLeases,
  sawLeases,
  unknownLeases,
  readSnapshot,
  recordOf,
  reportedSnapshot,
  snapshotFrom,
  type SnapshotReads,
  unknownSnapshot,
  writerOf,
} from './snapshot.ts';

export interface Reading {
  /** Undefined if the whole queue has to be read. */
  done(snapshot: AnySnapshot | undefined): void;
  /** The record or a ticket cannot be read, or breaks a promise. */
  malformed(error: unknown): void;
  /** The store was not reached, or did not answer. */
  unread(error: unknown): void;
}

/** Losing a race on a snapshot older than this is no sign of contention: the snapshot was stale. */
export const FRESH_MS = 10;

export class CachedState {
  snapshot: AnySnapshot;
  /** How many commands had been submitted when the snapshot was read: it is newer than all of these. */
  since = -1;
  /** The same for the last read of the whole queue. */
  wholeSince = -1;
  readonly #machine: AnyMachine;
  readonly #keys: ResourceKeys;
  readonly #host: Runtime;
  /** When the snapshot was read or reported, on the monotonic clock. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The newest report that is not in the snapshot yet: it came while a commit was on its way. */
  #reported: AnySnapshot | undefined;

  constructor(machine: AnyMachine, keys: ResourceKeys, host: Runtime) {
    this.#machine = machine;
    this.#keys = keys;
    this.#host = host;
    this.snapshot = unknownSnapshot(machine.unused, host.revision);
  }

  /** How long ago the snapshot was read or reported. */
  get agedMs(): number {
    return this.#host.answersAtOnce ? 0 : this.#host.clock.monotonic() - this.#lookedAt;
  }

  /** The other process that wrote the record last, if it is alive as far as is known. */
  get keeper(): string | undefined {
    const { by } = this.snapshot;
    const { sender } = this.#host;
    return by === undefined || by === sender.id || sender.isGone(by) ? undefined : by;
  }

  /** How many living requests are known before this one; undefined if it is not known itself. */
  placeOf(id: string): number | undefined {
    const { waiting } = this.snapshot.state;
    const place = waiting.findIndex((request) => request.id === id);
    const { sender } = this.#host;
    return place < 0 ? undefined : waiting.slice(0, place).filter(({ lease }) => !sender.isGone(lease)).length;
  }

  /** Whether a hold in the record rests on this lease. Throws if the record cannot be read. */
  hasHoldOf(lease: string, record: KeyValue): boolean {
    return recordOf(this.#machine, record).holds.some((hold) => hold.lease === lease);
  }

  /** Keeps what another process reported with its write at `revision`, until `takeOverReport`. */
  report(report: Report, revision: Revision): void {
    if (revision <= (this.#reported?.revision ?? 0)) return;
    this.#reported = reportedSnapshot(this.#machine, report, revision);
  }

  /** Must not run while a commit is on its way: `advance` carries on the snapshot on which the commit was decided. */
  takeOverReport(): void {
    const reported = this.#reported;
    if (reported === undefined) return;
    this.#reported = undefined;
    if (reported.revision <= this.snapshot.revision) return;
    this.snapshot = reported;
    this.wholeSince = -1;
    this.#lookedAt = this.#host.clock.monotonic();
  }

  /** Takes over a snapshot that was read after `asked` commands had been submitted. */
  adopt(snapshot: AnySnapshot, asked: number): void {
    this.snapshot = snapshot;
    this.#lookedAt = this.#host.clock.monotonic();
    this.since = asked;
    // The whole queue was known before; now it is only the front again.
    if (!snapshot.complete) this.wholeSince = -1;
    for (const { lease } of snapshot.state.waiting) {
      // A ticket is on its lease, so a ticket that was read proves that the lease was alive.
      if (!this.#host.anchors.isKnown(lease)) this.#host.sawLease(lease, 1, snapshot.revision);
    }
  }

  /** Carries the snapshot on over our own write at `revision`. */
  advance(decision: Decision<Coordinated>, commit: Commit, { revision, results }: TransactionResult): void {
    const { snapshot } = this;
    const { arriving } = commit;
    const { arrivals } = snapshot;
    if (arrivals !== undefined) {
      for (const { id } of decision.answers) arrivals.delete(id);
      for (const { id } of decision.withdrawn) arrivals.delete(id);
    }
    const wrote = commit.changesRecord || arriving.length > 0;
    const undisturbed = snapshot.complete && revision === snapshot.queueRevision + (wrote ? 1 : 0);
    if (undisturbed || commit.provesQueue) {
      snapshot.complete = true;
      snapshot.othersWait = false;
      snapshot.queueRevision = revision;
      for (let i = 0; i < arriving.length; i++)
        (snapshot.arrivals ??= new Map()).set((arriving[i] as Ticket).id, revision);
      snapshot.state = decision.state;
    } else {
      snapshot.complete = false;
      // Tickets of other processes may have arrived before ours, and the snapshot must stay a front of the queue.
      snapshot.state = arriving.length === 0 ? decision.state : withoutTickets(decision.state, arriving);
    }
    if (commit.queueAfter !== undefined) this.#sawQueue(commit.queueAfter, results, revision);
    if (commit.link !== undefined) snapshot.chain = { ...commit.link.head, keyMod: undefined };
    if (commit.changesRecord) {
      snapshot.mod = revision;
      snapshot.by = this.#host.sender.id;
      snapshot.marks = marksAfter(snapshot.marks, decision.marks);
      if (!this.#host.answersAtOnce) this.#lookedAt = this.#host.clock.monotonic();
    }
    snapshot.revision = revision;
  }

  #sawQueue(reads: QueueReads, results: readonly OperationResult[], revision: Revision): void {
    const { snapshot } = this;
    try {
      const queue = queueFrom(reads, results);
      if (queue === undefined) return;
      snapshot.state = { ...snapshot.state, waiting: queue.waiting };
      snapshot.complete = queue.complete;
      snapshot.othersWait = !queue.complete;
      snapshot.arrivals = queue.arrivals;
      snapshot.queueRevision = revision;
    } catch {
      // A ticket cannot be read. The next decision reads it again, and fails the commands that depend on it.
    }
  }

  /** Takes over the record that our own write read because it did not rest on it. False if it cannot be read. */
  sawRecord({ pairs: [pair] }: ReadResult): boolean {
    const { snapshot } = this;
    const mod = pair?.modRevision ?? 0;
    if (mod === snapshot.mod) return true;
    const { unused } = this.#machine;
    try {
      snapshot.state = pair === undefined ? unused : { ...unused, record: recordOf(this.#machine, pair) };
    } catch {
      // The next decision reads the record again, and fails the commands that depend on it.
      return false;
    }
    snapshot.mod = mod;
    snapshot.by = pair === undefined ? undefined : writerOf(pair);
    const head = pair !== undefined && namesEntry(pair) ? headIn(pair) : undefined;
    snapshot.chain = head === undefined ? NO_CHAIN : { ...head, keyMod: undefined };
    snapshot.marks = pair === undefined ? NONE : marksOf(pair);
    snapshot.complete = false;
    snapshot.othersWait = false;
    snapshot.arrivals = undefined;
    return true;
  }

  // Requests that a write leaves in the queue though they can be granted now. The writer has to serve them: no other
  // process will.

  /** After a write that was decided on the record as it is, if `known`. */
  leavesUnserved(
    batch: readonly { readonly command: AnyCommand }[],
    { answers }: Decision<Coordinated>,
    commit: Commit,
    known: boolean,
  ): boolean {
    const { snapshot } = this;
    // Another request of the same holder may be in the rest of the queue. It shares the hold, and its caller may wait for that
    // before it releases anything.
    if (!snapshot.complete && answers.some(isToNamed)) return true;
    const mayServeMore = known && !snapshot.complete && snapshot.state.waiting.length === 0;
    // A new `onStale` may let requests past a stale hold, also requests that are not in the cached queue.
    const isConfigured = commit.changesRecord && batch.some(({ command }) => command.kind === 'configure');
    const isOpen = !this.#machine.isClosed(snapshot.state) || (isConfigured && this.mayBeStale());
    return (mayServeMore && isOpen) || (commit.queueAfter !== undefined && this.#couldServe(snapshot.state));
  }

  /**
   * After a write that changed only tickets, decided on a record that may have been old, and read the record as it is.
   * `isNew`: the record has changed since the decision.
   */
  ticketsLeaveUnserved({ arriving }: Commit, isNew: boolean): boolean {
    const { state } = this.snapshot;
    const isClosed = this.#machine.isClosed(state) && !this.mayBeStale();
    if (isClosed && !isNew) return false;
    if (!isClosed && unknownLeases(this.#host, [state]).length > 0) return true;
    // The write removed a dead request: the one behind it, known or not, may be next.
    if (!isClosed && arriving.length === 0) return true;
    // The hold for which the request waits may have ended, or changed, since the record on which it was decided.
    return this.#couldServe({ ...state, waiting: arriving });
  }

  #couldServe(state: Coordinated): boolean {
    if (state.waiting.length === 0) return false;
    const at = this.#host.moment(this.#host.revision);
    return this.#machine.transition(state, this.#machine.settle, at).state !== state;
  }

  // Reads

  /** Reads a snapshot, and whether the leases of the known holds are alive. */
  refresh(whole: boolean, reading: Reading): void {
    // Our own lease as well: a fence that got no answer may have landed since, and raised our epoch.
    const { id } = this.#host.sender;
    const leases = leasesOf(this.snapshot.state).slice(0, MOST_LEASES);
    this.#read(whole, id === '' ? leases : [...leases, id], reading);
  }

  /** Reads a snapshot of the whole state, and leaves the cached state as it is. */
  look(done: (snapshot: AnySnapshot) => void, failed: (error: unknown) => void): void {
    this.#read(true, [], { done: (whole) => done(whole as AnySnapshot), malformed: failed, unread: failed });
  }

  #read(whole: boolean, leases: readonly string[], reading: Reading): void {
    const operations = new Operations();
    const snapshot = readSnapshot(operations, this.#keys, this.#host.witness.isOn, whole);
    const anchors = readLeases(operations, leases);
    this.#host.commit(
      operations.always(),
      (result) => {
        sawLeases(this.#host, anchors, result);
        this.decode(snapshot, result.results, result.revision, reading);
      },
      (error) => reading.unread(error),
    );
  }

  /** Makes a snapshot of results that a transaction brought. */
  decode(
    reads: SnapshotReads,
    results: readonly OperationResult[],
    revision: Revision,
    reading: Pick<Reading, 'done' | 'malformed'>,
  ): void {
    let snapshot: AnySnapshot | undefined;
    try {
      snapshot = snapshotFrom(this.#machine, reads, results, revision);
    } catch (error) {
      return reading.malformed(error);
    }
    reading.done(snapshot);
  }

  /** Whether some hold is stale, or could be: its lease has ended, or is unknown. */
  mayBeStale(): boolean {
    return this.snapshot.state.record.holds.some(({ lease, limit }) => {
      return this.#isUnsure(lease) || (limit !== undefined && this.#isUnsure(limit));
    });
  }

  #isUnsure(lease: string): boolean {
    return this.#host.sender.isGone(lease) || !this.#host.anchors.isKnown(lease);
  }
}

/** Whether it grants something to a holder that may have other requests. */
function isToNamed({ id, outcome }: Answer<unknown>): boolean {
  const { hold } = outcome as AnyOutcome;
  return hold !== undefined && hold.holder !== id;
}

function withoutTickets(state: Coordinated, tickets: readonly Ticket[]): Coordinated {
  return { ...state, waiting: state.waiting.filter((request) => !tickets.includes(request)) };
}
