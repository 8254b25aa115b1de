import { expect, test } from 'vitest';
import { all, any, branchExists, lockFree } from './constructors.ts';
import { checkGuard, type Guard, wakesOn } from './guard.ts';
import type { Inputs } from './inputs.ts';

const guard: Guard = { id: 'before-ship', condition: all([lockFree('main'), branchExists('feature')]) };

const heldAndMissing: Inputs = {
  'lock:main': { value: { holders: [{ holder: 'worker:ci-3', stale: true }] } },
  'branch:feature': { value: { exists: false } },
};

test('a guard that passes says which', () => {
  const inputs: Inputs = { 'lock:main': { value: null }, 'branch:feature': { value: { exists: true } } };
  expect(checkGuard(guard, inputs)).toEqual({ kind: 'passed', guard: 'before-ship' });
});

test('a guard that fails says all the reasons and what is to be done, which is to wait unless said otherwise', () => {
  expect(checkGuard(guard, heldAndMissing)).toEqual({
    kind: 'failed',
    guard: 'before-ship',
    action: 'block',
    reasons: ['lock "main" is held by worker:ci-3 (stale)', 'branch "feature" does not exist'],
    outlook: 'open',
  });
});

test.each<[Guard['onFailure'] & {}]>([['block'], ['warn'], [{ retry: 5_000 }], [{ fail: 'not today' }]])(
  'its action on failure is handed on: %j',
  (onFailure) => {
    expect(checkGuard({ ...guard, onFailure }, heldAndMissing)).toMatchObject({ action: onFailure });
  },
);

test('a guard that can never pass is told apart from one that waits', () => {
  expect(checkGuard({ id: 'g', condition: any([]) }, {})).toMatchObject({ kind: 'failed', outlook: 'never' });
});

test('a guard whose input could not be gathered does not pass, and says why', () => {
  const inputs: Inputs = { 'lock:main': { value: null }, 'branch:feature': { error: 'not a git repository' } };
  expect(checkGuard(guard, inputs)).toEqual({
    kind: 'needsInput',
    guard: 'before-ship',
    missing: [{ key: 'branch:feature', error: 'not a git repository' }],
  });
});

test('a guard is woken by the patterns it was given, and else by those of its condition', () => {
  const derived = ['lock:released', 'lock:reclaimed', 'lock:forced'];
  expect(wakesOn({ ...guard, wakeOn: ['task:*'] })).toEqual(['task:*']);
  expect(wakesOn(guard)).toEqual(derived);
  expect(wakesOn({ ...guard, wakeOn: [] })).toEqual(derived);
});
