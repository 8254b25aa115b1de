/** Describes a resource for people: who holds it, since when, why, when it was last renewed, and who waits. */
import type { Drain } from '../drain.ts';
import { type Hold, isStale, type OnStale } from '../hold.ts';
import type { LockMode } from '../lock.ts';
import type { Json, Token } from '../machine.ts';
import { inLine, type Waiting } from '../queue.ts';
import { availableSlots, usedSlots } from '../semaphore.ts';
import type { Limits } from '../settings.ts';
import { slotNumbers } from '../slots.ts';
import { getLock, getSemaphore, type Manager, type ManagerClock, momentOf } from './manager.ts';
import { lookUp } from './table.ts';

export interface HoldView {
  readonly id: string;
  readonly holder: string;
  readonly token: Token;
  readonly acquiredAt: number;
  readonly lastHeartbeat: number;
  /** When it goes stale without a renewal. */
  readonly staleAt: number;
  readonly stale: boolean;
  readonly reason?: string;
  readonly metadata?: Json;
}

export interface WaitView {
  readonly id: string;
  readonly holder: string;
  readonly priority: number;
  readonly reason?: string;
  readonly metadata?: Json;
}

export interface LockView {
  readonly resource: string;
  readonly free: boolean;
  readonly onStale: OnStale;
  /** What every holder is bound by. */
  readonly limits: Limits;
  /** The last one given out. */
  readonly token: Token;
  readonly holds: readonly (HoldView & { readonly mode: LockMode })[];
  /** In the order in which they will be served. */
  readonly waiting: readonly (WaitView & { readonly mode: LockMode })[];
}

export interface SemaphoreView {
  readonly resource: string;
  readonly capacity: number;
  readonly used: number;
  readonly available: number;
  /** Who stopped every grant, when and why; absent if nobody did. */
  readonly drained?: Drain;
  readonly onStale: OnStale;
  /** What every holder is bound by. */
  readonly limits: Limits;
  readonly token: Token;
  readonly holds: readonly (HoldView & { readonly weight: number; readonly slots: readonly number[] })[];
  readonly waiting: readonly (WaitView & { readonly weight: number })[];
}

export function describeLock(manager: Manager, name: string, clock: ManagerClock): LockView {
  const { record, waiting } = getLock(manager, name);
  return {
    resource: `lock/${name}`,
    free: record.holds.length === 0,
    onStale: record.onStale,
    limits: record.limits ?? {},
    token: record.token,
    holds: record.holds.map((hold) => ({ ...holdView(manager, hold, clock), mode: hold.mode })),
    waiting: inLine(waiting, record.passed).map((request) => ({ ...waitView(request), mode: request.mode })),
  };
}

export function describeSemaphore(manager: Manager, name: string, clock: ManagerClock): SemaphoreView | undefined {
  const semaphore = getSemaphore(manager, name);
  if (semaphore === undefined) return undefined;
  const { record, waiting } = semaphore;
  return {
    resource: `semaphore/${name}`,
    capacity: record.capacity,
    used: usedSlots(semaphore),
    available: availableSlots(semaphore),
    ...(record.drained !== undefined && { drained: record.drained }),
    onStale: record.onStale,
    limits: record.limits ?? {},
    token: record.token,
    holds: record.holds.map((hold) => ({
      ...holdView(manager, hold, clock),
      weight: hold.weight,
      slots: slotNumbers(hold.slots),
    })),
    waiting: inLine(waiting, record.passed).map((request) => ({ ...waitView(request), weight: request.weight })),
  };
}

function holdView(manager: Manager, hold: Hold, clock: ManagerClock): HoldView {
  const { id, holder, token, acquiredAt, reason, metadata } = hold;
  const lease = lookUp(manager.leases, hold.lease);
  const limit = hold.limit === undefined ? undefined : lookUp(manager.leases, hold.limit);
  const ends = [lease, limit].map((one) => (one === undefined ? Infinity : one.renewedAt + one.ttlMs));
  return {
    id,
    holder,
    token,
    acquiredAt,
    lastHeartbeat: lease?.renewedAt ?? acquiredAt,
    staleAt: Math.min(...ends),
    stale: isStale(hold, momentOf(manager, clock)),
    ...(reason !== undefined && { reason }),
    ...(metadata !== undefined && { metadata }),
  };
}

function waitView({ id, holder, priority, reason, metadata }: Waiting): WaitView {
  return { id, holder, priority, ...(reason !== undefined && { reason }), ...(metadata !== undefined && { metadata }) };
}
