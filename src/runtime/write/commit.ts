/**
 * Builds the transaction that commits a decision. Its comparisons are exactly what the decision relied on: the record and the
 * leases as they were known, and no ticket in the queue that should have gone first. Everything else may change meanwhile.
 */
import { formsOf, type Hold, type Loss, nextInLine, NONE, type Request } from '../../core/index.ts';
import {
  always,
  type Compare,
  type NestedResult,
  type Operation,
  Operations,
  type Place,
  type ReadResult,
  type Transaction,
} from '../../store/index.ts';
import { type Decision, difference, type Moved } from './decision.ts';
import {
  anchorKey,
  encode,
  HORIZON,
  mailboxKey,
  type RecordDocument,
  RECORDS,
  inconsistent,
  type ResourceKeys,
  ticketClass,
  ticketKey,
} from '../layout.ts';
import { lettersOf } from './letters.ts';
import type { Coordinated } from '../../core/machines.ts';
import type { Ticket } from './pending-command.ts';
import { commandsOf } from './witnessed.ts';
import type { Link, Witness } from './witness.ts';
import {
  type LeaseReads,
  marksAfter,
  type QueueReads,
  readLeases,
  readQueue,
  readSnapshot,
  type Snapshot,
  type SnapshotReads,
} from './snapshot.ts';

/** The process that sends a transaction. */
export interface WriterIdentity {
  readonly id: string;
  /** The key of the session's anchor. */
  readonly anchor: string;
  readonly epoch: number;
  /** The store's id of the lease with this name. */
  leaseIdOf(lease: string): string;
  isGone(lease: string): boolean;
}

export interface Commit {
  readonly transaction: Transaction;
  /** The requests that join the queue by it. */
  readonly arriving: readonly Ticket[];
  /** Its success proves that the queue has no other tickets than the known ones. */
  readonly provesQueue: boolean;
  readonly changesRecord: boolean;
  /** The entry of the witness that it adds, if it adds one. */
  readonly link: Link | undefined;
  /** The read of the record, in a transaction that does not change it. */
  readonly record: Place<ReadResult> | undefined;
  /** The read of the queue as the transaction leaves it, if the writer asked for one. */
  readonly queueAfter: QueueReads | undefined;
  /** The requests that join the queue if the transaction fails: a wait never needs a second round trip. */
  readonly fallback: readonly Ticket[];
  /** What the transaction reads if it fails; undefined if it reads nothing. */
  readonly ifOvertaken: OvertakenReads | undefined;
}

export interface OvertakenReads {
  /** The nested transaction that puts the tickets of `fallback`. */
  readonly queued: Place<NestedResult> | undefined;
  readonly snapshot: SnapshotReads;
  /** The leases that the transaction relied on. */
  readonly leases: LeaseReads;
}

/** A decision that is to be committed, and what it was made of. */
export interface Draft {
  readonly keys: ResourceKeys;
  /** What the decision was made on. */
  readonly snapshot: Snapshot<Coordinated>;
  readonly decision: Decision<Coordinated>;
  readonly sender: WriterIdentity;
  readonly witness: Witness;
  /** No request at all could be granted after it. */
  readonly isClosed: boolean;
}

/** Tickets that a keeper reads along with its write: more than it can serve before it writes again. */
const LOOKED_AT = 32;

/**
 * Undefined if too little is known of the queue to let a newcomer past it. `mayQueue`: the requests that join the queue if
 * the transaction fails; without it, a failed transaction reads nothing, which is right where another read is cheap.
 * `looksAtQueue`: also reads the queue, because a keeper writes for many processes, and serves requests that came meanwhile.
 */
export function commitOf(
  draft: Draft,
  mayQueue: readonly Ticket[] | undefined,
  looksAtQueue = false,
): Commit | undefined {
  const { keys, snapshot, decision } = draft;
  if (decision.fault !== undefined) throw inconsistent(keys.resource, 'as it was about to be written', decision.fault);
  const nobodyWaits = snapshot.state.waiting.length === 0 && decision.state.waiting.length === 0;
  if (nobodyWaits && mayQueue === undefined && decision.isPlain && decision.state !== snapshot.state) {
    return plainCommit(draft);
  }
  const builder = new CommitBuilder(draft);
  builder.record();
  builder.liveness();
  if (!builder.queueIsKnown()) return undefined;
  builder.leaving();
  builder.arriving();
  builder.letters();
  return builder.commit(mayQueue, looksAtQueue);
}

/** The same for by far the most frequent case, one command and an empty queue, without lists that would stay empty. */
function plainCommit(draft: Draft): Commit {
  const { keys, snapshot, decision, sender, isClosed } = draft;
  const { record, queue, queueEnd } = keys;
  const asKnown: Compare = { key: record, target: 'mod', is: '=', than: snapshot.mod };
  const nobodyWaits: Compare = { key: queue, end: queueEnd, target: 'version', is: '=', than: 0 };
  const isNew = snapshot.mod === 0;
  const link = linkOf(draft);
  const value = encode(documentOf(draft, link));
  const put: Operation = { do: 'put', key: record, value, lease: undefined };
  const success = link === undefined ? [put] : [put, link.put];
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
  if (link !== undefined && link.compare.length > 0) compare = [...compare, ...link.compare];
  const transaction = { compare, success, failure: NONE };
  return {
    transaction,
    arriving: NONE,
    provesQueue,
    changesRecord: true,
    link,
    record: undefined,
    queueAfter: undefined,
    fallback: NONE,
    ifOvertaken: undefined,
  };
}

/**
 * A new record may have existed before: maintenance may have deleted it together with its last token. The tokens of this
 * write are larger than the revision at which it was decided. Maintenance writes the horizon before it deletes records whose
 * tokens are smaller than the horizon's own revision. So a write decided after the horizon has tokens larger than every
 * deleted one, and a write decided before the horizon fails here, however late it arrives.
 */
function nothingForgotten({ revision }: Decision<Coordinated>): Compare {
  return { key: HORIZON, target: 'mod', is: '<', than: revision + 1 };
}

function documentOf({ snapshot, decision, sender }: Draft, link: Link | undefined): RecordDocument<unknown> {
  const { record } = decision.state;
  const { events } = decision;
  const marks = marksAfter(snapshot.marks, decision.marks);
  const document: RecordDocument<unknown> =
    marks.length === 0 ? { record, events, by: sender.id } : { record, events, by: sender.id, marks };
  return link === undefined ? document : { ...document, head: link.head };
}

/** The entry of the witness for a write of the record; undefined if the witness is off. */
function linkOf({ keys, snapshot, decision, sender, witness }: Draft): Link | undefined {
  const { steps, at, revision } = decision;
  if (steps === undefined) return undefined;
  const path = keys.record.slice(RECORDS.length);
  const kind = path.slice(0, path.indexOf('/'));
  return witness.link(keys.resource, snapshot.chain, at, revision, commandsOf(kind, steps, at, sender.id), path);
}

class CommitBuilder {
  readonly #draft: Draft;
  readonly #changesRecord: boolean;
  readonly #moved: Moved;
  readonly #compare: Compare[] = [];
  readonly #success = new Operations();
  readonly #leases: string[] = [];
  #provesQueue = false;
  #link: Link | undefined;

  constructor(draft: Draft) {
    const { snapshot, decision } = draft;
    this.#draft = draft;
    this.#moved = difference(snapshot.state.waiting, decision.state.waiting);
    // Events travel in the record, so a change of the queue alone rewrites the record if it has events.
    this.#changesRecord = decision.state.record !== snapshot.state.record || decision.events.length > 0;
  }

  record(): void {
    const { keys, snapshot, decision } = this.#draft;
    const { record: key } = keys;
    const asKnown: Compare = { key, target: 'mod', is: '=', than: snapshot.mod };
    if (this.#changesRecord || decision.restsOnRecord) this.#compare.push(asKnown);
    if (!this.#changesRecord) return;
    if (snapshot.mod === 0) this.#compare.push(nothingForgotten(decision));
    const link = linkOf(this.#draft);
    this.#link = link;
    this.#success.add({ do: 'put', key, value: encode(documentOf(this.#draft, link)) });
    if (link === undefined) return;
    this.#success.add(link.put);
    this.#compare.push(...link.compare);
  }

  liveness(): void {
    const { newcomers, kept, losses, senders } = this.#draft.decision;
    const { id, epoch } = this.#draft.sender;
    if (this.#moved.arriving.length > 0 || newcomers.length > 0) this.#relyOn(id, '=', epoch);
    if (senders.size > 0) for (const [process, sender] of senders) this.#relyOn(process, '=', sender.epoch);
    // Plain loops, for speed: all of these lists are short, and most are empty.
    for (let i = 0; i < newcomers.length; i++) {
      const { lease } = newcomers[i] as Request;
      if (lease !== id && !senders.has(lease)) this.#relyOn(lease, '>', 0);
    }
    for (let i = 0; i < kept.length; i++) {
      const { lease, limit } = kept[i] as Hold;
      this.#relyOn(lease, '>', 0);
      if (limit !== undefined) this.#relyOn(limit, '>', 0);
    }
    for (let i = 0; i < losses.length; i++) {
      const { hold, why } = losses[i] as Loss;
      if (why !== 'reclaimed') continue;
      // A reclaim and a renewal exclude each other: only one of them finds the lease as it expects.
      const { limit = hold.lease } = hold;
      this.#relyOn(this.#draft.sender.isGone(hold.lease) ? hold.lease : limit, '=', 0);
    }
  }

  /** A grant to a newcomer, and a write that leaves room, must rest on an empty queue. False if that is not known. */
  queueIsKnown(): boolean {
    const { keys, snapshot, decision, isClosed } = this.#draft;
    const { newcomers, state } = decision;
    const leavesRoom = this.#changesRecord && !isClosed && state.waiting.length === 0;
    if (newcomers.length === 0 && !leavesRoom) return true;
    const someWaited = snapshot.state.waiting.length > 0;
    this.#provesQueue = !someWaited || snapshot.complete;
    if (this.#provesQueue) this.#nobodyElse(someWaited ? snapshot.queueRevision : 0, keys.queueEnd);
    return this.#provesQueue || newcomers.length === 0;
  }

  leaving(): void {
    const { keys, snapshot, decision } = this.#draft;
    const { answers, withdrawn } = decision;
    let lowest = this.#classOfNext();
    for (const request of this.#moved.leaving) {
      const key = ticketKey(keys, request);
      if (answers.some(({ id }) => id === request.id)) {
        // The ticket is on its request's lease: while the ticket is there, the process that is granted is alive.
        const arrival = snapshot.arrivals?.get(request.id) ?? 0;
        this.#compare.push({ key, target: 'create', is: '=', than: arrival });
        this.#success.add({ do: 'delete', key });
        if (ticketClass(request) > lowest) lowest = ticketClass(request);
      } else if (!withdrawn.some(({ id }) => id === request.id)) {
        // The decision passed it over as dead. Its ticket went with its lease; if the ticket is there, the lease is alive.
        this.#relyOn(request.lease, '=', 0);
      }
    }
    for (const request of withdrawn) {
      if (answers.some(({ id }) => id === request.id)) continue;
      for (const form of formsOf(request)) this.#success.add({ do: 'delete', key: ticketKey(keys, form) });
    }
    // No ticket of a higher priority may have arrived since the queue was read.
    if (lowest > '!' && !this.#provesQueue) this.#nobodyElse(snapshot.queueRevision, keys.queue + lowest);
  }

  /** The decision found that the next request has to wait; a request of a higher class might not have to. */
  #classOfNext(): string {
    const { waiting, record } = this.#draft.decision.state;
    if (!this.#changesRecord || this.#draft.isClosed) return '';
    const next = waiting[nextInLine(waiting, record.passed)];
    return next === undefined ? '' : ticketClass(next);
  }

  arriving(): void {
    for (const request of this.#moved.arriving) {
      const leaseId = this.#draft.decision.senders.get(request.lease)?.leaseId;
      this.#success.add(ticketPut(this.#draft, request, leaseId));
      if (request.upgrades === undefined) continue;
      // Two readers that both upgrade would wait for each other for ever: only one upgrade may be in the queue.
      const { queue } = this.#draft.keys;
      this.#compare.push(
        this.#replaced() ?? { key: `${queue}!`, end: `${queue}"`, target: 'version', is: '=', than: 0 },
      );
    }
  }

  /** Compares that the upgrade which this write takes out of the queue is still there: then no other upgrade can be. */
  #replaced(): Compare | undefined {
    const { answers, withdrawn } = this.#draft.decision;
    for (const request of this.#moved.leaving) {
      const than = this.#draft.snapshot.arrivals?.get(request.id);
      if (request.upgrades === undefined || than === undefined) continue;
      if (![...answers, ...withdrawn].some(({ id }) => id === request.id)) continue;
      return { key: ticketKey(this.#draft.keys, request), target: 'create', is: '=', than };
    }
    return undefined;
  }

  letters(): void {
    const { answers, losses, replies } = this.#draft.decision;
    if (answers.length === 0 && losses.length === 0 && replies.length === 0) return;
    for (const [process, letter] of lettersOf(this.#draft, this.#moved.arriving, this.#link?.head)) {
      const key = mailboxKey(process);
      // A dead process has no mailbox. The put is nested, because the decision does not depend on whether it is dead.
      const isThere: Compare = { key, target: 'version', is: '>', than: 0 };
      const put: Operation = { do: 'put', key, value: encode(letter), lease: 'keep' };
      this.#success.add({ do: 'transaction', compare: [isThere], success: [put], failure: [] });
    }
  }

  commit(mayQueue: readonly Ticket[] | undefined, looksAtQueue: boolean): Commit {
    const record = this.#changesRecord ? undefined : this.#success.read({ key: this.#draft.keys.record });
    const looks = looksAtQueue && this.#changesRecord;
    const queueAfter = looks ? readQueue(this.#success, this.#draft.keys, LOOKED_AT) : undefined;
    // A request of a named holder may hold the resource already, and must not queue behind itself without a look.
    const fallback = mayQueue?.filter((request) => request.holder === request.id) ?? NONE;
    const failure = mayQueue === undefined ? undefined : new Operations();
    return {
      arriving: this.#moved.arriving,
      provesQueue: this.#provesQueue,
      changesRecord: this.#changesRecord,
      link: this.#link,
      record,
      queueAfter,
      fallback,
      ifOvertaken: failure && this.#ifOvertaken(failure, fallback),
      transaction: { compare: this.#compare, success: this.#success.list, failure: failure?.list ?? NONE },
    };
  }

  #ifOvertaken(failure: Operations, fallback: readonly Ticket[]): OvertakenReads {
    const { id, epoch } = this.#draft.sender;
    const queued =
      fallback.length === 0
        ? undefined
        : failure.nest({
            compare: [{ key: anchorKey(id), target: 'version', is: '=', than: epoch }],
            success: fallback.map((request) => ticketPut(this.#draft, request)),
            failure: [],
          });
    return {
      queued,
      snapshot: readSnapshot(failure, this.#draft.keys, this.#draft.witness.isOn),
      leases: readLeases(failure, this.#leases),
    };
  }

  #relyOn(lease: string, is: '=' | '>', than: number): void {
    this.#compare.push({ key: anchorKey(lease), target: 'version', is, than });
    this.#leases.push(lease);
  }

  /** Compares that the range is empty, or, with a `since`, that all its tickets had arrived by then. */
  #nobodyElse(since: number, end: string): void {
    const key = this.#draft.keys.queue;
    if (since === 0) this.#compare.push({ key, end, target: 'version', is: '=', than: 0 });
    else this.#compare.push({ key, end, target: 'create', is: '<', than: since + 1 });
  }
}

function ticketPut(
  { keys, decision, sender }: Draft,
  request: Ticket,
  lease = sender.leaseIdOf(request.lease),
): Operation {
  return { do: 'put', key: ticketKey(keys, request), value: encode({ request, at: decision.at }), lease };
}

/** Deletes tickets behind a record that cannot be read: nobody could ever serve them, and their commands fail now. */
export function takingBack(keys: ResourceKeys, { fallback }: Commit): Transaction {
  return always(fallback.map((ticket) => ({ do: 'delete', key: ticketKey(keys, ticket) })));
}
