/** What each leaf finds in its input: whether it holds, and why, in words that stand alone. */
import { entryOf, type IssueFilter, type Leaf, type LeafArguments, type LeafKind } from './condition.ts';
import { readFilePattern } from './file-pattern.ts';
import type { InputValues, PipelineState } from './inputs.ts';
import type { InputKindOf } from './required-inputs.ts';

/**
 * Whether waiting can help.
 * - `open`: it may pass in the ordinary course of things.
 * - `stuck`: it cannot pass as things stand; something has to be created, resized or started again first.
 * - `never`: it can never pass, whatever happens.
 */
export type Outlook = 'open' | 'stuck' | 'never';

export type Finding =
  | { readonly holds: true; readonly because: string }
  | { readonly holds: false; readonly because: string; readonly outlook: Outlook }
  /** The question makes no sense. Were the answer no, its opposite under `not` would pass. */
  | { readonly holds: undefined; readonly error: string };

type Judge<Kind extends LeafKind> = (value: InputValues[InputKindOf<Kind>], argument: LeafArguments[Kind]) => Finding;

/** `value` must be what was gathered for `inputOf(leaf)`. */
export function findingOf(leaf: Leaf, value: unknown): Finding {
  const [kind, argument] = entryOf(leaf);
  const finding = judges[kind](value as never, argument);
  if (finding.holds !== false || finding.outlook === 'open') return finding;
  return { ...finding, because: `${finding.because}; ${kind} cannot pass as things stand` };
}

const judges: { readonly [Kind in LeafKind]: Judge<Kind> } = {
  lockFree: (lock, name) => found(holdersOf(lock).length === 0, lockIs(lock, name)),
  lockHeld: (lock, held) => {
    const { name, by } = typeof held === 'string' ? { name: held } : held;
    const holders = holdersOf(lock);
    if (by === undefined || holders.length === 0) return found(holders.length > 0, lockIs(lock, name));
    const holds = holders.some(({ holder }) => holder === by);
    return found(holds, holds ? lockIs(lock, name) : `${lockIs(lock, name)}, not by ${by}`);
  },
  semaphoreAvailable: (semaphore, { name, slots }) => {
    if (semaphore === null) return stuck(`semaphore "${name}" does not exist: nobody has created it`);
    const { capacity, used } = semaphore;
    if (slots > capacity) return stuck(`semaphore "${name}" has ${count(capacity, 'slot')} in all, ${slots} wanted`);
    const free = Math.max(0, capacity - used);
    return found(free >= slots, `semaphore "${name}" has ${free} of ${count(capacity, 'slot')} free, ${slots} wanted`);
  },
  issuesComplete: (issues, filter) => noIssueIs('open', issues, filter, ({ status }) => status !== 'done'),
  noBlockedIssues: (issues, filter) => noIssueIs('blocked', issues, filter, ({ status }) => status === 'blocked'),
  issueStatus: (issue, { id, expected }) => {
    if (issue === null) return stuck(`issue ${id} does not exist`);
    const holds = issue.status === expected;
    return found(holds, `issue ${id} is ${issue.status}${holds ? '' : `, not ${expected}`}`);
  },
  branchExists: ({ exists }, name) => found(exists, branchIs(name, exists)),
  branchNotExists: ({ exists }, name) => found(!exists, branchIs(name, exists)),
  branchClean: (worktrees, branch) => {
    const dirty = worktrees.filter(({ clean }) => !clean).map(({ path }) => path);
    if (dirty.length > 0) return found(false, `branch "${branch}" has uncommitted changes in ${dirty.join(', ')}`);
    return found(true, `branch "${branch}" is ${worktrees.length === 0 ? 'checked out nowhere' : 'clean'}`);
  },
  branchMerged: (answer, { branch, into }) => {
    if ('merged' in answer) {
      return found(answer.merged, `branch "${branch}" is ${answer.merged ? '' : 'not '}merged into "${into}"`);
    }
    const missing = answer.missing.map((name) => branchIs(name, false)).join(' and ');
    return stuck(`branch "${branch}" is not known to be merged into "${into}": ${missing}`);
  },
  fileExists: ({ exists }, path) => found(exists, fileIs(path, exists)),
  fileNotExists: ({ exists }, path) => found(!exists, fileIs(path, exists)),
  fileContains: (file, { path, pattern }) => {
    const wanted = readFilePattern(pattern);
    if (wanted.kind === 'invalid') return { holds: undefined, error: wanted.why };
    if (file === null) return found(false, fileIs(path, false));
    const holds = wanted.kind === 'text' ? file.text.includes(wanted.text) : wanted.regex.test(file.text);
    return found(holds, `file "${path}" ${holds ? 'contains' : 'does not contain'} ${JSON.stringify(pattern)}`);
  },
  sessionAlive: ({ alive }, name) => found(alive, `session "${name}" is ${alive ? 'alive' : 'not alive'}`),
  pipelineInPhase: (pipeline, { pipeline: id, phase }) => {
    if (pipeline === null) return stuck(`pipeline "${id}" does not exist`);
    if (hasEnded(pipeline)) return stuck(`pipeline "${id}" has ended (${pipeline.state})`);
    const holds = pipeline.phase === phase;
    const where = pipeline.phase === null ? 'in no phase yet' : `in phase "${pipeline.phase}"`;
    return found(holds, `pipeline "${id}" is ${where}${holds ? '' : `, not in "${phase}"`}`);
  },
  pipelineComplete: (pipeline, id) => {
    if (pipeline === null) return stuck(`pipeline "${id}" does not exist`);
    const { state } = pipeline;
    if (state !== 'done' && hasEnded(pipeline)) return stuck(`pipeline "${id}" has ended (${state})`);
    return found(state === 'done', `pipeline "${id}" is ${state}`);
  },
  taskDone: (task, id) => {
    if (task === null) return stuck(`task "${id}" does not exist: nobody has published it`);
    if (task.status === 'failed') return stuck(`task "${id}" has failed`);
    return found(task.status === 'complete', `task "${id}" is ${task.status}`);
  },
  memberAlive: ({ alive }, id) => found(alive, `member "${id}" is ${alive ? 'alive' : 'not alive'}`),
  command: ({ exitCode, output = '' }, { cmd, expectSuccess = true, description }) => {
    const holds = (exitCode === 0) === expectSuccess;
    const wanted = holds ? '' : `, ${expectSuccess ? '0' : 'a failure'} was expected`;
    const what = `command ${JSON.stringify(cmd)}${description === undefined ? '' : ` (${description})`}`;
    const said = holds ? '' : lastWords(output);
    return found(holds, `${what} exited with ${exitCode}${wanted}${said === '' ? '' : `: ${said}`}`);
  },
};

const LONGEST_WORDS = 200;

/** The last that a command printed is mostly why it failed. */
function lastWords(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.replace(/\p{Cc}+/gu, ' ').trim())
    .filter((line) => line !== '');
  const last = lines.slice(-2).join(' / ');
  return last.length > LONGEST_WORDS ? `…${last.slice(-LONGEST_WORDS)}` : last;
}

function found(holds: boolean, because: string): Finding {
  return holds ? { holds, because } : { holds, because, outlook: 'open' };
}

function stuck(because: string): Finding {
  return { holds: false, because, outlook: 'stuck' };
}

function holdersOf(lock: InputValues['lock']): readonly { readonly holder: string; readonly stale: boolean }[] {
  return lock === null ? [] : lock.holders;
}

function lockIs(lock: InputValues['lock'], name: string): string {
  const holders = holdersOf(lock).map(({ holder, stale }) => (stale ? `${holder} (stale)` : holder));
  return `lock "${name}" is ${holders.length === 0 ? 'free' : `held by ${holders.join(', ')}`}`;
}

function branchIs(name: string, exists: boolean): string {
  return `branch "${name}" ${exists ? 'exists' : 'does not exist'}`;
}

function fileIs(path: string, exists: boolean): string {
  return `file "${path}" ${exists ? 'exists' : 'does not exist'}`;
}

function hasEnded({ state }: { readonly state: PipelineState }): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled';
}

function count(howMany: number, noun: string): string {
  return `${howMany} ${noun}${howMany === 1 ? '' : 's'}`;
}

type Issue = InputValues['issues'][number];

const NAMED_ISSUES = 10;

function noIssueIs(
  what: string,
  issues: readonly Issue[],
  { min = 0, ...filter }: IssueFilter,
  is: (issue: Issue) => boolean,
): Finding {
  const offending = issues.filter(is);
  const named = offending.slice(0, NAMED_ISSUES).map(({ id, status }) => `${id} (${status})`);
  const more = offending.length > named.length ? ` and ${offending.length - named.length} more` : '';
  const facts = [
    issues.length < min ? `${issues.length} found, at least ${min} wanted` : `${issues.length} found`,
    offending.length > 0 ? `${offending.length} ${what}: ${named.join(', ')}${more}` : `none ${what}`,
  ];
  return found(
    issues.length >= min && offending.length === 0,
    `issues matching ${JSON.stringify(filter)}: ${facts.join('; ')}`,
  );
}
