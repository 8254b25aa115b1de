/**
 * What a desk knows of its resource: a view, how fresh it is, and how it goes on: by what is read, by what others
 * report, and by what this process writes itself.
 */
import { type Answer, NONE } from '../core/index.ts';
import type { OperationResult, ReadResult, Revision, TransactionResult } from '../store/index.ts';
import type { Commit } from './commit.ts';
import type { Draft } from './draft.ts';
import type { Report } from './layout.ts';
import type { Coordinated, Machine } from './machines.ts';
import { marksAfter } from './marks.ts';
import type { Office } from './office.ts';
import type { Ticket } from './pending.ts';
import { heardView, marksOf, queueOf, recordOf, unknownView, type View, writerOf } from './view.ts';

/** So many leases are looked up along with the state. */
const MOST_LEASES = 64;

export class Knowledge<State extends Coordinated> {
  view: View<State>;
  /** The view was read after this many commands had been asked. */
  since = -1;
  /** The same for its whole queue. */
  wholeSince = -1;
  readonly #machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>;
  readonly #office: Office;
  /** When the view was read or heard. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** News that came while a commit was on its way. */
  #heard: View<State> | undefined;

  constructor(machine: Pick<Machine<State, never, unknown>, 'unused' | 'version'>, office: Office) {
    this.#machine = machine;
    this.#office = office;
    this.view = unknownView(machine.unused, office.revision);
  }

  /** How long ago it was read or heard. */
  get agedMs(): number {
    return this.#office.answersAtOnce ? 0 : this.#office.monotonic() - this.#lookedAt;
  }

  /** The other process that wrote the record last. */
  get keeper(): string | undefined {
    const { by } = this.view;
    const { sender } = this.#office;
    return by === undefined || by === sender.id || sender.isGone(by) ? undefined : by;
  }

  /** Somebody else wrote the record at `revision`, and says what it knows. */
  hear(report: Report, revision: Revision): void {
    if (revision <= (this.#heard?.revision ?? 0)) return;
    this.#heard = heardView(this.#machine, report, revision);
  }

  /** Not while a commit is on its way: that rests on the view it was made of, and carries it on. */
  takeOverHeard(): void {
    const heard = this.#heard;
    if (heard === undefined) return;
    this.#heard = undefined;
    if (heard.revision <= this.view.revision) return;
    this.view = heard;
    this.wholeSince = -1;
    this.#lookedAt = this.#office.monotonic();
  }

  /** It was read, after so many commands had been asked. */
  adopt(view: View<State>, asked: number): void {
    this.view = view;
    this.#lookedAt = this.#office.monotonic();
    this.since = asked;
    for (const { lease } of view.state.waiting) {
      // A ticket that was read proves that its lease was alive.
      if (!this.#office.knowsLease(lease)) this.#office.sawLease(lease, 1, view.revision);
    }
  }

  /** What is known now, after our own write at `revision`. */
  advance(draft: Draft<State>, commit: Commit, { revision, results }: TransactionResult): void {
    const { view } = this;
    const { arriving } = commit;
    for (let i = 0; i < draft.answers.length; i++) view.arrivals.delete((draft.answers[i] as Answer<unknown>).id);
    for (let i = 0; i < draft.withdrawn.length; i++) view.arrivals.delete((draft.withdrawn[i] as Ticket).id);
    const wrote = commit.changesRecord || arriving.length > 0;
    const undisturbed = view.complete && revision === view.queueRevision + (wrote ? 1 : 0);
    if (undisturbed || commit.provesQueue) {
      view.complete = true;
      view.othersWait = false;
      view.queueRevision = revision;
      for (let i = 0; i < arriving.length; i++) view.arrivals.set((arriving[i] as Ticket).id, revision);
      view.state = draft.state;
    } else {
      view.complete = false;
      // Others may have arrived before ours: what is known has to remain the front of the queue.
      view.state = arriving.length === 0 ? draft.state : withoutTickets(draft.state, arriving);
    }
    if (commit.looksAtQueue) this.#sawQueue(results, revision);
    if (commit.changesRecord) {
      view.mod = revision;
      view.by = this.#office.sender.id;
      view.marks = marksAfter(view.marks, draft.marks);
      if (!this.#office.answersAtOnce) this.#lookedAt = this.#office.monotonic();
    }
    view.revision = revision;
  }

  #sawQueue(results: readonly OperationResult[], revision: Revision): void {
    const { view } = this;
    try {
      const queue = queueOf(results.slice(-2));
      if (queue === undefined) return;
      view.state = { ...view.state, waiting: queue.waiting };
      view.complete = queue.complete;
      view.othersWait = !queue.complete;
      view.arrivals = queue.arrivals;
      view.queueRevision = revision;
    } catch {
      // Whoever decides on it next will tell that it cannot be read.
    }
  }

  /** The record was read after our own write, which did not rest on it. False if it cannot be read. */
  sawRecord({ pairs: [pair] }: ReadResult): boolean {
    const { view } = this;
    const mod = pair?.modRevision ?? 0;
    if (mod === view.mod) return true;
    const { unused } = this.#machine;
    try {
      view.state = pair === undefined ? unused : { ...unused, record: recordOf(this.#machine, pair) };
    } catch {
      // Whoever decides on it next will tell.
      return false;
    }
    view.mod = mod;
    view.by = pair === undefined ? undefined : writerOf(pair);
    view.marks = pair === undefined ? NONE : marksOf(pair);
    view.complete = false;
    view.othersWait = false;
    view.arrivals.clear();
    return true;
  }

  // Leases

  /** Some of the holds as they are known: whether they are alive is read along with the state. */
  leases(): readonly string[] {
    return this.#allLeases().slice(0, MOST_LEASES);
  }

  /** Those that were never heard of, as many as can be looked up at once. */
  unknownLeases(): readonly string[] {
    const unknown = this.#allLeases().filter((lease) => !this.#office.knowsLease(lease));
    return unknown.slice(0, MOST_LEASES);
  }

  #allLeases(): readonly string[] {
    const leases: string[] = [];
    for (const { lease, limit } of this.view.state.record.holds) {
      leases.push(lease);
      if (limit !== undefined) leases.push(limit);
    }
    return leases;
  }

  sawLeases(leases: readonly string[], results: readonly OperationResult[], revision: Revision): void {
    for (const [place, lease] of leases.entries()) {
      const read = results[place] as ReadResult | undefined;
      if (read !== undefined) this.#office.sawLease(lease, read.pairs[0]?.version, revision);
    }
  }

  /** Some hold is stale, or could be. */
  mayBeStale(): boolean {
    return this.view.state.record.holds.some(({ lease, limit }) => {
      return this.#isUnsure(lease) || (limit !== undefined && this.#isUnsure(limit));
    });
  }

  #isUnsure(lease: string): boolean {
    return this.#office.sender.isGone(lease) || !this.#office.knowsLease(lease);
  }
}

function withoutTickets<State extends Coordinated>(state: State, tickets: readonly Ticket[]): State {
  return { ...state, waiting: state.waiting.filter((request) => !tickets.includes(request)) };
}
