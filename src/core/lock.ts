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
  type Unfinished,
  unreachable,
} from './machine.ts';
import {
  answeredAtOnce,
  answerWithoutTurn,
  budget,
  type Cycle,
  goesAhead,
  isOrphan,
  leave,
  type Line,
  LOST,
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
  /** The request by which it became exclusive, so that a cancelled upgrade can be given back. Not once another has it too. */
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
  /** An administrator ends every hold. `upTo` and `broken`: where one write did not end them all. */
  | {
      readonly kind: 'break';
      readonly holder: string;
      readonly reason: string;
      /** Only holds with a token up to this one: those who came later are not meant. */
      readonly upTo?: Token;
      readonly broken?: readonly LockHold[];
    }
  | (Claim & { readonly kind: 'heartbeat' })
  /** From now on the hold hangs on these leases. */
  | (Claim & { readonly kind: 'extend'; readonly lease?: string; readonly limit?: string })
  | (Claim & {
      readonly kind: 'upgrade';
      readonly request: string;
      readonly lease: string;
      readonly wait: boolean;
      readonly priority?: number;
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
  /** `reclaimed`: by earlier writes, where one did not reclaim them all. */
  | { readonly kind: 'maintain'; readonly reclaimed?: readonly LockHold[] }
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
  | { readonly kind: 'configured' }
  | Unfinished<LockCommand>;

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
      return maintain(lock, command, at);
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
  if (at.gone(command.lease)) return step(lock, LOST);
  if (record.holds.length === 0 && waiting.length === 0) return grantNewcomer(lock, command, NONE, at);
  const before = command.again === true ? askedBefore(lock, command.id, at) : undefined;
  if (before !== undefined) return before;

  const own = ownHold(record.holds, command.holder, at);
  if (own !== undefined && covers(own.mode, command.mode)) return reenter(lock, own, at);
  if (command.force === true) return force(lock, command, own, at);
  if (own !== undefined) return upgrade(lock, upgradeOf(own, command), at);
  if (waiting.length === 0) return join(lock, command, at);

  // A lease may have ended since, and what that leaves belongs to those who wait already.
  const settled = settle(step(lock, { kind: 'settled' }), at);
  const left = budget(settled, at);
  if (left <= 0) return { ...settled, outcome: { kind: 'unfinished', then: command } };
  const joined = join(settled.state, command, { ...at, most: left });
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
    if (isStale(hold, at)) return step(lock, LOST);
    return step(lock, { kind: hold.id === id ? 'acquired' : 'upgraded', hold });
  }
  const place = lock.waiting.findIndex((waiter) => waiter.id === id);
  return place < 0 ? undefined : step(lock, { kind: 'queued', position: place + 1, holders: holds });
}

function reenter(lock: Lock, hold: LockHold, at: Moment): LockStep {
  const { state, outcome } = sharing(lock, hold);
  return state === lock ? step(lock, outcome) : settle(step(state, outcome), at);
}

/**
 * The same hold for another request of its holder. From then on an upgrade is not given back any more because the request
 * that asked for it is given up: the other one writes under it.
 */
function sharing(lock: Lock, hold: LockHold): { readonly state: Lock; readonly outcome: LockOutcome } {
  if (hold.upgradedBy === undefined) return { state: lock, outcome: { kind: 'extended', hold } };
  const { upgradedBy: _upgradedBy, ...kept } = hold;
  const { holds } = lock.record;
  return {
    state: withHolds(lock, holds.with(holds.indexOf(hold), kept)),
    outcome: { kind: 'extended', hold: kept },
  };
}

/** Those who wait are as far as they can get. */
function join(lock: Lock, command: Acquire, at: Moment): LockStep {
  const { record, waiting } = lock;
  // A request of the same holder may have been served just now.
  const own = ownHold(record.holds, command.holder, at);
  if (own !== undefined && covers(own.mode, command.mode)) return reenter(lock, own, at);
  if (own !== undefined) return upgrade(lock, upgradeOf(own, command), at);
  const stale = goesAhead(command, waiting, record.passed) ? inTheWay(record, command, undefined, at) : undefined;
  if (stale !== undefined) {
    const refusal = tooLarge(except(record.holds, stale), command);
    if (refusal !== undefined) return step(lock, refusal, [event('lock:denied', command, at)]);
    return grantNewcomer(lock, command, stale, at);
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
  return grantNow(lock, command, command, undefined, stale, at);
}

/** Grants what nobody who waits goes before; `command` asks for the rest if one write does not take it all. */
function grantNow(
  lock: Lock,
  request: LockRequest,
  command: LockCommand,
  own: LockHold | undefined,
  stale: readonly LockHold[],
  at: Moment,
): LockStep {
  const { most = Number.POSITIVE_INFINITY } = at;
  if (stale.length > most) {
    const part = reclaim(lock, stale.slice(0, most), request, at);
    return { ...part, outcome: { kind: 'unfinished', then: command } };
  }
  if (lock.waiting.length === 0) return { ...grant(lock, request, own, stale, lock.waiting.length, at) };
  const first = answerWithoutTurn(step(lock, { kind: 'settled' }), line, at);
  if (budget(first, at) < stale.length) return { ...first, outcome: { kind: 'unfinished', then: command } };
  const granted = grant(first.state, request, own, stale, first.state.waiting.length, at);
  return settle(followed(first, granted), at);
}

/** The grant, or the upgrade of `own`, without a look at the queue. `place`: where in it the request stood. */
function grant(
  { record, waiting }: Lock,
  request: LockRequest,
  own: LockHold | undefined,
  stale: readonly LockHold[],
  place: number,
  at: Moment,
): LockStep {
  const token = nextToken(record.token, at);
  // An upgrade is a new grant: readers beside it may have got, and written with, larger tokens since.
  const hold: LockHold =
    own === undefined ? newHold(request, token, at) : { ...own, mode: 'exclusive', token, upgradedBy: request.id };
  const others =
    own === undefined && stale.length === 0
      ? record.holds
      : record.holds.filter((other) => other !== own && !stale.includes(other));
  const granted: LockRecord = {
    v: 1,
    kind: 'lock',
    token,
    holds: others.length === 0 ? [hold] : [...others, hold],
    onStale: record.onStale,
    passed: passing(waiting, place, record.passed),
  };
  const acquired = event('lock:acquired', hold, at, { token, mode: hold.mode });
  return {
    state: { record: granted, waiting: place < waiting.length ? without(waiting, place) : waiting },
    outcome: answerTo(hold, own, stale),
    events: stale.length === 0 ? [acquired] : [...stale.map((lost) => told('lock:reclaimed', lost, at)), acquired],
    answers: NONE,
    losses: losses(stale, 'reclaimed', { by: hold.holder }),
  };
}

/** Takes back some of the stale holds that are in the way of a request, where one write does not take them all. */
function reclaim(lock: Lock, stale: readonly LockHold[], request: LockRequest, at: Moment): Served<Lock, LockOutcome> {
  return {
    state: withHolds(lock, except(lock.record.holds, stale)),
    events: stale.map((lost) => told('lock:reclaimed', lost, at)),
    answers: NONE,
    losses: losses(stale, 'reclaimed', { by: request.holder }),
  };
}

/** Takes it from everyone in the way, past everyone who waits. */
function force(lock: Lock, command: Acquire, own: LockHold | undefined, at: Moment): LockStep {
  const { record, waiting } = lock;
  const { most = Number.POSITIVE_INFINITY } = at;
  const inItsWay = record.holds.filter((hold) => hold !== own && conflicts(hold.mode, command.mode));
  const taken = inItsWay.length > most ? inItsWay.slice(0, most) : inItsWay;
  const who = takenBy(command.holder, command.reason ?? '', inItsWay.length);
  const rest: Lock = { record: { ...record, holds: except(record.holds, taken) }, waiting };
  const refusal = own === undefined ? tooLarge(except(record.holds, inItsWay), command) : undefined;
  if (refusal !== undefined) return step(lock, refusal, [event('lock:denied', command, at)]);
  const events = taken.map((hold) => told('lock:forced', hold, at, who));
  const forced = step(rest, { kind: 'unfinished', then: command }, events, losses(taken, 'forced', who));
  if (taken.length < inItsWay.length) return forced;
  const left: Moment = { ...at, most: most - taken.length };
  const request = own === undefined ? command : upgradeRequest(own, upgradeOf(own, command));
  const granted = grantNow(rest, request, command, own, NONE, left);
  return { ...followed(forced, granted) };
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
  const { holds, token } = lock.record;
  const { broken = NONE, upTo = token } = command;
  const meant = holds.filter((hold) => hold.token <= upTo);
  if (meant.length === 0) return step(lock, broken.length === 0 ? absent(lock) : { kind: 'broken', holds: broken });
  const taken = meant.slice(0, at.most);
  const who = takenBy(command.holder, command.reason, meant.length);
  const events = taken.map((hold) => told('lock:forced', hold, at, who));
  const freed = withHolds(lock, except(holds, taken));
  const all = [...broken, ...taken];
  const lost = losses(taken, 'forced', who);
  if (taken.length < meant.length) {
    return step(freed, { kind: 'unfinished', then: { ...command, upTo, broken: all } }, events, lost);
  }
  return settle(step(freed, { kind: 'broken', holds: all }, events, lost), at);
}

/** Writes nothing: the lease was renewed in the store, and here it is only checked that the hold still is. */
function heartbeat(lock: Lock, claim: Claim, at: Moment): LockStep {
  const hold = lock.record.holds[placeOf(lock.record.holds, claim)];
  if (hold === undefined) return step(lock, absent(lock));
  return step(lock, isStale(hold, at) ? LOST : { kind: 'refreshed', hold });
}

function extend(lock: Lock, command: Extract<LockCommand, { kind: 'extend' }>, at: Moment): LockStep {
  const { holds } = lock.record;
  const place = placeOf(holds, command);
  const hold = holds[place];
  if (hold === undefined) return step(lock, absent(lock));
  if (isStale(hold, at)) return step(lock, LOST);
  const longer = onLeases(hold, command);
  const state = longer === hold ? lock : withHolds(lock, holds.with(place, longer));
  return step(state, { kind: 'refreshed', hold: longer });
}

type Upgrade = Extract<LockCommand, { kind: 'upgrade' }>;

function upgrade(lock: Lock, command: Upgrade, at: Moment): LockStep {
  const { record, waiting } = lock;
  const hold = record.holds[placeOf(record.holds, command)];
  if (hold === undefined) return step(lock, absent(lock));
  if (isStale(hold, at) || at.gone(command.lease)) return step(lock, LOST);
  const before = command.again === true ? askedBefore(lock, command.request, at) : undefined;
  if (before !== undefined) return before;
  if (hold.mode === 'exclusive') return reenter(lock, hold, at);
  const rival = waiting.find((waiter) => isRivalOf(hold, waiter, record, at));
  if (rival !== undefined) return step(lock, { kind: 'upgrade-conflict', by: rival.holder });

  const request = upgradeRequest(hold, command);
  const holders = record.holds.filter((other) => other !== hold);
  const earlier = waiting.some(({ upgrades, lease }) => upgrades === hold.id && !at.gone(lease));
  const stale = earlier ? undefined : inTheWay(record, request, hold, at);
  if (stale !== undefined) return grantNow(lock, request, command, hold, stale, at);
  if (!command.wait) return step(lock, { kind: 'busy', holders }, [event('lock:denied', request, at)]);
  if (!earlier && waiting.some(({ upgrades, lease }) => upgrades !== undefined && !at.gone(lease))) {
    // Only one ticket may go before everyone: one whose hold is over has to leave before this one can come.
    const left = answerWithoutTurn(step(lock, { kind: 'settled' }), line, at);
    return { ...left, outcome: { kind: 'unfinished', then: command } };
  }
  const { upgrades: _upgrades, ...plain } = request;
  // Only one may go before everyone. A second request of the same hold joins it: it is answered along with the first.
  const position = earlier ? placeFor(waiting, request.priority, record.passed) : 1;
  const asked: Lock = { record, waiting: [...waiting, earlier ? plain : request] };
  const settled = settle(step(asked, { kind: 'queued', position, holders }), at);
  const queued = event('lock:queued', request, at, { position });
  return answeredAtOnce(settled, request.id) ?? { ...settled, events: [...settled.events, queued] };
}

/** What an acquire is for one who reads already and wants to write. */
function upgradeOf(own: LockHold, command: Acquire): Upgrade {
  const { id: request, lease, wait, priority, steal, again } = command;
  return {
    kind: 'upgrade',
    holder: own.holder,
    id: own.id,
    token: own.token,
    ...{ request, lease, wait, priority },
    ...(steal === true && { steal }),
    ...(again === true && { again }),
  };
}

function upgradeRequest(hold: LockHold, { request, lease, priority = 0, steal }: Upgrade): LockRequest {
  return {
    id: request,
    holder: hold.holder,
    lease,
    priority,
    mode: 'exclusive',
    upgrades: hold.id,
    ...(steal === true && { steal }),
  };
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
  if (isStale(hold, at)) return step(lock, LOST);
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
  // One that needs no turn waits for nobody, and closes no circle.
  const settled = line.withoutTurn(lock, victim, at) ?? {
    state: lock,
    outcome: { kind: 'deadlock', cycle },
    events: [event('lock:deadlock', victim, at, { cycle })],
  };
  const answers: readonly Answer<LockOutcome>[] = [{ id, outcome: settled.outcome }];
  return settle({ ...step(leave(settled.state, id), { kind: 'settled' }, settled.events), answers }, at);
}

function tick(lock: Lock, at: Moment): LockStep {
  const { holds, stale } = warn(lock.record.holds, at);
  const events = stale.map((hold) => told('lock:stale', hold, at));
  return step(stale.length === 0 ? lock : withHolds(lock, holds), { kind: 'unchanged' }, events);
}

function maintain(lock: Lock, command: Extract<LockCommand, { kind: 'maintain' }>, at: Moment): LockStep {
  const { holds, onStale } = lock.record;
  const stale = onStale === 'reclaim' ? staleOf(holds, at) : NONE;
  const taken = stale.slice(0, at.most);
  const freed = taken.length === 0 ? lock : withHolds(lock, except(holds, taken));
  const events = taken.map((hold) => told('lock:reclaimed', hold, at));
  const reclaimed = [...(command.reclaimed ?? NONE), ...taken];
  const lost = losses(taken, 'reclaimed');
  if (taken.length < stale.length) {
    return step(freed, { kind: 'unfinished', then: { kind: 'maintain', reclaimed } }, events, lost);
  }
  return settle(step(freed, { kind: 'maintained', reclaimed }, events, lost), at);
}

function configure(lock: Lock, onStale: OnStale, at: Moment): LockStep {
  const { record, waiting } = lock;
  if (record.onStale === onStale) return step(lock, { kind: 'configured' });
  // Those who wait behind a stale hold may now have it.
  return settle(step({ record: { ...record, onStale }, waiting }, { kind: 'configured' }), at);
}

// The queue

function settle(so: LockStep, at: Moment): LockStep {
  return so.state.waiting.length === 0 ? so : serveQueue(so, line, at);
}

const line: Line<Lock, LockOutcome> = {
  withoutTurn(lock, request, at) {
    const { holds } = lock.record;
    const { holder, mode, upgrades } = request as LockRequest;
    if (upgrades !== undefined) {
      const hold = holds.find(({ id }) => id === upgrades);
      if (hold === undefined || isStale(hold, at)) return { state: lock, outcome: LOST, events: NONE };
      return hold.mode === 'exclusive' ? { ...sharing(lock, hold), events: NONE } : undefined;
    }
    // Whoever is known by the id of its one request holds nothing by another.
    const own = holder === request.id ? undefined : ownHold(holds, holder, at);
    if (own === undefined || !covers(own.mode, mode)) return undefined;
    return { ...sharing(lock, own), events: NONE };
  },

  serve(lock, place, at) {
    const { record, waiting } = lock;
    const head = waiting[place] as LockRequest;
    // Whoever asked to read and to write may be reading by now: what it gets is an upgrade, and not in its own way.
    const own = ownHold(record.holds, head.holder, at);
    const stale = inTheWay(record, head, own, at);
    if (stale === undefined) return undefined;
    const { most = Number.POSITIVE_INFINITY } = at;
    if (stale.length >= most) return reclaim(lock, stale.slice(0, most), head, at);
    const others = own === undefined ? except(record.holds, stale) : NONE;
    const refusal = others.length > 0 ? tooLarge(others, head) : undefined;
    if (refusal !== undefined) {
      // It would wait at the head, and all others behind it, for as long as those who hold stay as they are.
      const answers: Answer<LockOutcome>[] = [{ id: head.id, outcome: refusal }];
      const denied = [event('lock:denied', head, at)];
      return { state: withWaiting(lock, without(waiting, place)), events: denied, answers, losses: NONE };
    }
    const granted = grant(lock, head, own, stale, place, at);
    return { ...granted, answers: [{ id: head.id, outcome: granted.outcome }] };
  },
};

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
