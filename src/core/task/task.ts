/**
 * A task: something to be done once, by one worker at a time. It is spread over four plain keys, so that a worker in any
 * language takes part with nothing but a client of the store:
 *
 *     data        what is to be done, as JSON; putting it publishes the task
 *     owner       who has claimed it, as plain text, on the owner's lease; absent or empty: nobody.
 *                 `signalbox:backoff` on a lease: nobody yet, the pause before the next attempt is not over
 *     status      pending, running, complete or failed; absent: pending; anything else: nobody claims it
 *     signalbox   our bookkeeping: attempts, result, and the events of the write that made it
 *
 *                    claim                   complete
 *     pending ─────────────────▶ running ──────────────▶ complete     (owner stays, on no lease:
 *        ▲  ▲                       │ │  fail, no retry left; its      nobody can claim it again)
 *        │  │ release, fail, the    │ │  workers are lost too often        │
 *        │  └─ owner's lease ends ──┘ └────────────────▶ failed            │ requeue
 *        │                                                 │ retry         │
 *        └─────────────────────────────────────────────────┴───────────────┘
 *
 * `forget` deletes the keys of a task that no worker has. After that its id is free again.
 *
 * The token of a claim is the revision at which the owner key came to be. Comparing the owner's name instead would be
 * fooled by a worker that lost a task and claimed it again.
 */
import { type Event, type Json, type Token, unreachable } from '../machine.ts';
import { shown } from '../shown.ts';
import type { Terms } from './terms.ts';

/** How far a task is. */
export type TaskStatus = 'pending' | 'running' | 'complete' | 'failed';

/** The keys of a task as they were read. Revisions are of the store: 0 is before everything. */
export interface Task {
  readonly id: string;
  readonly data: TaskData | undefined;
  readonly owner: TaskOwner | undefined;
  readonly status: { readonly word: string; readonly mod: number } | undefined;
  readonly bookkeeping: { readonly entry: TaskBookkeeping; readonly mod: number } | undefined;
}

export interface TaskData {
  readonly json: Json | undefined;
  readonly terms: Terms;
  /** Why the terms cannot be read: another program wrote something that makes no sense. */
  readonly problem: string | undefined;
  /** The revision at which it was published: older goes first. */
  readonly published: number;
  readonly mod: number;
}

export interface TaskOwner {
  readonly holder: string;
  readonly token: Token;
  readonly mod: number;
  /** Null: it stays, whatever becomes of the owner. */
  readonly lease: string | null;
}

/**
 * Owns a task during the pause before its next attempt. The owner key is on a lease of that length: so the store measures
 * the pause, no clocks are compared, its end wakes every worker, and workers that are not signalbox wait too.
 */
export const BACKOFF_OWNER = 'signalbox:backoff';

/** What signalbox records about a task, apart from the keys that every program may read and write. */
export interface TaskBookkeeping {
  /** How often it was claimed; a claim that was released does not count. */
  readonly attempts: number;
  /** How often a worker has reported failure since it was published or requeued. */
  readonly failures?: number;
  /** How often a worker died or lost its claim since then. */
  readonly losses?: number;
  /** When the pause before the next attempt ends, for display. */
  readonly retryAt?: number;
  /** Which request requeued it last. */
  readonly requeue?: string;
  /** Which request published it. */
  readonly publication?: string;
  readonly publishedAt?: number;
  readonly publishedBy?: string;
  /** The current claim, or the last one of a finished task. */
  readonly claim?: TaskClaimEntry;
  /** How the last finished claim ended, and by which request: a request whose answer got lost is looked up here. */
  readonly ended?: { readonly token: Token; readonly request: string; readonly how: TaskEnd };
  readonly result?: Json;
  /** Why it failed, the last time it did. */
  readonly reason?: string;
  readonly endedAt?: number;
  /** The trace that the task belongs to. */
  readonly trace?: string;
  /** The witness enters only hashes of its contents. */
  readonly sensitive?: true;
  /** The last entry of the witness, as of the write that made this. */
  readonly head?: { readonly seq: number; readonly hash: string };
  /** The events of the write that made this. */
  readonly events: readonly Event[];
}

export interface TaskClaimEntry {
  /** Begins with the process whose session it rests on, unless it is detached. */
  readonly id: string;
  readonly holder: string;
  readonly at: number;
  readonly detached?: true;
}

export type TaskEnd = 'released' | 'retried' | 'completed' | 'failed' | 'forced';

/** Why a task cannot be claimed although nobody has it. */
export type Blocker =
  | { readonly why: 'unfinished'; readonly task: string }
  | { readonly why: 'failed'; readonly task: string }
  | { readonly why: 'missing'; readonly task: string }
  /** It has failed, and the pause before the next attempt is not over. */
  | { readonly why: 'backoff'; readonly until: number | null }
  | { readonly why: 'unreadable'; readonly problem: string };

export const NO_BOOKKEEPING: TaskBookkeeping = { attempts: 0, events: [] };

export function unpublished(id: string): Task {
  return { id, data: undefined, owner: undefined, status: undefined, bookkeeping: undefined };
}

const STATUSES: readonly string[] = ['pending', 'running', 'complete', 'failed'] satisfies readonly TaskStatus[];

/** The real status: a worker that died while running the task could not write that down. */
export function statusOf(task: Task): TaskStatus {
  const word = task.status?.word;
  if (word === 'complete' || word === 'failed') return word;
  return isOwned(task) ? 'running' : 'pending';
}

export function isOwned({ owner }: Task): boolean {
  return owner !== undefined && owner.holder !== '' && owner.holder !== BACKOFF_OWNER;
}

/** Whether the pause before its next attempt is not over. */
export function isBackingOff(task: Task): boolean {
  return task.owner?.holder === BACKOFF_OWNER && !isFinished(task);
}

export function isFinished(task: Task): boolean {
  const status = statusOf(task);
  return status === 'complete' || status === 'failed';
}

/**
 * What is wrong with the status that another program has put. The task may be done or given up, so nobody claims it; a requeue
 * makes it pending. An empty status counts as absent, like an empty owner.
 */
export function statusProblem({ status }: Task): string | undefined {
  if (status === undefined || status.word === '' || STATUSES.includes(status.word)) return undefined;
  return `its status is ${shown(status.word)}; expected pending, running, complete or failed`;
}

/** What another program has written in its data or status that cannot be read. */
export function unreadableIn(task: Task): string | undefined {
  return task.data?.problem ?? statusProblem(task);
}

/** Whether its owner is gone, and the status does not say yet that it is pending again. */
export function isOrphaned(task: Task): boolean {
  return task.status?.word === 'running' && !isOwned(task);
}

/** What is known of how it was claimed; undefined if its owner is another program, which keeps no bookkeeping. */
export function claimEntryOf(task: Task): TaskClaimEntry | undefined {
  const { owner, bookkeeping } = task;
  if (owner === undefined || bookkeeping === undefined) return undefined;
  // A claim writes both keys at once, and nothing else is written in the bookkeeping until it ends.
  const isOwners = isFinished(task) ? bookkeeping.entry.ended?.token === owner.token : bookkeeping.mod === owner.token;
  return isOwners ? bookkeeping.entry.claim : undefined;
}

/** `status` answers undefined for a task that does not exist. */
export function blockersOf(task: Task, status: (id: string) => TaskStatus | undefined): readonly Blocker[] {
  const { data, bookkeeping } = task;
  if (data === undefined) return [];
  const problem = unreadableIn(task);
  if (problem !== undefined) return [{ why: 'unreadable', problem }];
  if (isBackingOff(task)) return [{ why: 'backoff', until: bookkeeping?.entry.retryAt ?? null }];
  return data.terms.dependsOn.flatMap((other): Blocker[] => {
    const found = status(other);
    if (found === 'complete') return [];
    if (found === undefined) return [{ why: 'missing', task: other }];
    return [{ why: found === 'failed' ? 'failed' : 'unfinished', task: other }];
  });
}

export function blockerTold(blocker: Blocker): string {
  switch (blocker.why) {
    case 'unfinished':
      return `task ${blocker.task} is not complete yet`;
    case 'failed':
      return `task ${blocker.task} has failed`;
    case 'missing':
      return `task ${blocker.task} does not exist`;
    case 'backoff':
      return 'it failed, and the pause before the next attempt is not over';
    case 'unreadable':
      return blocker.problem;
    default:
      return unreachable(blocker);
  }
}
