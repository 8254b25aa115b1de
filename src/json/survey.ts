/** A survey as JSON, on the command line and over HTTP. Fields are only ever added; docs/cli.md lists them. */
import type {
  Survey,
  SurveyedHold,
  SurveyedLock,
  SurveyedSemaphore,
  SurveyedSession,
  SurveyedWaiter,
} from '../runtime/observe/survey/index.ts';
import { given } from '../core/given.ts';
import { ownProcess } from './own-process.ts';
import { msOf, time } from './time.ts';

export function surveyJson(survey: Survey): object {
  const { revision, at, locks, semaphores, malformed } = survey;
  return {
    revision,
    at: time(at),
    locks: locks.map((lock) => lockJson(lock, at)),
    semaphores: semaphores.map((semaphore) => semaphoreJson(semaphore, at)),
    malformed,
  };
}

export function lockJson({ name, resource, token, onStale, limits, holds, waiting }: SurveyedLock, at: number): object {
  return {
    name,
    resource,
    isFree: holds.length === 0,
    token,
    onStale,
    ...limitsJson(limits),
    holds: holds.map((hold) => ({ ...holdJson(hold, at), mode: hold.mode })),
    waiting: waiting.map((waiter) => waiterJson(waiter, at)),
  };
}

export function semaphoreJson(semaphore: SurveyedSemaphore, at: number): object {
  const { name, resource, token, onStale, limits, capacity, usedSlots, availableSlots, drained, holds, waiting } =
    semaphore;
  return {
    name,
    resource,
    capacity,
    usedSlots,
    availableSlots,
    isDrained: drained !== undefined,
    drained: drained === undefined ? null : { ...drained, at: time(drained.at) },
    token,
    onStale,
    ...limitsJson(limits),
    holds: holds.map((hold) => ({ ...holdJson(hold, at), weight: hold.weight, slots: hold.slots })),
    waiting: waiting.map((waiter) => waiterJson(waiter, at)),
  };
}

function limitsJson({ maxHoldMs, ttlMs }: SurveyedLock['limits']): object {
  return { maxHoldMs: maxHoldMs ?? null, ttlMs: ttlMs ?? null };
}

function holdJson(hold: SurveyedHold, at: number): object {
  const { acquiredAt, isAttached, takenBy, lease, metadata } = hold;
  return {
    id: hold.id,
    holder: hold.holder,
    token: hold.token,
    acquiredAt: time(acquiredAt),
    heldMs: Math.max(0, at - acquiredAt),
    isAttached,
    isCollected: hold.isCollected ?? null,
    session: sessionJson(hold.session),
    takenBy: sessionJson(isAttached ? takenBy : ownProcess(takenBy, metadata)),
    endsWithPid: hold.endsWithPid ?? null,
    orphans: hold.orphans,
    health: hold.health,
    isStale: hold.isStale,
    ttlMs: lease?.ttlMs ?? null,
    renewedMs: lease === undefined ? null : Math.round(lease.renewedMs),
    remainingMs: lease === undefined ? null : Math.round(lease.remainingMs),
    maxHoldMs: hold.maxHoldMs ?? null,
    reason: hold.reason ?? null,
    metadata: metadata ?? null,
  };
}

function waiterJson(waiter: SurveyedWaiter, at: number): object {
  const { holder, position, priority, since, isGrowing, waitsFor, session, mode, weight, reason, metadata } = waiter;
  return {
    holder,
    position,
    priority,
    since: time(since),
    waitedMs: Math.max(0, at - since),
    isGrowing,
    waitsFor,
    session: sessionJson(ownProcess(session, metadata)),
    ...given({ mode, weight }),
    reason: reason ?? null,
    metadata: metadata ?? null,
  };
}

function sessionJson(session: SurveyedSession | undefined): object | null {
  if (session === undefined) return null;
  const { id, host = null, pid = null, user = null, directory = null } = session;
  return { id, host, pid, user, directory };
}

/** JSON that these functions made, perhaps on a newer server: unknown fields stay. */
type Shown = Readonly<Record<string, unknown>>;
export type LockJson = Shown & { readonly name: string; readonly isFree: boolean };
export type SemaphoreJson = Shown & { readonly name: string };
export interface SurveyJson {
  readonly revision: number;
  readonly at: string;
  readonly locks: readonly LockJson[];
  readonly semaphores: readonly SemaphoreJson[];
  readonly malformed: Survey['malformed'];
}

/** The survey from which `surveyJson` made this, as far as it shows it: without the sessions that hold nothing. */
export function surveyFrom({ revision, at, locks, semaphores, malformed }: SurveyJson): Survey {
  return {
    revision,
    at: msOf(at) as number,
    locks: locks.map(lockFrom),
    semaphores: semaphores.map(semaphoreFrom),
    sessions: [],
    maintainer: undefined,
    malformed,
  };
}

export function lockFrom(json: LockJson): SurveyedLock {
  return resourceFrom(json) as unknown as SurveyedLock;
}

export function semaphoreFrom({ isDrained: _, drained, ...json }: SemaphoreJson): SurveyedSemaphore {
  const { at, ...drain } = (drained ?? {}) as Shown;
  const shown = typeof at === 'string' ? { ...drain, at: msOf(at) } : undefined;
  return { ...resourceFrom(json), drained: shown } as unknown as SurveyedSemaphore;
}

function resourceFrom({ maxHoldMs, ttlMs, holds, waiting, isFree: _, ...rest }: Shown): Shown {
  const limits = given(undefinedForNull({ maxHoldMs, ttlMs }));
  return {
    ...rest,
    limits,
    holds: (holds as readonly Shown[]).map(holdFrom),
    waiting: (waiting as readonly Shown[]).map(waiterFrom),
  };
}

function holdFrom({ acquiredAt, ttlMs, renewedMs, remainingMs, heldMs: _, ...hold }: Shown): Shown {
  return {
    isWarned: false,
    ...undefinedForNull(hold),
    session: sessionFrom(hold['session']),
    takenBy: sessionFrom(hold['takenBy']),
    acquiredAt: msOf(acquiredAt as string),
    lease: ttlMs === null ? undefined : { ttlMs, renewedMs, remainingMs },
  };
}

function waiterFrom({ since, waitedMs: _, ...waiter }: Shown): Shown {
  return {
    ...{ mode: undefined, weight: undefined },
    ...undefinedForNull(waiter),
    session: sessionFrom(waiter['session']),
    since: msOf(since as string),
  };
}

function sessionFrom(session: unknown): Shown | undefined {
  return session ? undefinedForNull(session as Shown) : undefined;
}

function undefinedForNull(fields: Shown): Shown {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value ?? undefined]));
}
