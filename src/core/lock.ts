/**
 * The lock.
 *
 *                 acquire                        acquire shared
 *      ┌──────┐ ───────────▶ ┌────────────────┐        ┌────────────────────┐
 *      │ free │              │ held by one    │        │ held by several    │
 *      └──────┘ ◀─────────── │ (exclusive)    │ ◀────▶ │ (shared)           │
 *                 release    └────────────────┘        └────────────────────┘
 *                               ▲ the next in line is granted in the same step as the release
 *      waiting: a  b  c ────────┘
 *
 * The record (grants, last token, settings) and the waiting requests are kept apart, because a store
 * keeps each waiting request under a key of its own. `waiting` is in order of arrival and may be just
 * the front of a longer queue; it is empty only if nobody waits.
 */
import {
  type Claim,
  describedBy,
  except,
  type Hold,
  isStale,
  losses,
  onLeases,
  type OnStale,
  ownHold,
  placeOf,
  staleOf,
  takenBy,
  type Taker,
  warn,
} from './hold.ts';
import {
  type Answer,
  type Event,
  event,
  followed,
  type Moment,
  nextToken,
  NONE,
  type Request,
  type Step,
  type Token,
  unreachable,
} from './machine.ts';
import {
  answeredAtOnce,
  type Cycle,
  goesAhead,
  isOrphan,
  leave,
  type Passed,
  passing,
  placeFor,
  type Served,
  serveQueue,
  withHolds,
  without,
  withWaiting,
} from './queue.ts';
import { type TooLarge, tooLarge } from './record-size.ts';

export type LockMode = 'exclusive' | 'shared';

export interface LockHold extends Hold {
  readonly mode: LockMode;
  /** The request by which it became exclusive, so that a cancelled upgrade can be given back. */
  readonly upgradedBy?: string;
}

export interface LockRequest extends Request {
  readonly mode: LockMode;
  /** Takes a stale hold even where a person would have to decide (`onStale: 'alert'`). */
  readonly steal?: true;
  /** The id of the shared hold that wants to become exclusive. */
  readonly upgrades?: string;
}

export interface LockRecord {
  readonly v: 1;
  readonly kind: 'lock';
  /** The last token given out; outlives its hold. */
  readonly token: Token;
  readonly holds: readonly LockHold[];
  readonly onStale: OnStale;
  /** Always there, as null if nobody was passed, so that every record has one shape. */
  readonly passed: Passed | null;
}

export interface Lock {
  readonly record: LockRecord;
  readonly waiting: readonly LockRequest[];
}

export type LockCommand =
  /** `wait`: queue if it cannot be had now. `force`: an administrator takes it from whoever has it. */
  | (LockRequest & {
      readonly kind: 'acquire';
      readonly wait: boolean;
      readonly force?: true;
      /** It may have been asked before, and the answer got lost. */
      readonly again?: true;
    })
  /** `elsewhere`: not by the one who has the hold in its hands, who has to be told. */
  | (Claim & { readonly kind: 'release'; readonly elsewhere?: true })
  /** An administrator ends every hold. */
  | { readonly kind: 'break'; readonly holder: string; readonly reason: string }
  | (Claim & { readonly kind: 'heartbeat' })
  /** From now on the hold hangs on these leases. */
  | (Claim & { readonly kind: 'extend'; readonly lease?: string; readonly limit?: string })
  | (Claim & {
      readonly kind: 'upgrade';
      readonly request: string;
      readonly lease: string;
      readonly wait: boolean;
      readonly steal?: true;
      readonly again?: true;
    })
  | (Claim & { readonly kind: 'downgrade' })
  /** The one who asked has gone; if it was granted meanwhile, the grant goes back. */
  | { readonly kind: 'cancel'; readonly id: string }
  /** The victim of a deadlock stops waiting. */
  | { readonly kind: 'refuse'; readonly id: string; readonly cycle: Cycle }
  /** Grants whatever can be granted: on behalf of waiters, after a lease ended. */
  | { readonly kind: 'settle' }
  | { readonly kind: 'tick' }
  | { readonly kind: 'maintain' }
  | { readonly kind: 'configure'; readonly onStale: OnStale };

export type LockOutcome =
  | { readonly kind: 'acquired'; readonly hold: LockHold }
  /** It was held by others whose leases had ended. */
  | { readonly kind: 'reclaimed'; readonly hold: LockHold; readonly from: readonly LockHold[] }
  /** The same holder already had it: the hold is the outer one, and releasing is left to that. */
  | { readonly kind: 'extended'; readonly hold: LockHold }
  | { readonly kind: 'queued'; readonly position: number; readonly holders: readonly LockHold[] }
  | { readonly kind: 'busy'; readonly holders: readonly LockHold[] }
  | TooLarge
  | { readonly kind: 'released'; readonly hold: LockHold }
  | { readonly kind: 'already-free' }
  | { readonly kind: 'not-owner'; readonly holders: readonly LockHold[] }
  | { readonly kind: 'refreshed'; readonly hold: LockHold }
  | { readonly kind: 'lost' }
  | { readonly kind: 'upgraded'; readonly hold: LockHold }
  /** Another reader already waits to become the writer; both waiting would deadlock. */
  | { readonly kind: 'upgrade-conflict'; readonly by: string }
  | { readonly kind: 'downgraded'; readonly hold: LockHold }
  | { readonly kind: 'cancelled'; readonly gaveBack: boolean }
  | { readonly kind: 'deadlock'; readonly cycle: Cycle }
  | { readonly kind: 'settled' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'broken'; readonly holds: readonly LockHold[] }
  | { readonly kind: 'maintained'; readonly reclaimed: readonly LockHold[] }
  | { readonly kind: 'configured' };

export type LockStep = Step<Lock, LockOutcome>;

export const freeLock: Lock = {
  record: { v: 1, kind: 'lock', token: 0, holds: NONE, onStale: 'reclaim', passed: null },
  waiting: NONE,
};

/** Pure, so the runtime may run it again on a newer lock after losing a write race. */
export function lockTransition(lock: Lock, command: LockCommand, at: Moment): LockStep {
  switch (command.kind) {
    case 'acquire':
      return acquire(lock, command, at);
    case 'release':
      return release(lock, command, at);
    case 'break':
      return breakHolds(lock, command, at);
    case 'heartbeat':
      return heartbeat(lock, command, at);
    case 'extend':
      return extend(lock, command, at);
    case 'upgrade':
      return upgrade(lock, command, at);
    case 'downgrade':
      return downgrade(lock, command, at);
    case 'cancel':
      return cancel(lock, command.id, at);
    case 'refuse':
      return refuse(lock, command.id, command.cycle, at);
    case 'settle':
      return settle(step(lock, { kind: 'settled' }), at);
    case 'tick':
      return tick(lock, at);
    case 'maintain':
      return maintain(lock, at);
    case 'configure':
      return configure(lock, command.onStale, at);
    default:
      return unreachable(command);
  }
}

// Questions

export function isFree(lock: Lock): boolean {
  return lock.record.holds.length === 0;
}

export function isHeldBy(lock: Lock, holder: string): boolean {
  return lock.record.holds.some((hold) => hold.holder === holder);
}

export function staleHolds(lock: Lock, at: Moment): readonly LockHold[] {
  return staleOf(lock.record.holds, at);
}

/** Two holds of these modes may not exist side by side. */
export function conflicts(one: LockMode, other: LockMode): boolean {
  return one === 'exclusive' || other === 'exclusive';
}

// Commands

type Acquire = Extract<LockCommand, { kind: 'acquire' }>;

function acquire(lock: Lock, command: Acquire, at: Moment): LockStep {
  const { record, waiting } = lock;
  if (at.gone(command.lease)) return step(lock, { kind: 'lost' });
  if (record.holds.length === 0 && waiting.length === 0) return grantNewcomer(lock, command, NONE, at);
  const before = command.again === true ? askedBefore(lock, command.id, at) : undefined;
  if (before !== undefined) return before;

  const own = ownHold(record.holds, command.holder, at);
  if (own !== undefined && covers(own.mode, command.mode)) return step(lock, { kind: 'extended', hold: own });
  if (command.force === true) return force(lock, command, own, at);
  if (own !== undefined || waiting.length === 0) return join(lock, command, own, at);

  // A lease may have ended since, and what that leaves belongs to those who wait already.
  const settled = settle(step(lock, { kind: 'settled' }), at);
  const joined = join(settled.state, command, ownHold(settled.state.record.holds, command.holder, at), at);
  // A refused try writes nothing, not even on behalf of others.
  if (joined.outcome.kind === 'busy') return refused(lock, command, at);
  if (joined.outcome.kind === 'upgrade-conflict') return step(lock, joined.outcome);
  if (joined.outcome.kind === 'too-large') return step(lock, joined.outcome, joined.events);
  return followed(settled, joined);
}

/** One that comes again, because its answer got lost, is told what has become of it: nothing is granted twice. */
function askedBefore(lock: Lock, id: string, at: Moment): LockStep | undefined {
  const { holds } = lock.record;
  const hold = holds.find((held) => held.id === id || held.upgradedBy === id);
  if (hold !== undefined) {
    if (isStale(hold, at)) return step(lock, { kind: 'lost' });
    return step(lock, { kind: hold.id === id ? 'acquired' : 'upgraded', hold });
  }
  const place = lock.waiting.findIndex((waiter) => waiter.id === id);
  return place < 0 ? undefined : step(lock, { kind: 'queued', position: place + 1, holders: holds });
}

/** Those who wait are as far as they can get. */
function join(lock: Lock, command: Acquire, own: LockHold | undefined, at: Moment): LockStep {
  const { record, waiting } = lock;
  if (own !== undefined) {
    if (covers(own.mode, command.mode)) return step(lock, { kind: 'extended', hold: own });
    return upgrade(lock, { ...command, kind: 'upgrade', id: own.id, token: own.token, request: command.id }, at);
  }
  if (!isTaken(lock, at)) {
    const stale = goesAhead(command, waiting, record.passed) ? inTheWay(record, command, undefined, at) : undefined;
    if (stale !== undefined) {
      const refusal = tooLarge(except(record.holds, stale), command);
      if (refusal !== undefined) return step(lock, refusal, [event('lock:denied', command, at)]);
      return grantNewcomer(lock, command, stale, at);
    }
  }
  if (!command.wait) return refused(lock, command, at);
  const position = placeFor(waiting, command.priority, record.passed);
  return step(
    { record, waiting: [...waiting, requestOf(command)] },
    { kind: 'queued', position, holders: record.holds },
    [event('lock:queued', command, at, { position })],
  );
}

function refused(lock: Lock, command: Acquire, at: Moment): LockStep {
  return step(lock, { kind: 'busy', holders: lock.record.holds }, [event('lock:denied', command, at)]);
}

function grantNewcomer(lock: Lock, command: Acquire, stale: readonly LockHold[], at: Moment): LockStep {
  const { record, waiting } = lock;
  const hold = newHold(command, nextToken(record.token, at), at);
  const granted: LockRecord = {
    v: 1,
    kind: 'lock',
    token: hold.token,
    holds: record.holds.length === stale.length ? [hold] : [...except(record.holds, stale), hold],
    onStale: record.onStale,
    passed: passing(waiting, waiting.length, record.passed),
  };
  const acquired = event('lock:acquired', hold, at, { token: hold.token, mode: hold.mode });
  const so: LockStep = {
    state: { record: granted, waiting },
    outcome: stale.length === 0 ? { kind: 'acquired', hold } : { kind: 'reclaimed', hold, from: stale },
    events: stale.length === 0 ? [acquired] : [...stale.map((lost) => told('lock:reclaimed', lost, at)), acquired],
    answers: NONE,
    losses: losses(stale, 'reclaimed', { by: hold.holder }),
  };
  if (waiting.length === 0) return so;
  const answers: Answer<LockOutcome>[] = [];
  // Even one who has it for itself leaves something to do: force may have taken holds that others wanted to upgrade.
  return serveQueue({ ...so, state: joinOwn(so.state, hold, answers), answers }, serve, isTaken, at);
}

/** Takes it from everyone in the way, past everyone who waits. */
function force(lock: Lock, command: Acquire, own: LockHold | undefined, at: Moment): LockStep {
  const { record, waiting } = lock;
  const taken = record.holds.filter((hold) => hold !== own && conflicts(hold.mode, command.mode));
  const who = takenBy(command.holder, command.reason ?? '', taken.length);
  const rest: Lock = { record: { ...record, holds: except(record.holds, taken) }, waiting };
  const refusal = own === undefined ? tooLarge(rest.record.holds, command) : undefined;
  if (refusal !== undefined) return step(lock, refusal, [event('lock:denied', command, at)]);
  const granted = own === undefined ? grantNewcomer(rest, command, NONE, at) : join(rest, command, own, at);
  return {
    ...granted,
    events: [...taken.map((hold) => told('lock:forced', hold, at, who)), ...granted.events],
    losses: [...losses(taken, 'forced', who), ...granted.losses],
  };
}

function release(lock: Lock, claim: Claim & { readonly elsewhere?: true }, at: Moment): LockStep {
  const { holds } = lock.record;
  const place = placeOf(holds, claim);
  const hold = holds[place];
  if (hold === undefined) return step(lock, absent(lock));
  const freed = withHolds(lock, holds.length === 1 ? NONE : without(holds, place));
  const lost = claim.elsewhere === true ? losses([hold], 'released-elsewhere') : NONE;
  return settle(step(freed, { kind: 'released', hold }, [told('lock:released', hold, at)], lost), at);
}

function breakHolds(lock: Lock, command: Extract<LockCommand, { kind: 'break' }>, at: Moment): LockStep {
  const { holds } = lock.record;
  if (holds.length === 0) return step(lock, { kind: 'already-free' });
  const who = takenBy(command.holder, command.reason, holds.length);
  const events = holds.map((hold) => told('lock:forced', hold, at, who));
  return settle(step(withHolds(lock, NONE), { kind: 'broken', holds }, events, losses(holds, 'forced', who)), at);
}

/** Writes nothing: the lease was renewed in the store, and here it is only checked that the hold still is. */
function heartbeat(lock: Lock, claim: Claim, at: Moment): LockStep {
  const hold = lock.record.holds[placeOf(lock.record.holds, claim)];
  if (hold === undefined) return step(lock, absent(lock));
  return step(lock, isStale(hold, at) ? { kind: 'lost' } : { kind: 'refreshed', hold });
}

function extend(lock: Lock, command: Extract<LockCommand, { kind: 'extend' }>, at: Moment): LockStep {
  const { holds } = lock.record;
  const place = placeOf(holds, command);
  const hold = holds[place];
  if (hold === undefined) return step(lock, absent(lock));
  if (isStale(hold, at)) return step(lock, { kind: 'lost' });
  const longer = onLeases(hold, command);
  const state = longer === hold ? lock : withHolds(lock, holds.with(place, longer));
  return step(state, { kind: 'refreshed', hold: longer });
}

function upgrade(lock: Lock, command: Extract<LockCommand, { kind: 'upgrade' }>, at: Moment): LockStep {
  const { record, waiting } = lock;
  const hold = record.holds[placeOf(record.holds, command)];
  if (hold === undefined) return step(lock, absent(lock));
  if (isStale(hold, at) || at.gone(command.lease)) return step(lock, { kind: 'lost' });
  const before = command.again === true ? askedBefore(lock, command.request, at) : undefined;
  if (before !== undefined) return before;
  if (hold.mode === 'exclusive') return step(lock, { kind: 'extended', hold });
  const rival = waiting.find((waiter) => isRivalOf(hold, waiter, record, at));
  if (rival !== undefined) return step(lock, { kind: 'upgrade-conflict', by: rival.holder });

  const request: LockRequest = {
    id: command.request,
    holder: hold.holder,
    lease: command.lease,
    priority: 0,
    mode: 'exclusive',
    upgrades: hold.id,
    ...(command.steal === true && { steal: true }),
  };
  const holders = record.holds.filter((other) => other !== hold);
  const asked: Lock = { record, waiting: [...waiting, request] };
  const settled = settle(step(asked, { kind: 'queued', position: 1, holders }), at);
  const answered = answeredAtOnce(settled, request.id);
  if (answered !== undefined) return answered;
  if (!command.wait) return step(lock, { kind: 'busy', holders }, [event('lock:denied', request, at)]);
  return { ...settled, events: [...settled.events, event('lock:queued', request, at, { position: 1 })] };
}

/** Two readers who both wait for the other to leave would wait forever. */
function isRivalOf(hold: LockHold, waiter: LockRequest, record: LockRecord, at: Moment): boolean {
  if (waiter.upgrades === undefined || waiter.upgrades === hold.id) return false;
  return !at.gone(waiter.lease) && !isOrphan(waiter, record.holds, at);
}

function downgrade(lock: Lock, claim: Claim, at: Moment): LockStep {
  const { holds } = lock.record;
  const place = placeOf(holds, claim);
  const hold = holds[place];
  if (hold === undefined) return step(lock, absent(lock));
  if (isStale(hold, at)) return step(lock, { kind: 'lost' });
  if (hold.mode === 'shared') return step(lock, { kind: 'downgraded', hold });
  const { upgradedBy: _upgradedBy, ...rest } = hold;
  const shared: LockHold = { ...rest, mode: 'shared' };
  const state = withHolds(lock, holds.with(place, shared));
  return settle(step(state, { kind: 'downgraded', hold: shared }, [told('lock:downgraded', hold, at)]), at);
}

function cancel(lock: Lock, id: string, at: Moment): LockStep {
  const { holds } = lock.record;
  const hold = holds.find((held) => held.id === id);
  if (hold !== undefined) {
    return { ...release(lock, { holder: hold.holder, id }, at), outcome: { kind: 'cancelled', gaveBack: true } };
  }
  const upgraded = holds.find((held) => held.upgradedBy === id);
  if (upgraded !== undefined && !isStale(upgraded, at)) {
    return { ...downgrade(lock, upgraded, at), outcome: { kind: 'cancelled', gaveBack: true } };
  }
  // Those behind it may have waited for nothing but its turn.
  return settle(step(leave(lock, id), { kind: 'cancelled', gaveBack: false }), at);
}

function refuse(lock: Lock, id: string, cycle: Cycle, at: Moment): LockStep {
  const victim = lock.waiting.find((waiter) => waiter.id === id);
  if (victim === undefined) return step(lock, { kind: 'unchanged' });
  const answers: readonly Answer<LockOutcome>[] = [{ id, outcome: { kind: 'deadlock', cycle } }];
  const events = [event('lock:deadlock', victim, at, { cycle })];
  return settle({ ...step(leave(lock, id), { kind: 'settled' }, events), answers }, at);
}

function tick(lock: Lock, at: Moment): LockStep {
  const { holds, stale } = warn(lock.record.holds, at);
  const events = stale.map((hold) => told('lock:stale', hold, at));
  return step(stale.length === 0 ? lock : withHolds(lock, holds), { kind: 'unchanged' }, events);
}

function maintain(lock: Lock, at: Moment): LockStep {
  const { holds, onStale } = lock.record;
  const reclaimed = onStale === 'reclaim' ? staleOf(holds, at) : NONE;
  const freed = reclaimed.length === 0 ? lock : withHolds(lock, except(holds, reclaimed));
  const events = reclaimed.map((hold) => told('lock:reclaimed', hold, at));
  return settle(step(freed, { kind: 'maintained', reclaimed }, events, losses(reclaimed, 'reclaimed')), at);
}

function configure(lock: Lock, onStale: OnStale, at: Moment): LockStep {
  const { record, waiting } = lock;
  if (record.onStale === onStale) return step(lock, { kind: 'configured' });
  // Those who wait behind a stale hold may now have it.
  return settle(step({ record: { ...record, onStale }, waiting }, { kind: 'configured' }), at);
}

// The queue

function settle(so: LockStep, at: Moment): LockStep {
  return isTaken(so.state, at) ? so : serveQueue(so, serve, isTaken, at);
}

/** One has it for itself and is alive: nobody in the queue need be looked at. */
function isTaken({ record }: Lock, at: Moment): boolean {
  const hold = record.holds[0];
  return hold !== undefined && hold.mode === 'exclusive' && !isStale(hold, at);
}

function serve(lock: Lock, place: number, at: Moment): Served<Lock, LockOutcome> | undefined {
  const { record, waiting } = lock;
  const head = waiting[place] as LockRequest;
  // Whoever waits twice may hold after the first time: then the second is an upgrade, and not in its own way.
  const own = ownHold(record.holds, head.holder, at);
  const stale = inTheWay(record, head, own, at);
  if (stale === undefined) return undefined;
  const token = nextToken(record.token, at);
  // An upgrade is a new grant: readers beside it may have got, and written with, larger tokens since.
  const hold: LockHold =
    own === undefined ? newHold(head, token, at) : { ...own, mode: 'exclusive', token, upgradedBy: head.id };
  const others =
    own === undefined && stale.length === 0
      ? record.holds
      : record.holds.filter((other) => other !== own && !stale.includes(other));
  const refusal = own === undefined && others.length > 0 ? tooLarge(others, head) : undefined;
  if (refusal !== undefined) {
    // It would wait at the head, and all others behind it, for as long as those who hold stay as they are.
    const answers: Answer<LockOutcome>[] = [{ id: head.id, outcome: refusal }];
    const denied = [event('lock:denied', head, at)];
    return { state: withWaiting(lock, without(waiting, place)), events: denied, answers, losses: NONE };
  }
  const holds = others.length === 0 ? [hold] : [...others, hold];
  const passed = passing(waiting, place, record.passed);
  const answers: Answer<LockOutcome>[] = [{ id: head.id, outcome: answerTo(hold, own, stale) }];
  const { onStale } = record;
  const granted: Lock = {
    record: { v: 1, kind: 'lock', token, holds, onStale, passed },
    waiting: without(waiting, place),
  };
  const acquired = event('lock:acquired', hold, at, { token, mode: hold.mode });
  return {
    state: joinOwn(granted, hold, answers),
    events: stale.length === 0 ? [acquired] : [...stale.map((lost) => told('lock:reclaimed', lost, at)), acquired],
    answers,
    losses: losses(stale, 'reclaimed', { by: hold.holder }),
  };
}

/** The stale holds that granting this request would reclaim; undefined if a live one is in its way. */
function inTheWay(
  record: LockRecord,
  request: LockRequest,
  own: LockHold | undefined,
  at: Moment,
): readonly LockHold[] | undefined {
  const blockers = record.holds.filter((hold) => hold !== own && conflicts(hold.mode, request.mode));
  if (blockers.length === 0) return NONE;
  if (record.onStale === 'alert' && request.steal !== true) return undefined;
  return blockers.every((hold) => isStale(hold, at)) ? blockers : undefined;
}

/** Other requests of one who now holds it would wait for themselves; they are re-entries. */
function joinOwn(lock: Lock, hold: LockHold, answers: Answer<LockOutcome>[]): Lock {
  // Whoever is known by the id of its one request has no others.
  if (hold.holder === hold.id) return lock;
  const joins = (waiter: LockRequest): boolean => waiter.holder === hold.holder && covers(hold.mode, waiter.mode);
  if (!lock.waiting.some(joins)) return lock;
  for (const waiter of lock.waiting) {
    if (joins(waiter)) answers.push({ id: waiter.id, outcome: { kind: 'extended', hold } });
  }
  return withWaiting(
    lock,
    lock.waiting.filter((waiter) => !joins(waiter)),
  );
}

// Small words

function covers(held: LockMode, wanted: LockMode): boolean {
  return held === 'exclusive' || wanted === 'shared';
}

function absent(lock: Lock): LockOutcome {
  const { holds } = lock.record;
  return holds.length === 0 ? { kind: 'already-free' } : { kind: 'not-owner', holders: holds };
}

function answerTo(hold: LockHold, own: LockHold | undefined, stale: readonly LockHold[]): LockOutcome {
  if (own !== undefined) return { kind: 'upgraded', hold };
  return stale.length === 0 ? { kind: 'acquired', hold } : { kind: 'reclaimed', hold, from: stale };
}

function newHold(request: LockRequest, token: Token, at: Moment): LockHold {
  const { id, holder, lease, mode } = request;
  return describedBy(request, { id, holder, token, lease, mode, acquiredAt: at.now });
}

function requestOf(asked: Acquire): LockRequest {
  const { id, holder, lease, priority, mode, maxHoldMs, reason, metadata, steal, within } = asked;
  const request: LockRequest = { id, holder, lease, priority, mode };
  if (
    within === undefined &&
    maxHoldMs === undefined &&
    reason === undefined &&
    metadata === undefined &&
    steal === undefined
  )
    return request;
  return {
    ...request,
    ...(within !== undefined && { within }),
    ...(maxHoldMs !== undefined && { maxHoldMs }),
    ...(reason !== undefined && { reason }),
    ...(metadata !== undefined && { metadata }),
    ...(steal !== undefined && { steal }),
  };
}

function step(
  lock: Lock,
  outcome: LockOutcome,
  events: readonly Event[] = NONE,
  lost: LockStep['losses'] = NONE,
): LockStep {
  return { state: lock, outcome, events, answers: NONE, losses: lost };
}

function told(type: string, hold: LockHold, at: Moment, who?: Taker): Event {
  const told: Event = { type, at: at.now, holder: hold.holder, token: hold.token };
  return who === undefined ? told : { ...told, ...who };
}
