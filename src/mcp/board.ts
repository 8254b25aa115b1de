/** The state of the store in few words, because a model pays for each word. */
import { given } from '../core/given.ts';
import { drainTold } from '../core/index.ts';
import { countsOf, lookAtEverything } from '../json/status.ts';
import { time } from '../json/time.ts';
import type { SurveyedHold, SurveyedLock, SurveyedSemaphore, SurveyedWaiter } from '../runtime/observe/survey/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Named } from './seat.ts';

/** How many of a kind the board lists; it only counts the rest. */
const MOST = 50;

export async function boardOf(box: Signalbox): Promise<Readonly<Record<string, unknown>>> {
  const { survey, tasks, pipelines, crew } = await lookAtEverything(box);
  const locks = survey.locks.filter(({ holds, waiting }) => holds.length + waiting.length > 0);
  const open = tasks.filter(({ status }) => status === 'pending' || status === 'running');
  return {
    locks: some(locks, lockTold),
    semaphores: some(survey.semaphores, semaphoreTold),
    tasks: {
      ...countsOf(tasks),
      open: some(open, ({ id, status, owner }) => given({ task: id, status, owner })),
    },
    pipelines: some(pipelines, ({ id, state }) => ({ pipeline: id, state })),
    members: some(crew.members, ({ id }) => id),
  };
}

/** One lock or semaphore; undefined if its record cannot be read. */
export async function resourceTold(
  box: Signalbox,
  { kind, name }: Named,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { locks, semaphores } = await box.survey({ resource: { kind, name } });
  const [lock] = locks;
  const [semaphore] = semaphores;
  if (lock !== undefined) return { ...lockTold(lock), isFree: lock.holds.length === 0 };
  return semaphore === undefined ? undefined : semaphoreTold(semaphore);
}

function lockTold({ name, holds, waiting }: SurveyedLock): Readonly<Record<string, unknown>> {
  return { lock: name, ...holdersTold(holds), ...waitersTold(waiting) };
}

function semaphoreTold(semaphore: SurveyedSemaphore): Readonly<Record<string, unknown>> {
  const { name, capacity, availableSlots: free, drained, holds, waiting } = semaphore;
  const stopped = drained === undefined ? {} : { isDrained: true, drained: drainTold(drained) };
  return { semaphore: name, capacity, free, ...stopped, ...holdersTold(holds), ...waitersTold(waiting) };
}

function holdersTold(
  holds: readonly (SurveyedHold & { readonly mode?: string; readonly slots?: readonly number[] })[],
): object {
  return {
    heldBy: holds.map(({ holder, acquiredAt, reason, isStale, mode, slots }) => ({
      ...{ holder, since: time(acquiredAt) },
      // Of a stale hold the holder is gone; the next request gets the resource.
      ...given({ reason, mode: mode === 'shared' ? mode : undefined, slots, stale: isStale || undefined }),
    })),
  };
}

function waitersTold(waiting: readonly SurveyedWaiter[]): object {
  if (waiting.length === 0) return {};
  return {
    waiting: waiting.slice(0, MOST).map(({ holder, reason }) => given({ holder, reason })),
    ...(waiting.length > MOST && { moreWaiting: waiting.length - MOST }),
  };
}

function some<T, U>(all: readonly T[], told: (one: T) => U): readonly (U | string)[] {
  const shown = all.slice(0, MOST).map(told);
  return all.length > MOST ? [...shown, `and ${all.length - MOST} more`] : shown;
}
