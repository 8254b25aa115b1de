/**
 * What becomes of a task: every answer is decided here, from its keys as they were read. A decision to write says what to
 * put; the shell compares that nothing it rests on has changed, and decides anew if something has.
 */
import { type Event, type Json, type Token, unreachable } from '../machine.ts';
import {
  type Blocker,
  blockersOf,
  isBackingOff,
  isFinished,
  isOrphaned,
  isOwned,
  NO_BOOKKEEPING,
  statusOf,
  statusProblem,
  type Task,
  type TaskBookkeeping,
  type TaskClaimEntry,
  type TaskEnd,
  type TaskStatus,
} from './task.ts';
import { backoffAfter, lacking, NO_TERMS } from './terms.ts';

export interface ClaimRequest extends TaskClaimEntry {
  readonly capabilities: readonly string[];
}

/** Why a task cannot be claimed. */
export type ClaimRefusal =
  | { readonly kind: 'missing' }
  /** `isLeased`: whether it goes back by itself should its owner die. */
  | { readonly kind: 'taken'; readonly owner: string; readonly token: Token; readonly isLeased: boolean }
  | { readonly kind: 'finished'; readonly status: 'complete' | 'failed' }
  | { readonly kind: 'blocked'; readonly by: readonly Blocker[] }
  | { readonly kind: 'unfit'; readonly lacking: readonly string[] };

/** What to put: the owner key, the status and the bookkeeping. `events` are in the bookkeeping. */
export interface TaskWrite {
  readonly kind: 'write';
  /** `keep-unleased`: the last worker stays the owner. `back-off`: no worker owns it, for a lease of `backoffMs`. */
  readonly owner: 'claim' | 'delete' | 'keep-unleased' | 'back-off';
  readonly backoffMs?: number;
  readonly status: TaskStatus;
  readonly bookkeeping: TaskBookkeeping;
}

/** Names a claim; every field that is given must be that of the claim. */
export interface ClaimName {
  /** The worker that has it. */
  readonly holder?: string;
  /** The token of the claim. */
  readonly token?: Token;
}

export type NotOwner = { readonly kind: 'not-owner'; readonly owner: string | undefined; readonly status: TaskStatus };

export type Ending =
  | { readonly how: 'release' }
  | { readonly how: 'complete'; readonly result?: Json }
  | { readonly how: 'fail'; readonly reason: string; readonly retry: boolean }
  | { readonly how: 'force'; readonly by: string; readonly reason: string };

/** The task has lost one worker too many: the shell has to write it down as failed before it answers. */
export interface LostTooOften {
  readonly kind: 'lost-too-often';
  readonly write: TaskWrite;
}

/**
 * `status` of the tasks that it depends on; a task with an unknown status may count as complete, because the write compares it.
 */
export function decideClaim(
  task: Task,
  request: ClaimRequest,
  status: (id: string) => TaskStatus | undefined,
): ClaimRefusal | LostTooOften | TaskWrite {
  if (task.data === undefined) return { kind: 'missing' };
  const now = statusOf(task);
  if (now === 'complete' || now === 'failed') return { kind: 'finished', status: now };
  if (isOwned(task) && task.owner !== undefined) {
    const { holder, token, lease } = task.owner;
    return { kind: 'taken', owner: holder, token, isLeased: lease !== null };
  }
  const isSame = task.bookkeeping?.entry.claim?.id === request.id;
  const repair = isSame ? undefined : decideRepair(task, request.at);
  if (repair?.status === 'failed') return { kind: 'lost-too-often', write: repair };
  const by = blockersOf(task, status);
  if (by.length > 0) return { kind: 'blocked', by };
  const missing = lacking(task.data.terms, request.capabilities);
  if (missing.length > 0) return { kind: 'unfit', lacking: missing };
  const before = task.bookkeeping?.entry ?? NO_BOOKKEEPING;
  if (isSame) return claimed(before, request, isOrphaned(task) ? requeued(before, request.at) : []);
  return claimed(repair?.bookkeeping ?? before, request, repair?.bookkeeping.events ?? []);
}

/** Claims a task of which only one thing is known: nothing has touched it since it was published. */
export function claimUntouched(request: ClaimRequest): TaskWrite {
  return claimed(NO_BOOKKEEPING, request, []);
}

function claimed(
  { retryAt: _, ...bookkeeping }: TaskBookkeeping,
  request: ClaimRequest,
  before: readonly Event[],
): TaskWrite {
  const { id, holder, at, detached } = request;
  // The same request again: its first claim ended before the worker heard of it, so no attempt was made.
  const attempts = bookkeeping.claim?.id === id ? bookkeeping.attempts : bookkeeping.attempts + 1;
  return {
    kind: 'write',
    owner: 'claim',
    status: 'running',
    bookkeeping: {
      ...bookkeeping,
      attempts,
      claim: { id, holder, at, ...(detached === true && { detached }) },
      events: [...before, { type: 'task:claimed', at, holder, attempts }],
    },
  };
}

/** Ends a claim, for its owner or on the owner's behalf. `request` names the command, so that it can be looked up. */
export function decideEnd(
  task: Task,
  claim: ClaimName,
  ending: Ending,
  { request, now }: { readonly request: string; readonly now: number },
): NotOwner | TaskWrite {
  const { owner } = task;
  if (owner === undefined || !isOwned(task) || isFinished(task) || !isMeant(owner, claim)) return notOwner(task);
  const before = task.bookkeeping?.entry ?? NO_BOOKKEEPING;
  const over = (how: TaskEnd): TaskBookkeeping => ({
    ...before,
    ended: { token: owner.token, request, how },
    endedAt: now,
    events: [],
  });
  const told = (type: string, detail: { readonly [key: string]: Json } = {}): readonly Event[] => [
    { type, at: now, holder: owner.holder, token: owner.token, ...detail },
  ];
  // A task that was given back unharmed does not count as tried.
  const attempts = Math.max(0, before.attempts - 1);
  switch (ending.how) {
    case 'release':
      return pending({ ...over('released'), attempts, events: told('task:released') });
    case 'force': {
      const { by, reason } = ending;
      return pending({ ...over('forced'), events: told('task:released', { forced: true, by, reason }) });
    }
    case 'complete': {
      const { reason: _, ...rest } = over('completed');
      const result = ending.result === undefined ? {} : { result: ending.result };
      return finished('complete', { ...rest, ...result, events: told('task:completed') });
    }
    case 'fail': {
      const { reason, retry } = ending;
      const detail = { reason, attempts: before.attempts };
      const failures = (before.failures ?? 0) + 1;
      const terms = task.data?.terms ?? NO_TERMS;
      if (!retry || failures > terms.retries) {
        return finished('failed', { ...over('failed'), failures, reason, events: told('task:failed', detail) });
      }
      const retried = { ...over('retried'), failures, reason };
      const backoffMs = backoffAfter(terms, failures);
      if (backoffMs === 0) return pending({ ...retried, events: told('task:requeued', detail) });
      const events = told('task:requeued', { ...detail, backoffMs });
      return { ...pending({ ...retried, retryAt: now + backoffMs, events }), owner: 'back-off', backoffMs };
    }
    default:
      return unreachable(ending);
  }
}

function isMeant(owner: { readonly holder: string; readonly token: Token }, { holder, token }: ClaimName): boolean {
  return (holder === undefined || holder === owner.holder) && (token === undefined || token === owner.token);
}

export function notOwner(task: Task): NotOwner {
  return { kind: 'not-owner', owner: isOwned(task) ? task.owner?.holder : undefined, status: statusOf(task) };
}

function pending({ claim: _, ...bookkeeping }: TaskBookkeeping): TaskWrite {
  return { kind: 'write', owner: 'delete', status: 'pending', bookkeeping };
}

function finished(status: 'complete' | 'failed', bookkeeping: TaskBookkeeping): TaskWrite {
  return { kind: 'write', owner: 'keep-unleased', status, bookkeeping };
}

/** The owner is gone: sets the status to pending, or to failed if that happened too often. Undefined if there is nothing to do. */
export function decideRepair(task: Task, now: number): TaskWrite | undefined {
  if (task.data === undefined || !isOrphaned(task)) return undefined;
  const before = task.bookkeeping?.entry ?? NO_BOOKKEEPING;
  const { attempts, claim } = before;
  const losses = (before.losses ?? 0) + 1;
  if (losses < task.data.terms.lossLimit) return pending({ ...before, losses, events: requeued(before, now) });
  const holder = claim?.holder ?? '';
  const reason = lostTold(losses, holder);
  const events = [{ type: 'task:failed', at: now, holder, reason, attempts, losses }];
  return finished('failed', { ...before, losses, reason, endedAt: now, events });
}

function lostTold(losses: number, last: string): string {
  const who = last === '' ? '' : `, the last one ${last}`;
  const times = losses === 1 ? 'its worker' : `${losses} workers`;
  return `${times} died or lost the claim while working on it${who}`;
}

function requeued({ claim, attempts }: TaskBookkeeping, at: number): readonly Event[] {
  return [{ type: 'task:requeued', at, holder: claim?.holder ?? '', attempts }];
}

export type RequeueRefusal =
  | { readonly kind: 'missing' }
  | { readonly kind: 'running'; readonly owner: string }
  /** It is pending already, or complete and only a failed one was meant, or was claimed since the expected attempt. */
  | { readonly kind: 'unchanged'; readonly status: 'pending' | 'complete' | 'failed' };

export interface RequeueAsked {
  readonly by: string;
  /** Names the command, so that it can be looked up. */
  readonly request: string;
  readonly now: number;
  /** How often it was claimed when this was decided; any number, if not given. */
  readonly attempts?: number | undefined;
}

/**
 * Makes a task pending again at once, with all its retries. `only` says which: one that has failed or pauses before its
 * next attempt, or any that no worker has, a complete one too.
 */
export function decideRequeue(
  task: Task,
  only: 'failed' | 'any',
  { by, request, now, attempts }: RequeueAsked,
): RequeueRefusal | TaskWrite {
  if (task.data === undefined) return { kind: 'missing' };
  const status = statusOf(task);
  if (status === 'running') return { kind: 'running', owner: task.owner?.holder ?? '' };
  if (status === 'complete' && only === 'failed') return { kind: 'unchanged', status };
  const isStuck = isBackingOff(task) || isOrphaned(task) || (only === 'any' && statusProblem(task) !== undefined);
  if (status === 'pending' && !isStuck) return { kind: 'unchanged', status };
  const before = task.bookkeeping?.entry ?? NO_BOOKKEEPING;
  if (attempts !== undefined && attempts !== before.attempts) return { kind: 'unchanged', status };
  const { failures: _f, losses: _l, retryAt: _t, result: _r, reason: _w, endedAt: _e, ...kept } = before;
  const events = [{ type: 'task:requeued', at: now, holder: by, attempts: before.attempts, was: status }];
  return pending({ ...kept, requeue: request, events });
}

export type ForgetRefusal = { readonly kind: 'missing' } | { readonly kind: 'running'; readonly owner: string };

/** Whether a task may be deleted: any that no worker has. */
export function decideForget(task: Task): ForgetRefusal | { readonly kind: 'forget' } {
  if (task.data === undefined) return { kind: 'missing' };
  if (statusOf(task) === 'running') return { kind: 'running', owner: task.owner?.holder ?? '' };
  return { kind: 'forget' };
}
