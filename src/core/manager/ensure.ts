/** Creates resources before their first use, with their settings. */
import { freeLock } from '../lock.ts';
import { nameProblem } from '../name.ts';
import { requestProblem } from '../request.ts';
import { newSemaphore } from '../semaphore.ts';
import { type Settings, settingsProblem } from '../settings.ts';
import { clockProblem, type ResourceCommand } from './command.ts';
import { handle, invalid } from './handle.ts';
import { getSemaphore, type Handled, type Manager, type ManagerClock, type ResourceName } from './manager.ts';
import { lookUp } from './table.ts';
import { begin, end, put, type Turn } from './turn.ts';

/** Makes sure that the lock exists with these settings; its holds stay. */
export function ensureLock(manager: Manager, name: string, clock: ManagerClock, settings?: Settings): Handled {
  const problem = clockProblem(clock) ?? nameProblem(name) ?? problemOf(settings);
  if (problem !== undefined) return invalid(manager, problem);
  const turn = begin(manager, clock);
  if (lookUp(manager.locks, name) === undefined) put(turn, `lock/${name}`, freeLock);
  return configured(turn, `lock/${name}`, settings, clock);
}

/** Makes sure that the semaphore exists. One with another capacity is refused: `resize` changes it. */
export function ensureSemaphore(
  manager: Manager,
  name: string,
  capacity: number,
  clock: ManagerClock,
  settings?: Settings,
): Handled {
  const problem =
    clockProblem(clock) ?? nameProblem(name) ?? requestProblem({ capacity }, ['capacity']) ?? problemOf(settings);
  if (problem !== undefined) return invalid(manager, problem);
  const turn = begin(manager, clock);
  const existing = getSemaphore(manager, name);
  if (existing === undefined) put(turn, `semaphore/${name}`, newSemaphore(capacity));
  else if (existing.record.capacity !== capacity) {
    return end(turn, { kind: 'capacity-mismatch', capacity: existing.record.capacity, asked: capacity });
  }
  return configured(turn, `semaphore/${name}`, settings, clock);
}

function problemOf(settings: Settings | undefined): string | undefined {
  return settings === undefined ? undefined : settingsProblem(settings);
}

function configured(turn: Turn, resource: ResourceName, settings: Settings | undefined, clock: ManagerClock): Handled {
  if (settings === undefined) return end(turn, { kind: 'configured' });
  return handle(turn.manager, { ...settings, resource, kind: 'configure' } as ResourceCommand, clock);
}
