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
import type { Condition } from './condition.ts';
import { matches, polledInputs, wakePatterns, wakingOf } from './wake.ts';
import type { ToldEvent } from './wakes.ts';

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

describe('of the events of one revision', () => {
  const at = { at: 0, holder: 'a' };
  const of = (resource: string, ...types: readonly string[]): ToldEvent[] =>
    types.map((type) => ({ ...at, type: `${resource.split('/')[0]}:${type}`, resource }));
  const wakes = (condition: Condition, events: readonly ToldEvent[]): boolean => wakingOf(condition).isWokenBy(events);

  test('a guard is woken by those about what it asks for, and no others', () => {
    const waking = wakingOf(all([lockFree('m'), not(taskDone('t')), memberAlive('w'), fileExists('f')]));
    expect([...(waking.resources ?? [])]).toEqual(['lock/m', 'task/t', 'member/w']);
    expect(waking.isWokenBy(of('lock/other', 'released'))).toBe(false);
    expect(waking.isWokenBy(of('lock/m', 'queued', 'stale', 'downgraded'))).toBe(false);
    expect(waking.isWokenBy([...of('lock/other', 'released'), ...of('member/w', 'joined')])).toBe(true);
  });

  test('is not woken by a lock that is handed to the next by the same write', () => {
    for (const freed of ['released', 'reclaimed', 'forced']) {
      expect(wakes(lockFree('m'), of('lock/m', freed))).toBe(true);
      expect(wakes(lockFree('m'), of('lock/m', freed, 'acquired'))).toBe(false);
      expect(wakes(not(lockHeld('m')), of('lock/m', freed, 'acquired'))).toBe(false);
    }
    // Taken and given back in the same write: free after all.
    expect(wakes(lockFree('m'), of('lock/m', 'released', 'acquired', 'released'))).toBe(true);
    // What is handed on is one lock, and another is free.
    const both = [...of('lock/m', 'released', 'acquired'), ...of('lock/n', 'released')];
    expect([wakes(lockFree('m'), both), wakes(lockFree('n'), both)]).toEqual([false, true]);
  });

  test('a guard on one holder is woken by that holder alone, not by the next', () => {
    const out = [{ ...at, type: 'lock:released', resource: 'lock/m' }];
    const next = { ...at, type: 'lock:acquired', resource: 'lock/m', holder: 'b' };
    expect(wakes(not(lockHeld('m', 'a')), [...out, next])).toBe(true);
    expect(wakes(not(lockHeld('m', 'b')), [...out, next])).toBe(false);
    expect(wakes(lockHeld('m', 'b'), [...out, next])).toBe(true);
    expect(wakes(lockHeld('m', 'a'), [...out, next])).toBe(false);
  });

  test('is woken by slots that are left free, by more of them, and by the first use', () => {
    const slots = (type: string, ...list: readonly number[]): ToldEvent => {
      return { ...at, type: `semaphore:${type}`, resource: 'semaphore/s', slots: list };
    };
    const resized = (from: number, capacity: number): ToldEvent => {
      return { ...at, type: 'semaphore:resized', resource: 'semaphore/s', from, capacity };
    };
    const s = semaphoreAvailable('s', 1);
    expect(wakes(s, [slots('released', 0, 1)])).toBe(true);
    expect(wakes(s, [slots('released', 0, 1), slots('acquired', 0), slots('acquired', 1)])).toBe(false);
    expect(wakes(s, [slots('released', 0, 1), slots('acquired', 0)])).toBe(true);
    // One that has slot 2 grows by slot 0: slot 1 is left.
    expect(wakes(s, [slots('released', 0, 1), slots('acquired', 2, 0)])).toBe(true);
    expect(wakes(s, [slots('acquired', 0)])).toBe(false);
    expect(wakes(s, [{ ...slots('acquired', 0), isNew: true }])).toBe(true);
    expect([wakes(s, [resized(2, 3)]), wakes(s, [resized(3, 2)])]).toEqual([true, false]);
    expect(wakes(not(s), [slots('acquired', 0)])).toBe(true);
  });

  test('every one that matches wakes a guard that says itself what does', () => {
    const waking = wakingOf(lockFree('m'), ['lock:acquired', 'task:*']);
    expect(waking.resources).toBeUndefined();
    expect(waking.isWokenBy(of('lock/other', 'acquired'))).toBe(true);
    expect(waking.isWokenBy(of('task/t', 'published'))).toBe(true);
    expect(waking.isWokenBy(of('lock/m', 'released'))).toBe(false);
    expect(wakingOf(lockFree('m'), []).resources?.size).toBe(1);
  });
});
