/** Conditions written in TypeScript: `all([lockFree('main'), not(branchExists('wip'))])`. */
import type { CommandLine, Condition, IssueFilter, IssueId, IssueStatus } from './condition.ts';

export const lockFree = (name: string): Condition => ({ lockFree: name });

export const lockHeld = (name: string, by?: string): Condition => ({
  lockHeld: by === undefined ? name : { name, by },
});

export const semaphoreAvailable = (name: string, slots: number): Condition => ({
  semaphoreAvailable: { name, slots },
});

export const issuesComplete = (filter: IssueFilter): Condition => ({ issuesComplete: filter });

export const noBlockedIssues = (filter: IssueFilter): Condition => ({ noBlockedIssues: filter });

export const issueStatus = (id: IssueId, expected: IssueStatus): Condition => ({ issueStatus: { id, expected } });

export const branchExists = (branch: string): Condition => ({ branchExists: branch });

export const branchNotExists = (branch: string): Condition => ({ branchNotExists: branch });

export const branchClean = (branch: string): Condition => ({ branchClean: branch });

/** `path`: any directory in the worktree; by default the current one. */
export const worktreeClean = (path = '.'): Condition => ({ worktreeClean: path });

export const branchMerged = (branch: string, into: string): Condition => ({ branchMerged: { branch, into } });

export const fileExists = (path: string): Condition => ({ fileExists: path });

export const fileNotExists = (path: string): Condition => ({ fileNotExists: path });

/** A string may itself be `/regex/flags`, as in JSON. */
export const fileContains = (path: string, pattern: string | RegExp): Condition => ({
  fileContains: { path, pattern: String(pattern) },
});

export const sessionAlive = (name: string): Condition => ({ sessionAlive: name });

export const pipelineInPhase = (pipeline: string, phase: string): Condition => ({
  pipelineInPhase: { pipeline, phase },
});

export const pipelineComplete = (pipeline: string): Condition => ({ pipelineComplete: pipeline });

export const taskDone = (task: string): Condition => ({ taskDone: task });

export const memberAlive = (member: string): Condition => ({ memberAlive: member });

export const command = (
  cmd: CommandLine,
  options: { readonly expectSuccess?: boolean; readonly description?: string } = {},
): Condition => ({ command: { cmd, ...options } });

export const all = (conditions: readonly Condition[]): Condition => ({ all: conditions });

export const any = (conditions: readonly Condition[]): Condition => ({ any: conditions });

export const not = (condition: Condition): Condition => ({ not: condition });
