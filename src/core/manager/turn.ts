/**
 * A turn: one call of the manager while it runs. It goes through any number of steps of single machines, and keeps
 * with the states what belongs to them: the leases, and the arrivals of requests.
 */
import type { Hold } from '../hold.ts';
import { freeLock, type Lock, type LockCommand, type LockOutcome, lockTransition } from '../lock.ts';
import type { Moment, Step } from '../machine.ts';
import {
  type Semaphore,
  type SemaphoreCommand,
  type SemaphoreOutcome,
  semaphoreTransition,
  unusedSemaphore,
} from '../semaphore.ts';
import { kindOf, nameOf } from './command.ts';
import { isGone, leasesIn, STALE_AFTER_MS } from './lease.ts';
import {
  type Handled,
  type Manager,
  type ManagerAnswer,
  type ManagerClock,
  type ManagerEvent,
  type ManagerLoss,
  type ManagerOutcome,
  momentOf,
  type ResourceName,
  resourcesOf,
} from './manager.ts';
import { lookUp, type Table, withEntry, withoutEntries } from './table.ts';

export type State = Lock | Semaphore;
export type Command = LockCommand | SemaphoreCommand;
export type Outcome = LockOutcome | SemaphoreOutcome;

export interface Turn {
  manager: Manager;
  readonly at: Moment;
  readonly events: ManagerEvent[];
  readonly answers: ManagerAnswer[];
  readonly losses: ManagerLoss[];
}

export function begin(manager: Manager, clock: ManagerClock): Turn {
  const { now } = momentOf(manager, clock);
  const turn: Turn = {
    manager: { ...manager, now },
    // Asks the manager as it is by then: the turn itself gives and renews leases.
    at: { now, revision: 0, gone: (lease) => isGone(lookUp(turn.manager.leases, lease), now) },
    events: [],
    answers: [],
    losses: [],
  };
  return turn;
}

export function end(turn: Turn, outcome: ManagerOutcome): Handled {
  const { manager, events, answers, losses } = turn;
  return { manager, outcome, events, answers, losses };
}

export function stateOf({ manager }: Turn, resource: ResourceName): State {
  if (kindOf(resource) === 'lock') return lookUp(manager.locks, nameOf(resource)) ?? freeLock;
  return lookUp(manager.semaphores, nameOf(resource)) ?? unusedSemaphore;
}

export function isUnmade(state: State): boolean {
  return state === unusedSemaphore;
}

/** How long the leases of a command live, where that is not the usual time. */
export type Terms = Table<{ readonly ttlMs: number; readonly fixed?: true }>;

export function run(turn: Turn, resource: ResourceName, command: Command, terms: Terms = {}): Outcome {
  return take(turn, resource, transition(stateOf(turn, resource), command, turn.at), terms);
}

export function transition(state: State, command: Command, at: Moment): Step<State, Outcome> {
  return state.record.kind === 'lock'
    ? lockTransition(state as Lock, command as LockCommand, at)
    : semaphoreTransition(state as Semaphore, command as SemaphoreCommand, at);
}

/** Puts the result of a step into the manager. */
export function take(turn: Turn, resource: ResourceName, step: Step<State, Outcome>, terms: Terms): Outcome {
  turn.events.push(...step.events.map((event) => ({ ...event, resource })));
  turn.answers.push(...step.answers.map((answer) => ({ ...answer, resource })));
  turn.losses.push(...step.losses.map((loss) => ({ ...loss, resource })));
  if (step.state === stateOf(turn, resource)) return step.outcome;
  put(turn, resource, step.state, terms);
  for (const hold of step.state.record.holds) bind(turn, resource, hold);
  return step.outcome;
}

export function put(turn: Turn, resource: ResourceName, state: State, terms: Terms = {}): void {
  const before = stateOf(turn, resource);
  const { manager } = turn;
  const name = nameOf(resource);
  turn.manager =
    state.record.kind === 'lock'
      ? { ...manager, locks: withEntry(manager.locks, name, state as Lock) }
      : { ...manager, semaphores: withEntry(manager.semaphores, name, state as Semaphore) };
  noteArrivals(turn, before, state);
  noteLeases(turn, before, state, terms);
}

export function renewLease(turn: Turn, lease: string): void {
  const { manager } = turn;
  const known = lookUp(manager.leases, lease);
  if (known === undefined) return;
  turn.manager = { ...manager, leases: withEntry(manager.leases, lease, { ...known, renewedAt: turn.at.now }) };
}

/** The prefix of names that the manager makes, so that they never clash with names that callers made. */
export const OWN_NAME = '#';

export function nextName(turn: Turn): string {
  const sequence = turn.manager.sequence + 1;
  turn.manager = { ...turn.manager, sequence };
  return OWN_NAME + String(sequence);
}

/**
 * Gives a new hold the leases that its terms ask for. The time that it may last at most begins with its grant, also when that
 * comes out of the queue; the time without a renewal may differ from that of the request, which knew no limits.
 */
function bind(turn: Turn, resource: ResourceName, hold: Hold): void {
  const { id, holder, token, maxHoldMs, ttlMs, lease } = hold;
  const claim = { kind: 'extend', holder, id, token } as const;
  if (maxHoldMs !== undefined && hold.limit === undefined) {
    const limit = nextName(turn);
    run(turn, resource, { ...claim, limit }, { [limit]: { ttlMs: maxHoldMs, fixed: true } });
  }
  if (ttlMs !== undefined && lookUp(turn.manager.leases, lease)?.ttlMs !== ttlMs) {
    const own = nextName(turn);
    run(turn, resource, { ...claim, lease: own }, { [own]: { ttlMs } });
  }
}

function noteArrivals(turn: Turn, before: State, after: State): void {
  const { manager } = turn;
  if (before.waiting === after.waiting) return;
  const waiting = new Set(after.waiting.map(({ id }) => id));
  const left = before.waiting.map(({ id }) => id).filter((id) => !waiting.has(id));
  let { arrivals, sequence } = manager;
  arrivals = withoutEntries(arrivals, left);
  for (const id of waiting) if (!Object.hasOwn(arrivals, id)) arrivals = withEntry(arrivals, id, ++sequence);
  turn.manager = { ...manager, arrivals, sequence };
}

/** Adds a lease with the first thing that hangs on it, and removes it with the last. */
function noteLeases(turn: Turn, before: State, after: State, terms: Terms): void {
  const { manager, at } = turn;
  const [had, has] = [leasesIn(before), leasesIn(after)];
  let { leases } = manager;
  for (const lease of has) {
    if (Object.hasOwn(leases, lease)) continue;
    const term = lookUp(terms, lease) ?? { ttlMs: STALE_AFTER_MS };
    leases = withEntry(leases, lease, { ...term, renewedAt: at.now });
  }
  const dropped = [...had].filter((lease) => !has.has(lease));
  if (dropped.length > 0) {
    const others = resourcesOf(manager).map(({ state }) => leasesIn(state));
    leases = withoutEntries(
      leases,
      dropped.filter((lease) => !others.some((used) => used.has(lease))),
    );
  }
  turn.manager = { ...manager, leases };
}
