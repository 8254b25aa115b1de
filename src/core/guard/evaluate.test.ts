import { describe, expect, test } from 'vitest';
import type { Condition } from './condition.ts';
import {
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
} from './constructors.ts';
import { evaluate } from './evaluate.ts';
import type { Inputs } from './inputs.ts';
import { requiredInputs } from './required-inputs.ts';

const held = (holder: string, stale = false): Inputs[`lock:${string}`] => ({ value: { holders: [{ holder, stale }] } });

/** A sentence, the condition, what was gathered, and the one reason given. */
type Case = readonly [sentence: string, condition: Condition, inputs: Inputs, reason: string];

const urgent = { labels: ['urgent'] };
const urgentKey = 'issues:{"labels":["urgent"]}';
const mergedKey = 'branchMerged:feature:main';

const passing: readonly Case[] = [
  ['a lock that nobody ever used is free', lockFree('m'), { 'lock:m': { value: null } }, 'lock "m" is free'],
  ['a released lock is free', lockFree('m'), { 'lock:m': { value: { holders: [] } } }, 'lock "m" is free'],
  ['a lock is held', lockHeld('m'), { 'lock:m': held('w:1') }, 'lock "m" is held by w:1'],
  ['a lock is held by the one named', lockHeld('m', 'w:1'), { 'lock:m': held('w:1') }, 'lock "m" is held by w:1'],
  [
    'a semaphore has just enough slots',
    semaphoreAvailable('s', 2),
    { 'semaphore:s': { value: { capacity: 5, used: 3 } } },
    'semaphore "s" has 2 of 5 slots free, 2 wanted',
  ],
  [
    'a semaphore is wanted whole and nobody uses it',
    semaphoreAvailable('s', 1),
    { 'semaphore:s': { value: { capacity: 1, used: 0 } } },
    'semaphore "s" has 1 of 1 slot free, 1 wanted',
  ],
  [
    'every matching issue is done',
    issuesComplete(urgent),
    { [urgentKey]: { value: [{ id: '1', status: 'done' }] } },
    'issues matching {"labels":["urgent"]}: 1 found; none open',
  ],
  [
    'no issue matches, and none was asked for',
    issuesComplete(urgent),
    { [urgentKey]: { value: [] } },
    'issues matching {"labels":["urgent"]}: 0 found; none open',
  ],
  [
    'issues are open but none is blocked',
    noBlockedIssues(urgent),
    { [urgentKey]: { value: [{ id: '1', status: 'todo' }] } },
    'issues matching {"labels":["urgent"]}: 1 found; none blocked',
  ],
  ['an issue is as expected', issueStatus(7, 'done'), { 'issue:7': { value: { status: 'done' } } }, 'issue 7 is done'],
  ['a branch exists', branchExists('x'), { 'branch:x': { value: { exists: true } } }, 'branch "x" exists'],
  [
    'a branch does not exist',
    branchNotExists('x'),
    { 'branch:x': { value: { exists: false } } },
    'branch "x" does not exist',
  ],
  [
    'the worktree of a branch is clean',
    branchClean('x'),
    { 'worktrees:x': { value: [{ path: '/w', clean: true }] } },
    'branch "x" is clean',
  ],
  [
    'a branch that is checked out nowhere is clean',
    branchClean('x'),
    { 'worktrees:x': { value: [] } },
    'branch "x" is checked out nowhere',
  ],
  [
    'a branch is merged',
    branchMerged('feature', 'main'),
    { [mergedKey]: { value: { merged: true } } },
    'branch "feature" is merged into "main"',
  ],
  ['a file exists', fileExists('p'), { 'file:p': { value: { exists: true } } }, 'file "p" exists'],
  ['a file does not exist', fileNotExists('p'), { 'file:p': { value: { exists: false } } }, 'file "p" does not exist'],
  [
    'a file contains a piece of text',
    fileContains('p', 'a.b'),
    { 'fileText:p': { value: { text: 'xa.bx' } } },
    'file "p" contains "a.b"',
  ],
  [
    'a file matches a regular expression',
    fileContains('p', /^READY$/im),
    { 'fileText:p': { value: { text: 'not\nready\n' } } },
    'file "p" contains "/^READY$/im"',
  ],
  ['a session is alive', sessionAlive('t'), { 'session:t': { value: { alive: true } } }, 'session "t" is alive'],
  [
    'a pipeline is in a phase',
    pipelineInPhase('p', 'build'),
    { 'pipeline:p': { value: { state: 'running', phase: 'build' } } },
    'pipeline "p" is in phase "build"',
  ],
  [
    'a pipeline blocked at a phase is in that phase',
    pipelineInPhase('p', 'build'),
    { 'pipeline:p': { value: { state: 'blocked', phase: 'build' } } },
    'pipeline "p" is in phase "build"',
  ],
  [
    'a pipeline is complete',
    pipelineComplete('p'),
    { 'pipeline:p': { value: { state: 'done', phase: null } } },
    'pipeline "p" is done',
  ],
  ['a task is done', taskDone('t'), { 'task:t': { value: { status: 'complete' } } }, 'task "t" is complete'],
  ['a member is alive', memberAlive('w:1'), { 'member:w:1': { value: { alive: true } } }, 'member "w:1" is alive'],
  [
    'a command succeeds',
    command('make', { description: 'it builds' }),
    { 'command:"make"': { value: { exitCode: 0 } } },
    'command "make" (it builds) exited with 0',
  ],
  [
    'a command fails as expected',
    command(['grep', 'TODO'], { expectSuccess: false }),
    { 'command:["grep","TODO"]': { value: { exitCode: 1 } } },
    'command ["grep","TODO"] exited with 1',
  ],
  ['all of no conditions', all([]), {}, '"all" of no conditions always passes'],
];

const failing: readonly Case[] = [
  ['a lock is held', lockFree('m'), { 'lock:m': held('w:1') }, 'lock "m" is held by w:1'],
  [
    'a stale holder still holds the lock until the maintainer frees it',
    lockFree('m'),
    {
      'lock:m': {
        value: {
          holders: [
            { holder: 'w:1', stale: true },
            { holder: 'w:2', stale: false },
          ],
        },
      },
    },
    'lock "m" is held by w:1 (stale), w:2',
  ],
  ['nobody holds the lock', lockHeld('m'), { 'lock:m': { value: null } }, 'lock "m" is free'],
  [
    'somebody else holds the lock',
    lockHeld('m', 'w:2'),
    { 'lock:m': held('w:1') },
    'lock "m" is held by w:1, not by w:2',
  ],
  [
    'a semaphore has too few free slots',
    semaphoreAvailable('s', 2),
    { 'semaphore:s': { value: { capacity: 3, used: 4 } } },
    'semaphore "s" has 0 of 3 slots free, 2 wanted',
  ],
  [
    'an issue is open',
    issuesComplete(urgent),
    {
      [urgentKey]: {
        value: [
          { id: '1', status: 'done' },
          { id: '2', status: 'in-progress' },
        ],
      },
    },
    'issues matching {"labels":["urgent"]}: 2 found; 1 open: 2 (in-progress)',
  ],
  [
    'fewer issues match than were asked for',
    issuesComplete({ ...urgent, min: 2 }),
    { [urgentKey]: { value: [{ id: '1', status: 'done' }] } },
    'issues matching {"labels":["urgent"]}: 1 found, at least 2 wanted; none open',
  ],
  [
    'an issue is blocked',
    noBlockedIssues(urgent),
    { [urgentKey]: { value: [{ id: '1', status: 'blocked' }] } },
    'issues matching {"labels":["urgent"]}: 1 found; 1 blocked: 1 (blocked)',
  ],
  [
    'an issue has another status',
    issueStatus('7', 'done'),
    { 'issue:7': { value: { status: 'todo' } } },
    'issue 7 is todo, not done',
  ],
  [
    'a branch does not exist',
    branchExists('x'),
    { 'branch:x': { value: { exists: false } } },
    'branch "x" does not exist',
  ],
  ['a branch exists', branchNotExists('x'), { 'branch:x': { value: { exists: true } } }, 'branch "x" exists'],
  [
    'one of the worktrees of a branch has changes',
    branchClean('x'),
    {
      'worktrees:x': {
        value: [
          { path: '/a', clean: true },
          { path: '/b', clean: false },
        ],
      },
    },
    'branch "x" has uncommitted changes in /b',
  ],
  [
    'a branch is not merged',
    branchMerged('feature', 'main'),
    { [mergedKey]: { value: { merged: false } } },
    'branch "feature" is not merged into "main"',
  ],
  ['a file does not exist', fileExists('p'), { 'file:p': { value: { exists: false } } }, 'file "p" does not exist'],
  ['a file exists', fileNotExists('p'), { 'file:p': { value: { exists: true } } }, 'file "p" exists'],
  [
    'a file lacks a piece of text',
    fileContains('p', 'a.b'),
    { 'fileText:p': { value: { text: 'axb' } } },
    'file "p" does not contain "a.b"',
  ],
  [
    'a file lacks two slashes, which are text and no regular expression that matches anything',
    fileContains('p', '//'),
    { 'fileText:p': { value: { text: 'x' } } },
    'file "p" does not contain "//"',
  ],
  [
    'a file to look into does not exist',
    fileContains('p', 'x'),
    { 'fileText:p': { value: null } },
    'file "p" does not exist',
  ],
  ['a session is gone', sessionAlive('t'), { 'session:t': { value: { alive: false } } }, 'session "t" is not alive'],
  [
    'a pipeline is in another phase',
    pipelineInPhase('p', 'ship'),
    { 'pipeline:p': { value: { state: 'running', phase: 'build' } } },
    'pipeline "p" is in phase "build", not in "ship"',
  ],
  [
    'a pipeline has not begun',
    pipelineInPhase('p', 'ship'),
    { 'pipeline:p': { value: { state: 'pending', phase: null } } },
    'pipeline "p" is in no phase yet, not in "ship"',
  ],
  [
    'a pipeline is still running',
    pipelineComplete('p'),
    { 'pipeline:p': { value: { state: 'running', phase: 'build' } } },
    'pipeline "p" is running',
  ],
  ['a task is running', taskDone('t'), { 'task:t': { value: { status: 'running' } } }, 'task "t" is running'],
  ['a member is gone', memberAlive('w:1'), { 'member:w:1': { value: { alive: false } } }, 'member "w:1" is not alive'],
  [
    'a command fails',
    command('make'),
    { 'command:"make"': { value: { exitCode: 2 } } },
    'command "make" exited with 2, 0 was expected',
  ],
  [
    'a command succeeds that should not',
    command('make', { expectSuccess: false }),
    { 'command:"make"': { value: { exitCode: 0 } } },
    'command "make" exited with 0, a failure was expected',
  ],
];

/** The condition cannot pass until a person, or another program, does something out of the ordinary. */
const stuck: readonly Case[] = [
  [
    'a semaphore that nobody has created',
    semaphoreAvailable('s', 1),
    { 'semaphore:s': { value: null } },
    'semaphore "s" does not exist: nobody has created it',
  ],
  [
    'more slots than a semaphore has',
    semaphoreAvailable('s', 4),
    { 'semaphore:s': { value: { capacity: 3, used: 0 } } },
    'semaphore "s" has 3 slots in all, 4 wanted',
  ],
  ['an issue that does not exist', issueStatus(7, 'done'), { 'issue:7': { value: null } }, 'issue 7 does not exist'],
  [
    'merging into a branch that does not exist',
    branchMerged('feature', 'main'),
    { [mergedKey]: { value: { missing: ['main'] } } },
    'branch "feature" is not known to be merged into "main": branch "main" does not exist',
  ],
  [
    'a pipeline that does not exist',
    pipelineComplete('p'),
    { 'pipeline:p': { value: null } },
    'pipeline "p" does not exist',
  ],
  [
    'the phase of a pipeline that does not exist',
    pipelineInPhase('p', 'ship'),
    { 'pipeline:p': { value: null } },
    'pipeline "p" does not exist',
  ],
  [
    'a pipeline that failed',
    pipelineComplete('p'),
    { 'pipeline:p': { value: { state: 'failed', phase: 'build' } } },
    'pipeline "p" has ended (failed)',
  ],
  [
    'a phase of a pipeline that is over',
    pipelineInPhase('p', 'ship'),
    { 'pipeline:p': { value: { state: 'done', phase: null } } },
    'pipeline "p" has ended (done)',
  ],
  [
    'a task that nobody has published',
    taskDone('t'),
    { 'task:t': { value: null } },
    'task "t" does not exist: nobody has published it',
  ],
  ['a task that failed', taskDone('t'), { 'task:t': { value: { status: 'failed' } } }, 'task "t" has failed'],
];

describe('a condition passes when', () => {
  test.each(passing)('%s', (_, condition, inputs, reason) => {
    expect(evaluate(condition, inputs)).toEqual({ kind: 'passed', reasons: [reason] });
  });
});

describe('a condition fails, and says why, when', () => {
  test.each(failing)('%s', (_, condition, inputs, reason) => {
    expect(evaluate(condition, inputs)).toEqual({ kind: 'failed', reasons: [reason], outlook: 'open' });
  });
});

describe('a condition says that it cannot pass as things stand when it asks for', () => {
  test.each(stuck)('%s', (_, condition, inputs, reason) => {
    const reasons = [`${reason}; ${Object.keys(condition)[0]} cannot pass as things stand`];
    expect(evaluate(condition, inputs)).toEqual({ kind: 'failed', reasons, outlook: 'stuck' });
  });
});

describe('while its input is missing, or could not be gathered, a condition neither passes nor fails', () => {
  test.each(failing)('%s', (_, condition) => {
    const [input] = requiredInputs(condition);
    if (input === undefined) throw new Error('this condition needs no input');
    expect(evaluate(condition, {})).toEqual({ kind: 'needsInput', missing: [{ key: input.key }] });
    expect(evaluate(condition, { [input.key]: { error: 'no answer' } } as Inputs)).toEqual({
      kind: 'needsInput',
      missing: [{ key: input.key, error: 'no answer' }],
    });
  });
});

test('a broken regular expression neither matches nor lets its opposite pass', () => {
  const inputs: Inputs = { 'fileText:p': { value: { text: '(' } } };
  const broken = fileContains('p', '/(/');
  const error = expect.stringContaining('Invalid regular expression');
  expect(evaluate(broken, inputs)).toEqual({ kind: 'needsInput', missing: [{ key: 'fileText:p', error }] });
  expect(evaluate(not(broken), inputs).kind).toBe('needsInput');
});

describe('with some inputs missing', () => {
  const yes = branchExists('yes');
  const no = branchExists('no');
  const unknown = branchExists('unknown');
  const inputs: Inputs = { 'branch:yes': { value: { exists: true } }, 'branch:no': { value: { exists: false } } };
  const kindOf = (condition: Condition): string => evaluate(condition, inputs).kind;

  test.each([
    ['all fails if any child fails, whatever else is not known', all([unknown, no, yes]), 'failed'],
    ['all waits for what is not known if nothing fails', all([yes, unknown]), 'needsInput'],
    ['any passes if any child passes, whatever else is not known', any([unknown, no, yes]), 'passed'],
    ['any waits for what is not known if nothing passes', any([no, unknown]), 'needsInput'],
    ['the opposite of what is not known is not known', not(unknown), 'needsInput'],
    ['the opposite of an undecided all is undecided', not(all([yes, unknown])), 'needsInput'],
    ['nesting decides from the inside out', all([any([unknown, yes]), not(all([unknown, no]))]), 'passed'],
  ])('%s', (_, condition, kind) => {
    expect(kindOf(condition)).toBe(kind);
  });

  test('everything that is missing is named, each once', () => {
    expect(evaluate(all([unknown, yes, any([unknown, lockFree('m')])]), inputs)).toEqual({
      kind: 'needsInput',
      missing: [{ key: 'branch:unknown' }, { key: 'lock:m' }],
    });
  });
});

describe('a failure tells every reason', () => {
  const inputs: Inputs = {
    'branch:x': { value: { exists: false } },
    'branch:y': { value: { exists: false } },
    'lock:m': { value: null },
    'semaphore:s': { value: null },
    'task:t': { value: { status: 'complete' } },
  };
  const [x, y] = ['branch "x" does not exist', 'branch "y" does not exist'];
  const reasonsOf = (condition: Condition): readonly string[] => {
    const verdict = evaluate(condition, inputs);
    return verdict.kind === 'failed' ? verdict.reasons : [];
  };

  test('all: those of every failing child, nested ones too', () => {
    expect(reasonsOf(all([branchExists('x'), lockFree('m'), all([branchExists('y')])]))).toEqual([x, y]);
  });

  test('any: those of all children', () => {
    expect(reasonsOf(any([branchExists('x'), branchExists('y')]))).toEqual([x, y]);
  });

  test('not: what holds although it must not', () => {
    expect(reasonsOf(not(lockFree('m')))).toEqual(['must not hold, but does: lock "m" is free']);
    expect(reasonsOf(not(all([lockFree('m'), taskDone('t')])))).toEqual([
      'must not hold, but does: lock "m" is free and task "t" is complete',
    ]);
    expect(reasonsOf(not(any([branchExists('x'), taskDone('t')])))).toEqual([
      'must not hold, but does: task "t" is complete',
    ]);
  });

  test('of many open issues only the first ten are named', () => {
    const value = Array.from({ length: 12 }, (_, at) => ({ id: `${at}`, status: 'todo' as const }));
    const verdict = evaluate(issuesComplete({}), { 'issues:{}': { value } });
    expect(verdict).toMatchObject({
      reasons: [expect.stringMatching(/12 open: 0 \(todo\), .*9 \(todo\) and 2 more$/)],
    });
  });
});

describe('whether waiting can help', () => {
  const inputs: Inputs = { 'lock:m': held('w:1'), 'semaphore:s': { value: null } };
  const open = lockFree('m');
  const stuck = semaphoreAvailable('s', 1);
  const never = any([]);
  const outlookOf = (condition: Condition): string | undefined => {
    const verdict = evaluate(condition, inputs);
    return verdict.kind === 'failed' ? verdict.outlook : undefined;
  };

  test('any of nothing can never pass, and says so', () => {
    const reasons = ['"any" of no conditions can never pass'];
    expect(evaluate(never, {})).toEqual({ kind: 'failed', reasons, outlook: 'never' });
  });

  test('the opposite of what always passes can never pass, whatever happens in the world', () => {
    expect(outlookOf(not(all([])))).toBe('never');
    expect(outlookOf(not(all([all([]), not(never)])))).toBe('never');
    expect(outlookOf(not(not(open)))).toBe('open');
  });

  test('all is as hopeless as its most hopeless failure', () => {
    expect(outlookOf(all([open, open]))).toBe('open');
    expect(outlookOf(all([open, stuck]))).toBe('stuck');
    expect(outlookOf(all([open, never, stuck]))).toBe('never');
  });

  test('any is as hopeful as its most hopeful failure', () => {
    expect(outlookOf(any([never, stuck, open]))).toBe('open');
    expect(outlookOf(any([never, stuck]))).toBe('stuck');
    expect(outlookOf(any([never, never]))).toBe('never');
  });
});
