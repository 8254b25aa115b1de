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
 * The record (holds, last token, settings) and the waiting requests are separate, because a store
 * keeps each waiting request under a key of its own. `waiting` is in order of arrival and may be just
 * the front of a longer queue; it is empty only if the queue is. What a lock has in common with a
 * semaphore is in resource.ts, grant.ts and hold-commands.ts.
 */
import {
  askedBefore,
  grantNow,
  joinSettled,
  reenter,
  serve,
  settle,
  sharing,
  takeByForce,
  takeOrQueue,
  withLimits,
} from './grant.ts';
import { type Claim, except, type Hold, holdEvents, isStale, ownHold, placeOf, staleOf } from './hold.ts';
import { holdTransition } from './hold-commands.ts';
import {
  event,
  type Moment,
  NONE,
  nextToken,
  type Origin,
  type Request,
  type Step,
  step,
  type Token,
} from './machine.ts';
import { answeredAtOnce, answerWithoutTurn, isOrphan, LOST, placeFor, withHolds } from './queue.ts';
import { tooLarge } from './record-size.ts';
import type { Acquire, Configure, HoldCommand, HoldOutcome, HoldRecord, ResourceState, Rules } from './resource.ts';
import { describedBy } from './settings.ts';

/** Alone, or together with other readers. */
export type LockMode = 'exclusive' | 'shared';

export interface LockHold extends Hold {
  readonly mode: LockMode;
  /** The request that made it exclusive, so that cancelling it undoes the upgrade. Gone once a second request shares the hold. */
  readonly upgradedBy?: string;
}

export interface LockRequest extends Request {
  readonly mode: LockMode;
  /** Takes a stale hold even if a person would have to decide (`onStale: 'alert'`). */
  readonly steal?: true;
  /** The id of the shared hold that wants to become exclusive. */
  readonly upgrades?: string;
}

export interface LockRecord extends HoldRecord<LockHold> {
  readonly kind: 'lock';
}

export type Lock = ResourceState<LockRecord, LockRequest>;

export type LockCommand =
  | Acquire<LockRequest>
  | HoldCommand<LockHold>
  | Upgrade
  | (Claim & { readonly kind: 'downgrade' })
  | Configure;

type Upgrade = Claim & {
  readonly kind: 'upgrade';
  readonly request: string;
  readonly lease: string;
  readonly wait: boolean;
  readonly priority?: number;
  readonly steal?: true;
  readonly again?: true;
  readonly origin?: Origin;
};

export type LockOutcome =
  | HoldOutcome<LockHold, LockCommand>
  /** The same holder already had it: the hold is the outer one, and only its release frees the lock. */
  | { readonly kind: 'extended'; readonly hold: LockHold }
  | { readonly kind: 'queued'; readonly position: number; readonly holders: readonly LockHold[] }
  | { readonly kind: 'busy'; readonly holders: readonly LockHold[] }
  | { readonly kind: 'already-free' }
  | { readonly kind: 'not-owner'; readonly holders: readonly LockHold[] }
  | { readonly kind: 'upgraded'; readonly hold: LockHold }
  /** Another reader already waits to become the writer; both waiting would deadlock. */
  | { readonly kind: 'upgrade-conflict'; readonly by: string }
  | { readonly kind: 'downgraded'; readonly hold: LockHold };

export type LockStep = Step<Lock, LockOutcome>;

export const freeLock: Lock = {
  record: { v: 1, kind: 'lock', token: 0, holds: NONE, onStale: 'reclaim', passed: null },
  waiting: NONE,
};

/** Pure, so the runtime may run it again on a newer lock after losing a write race. */
export function lockTransition(lock: Lock, command: LockCommand, at: Moment): LockStep {
  if (command.kind === 'acquire') return acquire(lock, command, at);
  if (command.kind === 'upgrade') return upgrade(lock, command, at);
  if (command.kind === 'downgrade') return downgrade(lock, command, at);
  return holdTransition(lock, command, rules, at);
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

/** Whether two holds of these modes exclude each other. */
export function conflicts(one: LockMode, other: LockMode): boolean {
  return one === 'exclusive' || other === 'exclusive';
}

// Commands

function acquire(lock: Lock, command: Acquire<LockRequest>, at: Moment): LockStep {
  const { record, waiting } = lock;
  if (at.gone(command.lease)) return step(lock, LOST);
  if (record.holds.length === 0 && waiting.length === 0) {
    return grantNow(lock, command, command, undefined, NONE, rules, at);
  }
  const before = command.again === true ? askedBefore(lock, command.id, rules, at) : undefined;
  // It was granted, and another process of its holder has made it shared since: the caller does not have what it asked for.
  if (before?.outcome.kind === 'acquired' && !covers(before.outcome.hold.mode, command.mode)) return step(lock, LOST);
  if (before !== undefined) return before;

  const own = ownHold(record.holds, command.holder, at);
  if (own !== undefined && covers(own.mode, command.mode)) return reenter(lock, own, command, rules, at);
  if (command.force === true) return force(lock, command, own, at);
  if (own !== undefined) return upgrade(lock, upgradeOf(own, command), at);
  return waiting.length === 0 ? join(lock, command, at) : joinSettled(lock, command, join, rules, at);
}

/** Answers a newcomer when the waiters are as far as they can get. */
function join(lock: Lock, command: Acquire<LockRequest>, at: Moment): LockStep {
  // Settling may just have served another request of the same holder.
  const own = ownHold(lock.record.holds, command.holder, at);
  if (own === undefined) return takeOrQueue(lock, command, own, rules, at);
  return covers(own.mode, command.mode)
    ? reenter(lock, own, command, rules, at)
    : upgrade(lock, upgradeOf(own, command), at);
}

/** Takes the lock from every holder in the way, past every waiter. */
function force(lock: Lock, command: Acquire<LockRequest>, own: LockHold | undefined, at: Moment): LockStep {
  const request = own === undefined ? command : upgradeRequest(own, upgradeOf(own, command));
  return takeByForce(lock, command, request, own, inItsWay(lock.record, command, own), rules, at);
}

function upgrade(lock: Lock, command: Upgrade, at: Moment): LockStep {
  const { record, waiting } = lock;
  const hold = record.holds[placeOf(record.holds, command)];
  if (hold === undefined) return step(lock, absent(record));
  if (isStale(hold, at) || at.gone(command.lease)) return step(lock, LOST);
  const before = command.again === true ? askedBefore(lock, command.request, rules, at) : undefined;
  if (before !== undefined) return before;
  if (hold.mode === 'exclusive') return reenter(lock, hold, { mode: 'exclusive' }, rules, at);
  const rival = waiting.find((waiter) => isRivalOf(hold, waiter, record, at));
  if (rival !== undefined) return step(lock, { kind: 'upgrade-conflict', by: rival.holder });

  const request = upgradeRequest(hold, command);
  const holders = record.holds.filter((other) => other !== hold);
  const earlier = waiting.some(({ upgrades, lease }) => upgrades === hold.id && !at.gone(lease));
  const stale = earlier ? undefined : inTheWay(record, request, hold, at);
  if (stale !== undefined) return grantNow(lock, request, command, hold, stale, rules, at);
  if (!command.wait) return step(lock, { kind: 'busy', holders }, [event(events.denied, request, at)]);
  if (!earlier && waiting.some(({ upgrades, lease }) => upgrades !== undefined && !at.gone(lease))) {
    // Only one ticket may go before all others: the ticket of a hold that is over has to leave the queue first.
    const left = answerWithoutTurn<Lock, LockOutcome>(step(lock, { kind: 'settled' }), rules, at);
    return { ...left, outcome: { kind: 'unfinished', then: command } };
  }
  const { upgrades: _upgrades, ...plain } = request;
  // A second request of the same hold waits in line, and is answered along with the first one.
  const position = earlier ? placeFor(waiting, request.priority, record.passed) : 1;
  const asked: Lock = { record, waiting: [...waiting, earlier ? plain : request] };
  const settled: LockStep = settle(step(asked, { kind: 'queued', position, holders }), rules, at);
  const queued = event(events.queued, request, at, { position });
  return answeredAtOnce(settled, request.id) ?? { ...settled, events: [...settled.events, queued] };
}

/** An acquire by a reader that now wants to write. */
function upgradeOf(own: LockHold, command: Acquire<LockRequest>): Upgrade {
  const { id: request, lease, wait, priority, steal, again, origin } = command;
  return {
    kind: 'upgrade',
    holder: own.holder,
    id: own.id,
    token: own.token,
    ...{ request, lease, wait, priority },
    ...(steal === true && { steal }),
    ...(again === true && { again }),
    ...(origin !== undefined && { origin }),
  };
}

function upgradeRequest(hold: LockHold, { request, lease, priority = 0, steal, origin }: Upgrade): LockRequest {
  return {
    id: request,
    holder: hold.holder,
    lease,
    priority,
    mode: 'exclusive',
    upgrades: hold.id,
    ...(steal === true && { steal }),
    ...(origin !== undefined && { origin }),
  };
}

/** Two readers that wait for each other to leave would wait forever. */
function isRivalOf(hold: LockHold, waiter: LockRequest, record: LockRecord, at: Moment): boolean {
  if (waiter.upgrades === undefined || waiter.upgrades === hold.id) return false;
  return !at.gone(waiter.lease) && !isOrphan(waiter, record.holds, at);
}

function downgrade(lock: Lock, claim: Claim, at: Moment): LockStep {
  const { holds } = lock.record;
  const place = placeOf(holds, claim);
  const hold = holds[place];
  if (hold === undefined) return step(lock, absent(lock.record));
  if (isStale(hold, at)) return step(lock, LOST);
  if (hold.mode === 'shared') return step(lock, { kind: 'downgraded', hold });
  const { upgradedBy: _upgradedBy, ...rest } = hold;
  const shared: LockHold = { ...rest, mode: 'shared' };
  const state = withHolds(lock, holds.with(place, shared));
  const downgraded = rules.told('lock:downgraded', hold, at);
  return settle(step(state, { kind: 'downgraded', hold: shared }, [downgraded]), rules, at);
}

// The rules of a lock

const events = holdEvents('lock');

const rules: Rules<Lock, LockOutcome> = {
  events,

  told(type, { holder, token, mode }, at, who) {
    if (type === events.acquired) return { type, at: at.now, holder, token, mode };
    const told = { type, at: at.now, holder, token };
    return who === undefined ? told : { ...told, ...who };
  },
  asked: (type, request, at, detail) => event(type, request, at, detail),
  denied: (_record, request, at) => event(events.denied, request, at),

  inTheWay,
  noRoomFor({ holds }, request, own, gone) {
    const isAlone = own !== undefined || holds.length === gone.length;
    return isAlone ? undefined : tooLarge(except(holds, gone), request);
  },
  granted(record, request, own, stale, passed, at) {
    const token = nextToken(record.token, at);
    // An upgrade gets a new token: readers beside it may have got, and written with, larger ones since.
    const hold: LockHold =
      own === undefined
        ? newHold(record, request, token, at)
        : { ...own, mode: 'exclusive', token, upgradedBy: request.id };
    const others = except(record.holds, own === undefined ? stale : [...stale, own]);
    const holds = others.length === 0 ? [hold] : [...others, hold];
    const after: LockRecord = { v: 1, kind: 'lock', token, holds, onStale: record.onStale, passed };
    return { record: withLimits(after, record.limits), hold };
  },
  ticket: requestOf,

  enlargedBy: ({ upgradedBy }) => upgradedBy,
  kept(hold, { mode }) {
    if (hold.upgradedBy === undefined || mode === 'shared') return hold;
    const { upgradedBy: _upgradedBy, ...kept } = hold;
    return kept;
  },
  // Keeps `upgradedBy`, by which a caller tells this hold (as it was before the upgrade) from one that was downgraded later.
  assured: (hold) => (hold.upgradedBy === undefined ? hold : { ...hold, mode: 'shared' }),
  giveBack: (lock, hold, at) => (isStale(hold, at) ? undefined : downgrade(lock, hold, at)),

  says: {
    enlarged: (hold) => ({ kind: 'upgraded', hold }),
    reentered: (hold) => ({ kind: 'extended', hold }),
    queued: ({ holds }, position) => ({ kind: 'queued', position, holders: holds }),
    taken: ({ holds }) => ({ kind: 'busy', holders: holds }),
    absent,
    unbroken: absent,
  },

  withoutTurn(lock, request, at) {
    const { holds } = lock.record;
    const { holder, mode, upgrades } = request;
    if (upgrades !== undefined) {
      const hold = holds.find(({ id }) => id === upgrades);
      if (hold === undefined || isStale(hold, at)) return { state: lock, outcome: LOST, events: NONE };
      return hold.mode === 'exclusive' ? sharing(lock, hold, { mode: 'exclusive' }, rules) : undefined;
    }
    // A holder that is named by the id of its request has only this request, so it holds nothing yet.
    const own = holder === request.id ? undefined : ownHold(holds, holder, at);
    if (own === undefined || !covers(own.mode, mode)) return undefined;
    return sharing(lock, own, request, rules);
  },
  serve: (lock, place, at) => serve(lock, place, rules, at),
};

/** The stale holds that granting this request would reclaim; undefined if a live one is in its way. */
function inTheWay(
  record: LockRecord,
  request: LockRequest,
  own: LockHold | undefined,
  at: Moment,
): readonly LockHold[] | undefined {
  const blockers = inItsWay(record, request, own);
  if (blockers.length === 0) return NONE;
  if (record.onStale === 'alert' && request.steal !== true) return undefined;
  return blockers.every((hold) => isStale(hold, at)) ? blockers : undefined;
}

function inItsWay({ holds }: LockRecord, { mode }: LockRequest, own: LockHold | undefined): readonly LockHold[] {
  const isInItsWay = (hold: LockHold): boolean => hold !== own && conflicts(hold.mode, mode);
  return holds.every(isInItsWay) ? holds : holds.filter(isInItsWay);
}

// Small words

function covers(held: LockMode, wanted: LockMode): boolean {
  return held === 'exclusive' || wanted === 'shared';
}

function absent({ holds }: LockRecord): LockOutcome {
  return holds.length === 0 ? { kind: 'already-free' } : { kind: 'not-owner', holders: holds };
}

function newHold({ limits }: LockRecord, request: LockRequest, token: Token, at: Moment): LockHold {
  const { id, holder, lease, mode } = request;
  return describedBy(request, { id, holder, token, lease, mode, acquiredAt: at.now }, limits);
}

function requestOf(asked: Acquire<LockRequest>): LockRequest {
  const { id, holder, lease, priority, mode, detached, ttlMs, maxHoldMs, reason, metadata, from, steal, within } =
    asked;
  const { origin } = asked;
  const request: LockRequest = { id, holder, lease, priority, mode };
  if (
    origin === undefined &&
    within === undefined &&
    detached === undefined &&
    maxHoldMs === undefined &&
    reason === undefined &&
    metadata === undefined &&
    steal === undefined
  )
    return request;
  return {
    ...request,
    ...(origin !== undefined && { origin }),
    ...(within !== undefined && { within }),
    ...(detached !== undefined && { detached }),
    ...(ttlMs !== undefined && { ttlMs }),
    ...(from !== undefined && { from }),
    ...(maxHoldMs !== undefined && { maxHoldMs }),
    ...(reason !== undefined && { reason }),
    ...(metadata !== undefined && { metadata }),
    ...(steal !== undefined && { steal }),
  };
}
