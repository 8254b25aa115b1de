export {
  type CommandLine,
  type Condition,
  type IssueFields,
  type IssueFilter,
  type IssueId,
  type IssueSearch,
  issueStatuses,
  type IssueStatus,
} from './condition.ts';
export {
  all,
  any,
  branchClean,
  branchExists,
  branchMerged,
  branchNotExists,
  command,
  fileContains,
  fileExists,
  fileNotExists,
  issuesComplete,
  issueStatus,
  lockFree,
  lockHeld,
  memberAlive,
  noBlockedIssues,
  not,
  pipelineComplete,
  pipelineInPhase,
  semaphoreAvailable,
  sessionAlive,
  taskDone,
  worktreeClean,
} from './constructors.ts';
export { evaluate, type Missing, type Verdict } from './evaluate.ts';
export { explain, type Explanation, renderExplanation } from './explain.ts';
export type { Outlook } from './findings.ts';
export { checkGuard, type Guard, type GuardOutcome, type OnFailure, wakesOn } from './guard.ts';
export { needsCommands } from './commands-last.ts';
export { conditionProblem, guardProblem } from './guard-problem.ts';
export type {
  Gathered,
  Input,
  InputKey,
  InputKind,
  Inputs,
  InputValues,
  WorktreeOperation,
  WorktreeState,
} from './inputs.ts';
export { type ParsedCondition, parseCondition } from './parse.ts';
export { type RegexSearch, regexSearches } from './regex-searches.ts';
export { requiredInputs } from './required-inputs.ts';
export type { Path, Problem } from '../shape.ts';
export { matches, polledInputs, wakePatterns, type Waking, wakingOf } from './wake.ts';
export { isOwn, type Own, type ToldEvent } from './wakes.ts';
