/**
 * The coordination manager: every lock, semaphore and guard in one value.
 *
 *     handle(manager, command, clock) → { manager, outcome, events, answers, losses }
 *
 * It is plain JSON and never changes: `handle` returns the next manager. It needs no store: it keeps its own table of
 * leases, and a lease ends when the clock that is passed in says so. That makes it good for one process, for tests, and for
 * thinking a situation through.
 */
import type { Guard } from '../guard/guard.ts';
import type { Hold } from '../hold.ts';
import type { Loss } from '../loss.ts';
import { freeLock, type Lock, type LockOutcome } from '../lock.ts';
import type { Answer, Event, Moment } from '../machine.ts';
import type { Semaphore, SemaphoreOutcome } from '../semaphore.ts';
import { isGone, type Lease } from './lease.ts';
import { lookUp, type Table } from './table.ts';

export interface Manager {
  readonly v: 1;
  /** The latest time that it was given. If time went back, a stale holder could come to life again. */
  readonly now: number;
  /** Numbers everything that the manager names, and the requests in the order in which they came. */
  readonly sequence: number;
  readonly locks: Table<Lock>;
  readonly semaphores: Table<Semaphore>;
  readonly guards: Table<Guard>;
  readonly leases: Table<Lease>;
  /** When each waiting request came: shows which of two requests for different resources is the younger. */
  readonly arrivals: Table<number>;
}

/** Milliseconds since any fixed time. */
export interface ManagerClock {
  readonly now: number;
}

export type ResourceName = `lock/${string}` | `semaphore/${string}`;

export type ManagerOutcome =
  | LockOutcome
  | SemaphoreOutcome
  | { readonly kind: 'acquired-together'; readonly grants: readonly OutcomeOf[] }
  | { readonly kind: 'refused-together'; readonly refusals: readonly OutcomeOf[] }
  /** The leases of a holder: the ones that live on, and the ones that had ended before. */
  | { readonly kind: 'renewed'; readonly leases: readonly string[]; readonly lost: readonly string[] }
  | { readonly kind: 'warned'; readonly holds: readonly HoldOf[] }
  | { readonly kind: 'swept'; readonly reclaimed: readonly HoldOf[] }
  | { readonly kind: 'registered' }
  | { readonly kind: 'unregistered' }
  | { readonly kind: 'unknown-guard' }
  /** The call made no sense, and changed nothing; the problem says what is accepted. */
  | { readonly kind: 'invalid'; readonly problem: string };

export interface OutcomeOf {
  readonly resource: string;
  readonly outcome: LockOutcome | SemaphoreOutcome;
}

export interface HoldOf {
  readonly resource: string;
  readonly hold: Hold;
}

export type ManagerEvent = Event & { readonly resource: string };
export type ManagerAnswer = Answer<LockOutcome | SemaphoreOutcome> & { readonly resource: string };
export type ManagerLoss = Loss & { readonly resource: string };

export interface Handled {
  readonly manager: Manager;
  readonly outcome: ManagerOutcome;
  readonly events: readonly ManagerEvent[];
  /** Requests that were queued earlier, and are answered now. */
  readonly answers: readonly ManagerAnswer[];
  /** Holds that ended although their holders did not ask for it. */
  readonly losses: readonly ManagerLoss[];
}

export const emptyManager: Manager = {
  v: 1,
  now: 0,
  sequence: 0,
  locks: {},
  semaphores: {},
  guards: {},
  leases: {},
  arrivals: {},
};

/** A lock that nobody has used is free. */
export function getLock(manager: Manager, name: string): Lock {
  return lookUp(manager.locks, name) ?? freeLock;
}

/** Undefined for a semaphore that was never used: it has no capacity yet. */
export function getSemaphore(manager: Manager, name: string): Semaphore | undefined {
  return lookUp(manager.semaphores, name);
}

export function getGuard(manager: Manager, id: string): Guard | undefined {
  return lookUp(manager.guards, id);
}

/** The names of all locks, semaphores and guards, sorted. */
export function names(manager: Manager): {
  locks: readonly string[];
  semaphores: readonly string[];
  guards: readonly string[];
} {
  const [locks, semaphores, guards] = [manager.locks, manager.semaphores, manager.guards];
  return {
    locks: Object.keys(locks).sort(),
    semaphores: Object.keys(semaphores).sort(),
    guards: Object.keys(guards).sort(),
  };
}

/** For the questions of the machines: `staleHolds(getLock(manager, 'main'), momentOf(manager, clock))`. */
export function momentOf(manager: Manager, clock: ManagerClock): Moment {
  const now = Math.max(manager.now, clock.now);
  // No revision is needed: a token is larger than the last one of its resource, which the manager never forgets.
  return { now, revision: 0, gone: (lease) => isGone(lookUp(manager.leases, lease), now) };
}

export function resourcesOf(
  manager: Manager,
): readonly { readonly name: ResourceName; readonly state: Lock | Semaphore }[] {
  return [
    ...Object.entries(manager.locks).map(([name, state]) => ({ name: `lock/${name}` as const, state })),
    ...Object.entries(manager.semaphores).map(([name, state]) => ({ name: `semaphore/${name}` as const, state })),
  ];
}
