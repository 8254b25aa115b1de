/** The registered guards: their list, what wakes them, and the inputs that the manager knows. */
import type { Condition } from '../guard/condition.ts';
import { type Guard, wakesOn } from '../guard/guard.ts';
import { guardProblem } from '../guard/guard-problem.ts';
import type { Input, InputKey, Inputs, InputValues } from '../guard/inputs.ts';
import { matches } from '../guard/wake.ts';
import { requiredInputs } from '../guard/required-inputs.ts';
import { drainTold } from '../drain.ts';
import { isStale } from '../hold.ts';
import type { Event } from '../machine.ts';
import { usedSlots } from '../semaphore.ts';
import { invalid } from './handle.ts';
import {
  getSemaphore,
  type Handled,
  type Manager,
  type ManagerClock,
  type ManagerOutcome,
  momentOf,
} from './manager.ts';
import { lookUp, withEntry, withoutEntries } from './table.ts';

/** Replaces a guard of the same id. */
export function registerGuard(manager: Manager, guard: Guard): Handled {
  const problem = guardProblem(guard);
  if (problem !== undefined) return invalid(manager, problem);
  // A copy, because the caller may go on changing its own.
  const own = JSON.parse(JSON.stringify(guard)) as Guard;
  return changed({ ...manager, guards: withEntry(manager.guards, guard.id, own) }, { kind: 'registered' });
}

export function unregisterGuard(manager: Manager, id: string): Handled {
  if (lookUp(manager.guards, id) === undefined) return changed(manager, { kind: 'unknown-guard' });
  return changed({ ...manager, guards: withoutEntries(manager.guards, [id]) }, { kind: 'unregistered' });
}

/** The guards to check again after these events, in order of their ids. */
export function wokenBy(manager: Manager, events: readonly Event[]): readonly Guard[] {
  const woken = Object.values(manager.guards).filter((guard) =>
    wakesOn(guard).some((pattern) => events.some(({ type }) => matches(pattern, type))),
  );
  return woken.sort((one, other) => (one.id < other.id ? -1 : 1));
}

export interface BuiltInputs {
  readonly inputs: Inputs;
  /** The inputs that the caller must gather: branches, files, issues. */
  readonly missing: readonly Input[];
}

/** The inputs of a guard or condition that the manager itself knows. */
export function buildInputs(manager: Manager, of: Guard | Condition, clock: ManagerClock): BuiltInputs {
  const required = requiredInputs('condition' in of ? of.condition : of);
  const inputs: { [Kind in 'lock' | 'semaphore' as InputKey<Kind>]: { readonly value: InputValues[Kind] } } = {};
  const missing: Input[] = [];
  for (const input of required) {
    if (input.kind === 'lock') inputs[input.key] = { value: lockInput(manager, input.name, clock) };
    else if (input.kind === 'semaphore') inputs[input.key] = { value: semaphoreInput(manager, input.name) };
    else missing.push(input);
  }
  return { inputs, missing };
}

function lockInput(manager: Manager, name: string, clock: ManagerClock): InputValues['lock'] {
  const lock = lookUp(manager.locks, name);
  if (lock === undefined) return null;
  const at = momentOf(manager, clock);
  return { holders: lock.record.holds.map((hold) => ({ holder: hold.holder, stale: isStale(hold, at) })) };
}

function semaphoreInput(manager: Manager, name: string): InputValues['semaphore'] {
  const semaphore = getSemaphore(manager, name);
  if (semaphore === undefined) return null;
  const { capacity, drained } = semaphore.record;
  return { capacity, used: usedSlots(semaphore), ...(drained !== undefined && { drained: drainTold(drained) }) };
}

function changed(manager: Manager, outcome: ManagerOutcome): Handled {
  return { manager, outcome, events: [], answers: [], losses: [] };
}
