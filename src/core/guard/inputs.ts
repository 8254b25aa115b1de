/**
 * Inputs: what must be looked up before a condition can be judged. Every leaf needs exactly one.
 *
 *     condition ──requiredInputs──▶ Input[] ──gatherers, outside core──▶ Inputs ──evaluate──▶ Verdict
 *
 * This file is the contract of the gatherers. For each `Input` they add one entry under its `key`: `{ value }` of the
 * shape below, or `{ error }` if they could not find out. They never guess: an entry with an error, like one
 * that is not there, leaves the leaf open and never lets it pass.
 */
import type { CommandLine, IssueFields, IssueSearch, IssueStatus } from './condition.ts';

/** The argument of a gatherer, by kind of input. */
export interface InputRequests {
  readonly lock: { readonly name: string };
  readonly semaphore: { readonly name: string };
  /** Labels and ids are sorted, ids are strings; `min` is not the gatherer's business. */
  readonly issues: { readonly filter: IssueFields | IssueSearch };
  readonly issue: { readonly id: string };
  readonly branch: { readonly name: string };
  readonly worktrees: { readonly branch: string };
  /** `.` is the current directory. */
  readonly worktree: { readonly path: string };
  readonly branchMerged: { readonly branch: string; readonly into: string };
  readonly file: { readonly path: string };
  readonly fileText: { readonly path: string };
  readonly session: { readonly name: string };
  readonly pipeline: { readonly id: string };
  readonly task: { readonly id: string };
  readonly member: { readonly id: string };
  readonly command: { readonly cmd: CommandLine };
}

/** The result of a gatherer: plain JSON. Null means that there is no such thing. */
export interface InputValues {
  /** In the order they hold it; a stale holder still holds it until it is reclaimed. */
  readonly lock: { readonly holders: readonly { readonly holder: string; readonly stale: boolean }[] } | null;
  /** `used` may exceed `capacity` for a while after shrinking. */
  /** `drained`: nothing is granted, and this says who stopped it and why. */
  readonly semaphore: { readonly capacity: number; readonly used: number; readonly drained?: string } | null;
  /** Every issue that matches the filter, not only a first page. */
  readonly issues: readonly { readonly id: string; readonly status: IssueStatus }[];
  readonly issue: { readonly status: IssueStatus } | null;
  readonly branch: { readonly exists: boolean };
  /** Every worktree that has the branch checked out or is detached at its tip; null if there is no such branch. */
  readonly worktrees: readonly WorktreeState[] | null;
  /** The worktree that the directory lies in; null if there is no such directory. */
  readonly worktree: WorktreeState | null;
  /** `missing`: those of the two that do not exist. */
  readonly branchMerged: { readonly merged: boolean } | { readonly missing: readonly string[] };
  /** Anything at that path: a file, a directory, a link that leads somewhere. */
  readonly file: { readonly exists: boolean };
  /** The whole content as UTF-8. A file too large to read is an error, not a part of it. */
  readonly fileText: { readonly text: string } | null;
  readonly session: { readonly alive: boolean };
  /** `phase` is the phase it is in or blocked at; null before the first and after the last. */
  readonly pipeline: { readonly state: PipelineState; readonly phase: string | null } | null;
  readonly task: { readonly status: 'pending' | 'running' | 'complete' | 'failed' } | null;
  readonly member: { readonly alive: boolean };
  /** 128+n if signal n ended it. A command that could not be started, or ran out of time, is an error. */
  readonly command: { readonly exitCode: number; readonly output?: string };
}

export interface WorktreeState {
  readonly path: string;
  /** Nothing uncommitted and nothing begun. Untracked files count as changes, ignored ones do not. */
  readonly clean: boolean;
  /** An unfinished operation; the worktree is not clean then. */
  readonly doing?: WorktreeOperation;
}

export type WorktreeOperation = 'rebase' | 'am' | 'merge' | 'cherry-pick' | 'revert' | 'bisect';

export type PipelineState = 'pending' | 'running' | 'blocked' | 'done' | 'failed' | 'cancelled';

export type InputKind = keyof InputValues;

/** `lock:main`, `branchMerged:feature:main`. */
export type InputKey<Kind extends InputKind = InputKind> = `${Kind}:${string}`;

export type Input<Kind extends InputKind = InputKind> = {
  [K in Kind]: { readonly kind: K; readonly key: InputKey<K> } & InputRequests[K];
}[Kind];

export type Gathered<Kind extends InputKind = InputKind> =
  | { readonly value: InputValues[Kind] }
  | { readonly error: string };

/** What was gathered, by key. */
export type Inputs = { readonly [Kind in InputKind as InputKey<Kind>]: Gathered<Kind> };
