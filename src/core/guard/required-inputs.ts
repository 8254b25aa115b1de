/** Which inputs a condition needs, and the key under which each is gathered. */
import { given } from '../given.ts';
import {
  type Condition,
  entryOf,
  type IssueFields,
  type IssueFilter,
  type IssueSearch,
  type Leaf,
  type LeafArguments,
  type LeafKind,
  leavesOf,
} from './condition.ts';
import type { Input, InputKind, InputRequests } from './inputs.ts';

/** Every input the tree needs, each once, in the order the condition first mentions it. */
export function requiredInputs(condition: Condition): readonly Input[] {
  const byKey = new Map(
    leavesOf(condition)
      .map(inputOf)
      .map((needed) => [needed.key, needed]),
  );
  return [...byKey.values()];
}

export function inputOf(leaf: Leaf): Input {
  const [kind, argument] = entryOf(leaf);
  return inputByLeaf[kind](argument);
}

/** The kind of input that a leaf asks for. */
export type InputKindOf<Kind extends LeafKind> = ReturnType<(typeof inputByLeaf)[Kind]>['kind'];

const inputByLeaf = {
  lockFree: (name) => lock(name),
  lockHeld: (held) => lock(typeof held === 'string' ? held : held.name),
  semaphoreAvailable: ({ name }) => input('semaphore', { name }, name),
  issuesComplete: (filter) => issues(filter),
  noBlockedIssues: (filter) => issues(filter),
  issueStatus: ({ id }) => input('issue', { id: String(id) }, String(id)),
  branchExists: (name) => input('branch', { name }, name),
  branchNotExists: (name) => input('branch', { name }, name),
  branchClean: (branch) => input('worktrees', { branch }, branch),
  worktreeClean: (given) => {
    const path = (typeof given === 'string' ? given : given?.path) ?? '.';
    return input('worktree', { path }, path);
  },
  branchMerged: ({ branch, into }) => input('branchMerged', { branch, into }, branch, into),
  fileExists: (path) => input('file', { path }, path),
  fileNotExists: (path) => input('file', { path }, path),
  fileContains: ({ path }) => input('fileText', { path }, path),
  sessionAlive: (name) => input('session', { name }, name),
  pipelineInPhase: ({ pipeline }) => input('pipeline', { id: pipeline }, pipeline),
  pipelineComplete: (id) => input('pipeline', { id }, id),
  taskDone: (id) => input('task', { id }, id),
  memberAlive: (id) => input('member', { id }, id),
  // As JSON, because the shell line `a` and the program `['a']` are two commands.
  command: ({ cmd }) => input('command', { cmd }, JSON.stringify(cmd)),
} satisfies { [Kind in LeafKind]: (argument: LeafArguments[Kind]) => Input };

function lock(name: string): Input<'lock'> {
  return input('lock', { name }, name);
}

function issues(filter: IssueFilter): Input<'issues'> {
  const wanted = withoutMin(filter);
  return input('issues', { filter: wanted }, JSON.stringify(wanted));
}

/** Filters that say the same become the same, so that the tracker is asked once. */
function withoutMin(filter: IssueFilter): IssueFields | IssueSearch {
  if ('query' in filter) return { query: filter.query };
  const { labels, ids, assignee, status, milestone } = filter;
  return {
    ...(labels !== undefined && { labels: sortedOnce(labels) }),
    ...(ids !== undefined && { ids: sortedOnce(ids.map(String)) }),
    ...given({ assignee, status, milestone }),
  };
}

function sortedOnce(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort();
}

/**
 * The parts before the last escape their colons. Otherwise the branch `a:b` merged into `c` and the branch `a` merged
 * into `b:c` would share a key, and one would be judged by the other's answer.
 */
function input<Kind extends InputKind>(kind: Kind, request: InputRequests[Kind], ...parts: string[]): Input<Kind> {
  const escaped = parts.map((part, at) => (at === parts.length - 1 ? part : part.replace(/[%:]/g, encodeURIComponent)));
  return { kind, key: `${kind}:${escaped.join(':')}`, ...request } as Input<Kind>;
}
