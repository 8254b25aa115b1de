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
 * Who holds w slots may grow to more: `weight` is always the total wanted. Growing keeps the token and the
 * slots that are held, and waits its turn. The record and the waiting requests are kept apart as for locks.
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
  answerWithoutTurn,
  budget,
  type Cycle,
  goesAhead,
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
import { LARGEST_WEIGHT, lowestFree, type Slots, splitSlots } from './slots.ts';

export interface SemaphoreHold extends Hold {
  /** How many slots it has. */
  readonly weight: number;
  /** Which ones: the lowest that were free, the latest last. They stay while it holds them. */
  readonly slots: Slots;
  /**
   * The request by which it grew last, and from which weight: so that a cancelled growth can be given back. Not once
   * another request has it too.
   */
  readonly grown?: { readonly by: string; readonly from: number };
}

export interface SemaphoreRequest extends Request {
  /** The total wanted, not an addition to what the holder has. */
  readonly weight: number;
  /** Takes the slots of stale holds even where a person would have to decide (`onStale: 'alert'`). */
  readonly steal?: true;
  /** The id of the hold that wants to grow. */
  readonly grows?: string;
  /** What the caller believes the capacity to be. Kept while it waits: another may become the capacity meanwhile. */
  readonly capacity?: number;
}

export interface SemaphoreRecord {
  readonly v: 1;
  readonly kind: 'semaphore';
  /** The last token given out; outlives its hold. */
  readonly token: Token;
  readonly capacity: number;
  /** In the order of their grants, the youngest last. */
  readonly holds: readonly SemaphoreHold[];
  readonly onStale: OnStale;
  /** Always there, as null if nobody was passed, so that every record has one shape. */
  readonly passed: Passed | null;
}

export interface Semaphore {
  readonly record: SemaphoreRecord;
  readonly waiting: readonly SemaphoreRequest[];
}

export type SemaphoreCommand =
  /** `wait`: queue if it cannot be had now. `force`: an administrator takes slots from whoever has them. */
  | (SemaphoreRequest & {
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
      readonly broken?: readonly SemaphoreHold[];
    }
  | (Claim & { readonly kind: 'heartbeat' })
  /** From now on the hold hangs on these leases. */
  | (Claim & { readonly kind: 'extend'; readonly lease?: string; readonly limit?: string })
  /** The one who asked has gone; if it was granted meanwhile, the grant goes back. */
  | { readonly kind: 'cancel'; readonly id: string }
  /** The victim of a deadlock stops waiting. */
  | { readonly kind: 'refuse'; readonly id: string; readonly cycle: Cycle }
  /** Grants whatever can be granted: on behalf of waiters, after a lease ended. */
  | { readonly kind: 'settle' }
  | { readonly kind: 'tick' }
  /** `reclaimed`: by earlier writes, where one did not reclaim them all. */
  | { readonly kind: 'maintain'; readonly reclaimed?: readonly SemaphoreHold[] }
  | { readonly kind: 'configure'; readonly onStale?: OnStale }
  | { readonly kind: 'resize'; readonly capacity: number; readonly holder?: string };

export type SemaphoreOutcome =
  | { readonly kind: 'acquired'; readonly hold: SemaphoreHold }
  /** There was room only after the slots of holds whose leases had ended were taken back. */
  | { readonly kind: 'reclaimed'; readonly hold: SemaphoreHold; readonly from: readonly SemaphoreHold[] }
  /** The same holder had less: its hold has grown. */
  | { readonly kind: 'increased'; readonly hold: SemaphoreHold }
  /** The same holder already had as much: the hold is the outer one, and releasing is left to that. */
  | { readonly kind: 'already-held'; readonly hold: SemaphoreHold }
  | { readonly kind: 'full'; readonly free: number; readonly holders: readonly SemaphoreHold[] }
  | TooLarge
  | {
      readonly kind: 'queued';
      readonly position: number;
      readonly free: number;
      readonly holders: readonly SemaphoreHold[];
    }
  /** However long one waited, it could not be had. */
  | { readonly kind: 'impossible'; readonly why: string; readonly capacity: number }
  | { readonly kind: 'capacity-mismatch'; readonly capacity: number; readonly asked: number }
  | { readonly kind: 'released'; readonly hold: SemaphoreHold }
  | { readonly kind: 'not-holder'; readonly holders: readonly SemaphoreHold[] }
  | { readonly kind: 'refreshed'; readonly hold: SemaphoreHold }
  | { readonly kind: 'lost' }
  | { readonly kind: 'cancelled'; readonly gaveBack: boolean }
  | { readonly kind: 'deadlock'; readonly cycle: Cycle }
  | { readonly kind: 'settled' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'broken'; readonly holds: readonly SemaphoreHold[] }
  | { readonly kind: 'maintained'; readonly reclaimed: readonly SemaphoreHold[] }
  | { readonly kind: 'configured' }
  | { readonly kind: 'resized'; readonly capacity: number }
  | Unfinished<SemaphoreCommand>;

export type SemaphoreStep = Step<Semaphore, SemaphoreOutcome>;

export function newSemaphore(capacity: number): Semaphore {
  return {
    record: { v: 1, kind: 'semaphore', token: 0, capacity, holds: NONE, onStale: 'reclaim', passed: null },
    waiting: NONE,
  };
}

/** A semaphore that nobody has used: it has no slots until somebody names its capacity. */
export const unusedSemaphore = newSemaphore(0);

/** Pure, so the runtime may run it again on a newer semaphore after losing a write race. */
export function semaphoreTransition(semaphore: Semaphore, command: SemaphoreCommand, at: Moment): SemaphoreStep {
  switch (command.kind) {
    case 'acquire':
      return acquire(semaphore, command, at);
    case 'release':
      return release(semaphore, command, at);
    case 'break':
      return breakHolds(semaphore, command, at);
    case 'heartbeat':
      return heartbeat(semaphore, command, at);
    case 'extend':
      return extend(semaphore, command, at);
    case 'cancel':
      return cancel(semaphore, command.id, at);
    case 'refuse':
      return refuse(semaphore, command.id, command.cycle, at);
    case 'settle':
      return settle(step(semaphore, { kind: 'settled' }), at);
    case 'tick':
      return tick(semaphore, at);
    case 'maintain':
      return maintain(semaphore, command, at);
    case 'configure':
      return configure(semaphore, command.onStale, at);
    case 'resize':
      return resize(semaphore, command, at);
    default:
      return unreachable(command);
  }
}

// Questions

export function usedSlots(semaphore: Semaphore): number {
  return weightOf(semaphore.record.holds);
}

/** None after shrinking below what is in use, until enough holders have left. */
export function availableSlots(semaphore: Semaphore): number {
  return freeIn(semaphore.record);
}

/** Whether a newcomer would get them at once. Slots that are free but waited for are not on offer. */
export function canAcquire(semaphore: Semaphore, weight: number): boolean {
  const { record, waiting } = semaphore;
  return waiting.length === 0 && isCount(weight) && weight <= freeIn(record);
}

export function staleHolders(semaphore: Semaphore, at: Moment): readonly SemaphoreHold[] {
  return staleOf(semaphore.record.holds, at);
}

// Commands

type Acquire = Extract<SemaphoreCommand, { kind: 'acquire' }>;

function acquire(semaphore: Semaphore, command: Acquire, at: Moment): SemaphoreStep {
  if (at.gone(command.lease)) return step(semaphore, LOST);
  const before = command.again === true ? askedBefore(semaphore, command.id, at) : undefined;
  if (before !== undefined) return before;
  const made = madeBy(semaphore, command);
  const settled = line.withoutTurn(made, command, at);
  if (settled !== undefined) {
    const changed = settled.state === made ? semaphore : settled.state;
    return changed === semaphore ? step(semaphore, settled.outcome) : settle(step(changed, settled.outcome), at);
  }
  const granted = acquireFrom(made, command, at);
  // A request that is refused makes nothing.
  if (granted.state === made) return { ...granted, state: semaphore };
  return made === semaphore ? granted : { ...granted, events: [...making(semaphore, made, at), ...granted.events] };
}

function acquireFrom(semaphore: Semaphore, command: Acquire, at: Moment): SemaphoreStep {
  if (command.force === true) return force(semaphore, command, at);
  if (semaphore.waiting.length === 0) return join(semaphore, command, at);

  // A lease may have ended since, and what that leaves belongs to those who wait already.
  const settled = settle(step(semaphore, { kind: 'settled' }), at);
  const left = budget(settled, at);
  if (left <= 0) return { ...settled, outcome: { kind: 'unfinished', then: command } };
  const joined = join(settled.state, command, { ...at, most: left });
  // A refused try writes nothing, not even on behalf of others.
  if (joined.outcome.kind === 'full') return refused(semaphore, command, at);
  if (joined.outcome.kind === 'too-large') return step(semaphore, joined.outcome, joined.events);
  return followed(settled, joined);
}

/** Whoever first names a capacity makes the semaphore; it may have been configured before. */
function madeBy(semaphore: Semaphore, { capacity }: SemaphoreRequest): Semaphore {
  const { record, waiting } = semaphore;
  if (record.capacity > 0 || capacity === undefined || !isCount(capacity)) return semaphore;
  return { record: { ...record, capacity }, waiting };
}

/** One that was only configured is there already: that it has slots now is told. */
function making(before: Semaphore, { record: { capacity } }: Semaphore, at: Moment): readonly Event[] {
  if (before.record === unusedSemaphore.record) return NONE;
  return [event('semaphore:resized', { holder: '' }, at, { capacity, from: 0 })];
}

/** One that comes again, because its answer got lost, is told what has become of it: nothing is granted twice. */
function askedBefore(semaphore: Semaphore, id: string, at: Moment): SemaphoreStep | undefined {
  const { record, waiting } = semaphore;
  const hold = record.holds.find((held) => held.id === id || held.grown?.by === id);
  if (hold !== undefined) {
    if (isStale(hold, at)) return step(semaphore, LOST);
    return step(semaphore, { kind: hold.id === id ? 'acquired' : 'increased', hold });
  }
  const place = waiting.findIndex((waiter) => waiter.id === id);
  if (place < 0) return undefined;
  return step(semaphore, { kind: 'queued', position: place + 1, free: freeIn(record), holders: record.holds });
}

/**
 * The same hold for another request of its holder. From then on a growth is not given back any more because the request
 * that asked for it is given up: the other one uses the slots.
 */
function sharing(
  semaphore: Semaphore,
  hold: SemaphoreHold,
): { readonly state: Semaphore; readonly outcome: SemaphoreOutcome } {
  if (hold.grown === undefined) return { state: semaphore, outcome: { kind: 'already-held', hold } };
  const { grown: _grown, ...kept } = hold;
  const { holds } = semaphore.record;
  return {
    state: withHolds(semaphore, holds.with(holds.indexOf(hold), kept)),
    outcome: { kind: 'already-held', hold: kept },
  };
}

/** Those who wait are as far as they can get. */
function join(semaphore: Semaphore, command: Acquire, at: Moment): SemaphoreStep {
  const { record, waiting } = semaphore;
  // A request of the same holder may have been served just now.
  const own = ownHold(record.holds, command.holder, at);
  if (own !== undefined && own.weight >= command.weight) {
    const { state, outcome } = sharing(semaphore, own);
    return step(state, outcome);
  }
  const stale = goesAhead(command, waiting, record.passed) ? inTheWay(record, command, own, at) : undefined;
  if (stale !== undefined) {
    const refusal = noRoomFor(record, command, own, stale);
    if (refusal !== undefined) return step(semaphore, refusal, [denied(record, command, at)]);
    return grantNow(semaphore, command, own, stale, at);
  }
  if (!command.wait) return refused(semaphore, command, at);
  const position = placeFor(waiting, command.priority, record.passed);
  const queued = event('semaphore:queued', command, at, { weight: command.weight, position });
  return step(
    { record, waiting: [...waiting, requestOf(command, own)] },
    { kind: 'queued', position, free: freeIn(record), holders: record.holds },
    [queued],
  );
}

function refused(semaphore: Semaphore, command: Acquire, at: Moment): SemaphoreStep {
  const { record } = semaphore;
  const outcome: SemaphoreOutcome = { kind: 'full', free: freeIn(record), holders: record.holds };
  return step(semaphore, outcome, [denied(record, command, at)]);
}

function denied(record: SemaphoreRecord, request: SemaphoreRequest, at: Moment): Event {
  return event('semaphore:denied', request, at, { weight: request.weight, free: freeIn(record) });
}

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

/** Grants what nobody who waits goes before; the command asks for the rest if one write does not take it all. */
function grantNow(
  semaphore: Semaphore,
  command: Acquire,
  own: SemaphoreHold | undefined,
  stale: readonly SemaphoreHold[],
  at: Moment,
): SemaphoreStep {
  const { most = Number.POSITIVE_INFINITY } = at;
  if (stale.length > most) {
    const part = reclaim(semaphore, stale.slice(0, most), command, at);
    return { ...part, outcome: { kind: 'unfinished', then: command } };
  }
  if (semaphore.waiting.length === 0) return grant(semaphore, command, own, stale, 0, at);
  const first = answerWithoutTurn(step(semaphore, { kind: 'settled' }), line, at);
  if (budget(first, at) < stale.length) return { ...first, outcome: { kind: 'unfinished', then: command } };
  const granted = grant(first.state, command, own, stale, first.state.waiting.length, at);
  return settle(followed(first, granted), at);
}

/** Takes what is needed: from stale holders before live ones, and from the youngest grants first. */
function force(semaphore: Semaphore, command: Acquire, at: Moment): SemaphoreStep {
  const { record, waiting } = semaphore;
  const own = ownHold(record.holds, command.holder, at);
  const stale = inTheWay(record, command, own, at);
  if (stale !== undefined) {
    const refusal = noRoomFor(record, command, own, stale);
    if (refusal !== undefined) return step(semaphore, refusal, [denied(record, command, at)]);
    return grantNow(semaphore, command, own, stale, at);
  }
  const needed = inItsWay(record, command, own, at);
  const refusal = noRoomFor(record, command, own, needed);
  if (refusal !== undefined) return step(semaphore, refusal, [denied(record, command, at)]);
  const { most = Number.POSITIVE_INFINITY } = at;
  const taken = needed.length > most ? needed.slice(0, most) : needed;
  const who = takenBy(command.holder, command.reason ?? '', needed.length);
  const rest: Semaphore = { record: { ...record, holds: except(record.holds, taken) }, waiting };
  const events = taken.map((hold) => told('semaphore:forced', hold, at, who));
  const forced = step(rest, { kind: 'unfinished', then: command }, events, losses(taken, 'forced', who));
  if (taken.length < needed.length) return forced;
  return followed(forced, grantNow(rest, command, own, NONE, { ...at, most: most - taken.length }));
}

/** The holds whose slots one who uses force takes. */
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

function release(semaphore: Semaphore, claim: Claim & { readonly elsewhere?: true }, at: Moment): SemaphoreStep {
  const { holds } = semaphore.record;
  const place = placeOf(holds, claim);
  const hold = holds[place];
  if (hold === undefined) return step(semaphore, absent(semaphore));
  const freed = withHolds(semaphore, holds.length === 1 ? NONE : without(holds, place));
  const lost = claim.elsewhere === true ? losses([hold], 'released-elsewhere') : NONE;
  return settle(step(freed, { kind: 'released', hold }, [told('semaphore:released', hold, at)], lost), at);
}

function breakHolds(
  semaphore: Semaphore,
  command: Extract<SemaphoreCommand, { kind: 'break' }>,
  at: Moment,
): SemaphoreStep {
  const { holds, token } = semaphore.record;
  const { broken = NONE, upTo = token } = command;
  const meant = holds.filter((hold) => hold.token <= upTo);
  if (meant.length === 0) return step(semaphore, { kind: 'broken', holds: broken });
  const taken = meant.slice(0, at.most);
  const who = takenBy(command.holder, command.reason, meant.length);
  const events = taken.map((hold) => told('semaphore:forced', hold, at, who));
  const freed = withHolds(semaphore, except(holds, taken));
  const all = [...broken, ...taken];
  const lost = losses(taken, 'forced', who);
  if (taken.length < meant.length) {
    return step(freed, { kind: 'unfinished', then: { ...command, upTo, broken: all } }, events, lost);
  }
  return settle(step(freed, { kind: 'broken', holds: all }, events, lost), at);
}

/** Writes nothing: the lease was renewed in the store, and here it is only checked that the hold still is. */
function heartbeat(semaphore: Semaphore, claim: Claim, at: Moment): SemaphoreStep {
  const hold = semaphore.record.holds[placeOf(semaphore.record.holds, claim)];
  if (hold === undefined) return step(semaphore, absent(semaphore));
  return step(semaphore, isStale(hold, at) ? LOST : { kind: 'refreshed', hold });
}

function extend(
  semaphore: Semaphore,
  command: Extract<SemaphoreCommand, { kind: 'extend' }>,
  at: Moment,
): SemaphoreStep {
  const { holds } = semaphore.record;
  const place = placeOf(holds, command);
  const hold = holds[place];
  if (hold === undefined) return step(semaphore, absent(semaphore));
  if (isStale(hold, at)) return step(semaphore, LOST);
  const longer = onLeases(hold, command);
  const state = longer === hold ? semaphore : withHolds(semaphore, holds.with(place, longer));
  return step(state, { kind: 'refreshed', hold: longer });
}

function cancel(semaphore: Semaphore, id: string, at: Moment): SemaphoreStep {
  const { holds } = semaphore.record;
  const hold = holds.find((held) => held.id === id);
  if (hold !== undefined) {
    return { ...release(semaphore, { holder: hold.holder, id }, at), outcome: { kind: 'cancelled', gaveBack: true } };
  }
  const place = holds.findIndex((held) => held.grown?.by === id);
  if (place >= 0) return shrink(semaphore, place, at);
  // Those behind it may have waited for nothing but its turn.
  return settle(step(leave(semaphore, id), { kind: 'cancelled', gaveBack: false }), at);
}

/** Gives back what the hold got when it last grew. */
function shrink(semaphore: Semaphore, place: number, at: Moment): SemaphoreStep {
  const { holds } = semaphore.record;
  const { grown, ...hold } = holds[place] as SemaphoreHold;
  const weight = grown?.from ?? hold.weight;
  const [kept, given] = splitSlots(hold.slots, weight);
  const smaller: SemaphoreHold = { ...hold, weight, slots: kept };
  const back: SemaphoreHold = { ...hold, weight: hold.weight - weight, slots: given };
  const freed = withHolds(semaphore, holds.with(place, smaller));
  return settle(step(freed, { kind: 'cancelled', gaveBack: true }, [told('semaphore:released', back, at)]), at);
}

function refuse(semaphore: Semaphore, id: string, cycle: Cycle, at: Moment): SemaphoreStep {
  const victim = semaphore.waiting.find((waiter) => waiter.id === id);
  if (victim === undefined) return step(semaphore, { kind: 'unchanged' });
  // One that needs no turn waits for nobody, and closes no circle.
  const settled = line.withoutTurn(semaphore, victim, at) ?? {
    state: semaphore,
    outcome: { kind: 'deadlock', cycle },
    events: [event('semaphore:deadlock', victim, at, { weight: victim.weight, cycle })],
  };
  const answers: readonly Answer<SemaphoreOutcome>[] = [{ id, outcome: settled.outcome }];
  return settle({ ...step(leave(settled.state, id), { kind: 'settled' }, settled.events), answers }, at);
}

function tick(semaphore: Semaphore, at: Moment): SemaphoreStep {
  const { holds, stale } = warn(semaphore.record.holds, at);
  const events = stale.map((hold) => told('semaphore:stale', hold, at));
  return step(stale.length === 0 ? semaphore : withHolds(semaphore, holds), { kind: 'unchanged' }, events);
}

function maintain(
  semaphore: Semaphore,
  command: Extract<SemaphoreCommand, { kind: 'maintain' }>,
  at: Moment,
): SemaphoreStep {
  const { holds, onStale } = semaphore.record;
  const stale = onStale === 'reclaim' ? staleOf(holds, at) : NONE;
  const taken = stale.slice(0, at.most);
  const freed = taken.length === 0 ? semaphore : withHolds(semaphore, except(holds, taken));
  const events = taken.map((hold) => told('semaphore:reclaimed', hold, at));
  const reclaimed = [...(command.reclaimed ?? NONE), ...taken];
  const lost = losses(taken, 'reclaimed');
  if (taken.length < stale.length) {
    return step(freed, { kind: 'unfinished', then: { kind: 'maintain', reclaimed } }, events, lost);
  }
  return settle(step(freed, { kind: 'maintained', reclaimed }, events, lost), at);
}

function configure(semaphore: Semaphore, onStale: OnStale | undefined, at: Moment): SemaphoreStep {
  const { record, waiting } = semaphore;
  if (onStale === undefined || onStale === record.onStale) return step(semaphore, { kind: 'configured' });
  // Those who wait behind a stale hold may now have it.
  return settle(step({ record: { ...record, onStale }, waiting }, { kind: 'configured' }), at);
}

/**
 * Nobody loses a slot: shrinking below what is in use takes effect as holders leave. Those who wait for more than there
 * will be, or named another capacity, are refused by whoever sees them.
 */
function resize(
  semaphore: Semaphore,
  command: Extract<SemaphoreCommand, { kind: 'resize' }>,
  at: Moment,
): SemaphoreStep {
  const { record, waiting } = semaphore;
  const { capacity } = command;
  if (!isCount(capacity)) return step(semaphore, noCapacity(capacity, record.capacity));
  if (capacity === record.capacity) return step(semaphore, { kind: 'resized', capacity });
  const resized = event('semaphore:resized', { holder: command.holder ?? '' }, at, { capacity, from: record.capacity });
  return settle(step({ record: { ...record, capacity }, waiting }, { kind: 'resized', capacity }, [resized]), at);
}

// The queue

function settle(so: SemaphoreStep, at: Moment): SemaphoreStep {
  return so.state.waiting.length === 0 ? so : serveQueue(so, line, at);
}

const line: Line<Semaphore, SemaphoreOutcome> = {
  withoutTurn(semaphore, waiter, at) {
    const { record } = semaphore;
    const request = waiter as SemaphoreRequest;
    // Whoever is known by the id of its one request holds nothing by another.
    const own = request.holder === request.id ? undefined : ownHold(record.holds, request.holder, at);
    const refusal = mismatch(request, record) ?? impossible(request, own, record.capacity);
    if (refusal !== undefined) {
      return {
        state: semaphore,
        outcome: refusal,
        events: [event('semaphore:denied', request, at, { weight: request.weight, free: 0 })],
      };
    }
    if (own !== undefined && own.weight >= request.weight) {
      return { ...sharing(semaphore, own), events: NONE };
    }
    const isThere = request.grows === undefined || request.grows === own?.id;
    return isThere ? undefined : { state: semaphore, outcome: LOST, events: NONE };
  },

  serve(semaphore, place, at) {
    const { record, waiting } = semaphore;
    const head = waiting[place] as SemaphoreRequest;
    const made = madeBy(semaphore, head);
    if (made !== semaphore) {
      return { state: made, events: making(semaphore, made, at), answers: NONE, losses: NONE };
    }
    // Whoever waits twice may hold after the first time: then the second is a growth.
    const own = ownHold(record.holds, head.holder, at);
    const stale = inTheWay(record, head, own, at);
    if (stale === undefined) return undefined;
    const { most = Number.POSITIVE_INFINITY } = at;
    if (stale.length >= most) return reclaim(semaphore, stale.slice(0, most), head, at);
    const refusal = noRoomFor(record, head, own, stale);
    if (refusal !== undefined) {
      // It would wait at the head, and all others behind it, for as long as those who hold stay as they are.
      const answers: Answer<SemaphoreOutcome>[] = [{ id: head.id, outcome: refusal }];
      const state = withWaiting(semaphore, without(waiting, place));
      return { state, events: [denied(record, head, at)], answers, losses: NONE };
    }
    const granted = grant(semaphore, head, own, stale, place, at);
    return { ...granted, answers: [{ id: head.id, outcome: granted.outcome }] };
  },
};

/** Takes back some of the stale holds, where one write does not take them all. */
function reclaim(
  semaphore: Semaphore,
  stale: readonly SemaphoreHold[],
  request: SemaphoreRequest,
  at: Moment,
): Served<Semaphore, SemaphoreOutcome> {
  return {
    state: withHolds(semaphore, except(semaphore.record.holds, stale)),
    events: stale.map((lost) => told('semaphore:reclaimed', lost, at)),
    answers: NONE,
    losses: losses(stale, 'reclaimed', { by: request.holder }),
  };
}

/**
 * The stale holds that granting this request would reclaim: none if there is room as it is, otherwise every one of
 * them. Undefined if there is no room even so.
 */
function inTheWay(
  record: SemaphoreRecord,
  request: SemaphoreRequest,
  own: SemaphoreHold | undefined,
  at: Moment,
): readonly SemaphoreHold[] | undefined {
  const room = roomIn(record);
  const needed = request.weight - (own === undefined ? 0 : own.weight);
  if (needed <= room) return NONE;
  if (record.onStale === 'alert' && request.steal !== true) return undefined;
  const stale = staleOf(record.holds, at);
  return needed <= room + weightOf(stale) ? stale : undefined;
}

/** The grant, or the growth of `own`, without a look at the queue. `place`: where in it the request stood. */
function grant(
  { record, waiting }: Semaphore,
  request: SemaphoreRequest,
  own: SemaphoreHold | undefined,
  stale: readonly SemaphoreHold[],
  place: number,
  at: Moment,
): SemaphoreStep {
  const others = except(record.holds, stale);
  const slots = slotsFor(request, own, others);
  const hold = own === undefined ? newHold(request, slots, nextToken(record.token, at), at) : grow(own, request, slots);
  const granted: SemaphoreRecord = {
    v: 1,
    kind: 'semaphore',
    token: own === undefined ? hold.token : record.token,
    capacity: record.capacity,
    holds: own === undefined ? [...others, hold] : others.map((other) => (other === own ? hold : other)),
    onStale: record.onStale,
    passed: passing(waiting, place, record.passed),
  };
  const acquired = told('semaphore:acquired', hold, at);
  return {
    state: { record: granted, waiting: place < waiting.length ? without(waiting, place) : waiting },
    outcome: answerTo(hold, own, stale),
    events: stale.length === 0 ? [acquired] : [...stale.map((lost) => told('semaphore:reclaimed', lost, at)), acquired],
    answers: NONE,
    losses: losses(stale, 'reclaimed', { by: hold.holder }),
  };
}

function answerTo(
  hold: SemaphoreHold,
  own: SemaphoreHold | undefined,
  stale: readonly SemaphoreHold[],
): SemaphoreOutcome {
  if (own !== undefined) return { kind: 'increased', hold };
  return stale.length === 0 ? { kind: 'acquired', hold } : { kind: 'reclaimed', hold, from: stale };
}

function newHold(request: SemaphoreRequest, slots: Slots, token: Token, at: Moment): SemaphoreHold {
  const { id, holder, lease, weight } = request;
  return describedBy(request, { id, holder, token, lease, weight, slots, acquiredAt: at.now });
}

/** Keeps the token: nobody else can have got one for what it already held. */
function grow(own: SemaphoreHold, { id, weight }: SemaphoreRequest, slots: Slots): SemaphoreHold {
  return { ...own, weight, slots, grown: { by: id, from: own.weight } };
}

// Slots

function weightOf(holds: readonly SemaphoreHold[]): number {
  let weight = 0;
  for (const hold of holds) weight += hold.weight;
  return weight;
}

/** Negative while more is in use than a shrunk capacity allows. */
function roomIn(record: SemaphoreRecord): number {
  return record.capacity - weightOf(record.holds);
}

function freeIn(record: SemaphoreRecord): number {
  return Math.max(0, roomIn(record));
}

/** What the request's holder would have: what it has already, and the lowest that are free beside `others`. */
function slotsFor(
  { weight }: SemaphoreRequest,
  own: SemaphoreHold | undefined,
  others: readonly SemaphoreHold[],
): Slots {
  const taken = others.map(({ slots }) => slots);
  if (own === undefined) return lowestFree(taken, weight);
  return [...own.slots, ...lowestFree(taken, weight - own.weight)];
}

// Small words

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

function mismatch({ capacity: asked }: SemaphoreRequest, { capacity }: SemaphoreRecord): SemaphoreOutcome | undefined {
  if (asked === undefined || asked === capacity) return undefined;
  if (!isCount(asked)) return noCapacity(asked, capacity);
  return capacity === 0 ? undefined : { kind: 'capacity-mismatch', capacity, asked };
}

function impossible(
  { weight, capacity: asked }: SemaphoreRequest,
  own: SemaphoreHold | undefined,
  capacity: number,
): SemaphoreOutcome | undefined {
  if (!isCount(weight)) {
    return { kind: 'impossible', why: `a weight is a whole number from 1 up, not ${String(weight)}`, capacity };
  }
  // What one has from before a shrinking one may go on having.
  if (own !== undefined && weight <= own.weight) return undefined;
  if (weight > LARGEST_WEIGHT) {
    const why = `${weight} slots at once are more than ${LARGEST_WEIGHT}, the most that one holder can have; count in larger units`;
    return { kind: 'impossible', why, capacity };
  }
  // Whoever names the capacity of a semaphore without one makes it, and may have that much.
  const most = capacity === 0 ? (asked ?? 0) : capacity;
  return weight > most ? tooHeavy(weight, most) : undefined;
}

function tooHeavy(weight: number, capacity: number): SemaphoreOutcome {
  if (capacity === 0) return { kind: 'impossible', why: UNUSED, capacity };
  return { kind: 'impossible', why: `a weight of ${weight} is more than the capacity of ${capacity}`, capacity };
}

/** Said of a semaphore that nobody has made yet. */
export const UNUSED = 'nobody has used this semaphore yet, so its capacity must be named';

function noCapacity(asked: number, capacity: number): SemaphoreOutcome {
  return { kind: 'impossible', why: `a capacity is a whole number from 1 up, not ${String(asked)}`, capacity };
}

function absent(semaphore: Semaphore): SemaphoreOutcome {
  return { kind: 'not-holder', holders: semaphore.record.holds };
}

function requestOf(command: Acquire, own: SemaphoreHold | undefined): SemaphoreRequest {
  const { kind: _kind, wait: _wait, force: _force, again: _again, ...request } = command;
  return own === undefined ? request : { ...request, grows: own.id };
}

function step(
  semaphore: Semaphore,
  outcome: SemaphoreOutcome,
  events: readonly Event[] = NONE,
  lost: SemaphoreStep['losses'] = NONE,
): SemaphoreStep {
  return { state: semaphore, outcome, events, answers: NONE, losses: lost };
}

function told(type: string, hold: SemaphoreHold, at: Moment, who?: Taker): Event {
  const { holder, token, weight, slots } = hold;
  const told: Event = { type, at: at.now, holder, token, weight, slots };
  return who === undefined ? told : { ...told, ...who };
}
