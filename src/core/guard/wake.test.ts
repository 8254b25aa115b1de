import { describe, expect, test } from 'vitest';
import {
  all,
  any,
  branchMerged,
  command,
  fileExists,
  issuesComplete,
  lockFree,
  lockHeld,
  memberAlive,
  not,
  pipelineInPhase,
  semaphoreAvailable,
  sessionAlive,
  taskDone,
} from './constructors.ts';
import { matches, polledInputs, wakePatterns } from './wake.ts';

describe('a guard is woken', () => {
  const freed = ['lock:released', 'lock:reclaimed', 'lock:forced'];

  test('by whatever may free the lock it waits for', () => {
    expect(wakePatterns(lockFree('m'))).toEqual(freed);
  });

  test('by the opposite events where the condition is denied', () => {
    expect(wakePatterns(not(lockFree('m')))).toEqual(['lock:acquired']);
    expect(wakePatterns(not(all([lockHeld('m'), not(memberAlive('w'))])))).toEqual([...freed, 'member:joined']);
  });

  test('by the events of every leaf, each named once', () => {
    const tree = any([lockFree('m'), taskDone('t'), all([lockFree('n'), memberAlive('w')])]);
    expect(wakePatterns(tree)).toEqual([...freed, 'task:completed', 'member:joined']);
  });

  test('by the first use of a semaphore, which creates it', () => {
    expect(wakePatterns(semaphoreAvailable('s', 1))).toContain('semaphore:acquired');
  });

  test('by a pipeline being blocked before a phase, which is in it then, and out of the one before', () => {
    for (const condition of [pipelineInPhase('p', 'x'), not(pipelineInPhase('p', 'x'))]) {
      expect(wakePatterns(condition).some((pattern) => matches(pattern, 'pipeline:blocked'))).toBe(true);
    }
  });
});

test('files, git, commands, sessions and issues are polled; what the store announces is not', () => {
  const polled = all([
    fileExists('p'),
    not(branchMerged('x', 'main')),
    command('make'),
    sessionAlive('agent'),
    any([issuesComplete({}), fileExists('p')]),
  ]);
  const announced = all([lockFree('m'), taskDone('t'), memberAlive('w'), semaphoreAvailable('s', 1)]);
  expect(polledInputs(all([announced, polled])).map(({ key }) => key)).toEqual([
    'file:p',
    'branchMerged:x:main',
    'command:"make"',
    'session:agent',
    'issues:{}',
  ]);
  expect(wakePatterns(polled)).toEqual([]);
});

test.each([
  ['*', 'lock:released', true],
  ['lock:*', 'lock:released', true],
  ['lock:*', 'locksmith:left', false],
  ['lock:*', 'lock', false],
  ['lock:released', 'lock:released', true],
  ['lock:released', 'lock:released-again', false],
  ['', 'lock:released', false],
])('pattern %j and event %j: %j', (pattern, eventType, expected) => {
  expect(matches(pattern, eventType)).toBe(expected);
});
