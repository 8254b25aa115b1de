/**
 * The condition: what a guard asks of the world. A tree of one-key objects, so that JSON, YAML and
 * TypeScript read alike:
 *
 *     { all: [ { lockFree: 'main' }, { not: { branchExists: 'wip' } } ] }
 *
 * A leaf asks one question; `all`, `any` and `not` combine answers.
 */

export const issueStatuses = ['todo', 'in-progress', 'blocked', 'done'] as const;
export type IssueStatus = (typeof issueStatuses)[number];

/** Trackers number their issues, and YAML reads `42` as a number; 42 and '42' are the same issue. */
export type IssueId = string | number;

/** An issue matches if it has all the labels, one of the ids, and everything else that is named. */
export interface IssueFields {
  readonly labels?: readonly string[];
  readonly ids?: readonly IssueId[];
  readonly assignee?: string;
  readonly status?: IssueStatus;
  readonly milestone?: string;
}

/** A search in the tracker's own language. */
export interface IssueSearch {
  readonly query: string;
}

/** Without `min`, a filter that matches nothing passes: no issue is left to be done. */
export type IssueFilter = (IssueFields | IssueSearch) & { readonly min?: number };

/** A string is for the shell; a list is a program and its arguments, and meets no shell. */
export type CommandLine = string | readonly string[];

/** Every leaf, by the key it has in JSON, with what it takes. */
export interface LeafArguments {
  /** A lock that was never used is free. */
  readonly lockFree: string;
  readonly lockHeld: string | { readonly name: string; readonly by?: string };
  readonly semaphoreAvailable: { readonly name: string; readonly slots: number };
  readonly issuesComplete: IssueFilter;
  readonly noBlockedIssues: IssueFilter;
  readonly issueStatus: { readonly id: IssueId; readonly expected: IssueStatus };
  readonly branchExists: string;
  readonly branchNotExists: string;
  /** No worktree that has the branch checked out, or is detached at its tip, has uncommitted changes. */
  readonly branchClean: string;
  /** The worktree that a directory lies in has no uncommitted changes. Without a path: the current directory. */
  readonly worktreeClean: string | null | { readonly path?: string };
  readonly branchMerged: { readonly branch: string; readonly into: string };
  readonly fileExists: string;
  readonly fileNotExists: string;
  /** The pattern is a piece of text, or `/regex/flags`. */
  readonly fileContains: { readonly path: string; readonly pattern: string };
  readonly sessionAlive: string;
  readonly pipelineInPhase: { readonly pipeline: string; readonly phase: string };
  readonly pipelineComplete: string;
  readonly taskDone: string;
  readonly memberAlive: string;
  readonly command: { readonly cmd: CommandLine; readonly expectSuccess?: boolean; readonly description?: string };
}

export interface CompositeArguments {
  readonly all: readonly Condition[];
  readonly any: readonly Condition[];
  readonly not: Condition;
}

/** `{ a: A } | { b: B }` from `{ a: A; b: B }`. */
type OneKey<Arguments> = { [Key in keyof Arguments]: { readonly [Only in Key]: Arguments[Only] } }[keyof Arguments];

export type LeafKind = keyof LeafArguments;
export type Leaf = OneKey<LeafArguments>;
/** A condition that gates a step: an object with one key, as in JSON and YAML. */
export type Condition = Leaf | OneKey<CompositeArguments>;

export function childrenOf(condition: Condition): readonly Condition[] {
  if ('all' in condition) return condition.all;
  if ('any' in condition) return condition.any;
  if ('not' in condition) return [condition.not];
  return [];
}

/** From left to right, as they are written. */
export function leavesOf(condition: Condition): readonly Leaf[] {
  return isLeaf(condition) ? [condition] : childrenOf(condition).flatMap(leavesOf);
}

export function isLeaf(condition: Condition): condition is Leaf {
  return !('all' in condition || 'any' in condition || 'not' in condition);
}

/**
 * A leaf's key and argument, for looking it up in a table that has a function for each leaf. The compiler cannot
 * see that the argument belongs to the key; `never` lets it through to the function found under that key.
 */
export function entryOf(leaf: Leaf): readonly [kind: LeafKind, argument: never] {
  return Object.entries(leaf)[0] as [LeafKind, never];
}
