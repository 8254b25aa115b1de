import { expect, test } from 'vitest';
import type { Condition } from './condition.ts';
import {
  all,
  any,
  branchExists,
  branchMerged,
  branchNotExists,
  command,
  fileContains,
  fileExists,
  issuesComplete,
  issueStatus,
  lockFree,
  lockHeld,
  noBlockedIssues,
  not,
} from './constructors.ts';
import { requiredInputs } from './required-inputs.ts';

const keysOf = (condition: Condition): readonly string[] => requiredInputs(condition).map(({ key }) => key);

test('a tree asks for each input once, in the order it first mentions them', () => {
  const tree = all([
    lockFree('m'),
    not(branchExists('x')),
    any([lockHeld('m', 'w:1'), branchNotExists('x'), fileExists('p')]),
  ]);
  expect(keysOf(tree)).toEqual(['lock:m', 'branch:x', 'file:p']);
});

test('a request tells the gatherer what to look at', () => {
  expect(requiredInputs(branchMerged('x', 'main'))).toEqual([
    { kind: 'branchMerged', key: 'branchMerged:x:main', branch: 'x', into: 'main' },
  ]);
});

test('whether a file exists and what is in it are asked apart, because reading costs more', () => {
  expect(keysOf(all([fileExists('p'), fileContains('p', 'a'), fileContains('p', 'b')]))).toEqual([
    'file:p',
    'fileText:p',
  ]);
});

test('names with colons are never taken for two names', () => {
  expect(keysOf(all([branchMerged('a:b', 'c'), branchMerged('a', 'b:c'), branchMerged('a%3Ab', 'c')]))).toEqual([
    'branchMerged:a%3Ab:c',
    'branchMerged:a:b:c',
    'branchMerged:a%253Ab:c',
  ]);
});

test('filters that say the same ask the tracker once', () => {
  const tree = all([
    issuesComplete({ labels: ['b', 'a'], ids: [2, '1'], min: 3 }),
    noBlockedIssues({ ids: ['1', 2, '2'], labels: ['a', 'b', 'a'] }),
  ]);
  expect(requiredInputs(tree)).toEqual([
    {
      kind: 'issues',
      key: 'issues:{"labels":["a","b"],"ids":["1","2"]}',
      filter: { labels: ['a', 'b'], ids: ['1', '2'] },
    },
  ]);
});

test('an issue is the same by number and by text', () => {
  expect(keysOf(all([issueStatus(7, 'done'), issueStatus('7', 'todo')]))).toEqual(['issue:7']);
});

test('a command runs once however its end is judged, but the shell line and the program are two', () => {
  const tree = all([command('make'), command('make', { expectSuccess: false, description: 'x' }), command(['make'])]);
  expect(keysOf(tree)).toEqual(['command:"make"', 'command:["make"]']);
});
