// The rule of guards, over every condition: nothing passes because nothing was found. What does not exist fails and says
// so, and `not` of it is needsInput; what could not be looked at is needsInput either way.

import { describe, expect, test } from 'vitest';
import type { Condition, LeafKind } from './condition.ts';
import { evaluate, type Verdict } from './evaluate.ts';
import { explain, renderExplanation } from './explain.ts';
import type { Inputs } from './inputs.ts';
import { conditionKeys, parseCondition } from './parse.ts';
import { requiredInputs } from './required-inputs.ts';
import { polledInputs, wakePatterns } from './wake.ts';

/** `plain`: judged as it is; `denied`: under `not`. */
type Pair = readonly [plain: Verdict['kind'], denied: Verdict['kind']];

/** What a look can bring: the value, and what is to come of it. */
interface Looks {
  readonly condition: Condition;
  readonly passes: unknown;
  readonly fails: unknown;
  readonly nothing: readonly [value: unknown, ...Pair, why: RegExp];
}

const ABSENT: Pair = ['failed', 'needsInput'];
/** Whether it exists is the question itself, or the specification makes an exception. */
const IS_NO: Pair = ['failed', 'passed'];
const IS_YES: Pair = ['passed', 'failed'];

const holders = (...names: readonly string[]): unknown => ({
  holders: names.map((holder) => ({ holder, stale: false })),
});

const table: Readonly<Record<LeafKind, Looks>> = {
  lockFree: {
    condition: { lockFree: 'x' },
    passes: holders(),
    fails: holders('a'),
    nothing: [null, ...IS_YES, /free/],
  },
  lockHeld: {
    condition: { lockHeld: { name: 'x', by: 'a' } },
    passes: holders('a'),
    fails: holders('b'),
    // An unknown lock is free.
    nothing: [null, ...IS_NO, /free/],
  },
  semaphoreAvailable: {
    condition: { semaphoreAvailable: { name: 'x', slots: 1 } },
    passes: { capacity: 1, used: 0 },
    fails: { capacity: 1, used: 1 },
    nothing: [null, ...ABSENT, /semaphore "x" does not exist/],
  },
  issuesComplete: {
    condition: { issuesComplete: { labels: ['x'], min: 1 } },
    passes: [{ id: '1', status: 'done' }],
    fails: [{ id: '1', status: 'todo' }],
    nothing: [[], ...ABSENT, /0 found, at least 1 wanted/],
  },
  noBlockedIssues: {
    condition: { noBlockedIssues: { labels: ['x'], min: 1 } },
    passes: [{ id: '1', status: 'todo' }],
    fails: [{ id: '1', status: 'blocked' }],
    nothing: [[], ...ABSENT, /0 found, at least 1 wanted/],
  },
  issueStatus: {
    condition: { issueStatus: { id: 7, expected: 'done' } },
    passes: { status: 'done' },
    fails: { status: 'todo' },
    nothing: [null, ...ABSENT, /issue 7 does not exist/],
  },
  branchExists: {
    condition: { branchExists: 'x' },
    passes: { exists: true },
    fails: { exists: false },
    nothing: [{ exists: false }, ...IS_NO, /does not exist/],
  },
  branchNotExists: {
    condition: { branchNotExists: 'x' },
    passes: { exists: false },
    fails: { exists: true },
    nothing: [{ exists: false }, ...IS_YES, /does not exist/],
  },
  branchClean: {
    condition: { branchClean: 'x' },
    passes: [{ path: '/x', clean: true }],
    fails: [{ path: '/x', clean: false }],
    nothing: [null, ...ABSENT, /branch "x" does not exist/],
  },
  worktreeClean: {
    condition: { worktreeClean: 'x' },
    passes: { path: '/x', clean: true },
    fails: { path: '/x', clean: false, doing: 'merge' },
    nothing: [null, ...ABSENT, /directory "x" does not exist/],
  },
  branchMerged: {
    condition: { branchMerged: { branch: 'x', into: 'y' } },
    passes: { merged: true },
    fails: { merged: false },
    nothing: [{ missing: ['x'] }, ...ABSENT, /branch "x" does not exist/],
  },
  fileExists: {
    condition: { fileExists: 'x' },
    passes: { exists: true },
    fails: { exists: false },
    nothing: [{ exists: false }, ...IS_NO, /does not exist/],
  },
  fileNotExists: {
    condition: { fileNotExists: 'x' },
    passes: { exists: false },
    fails: { exists: true },
    nothing: [{ exists: false }, ...IS_YES, /does not exist/],
  },
  fileContains: {
    condition: { fileContains: { path: 'x', pattern: 'ready' } },
    passes: { text: 'ready' },
    fails: { text: 'not yet' },
    nothing: [null, ...ABSENT, /file "x" does not exist/],
  },
  sessionAlive: {
    condition: { sessionAlive: 'x' },
    passes: { alive: true },
    fails: { alive: false },
    nothing: [{ alive: false }, ...IS_NO, /not alive/],
  },
  pipelineInPhase: {
    condition: { pipelineInPhase: { pipeline: 'x', phase: 'ship' } },
    passes: { state: 'running', phase: 'ship' },
    fails: { state: 'running', phase: 'build' },
    nothing: [null, ...ABSENT, /pipeline "x" does not exist/],
  },
  pipelineComplete: {
    condition: { pipelineComplete: 'x' },
    passes: { state: 'done', phase: null },
    fails: { state: 'running', phase: 'build' },
    nothing: [null, ...ABSENT, /pipeline "x" does not exist/],
  },
  taskDone: {
    condition: { taskDone: 'x' },
    passes: { status: 'complete' },
    fails: { status: 'running' },
    nothing: [null, ...ABSENT, /task "x" does not exist/],
  },
  memberAlive: {
    condition: { memberAlive: 'x' },
    passes: { alive: true },
    fails: { alive: false },
    nothing: [{ alive: false }, ...IS_NO, /not alive/],
  },
  command: {
    condition: { command: { cmd: 'x' } },
    passes: { exitCode: 0 },
    fails: { exitCode: 1 },
    nothing: [{ exitCode: 127, output: 'x: not found' }, ...ABSENT, /x: not found/],
  },
};

const keyOf = (condition: Condition): string => requiredInputs(condition)[0]?.key ?? '';
const judged = (condition: Condition, gathered: unknown): Verdict =>
  evaluate(condition, { [keyOf(condition)]: gathered } as Inputs);

function pair(condition: Condition, gathered: unknown): Pair {
  return [judged(condition, gathered).kind, judged({ not: condition }, gathered).kind];
}

function wordsOf(verdict: Verdict): string {
  return 'reasons' in verdict ? verdict.reasons.join() : verdict.missing.map(({ error }) => error).join();
}

test('the table has every condition there is', () => {
  expect(['all', 'any', 'not', ...Object.keys(table)].sort()).toEqual([...conditionKeys].sort());
});

describe.each(Object.entries(table))('%s', (_, { condition, passes, fails, nothing }) => {
  test('is read as it is written, and is woken by something', () => {
    expect(parseCondition(condition)).toEqual({ ok: true, condition });
    expect(wakePatterns(condition).length + polledInputs(condition).length).toBeGreaterThan(0);
  });

  test('passes on what it asks for, and its opposite fails', () => {
    expect(pair(condition, { value: passes })).toEqual(['passed', 'failed']);
  });

  test('fails on anything else, and its opposite passes', () => {
    expect(pair(condition, { value: fails })).toEqual(['failed', 'passed']);
  });

  test('says what it is told to where there is nothing to judge', () => {
    const [value, plain, denied, why] = nothing;
    expect(pair(condition, { value })).toEqual([plain, denied]);
    expect(wordsOf(judged(condition, { value }))).toMatch(why);
    expect(wordsOf(judged({ not: condition }, { value }))).toMatch(why);
    // However it is put: under two nots, or within others.
    expect(pair({ not: { not: condition } }, { value })).toEqual([plain, denied]);
    expect(pair({ all: [condition, { any: [condition] }] }, { value })).toEqual([plain, denied]);
    const inputs = { [keyOf(condition)]: { value } } as Inputs;
    const mark = { passed: '✓', failed: '✗', needsInput: '?' }[denied];
    expect(renderExplanation(explain({ not: condition }, inputs))[0]).toBe(`${mark} not`);
  });

  test('is open where nobody could look, and so is its opposite', () => {
    expect(pair(condition, { error: 'no answer' })).toEqual(['needsInput', 'needsInput']);
    expect(pair(condition, undefined)).toEqual(['needsInput', 'needsInput']);
  });
});

describe('the exceptions', () => {
  test('a filter without min is content with no issue at all', () => {
    expect(pair({ issuesComplete: {} }, { value: [] })).toEqual(IS_YES);
    expect(pair({ noBlockedIssues: {} }, { value: [] })).toEqual(IS_YES);
  });

  test('a filter that finds too few, and one of those open, has its answer', () => {
    expect(pair({ issuesComplete: { min: 2 } }, { value: [{ id: '1', status: 'todo' }] })).toEqual(IS_NO);
    expect(pair({ issuesComplete: { min: 2 } }, { value: [{ id: '1', status: 'done' }] })).toEqual(ABSENT);
  });

  test('a branch that no worktree has is clean', () => {
    expect(pair({ branchClean: 'x' }, { value: [] })).toEqual(IS_YES);
  });
});

describe('a command that did not run to its end has not said no', () => {
  const fails: Condition = { command: { cmd: 'x', expectSuccess: false } };

  test.each([126, 127, 129, 130, 137, 143, 192])('exit code %d is no answer to expectSuccess: false', (exitCode) => {
    expect(pair(fails, { value: { exitCode } })).toEqual(['needsInput', 'needsInput']);
    expect(pair({ command: { cmd: 'x' } }, { value: { exitCode } })).toEqual(ABSENT);
    expect(wordsOf(judged(fails, { value: { exitCode } }))).toContain(`exited with ${exitCode}, which is no answer`);
  });

  test.each([1, 2, 125, 128, 193, 255])('exit code %d is one', (exitCode) => {
    expect(pair(fails, { value: { exitCode } })).toEqual(IS_YES);
    expect(pair({ command: { cmd: 'x' } }, { value: { exitCode } })).toEqual(IS_NO);
  });
});

test('who waits for the opposite of what does not exist yet is woken when it comes to be', () => {
  const woken = (condition: Condition): readonly string[] => wakePatterns({ not: condition });
  expect(woken({ pipelineInPhase: { pipeline: 'x', phase: 'ship' } })).toContain('pipeline:started');
  expect(woken({ pipelineComplete: 'x' })).toContain('pipeline:started');
  expect(woken({ taskDone: 'x' })).toContain('task:published');
  expect(woken({ semaphoreAvailable: { name: 'x', slots: 1 } })).toEqual([
    'semaphore:acquired',
    'semaphore:resized',
    'semaphore:drained',
  ]);
});

describe('worktreeClean', () => {
  test.each([[{ worktreeClean: '.' }], [{ worktreeClean: null }], [{ worktreeClean: {} }]])(
    '%j is about the current directory',
    (written) => {
      const parsed = parseCondition(written);
      expect(parsed.ok && requiredInputs(parsed.condition)).toEqual([
        { kind: 'worktree', key: 'worktree:.', path: '.' },
      ]);
    },
  );

  test('names a directory, and nothing else', () => {
    expect(parseCondition({ worktreeClean: { path: '../side' } }).ok).toBe(true);
    for (const odd of ['', 7, true, [], { path: '' }, { directory: '.' }]) {
      expect(parseCondition({ worktreeClean: odd }), JSON.stringify(odd)).toMatchObject({ ok: false });
    }
  });
});
