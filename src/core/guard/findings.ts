/** What each leaf finds in its input: whether it holds, and why, in words that stand alone. */
import { entryOf, type IssueFilter, type Leaf, type LeafArguments, type LeafKind } from './condition.ts';
import { readFilePattern } from './file-pattern.ts';
import type { InputValues, PipelineState, WorktreeOperation, WorktreeState } from './inputs.ts';
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
  /**
   * `unfound`: it fails only because there is nothing to judge, and why. Under `not` that is no answer: an unknown task
   * is not done, but neither is it known that it is still to be done.
   */
  | { readonly holds: false; readonly because: string; readonly outlook: Outlook; readonly unfound?: string }
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
    if (semaphore === null) return unfound(`semaphore "${name}" does not exist: nobody has created it`);
    const { capacity, used, drained } = semaphore;
    if (slots > capacity) return stuck(`semaphore "${name}" has ${count(capacity, 'slot')} in all, ${slots} wanted`);
    if (drained !== undefined) return found(false, `semaphore "${name}" is ${drained}`);
    const free = Math.max(0, capacity - used);
    return found(free >= slots, `semaphore "${name}" has ${free} of ${count(capacity, 'slot')} free, ${slots} wanted`);
  },
  issuesComplete: (issues, filter) => noIssueIs('open', issues, filter, ({ status }) => status !== 'done'),
  noBlockedIssues: (issues, filter) => noIssueIs('blocked', issues, filter, ({ status }) => status === 'blocked'),
  issueStatus: (issue, { id, expected }) => {
    if (issue === null) return unfound(`issue ${id} does not exist`);
    const holds = issue.status === expected;
    return found(holds, `issue ${id} is ${issue.status}${holds ? '' : `, not ${expected}`}`);
  },
  branchExists: ({ exists }, name) => found(exists, branchIs(name, exists)),
  branchNotExists: ({ exists }, name) => found(!exists, branchIs(name, exists)),
  branchClean: (worktrees, branch) => {
    if (worktrees === null) return unfound(branchIs(branch, false));
    const dirty = worktrees.filter(({ clean }) => !clean);
    if (dirty.length > 0) return found(false, `branch "${branch}" ${dirtIn(dirty)}`);
    return found(true, `branch "${branch}" is ${worktrees.length === 0 ? 'checked out nowhere' : 'clean'}`);
  },
  worktreeClean: (worktree, given) => {
    const asked = (typeof given === 'string' ? given : given?.path) ?? '.';
    if (worktree === null) return unfound(`directory "${asked}" does not exist`);
    const { path, clean, doing } = worktree;
    if (clean) return found(true, `worktree ${path} is clean`);
    return found(false, `worktree ${path} ${doing === undefined ? 'has uncommitted changes' : amid(doing)}`);
  },
  branchMerged: (answer, { branch, into }) => {
    if ('merged' in answer) {
      return found(answer.merged, `branch "${branch}" is ${answer.merged ? '' : 'not '}merged into "${into}"`);
    }
    const missing = answer.missing.map((name) => branchIs(name, false)).join(' and ');
    return unfound(`branch "${branch}" is not known to be merged into "${into}": ${missing}`);
  },
  fileExists: ({ exists }, path) => found(exists, fileIs(path, exists)),
  fileNotExists: ({ exists }, path) => found(!exists, fileIs(path, exists)),
  fileContains: (file, { path, pattern }) => {
    const wanted = readFilePattern(pattern);
    if (wanted.kind === 'invalid') return { holds: undefined, error: wanted.why };
    if (file === null) return unfound(fileIs(path, false), 'open');
    const holds = wanted.kind === 'text' ? file.text.includes(wanted.text) : wanted.regex.test(file.text);
    return found(holds, `file "${path}" ${holds ? 'contains' : 'does not contain'} ${JSON.stringify(pattern)}`);
  },
  sessionAlive: ({ alive }, name) => found(alive, `session "${name}" is ${alive ? 'alive' : 'not alive'}`),
  pipelineInPhase: (pipeline, { pipeline: id, phase }) => {
    if (pipeline === null) return unfound(`pipeline "${id}" does not exist`);
    if (hasEnded(pipeline)) return stuck(`pipeline "${id}" has ended (${pipeline.state})`);
    const holds = pipeline.phase === phase;
    const where = pipeline.phase === null ? 'in no phase yet' : `in phase "${pipeline.phase}"`;
    return found(holds, `pipeline "${id}" is ${where}${holds ? '' : `, not in "${phase}"`}`);
  },
  pipelineComplete: (pipeline, id) => {
    if (pipeline === null) return unfound(`pipeline "${id}" does not exist`);
    const { state } = pipeline;
    if (state !== 'done' && hasEnded(pipeline)) return stuck(`pipeline "${id}" has ended (${state})`);
    return found(state === 'done', `pipeline "${id}" is ${state}`);
  },
  taskDone: (task, id) => {
    if (task === null) return unfound(`task "${id}" does not exist: nobody has published it`);
    if (task.status === 'failed') return stuck(`task "${id}" has failed`);
    return found(task.status === 'complete', `task "${id}" is ${task.status}`);
  },
  memberAlive: ({ alive }, id) => found(alive, `member "${id}" is ${alive ? 'alive' : 'not alive'}`),
  command: ({ exitCode, output = '' }, { cmd, expectSuccess = true, description }) => {
    const what = `command ${JSON.stringify(cmd)}${description === undefined ? '' : ` (${description})`}`;
    const said = lastWords(output) === '' ? '' : `: ${lastWords(output)}`;
    const why = whyNoAnswer(exitCode);
    const noAnswer = `${what} exited with ${exitCode}, which is no answer: ${why}${said}`;
    if (why !== undefined && !expectSuccess) return { holds: undefined, error: noAnswer };
    const holds = (exitCode === 0) === expectSuccess;
    const wanted = holds ? '' : `, ${expectSuccess ? '0' : 'a failure'} was expected`;
    const finding = found(holds, `${what} exited with ${exitCode}${wanted}${holds ? '' : said}`);
    return why === undefined ? finding : ({ ...finding, unfound: noAnswer } as Finding);
  },
};

const SIGNALS = { least: 128, most: 128 + 64 };

/** With these codes a shell says that a command did not run, or not to its end; so the command has not said "no" either. */
function whyNoAnswer(exitCode: number): string | undefined {
  if (exitCode === 126) return 'it cannot be executed';
  if (exitCode === 127) return 'a program it names was not found';
  const isSignal = exitCode > SIGNALS.least && exitCode <= SIGNALS.most;
  return isSignal ? `it was ended by signal ${exitCode - SIGNALS.least}` : undefined;
}

const LONGEST_WORDS = 200;

/** The last lines that a command printed mostly say why it failed. */
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

function unfound(because: string, outlook: Outlook = 'stuck'): Finding {
  return { holds: false, because, outlook, unfound: because };
}

function dirtIn(worktrees: readonly WorktreeState[]): string {
  const changed = worktrees.filter(({ doing }) => doing === undefined).map(({ path }) => path);
  const begun = worktrees.flatMap(({ path, doing }) => (doing === undefined ? [] : [`${amid(doing)} in ${path}`]));
  return [...(changed.length > 0 ? [`has uncommitted changes in ${changed.join(', ')}`] : []), ...begun].join('; ');
}

function amid(doing: WorktreeOperation): string {
  return `is in the middle of ${doing === 'am' ? 'an am (git am)' : `a ${doing}`}`;
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
  const because = `issues matching ${JSON.stringify(filter)}: ${facts.join('; ')}`;
  if (offending.length === 0 && issues.length < min) return unfound(because, 'open');
  return found(offending.length === 0, because);
}
