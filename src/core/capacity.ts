/** The capacity of a semaphore: how much of it is free, which request makes it, and which requests it can never serve. */
import { staleOf } from './hold.ts';
import { type Moment, NONE } from './machine.ts';
import type { Semaphore, SemaphoreHold, SemaphoreOutcome, SemaphoreRecord, SemaphoreRequest } from './semaphore.ts';
import { LARGEST_WEIGHT } from './slots.ts';

/** The refusal of a semaphore that no request has made yet. */
export const UNUSED = 'nobody has used this semaphore yet, so its capacity must be named';

export function weightOf(holds: readonly SemaphoreHold[]): number {
  let weight = 0;
  for (const hold of holds) weight += hold.weight;
  return weight;
}

/** Negative while more is in use than a shrunk capacity allows. */
export function roomIn(record: SemaphoreRecord): number {
  return record.capacity - weightOf(record.holds);
}

/** A drained semaphore has no free slots. */
export function freeIn(record: SemaphoreRecord): number {
  return record.drained === undefined ? Math.max(0, roomIn(record)) : 0;
}

/**
 * The stale holds that granting this request would reclaim: none if there is room without them, otherwise all of them.
 * Undefined if even that leaves no room, or if the semaphore is drained.
 */
export function inTheWay(
  record: SemaphoreRecord,
  request: SemaphoreRequest,
  own: SemaphoreHold | undefined,
  at: Moment,
): readonly SemaphoreHold[] | undefined {
  if (record.drained !== undefined) return undefined;
  const room = roomIn(record);
  const needed = request.weight - (own === undefined ? 0 : own.weight);
  if (needed <= room) return NONE;
  if (record.onStale === 'alert' && request.steal !== true) return undefined;
  const stale = staleOf(record.holds, at);
  return needed <= room + weightOf(stale) ? stale : undefined;
}

/** The first request that names a capacity makes the semaphore, which may have been configured before. */
export function madeBy(semaphore: Semaphore, { capacity }: SemaphoreRequest): Semaphore {
  const { record, waiting } = semaphore;
  if (record.capacity > 0 || capacity === undefined || !isCount(capacity)) return semaphore;
  return { record: { ...record, capacity }, waiting };
}

export function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

export function mismatch(
  { capacity: asked }: SemaphoreRequest,
  { capacity }: SemaphoreRecord,
): SemaphoreOutcome | undefined {
  if (asked === undefined || asked === capacity) return undefined;
  if (!isCount(asked)) return noCapacity(asked, capacity);
  return capacity === 0 ? undefined : { kind: 'capacity-mismatch', capacity, asked };
}

export function impossible(
  { weight, capacity: asked }: SemaphoreRequest,
  own: SemaphoreHold | undefined,
  capacity: number,
): SemaphoreOutcome | undefined {
  if (!isCount(weight)) {
    return { kind: 'impossible', why: `a weight is a whole number from 1 up, not ${String(weight)}`, capacity };
  }
  // A holder may keep what it had before the capacity shrank.
  if (own !== undefined && weight <= own.weight) return undefined;
  if (weight > LARGEST_WEIGHT) {
    const why = `${weight} slots at once are more than ${LARGEST_WEIGHT}, the most that one holder can have; count in larger units`;
    return { kind: 'impossible', why, capacity };
  }
  // A request that names the capacity of an unused semaphore makes it, and may have that much.
  const most = capacity === 0 ? (asked ?? 0) : capacity;
  return weight > most ? tooHeavy(weight, most) : undefined;
}

function tooHeavy(weight: number, capacity: number): SemaphoreOutcome {
  if (capacity === 0) return { kind: 'impossible', why: UNUSED, capacity };
  return { kind: 'impossible', why: `a weight of ${weight} is more than the capacity of ${capacity}`, capacity };
}

export function noCapacity(asked: number, capacity: number): SemaphoreOutcome {
  return { kind: 'impossible', why: `a capacity is a whole number from 1 up, not ${String(asked)}`, capacity };
}
