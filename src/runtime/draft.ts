/**
 * A draft: what a batch of commands would make of what is known, and the transaction that makes it so. The
 * transaction's comparisons are exactly what the decision relied on; everything else may change under it.
 */
import {
  type Answer,
  type Event,
  type Hold,
  type Loss,
  nextInLine,
  NONE,
  type Request,
  type Step,
} from '../core/index.ts';
import type { Compare, Operation, Transaction } from '../store/index.ts';
import {
  anchorKey,
  encode,
  type Letter,
  mailboxKey,
  processOf,
  type ResourceKeys,
  ticketClass,
  ticketKey,
} from './layout.ts';
import type { Coordinated } from './machines.ts';
import type { AnyCommand, AnyOutcome, Ticket } from './pending.ts';
import { type View, viewReads } from './view.ts';

/** Collected over a batch. Most batches are one command, so its lists are taken over as they are. */
export class Draft<State extends Coordinated> {
  state: State;
  readonly at: number;
  /** A decision rests on the record's being as it is known, although it does not change it. */
  restsOnRecord = false;
  /** Granted without having waited: nobody may be waiting. */
  newcomers: readonly Request[] = NONE;
  events: readonly Event[] = NONE;
  answers: readonly Answer<unknown>[] = NONE;
  losses: readonly Loss[] = NONE;
  /** Some newcomer hangs on a lease other than the session's. */
  usesOwnLease = false;
  /** Holds that their own holders changed: they must be alive. */
  kept: readonly Hold[] = NONE;
  /** Requests to be taken out of the queue, known or not. */
  withdrawn: readonly Ticket[] = NONE;

  constructor(state: State, at: number) {
    this.state = state;
    this.at = at;
  }

  /** Concerns nobody but the one who asks, under the session of this process. */
  get isPlain(): boolean {
    return (
      this.answers.length === 0 &&
      this.losses.length === 0 &&
      this.kept.length === 0 &&
      this.withdrawn.length === 0 &&
      !this.usesOwnLease
    );
  }

  /** Whoever joined the queue and was served in the same batch has not waited either. */
  countNewcomers(batch: readonly { readonly command: AnyCommand; readonly outcome: AnyOutcome | undefined }[]): void {
    for (const { command, outcome } of batch) {
      if (outcome?.kind !== 'queued' || command.kind !== 'acquire') continue;
      if (!this.answers.some(({ id }) => id === command.id)) continue;
      this.newcomers = [...this.newcomers, command as unknown as Request];
    }
  }

  take(step: Step<State, AnyOutcome>): void {
    this.state = step.state;
    // That somebody waits is told by its ticket.
    const events =
      step.outcome.kind === 'queued' ? step.events.filter(({ type }) => !type.endsWith(':queued')) : step.events;
    this.events = joined(this.events, events);
    this.answers = joined(this.answers, step.answers);
    this.losses = joined(this.losses, step.losses);
  }
}

function joined<T>(some: readonly T[], more: readonly T[]): readonly T[] {
  if (more.length === 0) return some;
  return some.length === 0 ? more : [...some, ...more];
}

/** What a transaction needs to know of the process that sends it. */
export interface Sender {
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
}

/**
 * `undefined` if too little is known of the queue to let a newcomer past it. `mayQueue`: who is to be put into the
 * queue if the transaction fails; without it, a failure brings nothing, which is right where asking again is cheap.
 */
export function commitOf<State extends Coordinated>(
  keys: ResourceKeys,
  view: View<State>,
  draft: Draft<State>,
  sender: Sender,
  isClosed: boolean,
  mayQueue: readonly Ticket[] | undefined,
): Commit | undefined {
  const before = view.state;
  const after = draft.state;
  // What happens in the queue alone is told by the record too, where there is something to tell.
  const changesRecord = after.record !== before.record || draft.events.length > 0;
  if (
    mayQueue === undefined &&
    changesRecord &&
    draft.isPlain &&
    before.waiting.length === 0 &&
    after.waiting.length === 0
  ) {
    return plainCommit(keys, view, draft, sender, isClosed);
  }
  const compare: Compare[] = [];
  const success: Operation[] = [];
  const leases: string[] = [];
  const relyOn = (lease: string, is: '=' | '!=' | '>', than: number): void => {
    compare.push({ key: anchorKey(lease), target: 'version', is, than });
    leases.push(lease);
  };

  if (changesRecord || draft.restsOnRecord) compare.push({ key: keys.record, target: 'mod', is: '=', than: view.mod });
  if (changesRecord) {
    success.push({ do: 'put', key: keys.record, value: encode({ record: after.record, events: draft.events }) });
  }

  const { arriving, leaving } = difference(before.waiting, after.waiting);
  if (arriving.length > 0 || draft.newcomers.length > 0) relyOn(sender.id, '=', sender.epoch);
  for (const request of draft.newcomers) if (request.lease !== sender.id) relyOn(request.lease, '>', 0);
  for (const hold of draft.kept) if (hold.lease !== sender.id) relyOn(hold.lease, '>', 0);
  for (const { hold, why } of draft.losses) {
    // Taking over and coming back to life exclude each other: only one of them can find the lease as it expects.
    if (why === 'reclaimed') relyOn(hold.limit && !sender.isGone(hold.lease) ? hold.limit : hold.lease, '=', 0);
  }

  let provesQueue = false;
  const someWaited = before.waiting.length > 0;
  if (draft.newcomers.length > 0 || (changesRecord && !isClosed && after.waiting.length === 0)) {
    provesQueue = !someWaited || view.complete;
    if (!provesQueue && draft.newcomers.length > 0) return undefined;
    if (provesQueue) compare.push(nobodyElse(keys, someWaited ? view.queueRevision : 0, keys.queueEnd));
  }

  let lowest = '';
  for (const request of leaving) {
    const key = ticketKey(keys, request);
    if (draft.answers.some(({ id }) => id === request.id)) {
      // The ticket hangs on its lease: while it is there, the one who is granted is alive.
      compare.push({ key, target: 'create', is: '=', than: view.arrivals.get(request.id) ?? 0 });
      success.push({ do: 'delete', key });
      const group = ticketClass(request);
      if (group > lowest) lowest = group;
    } else if (draft.withdrawn.some(({ id }) => id === request.id)) {
      success.push({ do: 'delete', key });
    } else {
      // Passed over as dead. Its ticket went with its lease; if not, it was not dead.
      relyOn(request.lease, '=', 0);
    }
  }
  if (changesRecord && !isClosed && after.waiting.length > 0) {
    // The next in line was found to have to wait; somebody before it would perhaps not.
    const next = after.waiting[nextInLine(after.waiting, after.record.passed)];
    if (next !== undefined && ticketClass(next) > lowest) lowest = ticketClass(next);
  }
  if (lowest > '!' && !provesQueue) {
    // Nobody of a higher priority has slipped in since the queue was read.
    compare.push(nobodyElse(keys, view.queueRevision, keys.queue + lowest));
  }
  for (const request of draft.withdrawn) {
    if (!leaving.some(({ id }) => id === request.id)) success.push({ do: 'delete', key: ticketKey(keys, request) });
  }

  for (const request of arriving) {
    success.push(ticketPut(keys, request, draft.at, sender));
    // Two who wait for each other to leave would wait for ever: only one may want to become the writer.
    if (request.upgrades !== undefined) {
      compare.push({ key: `${keys.queue}!`, end: `${keys.queue}"`, target: 'version', is: '=', than: 0 });
    }
  }
  if (draft.answers.length > 0 || draft.losses.length > 0) {
    for (const [process, letter] of lettersOf(keys.resource, draft, sender)) {
      compare.push({ key: mailboxKey(process), target: 'version', is: '>', than: 0 });
      leases.push(process);
      success.push({ do: 'put', key: mailboxKey(process), value: encode(letter), lease: 'keep' });
    }
  }
  if (!changesRecord) success.push({ do: 'read', key: keys.record });

  if (mayQueue === undefined) {
    return {
      transaction: { compare, success, failure: NONE },
      arriving,
      provesQueue,
      fallback: NONE,
      leases,
      changesRecord,
    };
  }
  const fallback = mayQueue.filter((request) => request.holder === request.id);
  const failure: Operation[] = [];
  if (fallback.length > 0) {
    failure.push({
      do: 'transaction',
      compare: [{ key: anchorKey(sender.id), target: 'version', is: '=', than: sender.epoch }],
      success: fallback.map((request) => ticketPut(keys, request, draft.at, sender)),
      failure: [],
    });
  }
  failure.push(...viewReads(keys), ...leases.map((lease): Operation => ({ do: 'read', key: anchorKey(lease) })));
  return { transaction: { compare, success, failure }, arriving, provesQueue, fallback, leases, changesRecord };
}

/** The same for what is by far the most frequent, one command and nobody waiting, without the lists it has no use for. */
function plainCommit<State extends Coordinated>(
  keys: ResourceKeys,
  view: View<State>,
  draft: Draft<State>,
  sender: Sender,
  isClosed: boolean,
): Commit {
  const { record, queue, queueEnd } = keys;
  const asKnown: Compare = { key: record, target: 'mod', is: '=', than: view.mod };
  const nobodyWaits: Compare = { key: queue, end: queueEnd, target: 'version', is: '=', than: 0 };
  const value = encode({ record: draft.state.record, events: draft.events });
  const success: readonly Operation[] = [{ do: 'put', key: record, value, lease: undefined }];
  let compare: readonly Compare[];
  if (draft.newcomers.length > 0) {
    const alive: Compare = { key: sender.anchor, target: 'version', is: '=', than: sender.epoch };
    compare = [asKnown, alive, nobodyWaits];
  } else {
    compare = isClosed ? [asKnown] : [asKnown, nobodyWaits];
  }
  const provesQueue = compare.length > 1;
  const transaction = { compare, success, failure: NONE };
  return { transaction, arriving: NONE, provesQueue, fallback: NONE, leases: NONE, changesRecord: true };
}

/** With `since` 0: the range is empty. Otherwise all in it had arrived by then. */
function nobodyElse(keys: ResourceKeys, since: number, end: string): Compare {
  return since === 0
    ? { key: keys.queue, end, target: 'version', is: '=', than: 0 }
    : { key: keys.queue, end, target: 'create', is: '<', than: since + 1 };
}

function ticketPut(keys: ResourceKeys, request: Ticket, at: number, sender: Sender): Operation {
  return {
    do: 'put',
    key: ticketKey(keys, request),
    value: encode({ request, at }),
    lease: sender.leaseId(request.lease),
  };
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

function lettersOf(resource: string, draft: Draft<Coordinated>, sender: Sender): ReadonlyMap<string, Letter> {
  const letters = new Map<string, Letter>();
  const letterTo = (process: string): Letter => letters.get(process) ?? { answers: [], losses: [] };
  const reachable = (process: string): boolean => process !== sender.id && !sender.isGone(process);
  for (const answer of draft.answers) {
    const process = processOf(answer.id);
    if (!reachable(process)) continue;
    const letter = letterTo(process);
    letters.set(process, { ...letter, answers: [...letter.answers, { resource, ...answer }] });
  }
  for (const { hold, why, by, reason } of draft.losses) {
    const process = processOf(hold.id);
    if (!reachable(process)) continue;
    const told = { id: hold.id, why, ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) };
    const letter = letterTo(process);
    letters.set(process, { ...letter, losses: [...letter.losses, told] });
  }
  return letters;
}
