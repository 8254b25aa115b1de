/** What the page knows. Times are milliseconds since 1970, by the clock of the server. */

import type { Trouble } from '../../core/troubles.ts';
import type { AsOf } from './as-of.ts';

export type { Trouble };

export type Kind = 'lock' | 'semaphore';
export type Role = 'viewer' | 'worker' | 'administrator';

export interface Session {
  readonly host: string | null;
  readonly pid: number | null;
  readonly user: string | null;
  readonly directory: string | null;
}

export interface Hold {
  readonly holder: string;
  readonly token: number;
  readonly acquiredAt: number;
  readonly mode: 'exclusive' | 'shared';
  readonly weight: number;
  readonly slots: readonly number[];
  readonly isStale: boolean;
  readonly isAttached: boolean;
  readonly health: string;
  /** The ttl of the lease, the time that was left, and when that was read. Null if it is not known. */
  readonly lease: { readonly ttlMs: number; readonly remainingMs: number; readonly readAt: number } | null;
  readonly maxHoldMs: number | null;
  readonly reason: string | null;
  readonly metadata: unknown;
  readonly session: Session | null;
}

export interface Waiter {
  readonly holder: string;
  readonly priority: number;
  readonly since: number;
  readonly mode: 'exclusive' | 'shared';
  readonly weight: number;
  readonly reason: string | null;
  readonly waitsFor: readonly string[];
}

export interface Resource extends AsOf {
  readonly kind: Kind;
  /** `lock/main`. */
  readonly resource: string;
  readonly name: string;
  readonly token: number;
  readonly onStale: 'reclaim' | 'alert';
  readonly maxHoldMs: number | null;
  readonly ttlMs: number | null;
  readonly holds: readonly Hold[];
  /** In the order of service. */
  readonly waiting: readonly Waiter[];
  /** The capacity of a semaphore; 0 for a lock. */
  readonly capacity: number;
  /** Whether a semaphore is drained: it grants nothing new until an administrator undoes the drain. */
  readonly isDrained: boolean;
  /** Who drained it, when and why; null if it is not drained. The revision is 0 if only an event told of the drain. */
  readonly drained: {
    readonly by: string;
    readonly at: number;
    readonly reason: string;
    readonly revision: number;
  } | null;
}

export type TaskStatus = 'pending' | 'running' | 'complete' | 'failed';

export interface Task extends AsOf {
  readonly id: string;
  readonly status: TaskStatus;
  readonly capabilities: readonly string[];
  readonly priority: number;
  readonly dependsOn: readonly string[];
  readonly blockedBy: readonly string[];
  readonly owner: string | null;
  readonly token: number | null;
  readonly attempts: number;
  readonly failures: number;
  readonly losses: number;
  readonly retries: number;
  readonly retryAt: number | null;
  readonly reason: string | null;
  readonly publishedAt: number | null;
  readonly publishedBy: string | null;
  readonly claimedAt: number | null;
  readonly endedAt: number | null;
}

export type PipelineState = 'pending' | 'running' | 'blocked' | 'done' | 'failed' | 'cancelled';

export interface Phase {
  readonly name: string;
  readonly state: string;
  readonly attempt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export interface Pipeline extends AsOf {
  readonly id: string;
  readonly name: string;
  readonly state: PipelineState;
  readonly phase: string | null;
  readonly phases: readonly Phase[];
  readonly blocked: {
    readonly on: string;
    readonly reasons: readonly string[];
    readonly since: number | null;
    readonly question: number | null;
  } | null;
  readonly driver: string | null;
  readonly isDriven: boolean;
  readonly startedBy: string;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly isCancelling: boolean;
  readonly reason: string | null;
}

export interface Member {
  readonly id: string;
  readonly metadata: unknown;
  readonly incarnation: string;
  readonly joinedAt: number | null;
  readonly weight: number;
  readonly assets: readonly string[];
}

/** One event of the stream. Its `id` is the revision and the place in it, the same for every reader. */
export interface Happening {
  readonly type: string;
  readonly resource: string;
  readonly holder: string;
  readonly at: number;
  readonly id: string;
  readonly [more: string]: unknown;
}

export interface Deadlock {
  /** The id of the event that reported it. */
  readonly id: string;
  readonly at: number;
  readonly resource: string;
  /** The holder whose request was refused. */
  readonly victim: string;
  readonly cycle: readonly { readonly holder: string; readonly resource: string; readonly blockedBy: string }[];
}

export type Counts = Readonly<Record<TaskStatus, number>>;

/** How long something took, and when it was over. */
export interface Sample {
  readonly resource: string;
  readonly at: number;
  readonly ms: number;
}

/** A distribution of durations: how many there are in each bin, and their sum in milliseconds. */
export interface Tally {
  readonly sum: number;
  readonly bins: ReadonlyMap<number, number>;
}

/** What happened in five seconds. */
export interface Slice {
  /** When it begins. */
  readonly at: number;
  readonly events: number;
  readonly grants: number;
  /** Requests that met another holder. */
  readonly conflicts: number;
  readonly releases: number;
  /** Requests that were refused. */
  readonly refusals: number;
  /** Stale holds that passed to the next holder. */
  readonly reclaims: number;
  readonly waits: Tally;
  readonly holds: Tally;
}

export interface State {
  /** The newest revision that the page has heard of. */
  readonly revision: number;
  readonly snapshotRevision: number;
  /** The revision at which tasks, pipelines and members were last read as a whole. */
  readonly workRevision: number;
  readonly membersRevision: number;
  readonly store: { readonly engine: string; readonly name: string };
  readonly token: { readonly name: string; readonly role: Role; readonly holders: readonly string[] | null };
  readonly allowsCommands: boolean;
  readonly resources: ReadonlyMap<string, Resource>;
  /** All tasks, or if there are many, those that matter most. */
  readonly tasks: ReadonlyMap<string, Task>;
  /** The counts of all tasks: as the server counted them, and as events have moved them since. */
  readonly counts: Counts;
  readonly pipelines: ReadonlyMap<string, Pipeline>;
  readonly members: ReadonlyMap<string, Member>;
  readonly coordinator: string | null;
  /** What is wrong with the store itself, in the words of the server. */
  readonly troubles: readonly Trouble[];
  readonly deadlocks: readonly Deadlock[];
  /** The last events, the newest first; at most `MOST_ENTRIES`. */
  readonly entries: readonly Happening[];
  readonly waits: readonly Sample[];
  /** The slices in which something happened, the newest last. */
  readonly slices: readonly Slice[];
  /** Everything since this time is in the slices. */
  readonly countedFrom: number;
  /** How many requests were ever denied without a wait; undefined until it was read. */
  readonly denials: number | undefined;
  /** The resources that events have changed and the page has not read since: events do not carry everything. */
  readonly unread: ReadonlySet<string>;
}
