import { expect, test } from 'vitest';
import { all, any, branchExists, fileExists, lockFree, not, sessionAlive, taskDone } from './constructors.ts';
import { explain, renderExplanation } from './explain.ts';
import type { Inputs } from './inputs.ts';

const inputs: Inputs = {
  'lock:main': { value: null },
  'branch:feature': { value: { exists: false } },
  'task:42': { value: { status: 'complete' } },
  'file:go.txt': { error: 'EACCES:\n\u001b[31mdenied' },
};

test('every node has a verdict, and every leaf a reason, also where the outcome is already decided', () => {
  const tree = all([
    lockFree('main'),
    any([branchExists('feature'), fileExists('go.txt'), sessionAlive('agent')]),
    not(taskDone('42')),
    all([]),
    any([]),
  ]);
  expect(renderExplanation(explain(tree, inputs))).toEqual([
    '✗ all of',
    '  ✓ lock "main" is free',
    '  ? any of',
    '    ✗ branch "feature" does not exist',
    '    ? fileExists: file:go.txt could not be checked: EACCES: [31mdenied',
    '    ? sessionAlive: session:agent has not been checked',
    '  ✗ not',
    '    ✓ task "42" is complete',
    '  ✓ all of nothing',
    '  ✗ any of nothing',
  ]);
});

test('an explanation is plain JSON', () => {
  const explanation = explain(not(lockFree('main')), inputs);
  expect(JSON.parse(JSON.stringify(explanation))).toEqual(explanation);
});
