/**
 * A resource for the search for deadlocks: its size, how much each holder has, and how much each waiter wants. A lock is a
 * resource of which a reader wants one part, and a writer all of them.
 *
 *     lock of 5 parts      held: a 1, b 1      line: b wants 5 (upgrades, so it goes first), c wants 5
 */
import { isStale } from '../hold.ts';
import type { Lock, LockMode } from '../lock.ts';
import type { Moment, Request } from '../machine.ts';
import { isOrphan } from '../queue.ts';
import type { Semaphore } from '../semaphore.ts';
import { type Demand, inOrderOfService } from './line.ts';

export interface Resource {
  readonly name: string;
  readonly state: Lock | Semaphore;
}

/** Made for one search, which changes it. */
export interface Pool {
  readonly name: string;
  readonly capacity: number;
  readonly held: Map<string, number>;
  /** If a person decides about stale holds, they block everyone except requests that steal. */
  readonly stale: Map<string, number>;
  used: number;
  /** The waiters, in the order in which they will be served. */
  readonly line: readonly Demand[];
  /** How many of the line were served. */
  served: number;
}

export function poolOf({ name, state }: Resource, refused: ReadonlySet<Request>, at: Moment): Pool {
  const { record } = state;
  const { capacity, holds, demands } = isLock(state) ? partsOfLock(state) : partsOfSemaphore(state);
  const held = new Map<string, number>();
  const stale = new Map<string, number>();
  const waiters = new Set(state.waiting.map(({ holder }) => holder));
  for (const [place, hold] of record.holds.entries()) {
    const amount = holds[place] as number;
    if (!isStale(hold, at)) {
      add(held, hold.holder, amount);
    } else if (record.onStale === 'alert' && !waiters.has(hold.holder)) {
      // A holder that asks again for what it lost waits for a person, not for itself.
      add(stale, hold.holder, amount);
    }
  }
  const waiting = demands.filter(({ request, holder, want }) => {
    if (refused.has(request) || at.gone(request.lease) || isOrphan(request, record.holds, at)) return false;
    // A request for no more than its holder has does not wait: re-entry answers it.
    return (held.get(holder) ?? 0) < want;
  });
  const line = inOrderOfService(waiting, record.passed);
  return { name, capacity, held, stale, used: total(held) + total(stale), line, served: 0 };
}

/** Whether the demand could be met now, were it next in line. */
export function fits(pool: Pool, demand: Demand): boolean {
  const room = pool.capacity - pool.used + (demand.steals ? total(pool.stale) : 0);
  return missing(pool, demand) <= room;
}

export function grant(pool: Pool, demand: Demand): void {
  const amount = missing(pool, demand);
  if (pool.used + amount > pool.capacity) {
    pool.used -= total(pool.stale);
    pool.stale.clear();
  }
  add(pool.held, demand.holder, amount);
  pool.used += amount;
}

/** Removes what the holder has; true if that left room for others. */
export function release(pool: Pool, holder: string): boolean {
  const amount = (pool.held.get(holder) ?? 0) + (pool.stale.get(holder) ?? 0);
  pool.held.delete(holder);
  pool.stale.delete(holder);
  pool.used -= amount;
  return amount > 0;
}

/** What the holder has already is part of what it wants. */
function missing(pool: Pool, demand: Demand): number {
  return demand.want - (pool.held.get(demand.holder) ?? 0);
}

interface Parts {
  readonly capacity: number;
  /** How much each hold of the record has. */
  readonly holds: readonly number[];
  readonly demands: readonly Demand[];
}

function isLock(state: Lock | Semaphore): state is Lock {
  return state.record.kind === 'lock';
}

function partsOfLock({ record, waiting }: Lock): Parts {
  // More than there can be readers.
  const all = record.holds.length + waiting.length + 1;
  const parts = (mode: LockMode): number => (mode === 'exclusive' ? all : 1);
  const holds = record.holds.map(({ mode }) => parts(mode));
  const demands = waiting.map((request, place): Demand => {
    const { holder, mode, steal, upgrades } = request;
    const first = upgrades !== undefined;
    return { request, holder, place, want: parts(mode), first, steals: steal === true };
  });
  return { capacity: all, holds, demands };
}

function partsOfSemaphore({ record, waiting }: Semaphore): Parts {
  const holds = record.holds.map(({ weight }) => weight);
  const demands = waiting.map((request, place): Demand => {
    const { holder, weight, steal } = request;
    return { request, holder, place, want: weight, first: false, steals: steal === true };
  });
  return { capacity: record.capacity, holds, demands };
}

function add(amounts: Map<string, number>, holder: string, amount: number): void {
  amounts.set(holder, (amounts.get(holder) ?? 0) + amount);
}

function total(amounts: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const amount of amounts.values()) sum += amount;
  return sum;
}
