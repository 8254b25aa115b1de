/** Conditions written in TypeScript: `all([lockFree('main'), not(branchExists('wip'))])`. */
import type { CommandLine, Condition, IssueFilter, IssueId, IssueStatus } from './condition.ts';

/** Passes if nobody holds the lock. */
export const lockFree = (name: string): Condition => ({ lockFree: name });

/** Passes if the lock is held, by this holder if one is named. */
export const lockHeld = (name: string, by?: string): Condition => ({
  lockHeld: by === undefined ? name : { name, by },
});

/** Passes if at least this many slots are free. */
export const semaphoreAvailable = (name: string, slots: number): Condition => ({
  semaphoreAvailable: { name, slots },
});

/** Passes if every issue that the filter matches is done. */
export const issuesComplete = (filter: IssueFilter): Condition => ({ issuesComplete: filter });

/** Passes if no issue that the filter matches is blocked. */
export const noBlockedIssues = (filter: IssueFilter): Condition => ({ noBlockedIssues: filter });

/** Passes if the issue has this status. */
export const issueStatus = (id: IssueId, expected: IssueStatus): Condition => ({ issueStatus: { id, expected } });

/** Passes if there is such a branch. */
export const branchExists = (branch: string): Condition => ({ branchExists: branch });

/** Passes if there is no such branch. */
export const branchNotExists = (branch: string): Condition => ({ branchNotExists: branch });

/** Passes if no worktree that has the branch has changes. */
export const branchClean = (branch: string): Condition => ({ branchClean: branch });

/** `path`: any directory in the worktree; by default the current one. */
export const worktreeClean = (path = '.'): Condition => ({ worktreeClean: path });

/** Passes if everything of the branch is in the other one. */
export const branchMerged = (branch: string, into: string): Condition => ({ branchMerged: { branch, into } });

/** Passes if there is such a file. */
export const fileExists = (path: string): Condition => ({ fileExists: path });

/** Passes if there is no such file. */
export const fileNotExists = (path: string): Condition => ({ fileNotExists: path });

/** A string may itself be `/regex/flags`, as in JSON. */
export const fileContains = (path: string, pattern: string | RegExp): Condition => ({
  fileContains: { path, pattern: String(pattern) },
});

/** Passes if a terminal session of this name is alive. */
export const sessionAlive = (name: string): Condition => ({ sessionAlive: name });

/** Passes if the pipeline is in this phase. */
export const pipelineInPhase = (pipeline: string, phase: string): Condition => ({
  pipelineInPhase: { pipeline, phase },
});

/** Passes if the pipeline is done. */
export const pipelineComplete = (pipeline: string): Condition => ({ pipelineComplete: pipeline });

/** Passes if the task is complete. */
export const taskDone = (task: string): Condition => ({ taskDone: task });

/** Passes if there is such a member. */
export const memberAlive = (member: string): Condition => ({ memberAlive: member });

/** Passes if the command succeeds, or if it fails and that is expected. */
export const command = (
  cmd: CommandLine,
  options: { readonly expectSuccess?: boolean; readonly description?: string } = {},
): Condition => ({ command: { cmd, ...options } });

/** Passes if every condition passes. */
export const all = (conditions: readonly Condition[]): Condition => ({ all: conditions });

/** Passes if one of the conditions passes. */
export const any = (conditions: readonly Condition[]): Condition => ({ any: conditions });

/** Passes if the condition fails. */
export const not = (condition: Condition): Condition => ({ not: condition });
