/**
 * What a writer knows of its resource: a snapshot, how fresh it is, and how it goes on: by what is read, by what others
 * report, and by what this process writes itself.
 */
import { type Answer, NONE } from '../../core/index.ts';
import type { OperationResult, ReadResult, Revision, TransactionResult } from '../../store/index.ts';
import type { Commit } from './commit.ts';
import type { Decision } from './decision.ts';
import type { Report } from '../layout.ts';
import type { Coordinated, Machine } from './machines.ts';
import { marksAfter } from './marks.ts';
import type { WriterHost } from './writer-host.ts';
import type { Ticket } from './pending-command.ts';
import { reportedSnapshot, marksOf, queueOf, recordOf, unknownSnapshot, type Snapshot, writerOf } from './snapshot.ts';

/** So many leases are looked up along with the state. */
const MOST_LEASES = 64;

export class CachedState<State extends Coordinated> {
  snapshot: Snapshot<State>;
  /** The snapshot was read after this many commands had been asked. */
  since = -1;
  /** The same for its whole queue. */
  wholeSince = -1;
  readonly #machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>;
  readonly #host: WriterHost;
  /** When the snapshot was read or heard. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** News that came while a commit was on its way. */
  #heard: Snapshot<State> | undefined;

  constructor(machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>, host: WriterHost) {
    this.#machine = machine;
    this.#host = host;
    this.snapshot = unknownSnapshot(machine.unused, host.revision);
  }

  /** How long ago it was read or heard. */
  get agedMs(): number {
    return this.#host.answersAtOnce ? 0 : this.#host.monotonic() - this.#lookedAt;
  }

  /** The other process that wrote the record last. */
  get keeper(): string | undefined {
    const { by } = this.snapshot;
    const { sender } = this.#host;
    return by === undefined || by === sender.id || sender.isGone(by) ? undefined : by;
  }

  /** Somebody else wrote the record at `revision`, and says what it knows. */
  hear(report: Report, revision: Revision): void {
    if (revision <= (this.#heard?.revision ?? 0)) return;
    this.#heard = reportedSnapshot(this.#machine, report, revision);
  }

  /** Not while a commit is on its way: that rests on the snapshot it was made of, and carries it on. */
  takeOverHeard(): void {
    const heard = this.#heard;
    if (heard === undefined) return;
    this.#heard = undefined;
    if (heard.revision <= this.snapshot.revision) return;
    this.snapshot = heard;
    this.wholeSince = -1;
    this.#lookedAt = this.#host.monotonic();
  }

  /** It was read, after so many commands had been asked. */
  adopt(snapshot: Snapshot<State>, asked: number): void {
    this.snapshot = snapshot;
    this.#lookedAt = this.#host.monotonic();
    this.since = asked;
    for (const { lease } of snapshot.state.waiting) {
      // A ticket that was read proves that its lease was alive.
      if (!this.#host.knowsLease(lease)) this.#host.sawLease(lease, 1, snapshot.revision);
    }
  }

  /** What is known now, after our own write at `revision`. */
  advance(decision: Decision<State>, commit: Commit, { revision, results }: TransactionResult): void {
    const { snapshot } = this;
    const { arriving } = commit;
    for (let i = 0; i < decision.answers.length; i++)
      snapshot.arrivals.delete((decision.answers[i] as Answer<unknown>).id);
    for (let i = 0; i < decision.withdrawn.length; i++) snapshot.arrivals.delete((decision.withdrawn[i] as Ticket).id);
    const wrote = commit.changesRecord || arriving.length > 0;
    const undisturbed = snapshot.complete && revision === snapshot.queueRevision + (wrote ? 1 : 0);
    if (undisturbed || commit.provesQueue) {
      snapshot.complete = true;
      snapshot.othersWait = false;
      snapshot.queueRevision = revision;
      for (let i = 0; i < arriving.length; i++) snapshot.arrivals.set((arriving[i] as Ticket).id, revision);
      snapshot.state = decision.state;
    } else {
      snapshot.complete = false;
      // Others may have arrived before ours: what is known has to remain the front of the queue.
      snapshot.state = arriving.length === 0 ? decision.state : withoutTickets(decision.state, arriving);
    }
    if (commit.looksAtQueue) this.#sawQueue(results, revision);
    if (commit.changesRecord) {
      snapshot.mod = revision;
      snapshot.by = this.#host.sender.id;
      snapshot.marks = marksAfter(snapshot.marks, decision.marks);
      if (!this.#host.answersAtOnce) this.#lookedAt = this.#host.monotonic();
    }
    snapshot.revision = revision;
  }

  #sawQueue(results: readonly OperationResult[], revision: Revision): void {
    const { snapshot } = this;
    try {
      const queue = queueOf(results.slice(-2));
      if (queue === undefined) return;
      snapshot.state = { ...snapshot.state, waiting: queue.waiting };
      snapshot.complete = queue.complete;
      snapshot.othersWait = !queue.complete;
      snapshot.arrivals = queue.arrivals;
      snapshot.queueRevision = revision;
    } catch {
      // Whoever decides on it next will tell that it cannot be read.
    }
  }

  /** The record was read after our own write, which did not rest on it. False if it cannot be read. */
  sawRecord({ pairs: [pair] }: ReadResult): boolean {
    const { snapshot } = this;
    const mod = pair?.modRevision ?? 0;
    if (mod === snapshot.mod) return true;
    const { unused } = this.#machine;
    try {
      snapshot.state = pair === undefined ? unused : { ...unused, record: recordOf(this.#machine, pair) };
    } catch {
      // Whoever decides on it next will tell.
      return false;
    }
    snapshot.mod = mod;
    snapshot.by = pair === undefined ? undefined : writerOf(pair);
    snapshot.marks = pair === undefined ? NONE : marksOf(pair);
    snapshot.complete = false;
    snapshot.othersWait = false;
    snapshot.arrivals.clear();
    return true;
  }

  // Leases

  /** Some of the holds as they are known: whether they are alive is read along with the state. */
  leases(): readonly string[] {
    return this.#allLeases().slice(0, MOST_LEASES);
  }

  /** Those that were never heard of, as many as can be looked up at once. */
  unknownLeases(): readonly string[] {
    const unknown = this.#allLeases().filter((lease) => !this.#host.knowsLease(lease));
    return unknown.slice(0, MOST_LEASES);
  }

  #allLeases(): readonly string[] {
    const leases: string[] = [];
    for (const { lease, limit } of this.snapshot.state.record.holds) {
      leases.push(lease);
      if (limit !== undefined) leases.push(limit);
    }
    return leases;
  }

  sawLeases(leases: readonly string[], results: readonly OperationResult[], revision: Revision): void {
    for (const [place, lease] of leases.entries()) {
      const read = results[place] as ReadResult | undefined;
      if (read !== undefined) this.#host.sawLease(lease, read.pairs[0]?.version, revision);
    }
  }

  /** Some hold is stale, or could be. */
  mayBeStale(): boolean {
    return this.snapshot.state.record.holds.some(({ lease, limit }) => {
      return this.#isUnsure(lease) || (limit !== undefined && this.#isUnsure(limit));
    });
  }

  #isUnsure(lease: string): boolean {
    return this.#host.sender.isGone(lease) || !this.#host.knowsLease(lease);
  }
}

function withoutTickets<State extends Coordinated>(state: State, tickets: readonly Ticket[]): State {
  return { ...state, waiting: state.waiting.filter((request) => !tickets.includes(request)) };
}
