/**
 * The transaction that makes a decision so. Its comparisons are exactly what the decision relied on: the record and the
 * leases as they were known, and nobody in the queue who should have gone before. Everything else may change under it.
 */
import { formsOf, nextInLine, NONE } from '../../core/index.ts';
import type { Compare, Operation, Transaction } from '../../store/index.ts';
import type { Decision } from './decision.ts';
import {
  anchorKey,
  encode,
  HORIZON,
  mailboxKey,
  type RecordDocument,
  inconsistent,
  type Report,
  type ResourceKeys,
  ticketClass,
  ticketKey,
} from '../layout.ts';
import { lettersOf, reportOf } from './letters.ts';
import { marksAfter } from './marks.ts';
import type { Coordinated } from './machines.ts';
import type { Ticket } from './pending-command.ts';
import { queueReads, type Snapshot, snapshotReads } from './snapshot.ts';

/** What a transaction needs to know of the process that sends it. */
export interface WriterIdentity {
  readonly id: string;
  /** The key that is there for as long as the session is. */
  readonly anchor: string;
  readonly epoch: number;
  /** The store's id of the lease with this name. */
  leaseId(lease: string): string;
  isGone(lease: string): boolean;
}

export interface Commit {
  readonly transaction: Transaction;
  /** Joined the queue by it. */
  readonly arriving: readonly Ticket[];
  /** It proves that nobody waits, besides those it knows. */
  readonly provesQueue: boolean;
  /** Put into the queue if the transaction fails: a wait never has to be asked for twice. */
  readonly fallback: readonly Ticket[];
  /** Whose liveness the transaction relied on, read again if it fails. */
  readonly leases: readonly string[];
  readonly changesRecord: boolean;
  /** It ends with a look at the queue, as it is after it. */
  readonly looksAtQueue: boolean;
}

/** So much of the queue is looked at by one who writes for many: more than it can serve before it writes again. */
const LOOKED_AT = 32;

/**
 * `undefined` if too little is known of the queue to let a newcomer past it. `mayQueue`: who is to be put into the
 * queue if the transaction fails; without it, a failure brings nothing, which is right where asking again is cheap.
 * `looksAtQueue`: for one who writes for many, who will want to know who has come meanwhile.
 */
export function commitOf<State extends Coordinated>(
  keys: ResourceKeys,
  snapshot: Snapshot<State>,
  decision: Decision<State>,
  sender: WriterIdentity,
  isClosed: boolean,
  mayQueue: readonly Ticket[] | undefined,
  looksAtQueue = false,
): Commit | undefined {
  if (decision.fault !== undefined) throw inconsistent(keys.resource, 'as it was about to be written', decision.fault);
  const nobodyWaits = snapshot.state.waiting.length === 0 && decision.state.waiting.length === 0;
  if (nobodyWaits && mayQueue === undefined && decision.isPlain && decision.state !== snapshot.state) {
    return plainCommit(keys, snapshot, decision, sender, isClosed);
  }
  const writing = new Writing(keys, snapshot, decision, sender, isClosed);
  writing.record();
  writing.liveness();
  if (!writing.queueIsKnown()) return undefined;
  writing.leaving();
  writing.arriving();
  writing.letters();
  return writing.commit(mayQueue, looksAtQueue);
}

/** The same for what is by far the most frequent, one command and nobody waiting, without the lists it has no use for. */
function plainCommit<State extends Coordinated>(
  { record, queue, queueEnd }: ResourceKeys,
  snapshot: Snapshot<State>,
  decision: Decision<State>,
  sender: WriterIdentity,
  isClosed: boolean,
): Commit {
  const asKnown: Compare = { key: record, target: 'mod', is: '=', than: snapshot.mod };
  const nobodyWaits: Compare = { key: queue, end: queueEnd, target: 'version', is: '=', than: 0 };
  const isNew = snapshot.mod === 0;
  const value = encode(documentOf(snapshot, decision, sender));
  const success: readonly Operation[] = [{ do: 'put', key: record, value, lease: undefined }];
  let compare: readonly Compare[];
  if (decision.newcomers.length > 0) {
    const alive: Compare = { key: sender.anchor, target: 'version', is: '=', than: sender.epoch };
    compare = isNew ? [asKnown, alive, nobodyWaits, nothingForgotten(decision)] : [asKnown, alive, nobodyWaits];
  } else if (isNew) {
    compare = [asKnown, nobodyWaits, nothingForgotten(decision)];
  } else {
    compare = isClosed ? [asKnown] : [asKnown, nobodyWaits];
  }
  const provesQueue = compare.length > 1;
  const transaction = { compare, success, failure: NONE };
  return {
    transaction,
    arriving: NONE,
    provesQueue,
    fallback: NONE,
    leases: NONE,
    changesRecord: true,
    looksAtQueue: false,
  };
}

/**
 * A record that is made may have been there before, and have been deleted by maintenance together with its last token.
 * The tokens of this write are larger than the revision it was decided at. Maintenance writes the horizon before it deletes
 * records whose tokens are smaller than the horizon's own revision. So a write that was decided after the horizon goes past
 * every deleted token, and one that was decided before it fails here, however late it arrives.
 */
function nothingForgotten({ revision }: Decision<Coordinated>): Compare {
  return { key: HORIZON, target: 'mod', is: '<', than: revision + 1 };
}

function documentOf<State extends Coordinated>(
  snapshot: Snapshot<State>,
  { state, events, marks: more }: Decision<State>,
  { id }: WriterIdentity,
): RecordDocument<State['record']> {
  const marks = marksAfter(snapshot.marks, more);
  if (marks.length === 0) return { record: state.record, events, by: id };
  return { record: state.record, events, by: id, marks };
}

class Writing<State extends Coordinated> {
  readonly #keys: ResourceKeys;
  readonly #snapshot: Snapshot<State>;
  readonly #decision: Decision<State>;
  readonly #sender: WriterIdentity;
  readonly #isClosed: boolean;
  readonly #changesRecord: boolean;
  readonly #moved: Moved;
  readonly #compare: Compare[] = [];
  readonly #success: Operation[] = [];
  readonly #leases: string[] = [];
  #provesQueue = false;

  constructor(
    keys: ResourceKeys,
    snapshot: Snapshot<State>,
    decision: Decision<State>,
    sender: WriterIdentity,
    isClosed: boolean,
  ) {
    this.#keys = keys;
    this.#snapshot = snapshot;
    this.#decision = decision;
    this.#sender = sender;
    this.#isClosed = isClosed;
    this.#moved = difference(snapshot.state.waiting, decision.state.waiting);
    // What happens in the queue alone is told by the record too, where there is something to tell.
    this.#changesRecord = decision.state.record !== snapshot.state.record || decision.events.length > 0;
  }

  record(): void {
    const { record: key } = this.#keys;
    const { restsOnRecord } = this.#decision;
    if (this.#changesRecord || restsOnRecord)
      this.#compare.push({ key, target: 'mod', is: '=', than: this.#snapshot.mod });
    if (!this.#changesRecord) return;
    if (this.#snapshot.mod === 0) this.#compare.push(nothingForgotten(this.#decision));
    this.#success.push({ do: 'put', key, value: encode(documentOf(this.#snapshot, this.#decision, this.#sender)) });
  }

  liveness(): void {
    const { newcomers, kept, losses, senders } = this.#decision;
    const { id, epoch } = this.#sender;
    if (this.#moved.arriving.length > 0 || newcomers.length > 0) this.#relyOn(id, '=', epoch);
    for (const [process, sender] of senders) this.#relyOn(process, '=', sender.epoch);
    for (const { lease } of newcomers) if (lease !== id && !senders.has(lease)) this.#relyOn(lease, '>', 0);
    for (const { lease, limit } of kept) {
      this.#relyOn(lease, '>', 0);
      if (limit !== undefined) this.#relyOn(limit, '>', 0);
    }
    for (const { hold, why } of losses) {
      if (why !== 'reclaimed') continue;
      // Taking over and coming back to life exclude each other: only one of them can find the lease as it expects.
      const { limit = hold.lease } = hold;
      this.#relyOn(this.#sender.isGone(hold.lease) ? hold.lease : limit, '=', 0);
    }
  }

  /** Whoever has not waited, and whoever leaves it free, must know that nobody waits. */
  queueIsKnown(): boolean {
    const { newcomers, state } = this.#decision;
    const leavesRoom = this.#changesRecord && !this.#isClosed && state.waiting.length === 0;
    if (newcomers.length === 0 && !leavesRoom) return true;
    const someWaited = this.#snapshot.state.waiting.length > 0;
    this.#provesQueue = !someWaited || this.#snapshot.complete;
    if (this.#provesQueue) this.#nobodyElse(someWaited ? this.#snapshot.queueRevision : 0, this.#keys.queueEnd);
    return this.#provesQueue || newcomers.length === 0;
  }

  leaving(): void {
    const { answers, withdrawn } = this.#decision;
    let lowest = this.#classOfNext();
    for (const request of this.#moved.leaving) {
      const key = ticketKey(this.#keys, request);
      if (answers.some(({ id }) => id === request.id)) {
        // The ticket hangs on its lease: while it is there, the one who is granted is alive.
        const arrival = this.#snapshot.arrivals.get(request.id) ?? 0;
        this.#compare.push({ key, target: 'create', is: '=', than: arrival });
        this.#success.push({ do: 'delete', key });
        if (ticketClass(request) > lowest) lowest = ticketClass(request);
      } else if (!withdrawn.some(({ id }) => id === request.id)) {
        // Passed over as dead. Its ticket went with its lease; if not, it was not dead.
        this.#relyOn(request.lease, '=', 0);
      }
    }
    for (const request of withdrawn) {
      if (answers.some(({ id }) => id === request.id)) continue;
      for (const form of formsOf(request)) this.#success.push({ do: 'delete', key: ticketKey(this.#keys, form) });
    }
    // Nobody of a higher priority has slipped in since the queue was read.
    if (lowest > '!' && !this.#provesQueue) this.#nobodyElse(this.#snapshot.queueRevision, this.#keys.queue + lowest);
  }

  /** The next in line was found to have to wait; somebody before it would perhaps not. */
  #classOfNext(): string {
    const { waiting, record } = this.#decision.state;
    if (!this.#changesRecord || this.#isClosed) return '';
    const next = waiting[nextInLine(waiting, record.passed)];
    return next === undefined ? '' : ticketClass(next);
  }

  arriving(): void {
    for (const request of this.#moved.arriving) {
      const leaseId = this.#decision.senders.get(request.lease)?.leaseId;
      this.#success.push(ticketPut(this.#keys, request, this.#decision.at, this.#sender, leaseId));
      if (request.upgrades === undefined) continue;
      // Two who wait for each other to leave would wait for ever: only one may want to become the writer.
      const { queue } = this.#keys;
      this.#compare.push({ key: `${queue}!`, end: `${queue}"`, target: 'version', is: '=', than: 0 });
    }
  }

  letters(): void {
    const { answers, losses, replies } = this.#decision;
    if (answers.length === 0 && losses.length === 0 && replies.length === 0) return;
    const { resource } = this.#keys;
    const report = (): Report | undefined =>
      reportOf(resource, this.#snapshot, this.#decision, this.#moved.arriving, this.#sender.id);
    for (const [process, letter] of lettersOf(resource, this.#decision, this.#sender, report)) {
      const key = mailboxKey(process);
      // The dead have no mailbox; whether it is dead does not matter to what was decided.
      const isThere: Compare = { key, target: 'version', is: '>', than: 0 };
      const put: Operation = { do: 'put', key, value: encode(letter), lease: 'keep' };
      this.#success.push({ do: 'transaction', compare: [isThere], success: [put], failure: [] });
    }
  }

  commit(mayQueue: readonly Ticket[] | undefined, looksAtQueue: boolean): Commit {
    if (!this.#changesRecord) this.#success.push({ do: 'read', key: this.#keys.record });
    else if (looksAtQueue) this.#success.push(...queueReads(this.#keys, LOOKED_AT));
    // Whoever may hold it already must not queue behind itself, unless the record was looked at.
    const fallback = mayQueue?.filter((request) => request.holder === request.id) ?? NONE;
    return {
      transaction: {
        compare: this.#compare,
        success: this.#success,
        failure: mayQueue === undefined ? NONE : this.#otherwise(fallback),
      },
      arriving: this.#moved.arriving,
      provesQueue: this.#provesQueue,
      fallback,
      leases: this.#leases,
      changesRecord: this.#changesRecord,
      looksAtQueue: looksAtQueue && this.#changesRecord,
    };
  }

  #otherwise(fallback: readonly Ticket[]): readonly Operation[] {
    const { id, epoch } = this.#sender;
    const reads = this.#leases.map((lease): Operation => ({ do: 'read', key: anchorKey(lease) }));
    const learn = [...snapshotReads(this.#keys), ...reads];
    if (fallback.length === 0) return learn;
    const queue: Operation = {
      do: 'transaction',
      compare: [{ key: anchorKey(id), target: 'version', is: '=', than: epoch }],
      success: fallback.map((request) => ticketPut(this.#keys, request, this.#decision.at, this.#sender)),
      failure: [],
    };
    return [queue, ...learn];
  }

  #relyOn(lease: string, is: '=' | '>', than: number): void {
    this.#compare.push({ key: anchorKey(lease), target: 'version', is, than });
    this.#leases.push(lease);
  }

  /** With `since` 0: the range is empty. Otherwise all in it had arrived by then. */
  #nobodyElse(since: number, end: string): void {
    const key = this.#keys.queue;
    if (since === 0) this.#compare.push({ key, end, target: 'version', is: '=', than: 0 });
    else this.#compare.push({ key, end, target: 'create', is: '<', than: since + 1 });
  }
}

function ticketPut(
  keys: ResourceKeys,
  request: Ticket,
  at: number,
  sender: WriterIdentity,
  lease = sender.leaseId(request.lease),
): Operation {
  return { do: 'put', key: ticketKey(keys, request), value: encode({ request, at }), lease };
}

interface Moved {
  readonly arriving: readonly Ticket[];
  readonly leaving: readonly Ticket[];
}

const UNMOVED: Moved = { arriving: NONE, leaving: NONE };

/** Both lists are in order of arrival, and whoever stays is the same object in both. */
function difference(before: readonly Ticket[], after: readonly Ticket[]): Moved {
  if (before === after) return UNMOVED;
  const leaving: Ticket[] = [];
  let place = 0;
  for (const request of before) {
    if (after[place] === request) place++;
    else leaving.push(request);
  }
  return { arriving: after.slice(place), leaving };
}
