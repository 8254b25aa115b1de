/**
 * What becomes of a task: every answer is decided here, from its keys as they were read. A decision to write says what to
 * put; the shell compares that nothing it rests on has changed, and decides anew if something has.
 */
import { type Event, type Json, type Token, unreachable } from '../machine.ts';
import {
  type Blocker,
  blockersOf,
  isFinished,
  isOrphaned,
  isOwned,
  NO_BOOKKEEPING,
  statusOf,
  type Task,
  type TaskBookkeeping,
  type TaskClaimEntry,
  type TaskEnd,
  type TaskStatus,
} from './task.ts';
import { lacking } from './terms.ts';

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
  readonly owner: 'claim' | 'delete' | 'keep-unleased';
  readonly status: TaskStatus;
  readonly bookkeeping: TaskBookkeeping;
}

/** Which claim is meant; what is given of it must be its own. */
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

/** `status` of the tasks that it depends on; those it is not sure of may count as complete, because the write compares. */
export function decideClaim(
  task: Task,
  request: ClaimRequest,
  status: (id: string) => TaskStatus | undefined,
): ClaimRefusal | TaskWrite {
  if (task.data === undefined) return { kind: 'missing' };
  const now = statusOf(task);
  if (now === 'complete' || now === 'failed') return { kind: 'finished', status: now };
  if (isOwned(task) && task.owner !== undefined) {
    const { holder, token, lease } = task.owner;
    return { kind: 'taken', owner: holder, token, isLeased: lease !== null };
  }
  const by = blockersOf(task, status);
  if (by.length > 0) return { kind: 'blocked', by };
  const missing = lacking(task.data.terms, request.capabilities);
  if (missing.length > 0) return { kind: 'unfit', lacking: missing };
  return claimed(
    task.bookkeeping?.entry ?? NO_BOOKKEEPING,
    request,
    isOrphaned(task) ? requeued(task, request.at) : [],
  );
}

/** The claim of a task of which nothing is known but that nobody has touched it since it was published. */
export function claimUntouched(request: ClaimRequest): TaskWrite {
  return claimed(NO_BOOKKEEPING, request, []);
}

function claimed(bookkeeping: TaskBookkeeping, request: ClaimRequest, before: readonly Event[]): TaskWrite {
  const { id, holder, at, detached } = request;
  // The same request again: what it had claimed went before it knew, and nobody has tried.
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
  // Given back unharmed, it does not count as tried.
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
      if (retry && before.attempts <= (task.data?.terms.retries ?? 0)) {
        return pending({ ...over('retried'), reason, events: told('task:requeued', detail) });
      }
      return finished('failed', { ...over('failed'), reason, events: told('task:failed', detail) });
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

/** The owner is gone: sets the status to pending and announces it. Undefined if there is nothing to do. */
export function decideRepair(task: Task, now: number): TaskWrite | undefined {
  if (task.data === undefined || !isOrphaned(task)) return undefined;
  const { claim: _, ...bookkeeping } = task.bookkeeping?.entry ?? NO_BOOKKEEPING;
  return {
    kind: 'write',
    owner: 'delete',
    status: 'pending',
    bookkeeping: { ...bookkeeping, events: requeued(task, now) },
  };
}

function requeued(task: Task, at: number): readonly Event[] {
  const { claim, attempts = 0 } = task.bookkeeping?.entry ?? NO_BOOKKEEPING;
  return [{ type: 'task:requeued', at, holder: claim?.holder ?? '', attempts }];
}
