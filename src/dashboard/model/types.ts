/** What the page knows. Times are milliseconds since 1970, by the clock of the server. */

import type { Trouble } from '../../core/troubles.ts';
import type { holdIn, memberIn, phaseIn, pipelineIn, resourceIn, taskIn, waiterIn } from './read.ts';

export type { Trouble };

export type Kind = 'lock' | 'semaphore';
export type Role = 'viewer' | 'worker' | 'administrator';

/** What the readers of answers make of them: the fields are there. */
export type Hold = Readonly<ReturnType<typeof holdIn>>;
export type Waiter = Readonly<ReturnType<typeof waiterIn>>;
export type Resource = Readonly<ReturnType<typeof resourceIn>>;

export type TaskStatus = 'pending' | 'running' | 'complete' | 'failed';

export type Task = Readonly<ReturnType<typeof taskIn>>;

export type PipelineState = 'pending' | 'running' | 'blocked' | 'done' | 'failed' | 'cancelled';

export type Phase = Readonly<ReturnType<typeof phaseIn>>;
export type Pipeline = Readonly<ReturnType<typeof pipelineIn>>;
export type Member = Readonly<ReturnType<typeof memberIn>>;

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
