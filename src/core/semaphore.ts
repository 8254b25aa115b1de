/**
 * The semaphore: `capacity` slots, and holders that have some of them.
 *
 *      slot    0   1   2   3   4   5              waiting
 *            ┌───┬───┬───┬───┬───┬───┐
 *            │ a │ a │ b │ c │   │   │  ◀────────  d (3)   e (1)
 *            └───┴───┴───┴───┴───┴───┘
 *              a holds 2, b and c 1 each; d has to wait for a third slot, and e, although there
 *              is one for it, waits behind d: otherwise light requests could keep d out forever
 *
 * A holder of w slots may grow to more: `weight` is always the total wanted. Growing keeps the token and the
 * slots that are held, and waits its turn. The record and the waiting requests are separate, as for locks; what
 * the two machines have in common is in resource.ts, grant.ts and hold-commands.ts.
 */
import { freeIn, impossible, inTheWay, isCount, madeBy, mismatch, noCapacity, roomIn, weightOf } from './capacity.ts';
import {
  askedBefore,
  joinSettled,
  reenter,
  serve,
  settle,
  sharing,
  take,
  takeByForce,
  takeOrQueue,
  withLimits,
} from './grant.ts';
import { type Drain, type DrainCommand, type DrainOutcome, drainTransition } from './drain.ts';
import { except, type Hold, holdEvents, isStale, ownHold, staleOf } from './hold.ts';
import { holdTransition } from './hold-commands.ts';
import {
  type Event,
  event,
  followed,
  type Moment,
  nextToken,
  NONE,
  type Request,
  type Step,
  step,
  type Token,
  withMost,
} from './machine.ts';
import { budget, LOST, withHolds } from './queue.ts';
import { type TooLarge, tooLarge } from './record-size.ts';
import type { Acquire, Configure, HoldCommand, HoldOutcome, HoldRecord, ResourceState, Rules } from './resource.ts';
import { describedBy } from './settings.ts';
import { type Slots, slotsFor, splitSlots } from './slots.ts';

export interface SemaphoreHold extends Hold {
  /** How many slots it has. */
  readonly weight: number;
  /** Which ones: the lowest that were free, the latest last. They stay while it holds them. */
  readonly slots: Slots;
  /**
   * The request that made it grow last, and its weight before: cancelling that request undoes the growth. Gone once a
   * second request shares the hold.
   */
  readonly grown?: { readonly by: string; readonly from: number };
}

export interface SemaphoreRequest extends Request {
  /** The total wanted, not an addition to what the holder has. */
  readonly weight: number;
  /** Takes the slots of stale holds even if a person would have to decide (`onStale: 'alert'`). */
  readonly steal?: true;
  /** The id of the hold that wants to grow. */
  readonly grows?: string;
  /** The capacity that the caller expects. Kept while it waits: the capacity may change meanwhile. */
  readonly capacity?: number;
}

export interface SemaphoreRecord extends HoldRecord<SemaphoreHold> {
  readonly kind: 'semaphore';
  readonly capacity: number;
  /** Nothing new is granted until it is undone; absent if it is not drained. */
  readonly drained?: Drain;
}

export type Semaphore = ResourceState<SemaphoreRecord, SemaphoreRequest>;

export type SemaphoreCommand =
  | Acquire<SemaphoreRequest>
  | HoldCommand<SemaphoreHold>
  /** `capacity`: makes the semaphore if no request has made it yet; another capacity than it has is refused. */
  | (Configure & { readonly capacity?: number })
  /** `from` is the capacity that the caller saw; if it has changed since, it stays. */
  | { readonly kind: 'resize'; readonly capacity: number; readonly from?: number; readonly holder?: string }
  | DrainCommand;

export type SemaphoreOutcome =
  | HoldOutcome<SemaphoreHold, SemaphoreCommand>
  /** The same holder had less: its hold has grown. */
  | { readonly kind: 'increased'; readonly hold: SemaphoreHold }
  /** The same holder already had as much: the hold is the outer one, and only its release frees the slots. */
  | { readonly kind: 'already-held'; readonly hold: SemaphoreHold }
  /** `behind`: there is room, but this request waits for more slots and is served first. */
  | {
      readonly kind: 'full';
      readonly free: number;
      readonly holders: readonly SemaphoreHold[];
      readonly behind?: { readonly holder: string; readonly weight: number };
      /** Nothing at all is granted until this is undone. */
      readonly drained?: Drain;
    }
  | {
      readonly kind: 'queued';
      readonly position: number;
      readonly free: number;
      readonly holders: readonly SemaphoreHold[];
    }
  /** Waiting would never help. */
  | { readonly kind: 'impossible'; readonly why: string; readonly capacity: number }
  | { readonly kind: 'capacity-mismatch'; readonly capacity: number; readonly asked: number }
  | { readonly kind: 'not-holder'; readonly holders: readonly SemaphoreHold[] }
  | { readonly kind: 'resized'; readonly capacity: number }
  | DrainOutcome;

export type SemaphoreStep = Step<Semaphore, SemaphoreOutcome>;

export function newSemaphore(capacity: number): Semaphore {
  return {
    record: { v: 1, kind: 'semaphore', token: 0, capacity, holds: NONE, onStale: 'reclaim', passed: null },
    waiting: NONE,
  };
}

/** A semaphore that was never used: it has no slots until a request names its capacity. */
export const unusedSemaphore = newSemaphore(0);

/** Pure, so the runtime may run it again on a newer semaphore after losing a write race. */
export function semaphoreTransition(semaphore: Semaphore, command: SemaphoreCommand, at: Moment): SemaphoreStep {
  if (command.kind === 'acquire') return acquire(semaphore, command, at);
  if (command.kind === 'resize') return resize(semaphore, command, at);
  if (command.kind === 'drain' || command.kind === 'undrain') return drainTransition(semaphore, command, rules, at);
  if (command.kind === 'configure' && command.capacity !== undefined) return ensure(semaphore, command, at);
  return holdTransition(semaphore, command, rules, at);
}

// Questions

export function usedSlots(semaphore: Semaphore): number {
  return weightOf(semaphore.record.holds);
}

/** None while it is drained, nor after shrinking below what is in use, until enough holders have left. */
export function availableSlots(semaphore: Semaphore): number {
  return freeIn(semaphore.record);
}

/** Whether a newcomer would get this many slots at once. Free slots belong to the waiters, if there are any. */
export function canAcquire(semaphore: Semaphore, weight: number): boolean {
  const { record, waiting } = semaphore;
  return waiting.length === 0 && isCount(weight) && weight <= freeIn(record);
}

export function staleHolders(semaphore: Semaphore, at: Moment): readonly SemaphoreHold[] {
  return staleOf(semaphore.record.holds, at);
}

// Commands

function acquire(semaphore: Semaphore, command: Acquire<SemaphoreRequest>, at: Moment): SemaphoreStep {
  if (at.gone(command.lease)) return step(semaphore, LOST);
  const before = command.again === true ? askedBefore(semaphore, command.id, rules, at) : undefined;
  if (before !== undefined) return before;
  const made = madeBy(semaphore, command);
  const settled = rules.withoutTurn(made, command, at);
  if (settled !== undefined) {
    const { state, outcome } = settled;
    return state === made ? step(semaphore, outcome) : settle(step(state, outcome), rules, at);
  }
  const granted = acquireFrom(made, command, at);
  // A refused request does not make the semaphore.
  if (granted.state === made) return { ...granted, state: semaphore };
  return made === semaphore ? granted : { ...granted, events: [...making(semaphore, made, at), ...granted.events] };
}

function acquireFrom(semaphore: Semaphore, command: Acquire<SemaphoreRequest>, at: Moment): SemaphoreStep {
  if (command.force === true && semaphore.record.drained === undefined) return force(semaphore, command, at);
  if (semaphore.waiting.length === 0) return join(semaphore, command, at);
  return joinSettled(semaphore, command, join, rules, at);
}

/** Answers a newcomer when the waiters are as far as they can get. */
function join(semaphore: Semaphore, command: Acquire<SemaphoreRequest>, at: Moment): SemaphoreStep {
  // Settling may just have served another request of the same holder.
  const own = ownHold(semaphore.record.holds, command.holder, at);
  if (own !== undefined && own.weight >= command.weight) return reenter(semaphore, own, command, rules, at);
  return takeOrQueue(semaphore, command, own, rules, at);
}

/** A semaphore that was only configured exists already: an event reports that it has slots now. */
function making(before: Semaphore, { record: { capacity } }: Semaphore, at: Moment): readonly Event[] {
  if (before.record === unusedSemaphore.record) return NONE;
  return [event('semaphore:resized', { holder: '' }, at, { capacity, from: 0 })];
}

/** Takes the slots it needs: from stale holders before live ones, and from the youngest grants first. */
function force(semaphore: Semaphore, command: Acquire<SemaphoreRequest>, at: Moment): SemaphoreStep {
  const { record } = semaphore;
  const own = ownHold(record.holds, command.holder, at);
  const stale = inTheWay(record, command, own, at);
  if (stale !== undefined) return take(semaphore, command, own, stale, rules, at);
  return takeByForce(semaphore, command, command, own, inItsWay(record, command, own, at), rules, at);
}

/** The holds that a forced acquire ends to get its slots. */
function inItsWay(
  record: SemaphoreRecord,
  request: SemaphoreRequest,
  own: SemaphoreHold | undefined,
  at: Moment,
): readonly SemaphoreHold[] {
  const youngest = record.holds.filter((hold) => hold !== own).reverse();
  const candidates = [
    ...youngest.filter((hold) => isStale(hold, at)),
    ...youngest.filter((hold) => !isStale(hold, at)),
  ];
  const needed = request.weight - (own?.weight ?? 0);
  const taken: SemaphoreHold[] = [];
  let room = roomIn(record);
  for (const hold of candidates) {
    if (room >= needed) break;
    taken.push(hold);
    room += hold.weight;
  }
  return taken;
}

/**
 * No holder loses a slot: shrinking below what is in use takes effect as holders leave. A waiter that wants more than
 * there will be, or that named another capacity, is refused by the next step that sees it.
 */
function resize(
  semaphore: Semaphore,
  command: Extract<SemaphoreCommand, { kind: 'resize' }>,
  at: Moment,
): SemaphoreStep {
  const { record, waiting } = semaphore;
  const { capacity, from = record.capacity } = command;
  if (!isCount(capacity)) return step(semaphore, noCapacity(capacity, record.capacity));
  if (from !== record.capacity) {
    return step(semaphore, { kind: 'capacity-mismatch', capacity: record.capacity, asked: from });
  }
  if (capacity === record.capacity) return step(semaphore, { kind: 'resized', capacity });
  const resized = event('semaphore:resized', { holder: command.holder ?? '' }, at, { capacity, from: record.capacity });
  return settle(
    step({ record: { ...record, capacity }, waiting }, { kind: 'resized', capacity }, [resized]),
    rules,
    at,
  );
}

/** Makes the semaphore if nobody has, and then configures it. */
function ensure(
  semaphore: Semaphore,
  { capacity = 0, ...settings }: Extract<SemaphoreCommand, { kind: 'configure' }>,
  at: Moment,
): SemaphoreStep {
  const { record, waiting } = semaphore;
  if (!isCount(capacity)) return step(semaphore, noCapacity(capacity, record.capacity));
  if (record.capacity > 0 && record.capacity !== capacity) {
    return step(semaphore, { kind: 'capacity-mismatch', capacity: record.capacity, asked: capacity });
  }
  if (record.capacity === capacity) return holdTransition(semaphore, settings, rules, at);
  const made = event('semaphore:resized', { holder: '' }, at, { capacity, from: 0 });
  const first: SemaphoreStep = settle(
    step({ record: { ...record, capacity }, waiting }, { kind: 'configured' }, [made]),
    rules,
    at,
  );
  const second = holdTransition(first.state, settings, rules, withMost(at, budget(first, at)));
  return followed(first, second, second.outcome);
}

// The rules of a semaphore

const events = holdEvents('semaphore');

const rules: Rules<Semaphore, SemaphoreOutcome> = {
  events,

  told(type, { holder, token, weight, slots }, at, who) {
    const told = { type, at: at.now, holder, token, weight, slots };
    return who === undefined ? told : { ...told, ...who };
  },
  asked: (type, request, at, detail) => event(type, request, at, { weight: request.weight, ...detail }),
  denied: (record, request, at) => denied(request, freeIn(record), at),

  inTheWay,
  noRoomFor,
  granted(record, request, own, stale, passed, at) {
    const { capacity, onStale } = record;
    const others = except(record.holds, stale);
    const slots = slotsFor(request, own, others);
    // A growth keeps its token: no other holder can have got one for what the hold already had.
    const token = own === undefined ? nextToken(record.token, at) : record.token;
    const hold = own === undefined ? newHold(record, request, slots, token, at) : grow(own, request, slots);
    const holds = own === undefined ? [...others, hold] : others.map((other) => (other === own ? hold : other));
    const after: SemaphoreRecord = { v: 1, kind: 'semaphore', token, capacity, holds, onStale, passed };
    return { record: withLimits(after, record.limits), hold };
  },
  ticket({ kind: _kind, wait: _wait, force: _force, again: _again, ...request }, own) {
    return own === undefined ? request : { ...request, grows: own.id };
  },

  enlargedBy: ({ grown }) => grown?.by,
  kept(hold, { weight = 0 }) {
    if (hold.grown === undefined || weight <= hold.grown.from) return hold;
    const { grown: _grown, ...kept } = hold;
    return kept;
  },
  assured,
  giveBack: shrink,

  says: {
    enlarged: (hold) => ({ kind: 'increased', hold }),
    reentered: (hold) => ({ kind: 'already-held', hold }),
    queued: (record, position) => ({ kind: 'queued', position, free: freeIn(record), holders: record.holds }),
    taken: (record, { weight }, next) => {
      const { drained } = record;
      const free = freeIn(record);
      if (drained !== undefined) return { kind: 'full', free, holders: record.holds, drained };
      const behind = next !== undefined && weight <= free ? { holder: next.holder, weight: next.weight } : undefined;
      return { kind: 'full', free, holders: record.holds, ...(behind !== undefined && { behind }) };
    },
    absent: ({ holds }) => ({ kind: 'not-holder', holders: holds }),
    unbroken: () => ({ kind: 'broken', holds: NONE }),
  },

  withoutTurn(semaphore, request, at) {
    const { record } = semaphore;
    // A holder that is named by the id of its request has only this request, so it holds nothing yet.
    const own = request.holder === request.id ? undefined : ownHold(record.holds, request.holder, at);
    const refusal = mismatch(request, record) ?? impossible(request, own, record.capacity);
    if (refusal !== undefined) return { state: semaphore, outcome: refusal, events: [denied(request, 0, at)] };
    if (own !== undefined && own.weight >= request.weight) return sharing(semaphore, own, request, rules);
    const isThere = request.grows === undefined || request.grows === own?.id;
    return isThere ? undefined : { state: semaphore, outcome: LOST, events: NONE };
  },
  serve(semaphore, place, at) {
    const made = madeBy(semaphore, semaphore.waiting[place] as SemaphoreRequest);
    if (made === semaphore) return serve(semaphore, place, rules, at);
    return { state: made, events: making(semaphore, made, at), answers: NONE, losses: NONE };
  },
};

/** The refusal if there are slots, but no more room in the record. */
function noRoomFor(
  { holds }: SemaphoreRecord,
  request: SemaphoreRequest,
  own: SemaphoreHold | undefined,
  gone: readonly SemaphoreHold[],
): TooLarge | undefined {
  if (own === undefined && holds.length === gone.length) return undefined;
  const others = except(holds, gone);
  const slots = slotsFor(request, own, others);
  if (own === undefined) return tooLarge(others, { ...request, slots });
  return tooLarge(except(others, [own]), { ...own, slots });
}

function newHold(
  { limits }: SemaphoreRecord,
  request: SemaphoreRequest,
  slots: Slots,
  token: Token,
  at: Moment,
): SemaphoreHold {
  const { id, holder, lease, weight } = request;
  return describedBy(request, { id, holder, token, lease, weight, slots, acquiredAt: at.now }, limits);
}

function grow(own: SemaphoreHold, { id, weight }: SemaphoreRequest, slots: Slots): SemaphoreHold {
  return { ...own, weight, slots, grown: { by: id, from: own.weight } };
}

function assured(held: SemaphoreHold): SemaphoreHold {
  const { grown, ...hold } = held;
  if (grown === undefined) return held;
  return { ...hold, weight: grown.from, slots: splitSlots(hold.slots, grown.from)[0] };
}

/** Gives back the slots that the hold got when it last grew. */
function shrink(semaphore: Semaphore, held: SemaphoreHold, at: Moment): SemaphoreStep {
  const { holds } = semaphore.record;
  const smaller = assured(held);
  const [, given] = splitSlots(held.slots, smaller.weight);
  const back: SemaphoreHold = { ...smaller, weight: held.weight - smaller.weight, slots: given };
  const freed = withHolds(semaphore, holds.with(holds.indexOf(held), smaller));
  const released = rules.told(events.released, back, at);
  return settle(step(freed, { kind: 'cancelled', gaveBack: true }, [released]), rules, at);
}

function denied(request: SemaphoreRequest, free: number, at: Moment): Event {
  return event(events.denied, request, at, { weight: request.weight, free });
}
