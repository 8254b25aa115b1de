/** Periodic work on all resources at once. */
import { type Hold, staleOf } from '../hold.ts';
import { clockProblem } from './command.ts';
import { invalid, refuseDeadlocked } from './handle.ts';
import {
  type Handled,
  type HoldOf,
  type Manager,
  type ManagerClock,
  type ManagerOutcome,
  resourcesOf,
} from './manager.ts';
import { begin, end, run, type Turn } from './turn.ts';

/** Warns of every stale hold, once. */
export function tick(manager: Manager, clock: ManagerClock): Handled {
  return sweep(manager, clock, (turn) => ({ kind: 'warned', holds: warn(turn) }));
}

/** Frees every stale hold, except where a person has to decide, and grants what became free to waiting requests. */
export function reclaimStale(manager: Manager, clock: ManagerClock): Handled {
  return sweep(manager, clock, (turn) => ({ kind: 'swept', reclaimed: reclaim(turn) }));
}

/** Warns, removes dead requests from the queues, reclaims stale holds, and looks for deadlocks. */
export function maintain(manager: Manager, clock: ManagerClock): Handled {
  return sweep(manager, clock, (turn) => {
    warn(turn);
    for (const { name, state } of resourcesOf(turn.manager)) {
      for (const { id, lease } of state.waiting) if (turn.at.gone(lease)) run(turn, name, { kind: 'cancel', id });
    }
    const reclaimed = reclaim(turn);
    refuseDeadlocked(turn);
    return { kind: 'swept', reclaimed };
  });
}

function sweep(manager: Manager, clock: ManagerClock, through: (turn: Turn) => ManagerOutcome): Handled {
  const problem = clockProblem(clock);
  if (problem !== undefined) return invalid(manager, problem);
  const turn = begin(manager, clock);
  return end(turn, through(turn));
}

function warn(turn: Turn): readonly HoldOf[] {
  return resourcesOf(turn.manager).flatMap(({ name, state }) => {
    const stale = staleOf<Hold>(state.record.holds, turn.at).filter(({ warned }) => warned === undefined);
    run(turn, name, { kind: 'tick' });
    return stale.map((hold) => ({ resource: name, hold }));
  });
}

function reclaim(turn: Turn): readonly HoldOf[] {
  return resourcesOf(turn.manager).flatMap(({ name }) => {
    const outcome = run(turn, name, { kind: 'maintain' });
    return outcome.kind === 'maintained' ? outcome.reclaimed.map((hold) => ({ resource: name, hold })) : [];
  });
}
