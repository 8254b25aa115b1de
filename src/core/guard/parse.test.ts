import { describe, expect, test } from 'vitest';
import { MAX_CONDITIONS, MAX_DEPTH, parseCondition } from './parse.ts';
import type { Problem } from '../shape.ts';

function problemsOf(value: unknown): readonly Problem[] {
  const parsed = parseCondition(value);
  return parsed.ok ? [] : parsed.problems;
}

function nested(depth: number): unknown {
  return depth === 1 ? { lockFree: 'm' } : { not: nested(depth - 1) };
}

const oneCondition = 'expected one condition such as {"lockFree":"main"}; several go into a list under "all"';
const tree = 'expected a tree of at most 1000 conditions, nested at most 64 deep';
const printable = 'expected 1 to 200 printable characters';

describe('a mistake is reported with its place, what is wrong and what is accepted', () => {
  test.each<[string, unknown, Problem['path'], string]>([
    ['no object at all', 'lockFree', [], `condition is "lockFree"; ${oneCondition}`],
    ['null', { not: null }, ['not'], `not is null; ${oneCondition}`],
    ['no key', { any: [{}] }, ['any', 0], `any[0] is {}; ${oneCondition}`],
    ['two keys', { lockFree: 'm', taskDone: 't' }, [], `condition is {"lockFree":"m","taskDone":"t"}; ${oneCondition}`],
    [
      'a key that is missing',
      { all: [{ lockFree: 'm' }, { branchMerged: { branch: 'x' } }] },
      ['all', 1, 'branchMerged', 'into'],
      'into is missing; expected branch, into',
    ],
    ['a wrong type', { lockFree: 7 }, ['lockFree'], `lockFree is 7, not a string; ${printable}`],
    ['an empty name', { not: { taskDone: '' } }, ['not', 'taskDone'], `taskDone is empty; ${printable}`],
    [
      'a name that is too long',
      { lockFree: 'x'.repeat(201) },
      ['lockFree'],
      `lockFree "${'x'.repeat(76)}… has 201 characters; ${printable}`,
    ],
    [
      'a name with a control character',
      { lockHeld: { name: 'm', by: 'a\nb' } },
      ['lockHeld', 'by'],
      `by "a\\nb" has the unprintable character U+000A; ${printable}`,
    ],
    [
      'an unknown key',
      { lockHeld: { name: 'm', holder: 'x' } },
      ['lockHeld', 'holder'],
      '"holder" is unknown here; expected name, by',
    ],
    [
      'no slots',
      { semaphoreAvailable: { name: 's', slots: 0 } },
      ['semaphoreAvailable', 'slots'],
      'slots is 0; expected a whole number of at least 1',
    ],
    [
      'half a slot',
      { semaphoreAvailable: { name: 's', slots: 1.5 } },
      ['semaphoreAvailable', 'slots'],
      'slots is 1.5; expected a whole number of at least 1',
    ],
    [
      'an unknown status',
      { issueStatus: { id: 1, expected: 'closed' } },
      ['issueStatus', 'expected'],
      'expected is "closed"; expected "todo" or "in-progress" or "blocked" or "done"',
    ],
    [
      'fields beside a query',
      { issuesComplete: { query: 'q', labels: ['x'] } },
      ['issuesComplete', 'labels'],
      '"labels" is unknown here; expected query, min',
    ],
    [
      'a search by another name',
      { issuesComplete: { serch: 'q' } },
      ['issuesComplete', 'serch'],
      '"serch" is unknown here; expected labels, ids, assignee, status, milestone, min, query',
    ],
    [
      'an empty list of labels',
      { noBlockedIssues: { labels: [] } },
      ['noBlockedIssues', 'labels'],
      'labels is []; expected a list of at least one label',
    ],
    [
      'a wrong id in a list',
      { issuesComplete: { ids: ['1', -1] } },
      ['issuesComplete', 'ids', 1],
      'ids[1] is -1; expected the name of an issue, or its number of at least 1',
    ],
    ['no list', { all: { lockFree: 'm' } }, ['all'], 'all is {"lockFree":"m"}; expected a list of conditions'],
    [
      'a program without a name',
      { command: { cmd: [''] } },
      ['command', 'cmd', 0],
      'cmd[0] is ""; expected a program of 1 to 4096 characters without NUL',
    ],
    [
      'a word for a truth',
      { command: { cmd: 'make', expectSuccess: 'no' } },
      ['command', 'expectSuccess'],
      'expectSuccess is "no"; expected true or false',
    ],
  ])('%s', (_, value, path, message) => {
    expect(problemsOf(value)).toEqual([{ path, message }]);
  });

  test('a broken regular expression, or one with flags that do not exist', () => {
    for (const pattern of ['/(/', '/ready/x']) {
      const [problem] = problemsOf({ fileContains: { path: 'p', pattern } });
      expect(problem?.path).toEqual(['fileContains', 'pattern']);
      expect(problem?.message).toContain(`pattern is "${pattern}"; expected a valid regular expression (Invalid`);
    }
  });

  test('an unknown condition, even one that every JavaScript object has', () => {
    for (const key of ['lockfree', 'constructor', '__proto__']) {
      const [problem] = problemsOf(JSON.parse(`{"${key}": "m"}`));
      expect(problem?.path).toEqual([key]);
      expect(problem?.message).toMatch(
        new RegExp(`^"${key}" is not a condition; (did you mean lockFree\\? E|e)xpected lockFree, .*, all, any, not$`),
      );
    }
  });

  test('several mistakes at once', () => {
    const problems = problemsOf({ any: [{ lockFree: '' }, 5, { branchMerged: { form: 'x', into: 'main' } }] });
    expect(problems.map(({ path }) => path.join('.'))).toEqual([
      'any.0.lockFree',
      'any.1',
      'any.2.branchMerged.branch',
      'any.2.branchMerged.form',
    ]);
  });
});

describe('limits', () => {
  test(`${MAX_DEPTH} levels are accepted and one more is told`, () => {
    expect(problemsOf(nested(MAX_DEPTH))).toEqual([]);
    expect(problemsOf(nested(MAX_DEPTH + 1))).toEqual([
      { path: Array(MAX_DEPTH).fill('not'), message: `not is {"lockFree":"m"}; ${tree}` },
    ]);
  });

  test(`${MAX_CONDITIONS} conditions are accepted and more are told once`, () => {
    const many = (count: number, last: unknown = { lockFree: 'm' }): unknown => ({
      all: [...Array(count - 2).fill({ lockFree: 'm' }), last],
    });
    expect(problemsOf(many(MAX_CONDITIONS))).toEqual([]);
    expect(problemsOf(many(MAX_CONDITIONS, { lockFree: '' }))).toHaveLength(1);
    expect(problemsOf(many(MAX_CONDITIONS + 5))).toEqual([
      { path: ['all', 999], message: `all[999] is {"lockFree":"m"}; ${tree}` },
    ]);
  });

  test('a great many mistakes in one place are reported too', () => {
    const labels = Array(200_000).fill('');
    expect(problemsOf({ issuesComplete: { labels } })).toHaveLength(labels.length);
  });

  test('a condition that contains itself is reported, not followed', () => {
    const loop: { all: unknown[] } = { all: [] };
    loop.all.push(loop, loop);
    expect(problemsOf(loop).length).toBeGreaterThan(0);
  });
});

describe('accepted', () => {
  test.each([
    ['a name of 200 characters that take two code units each', { lockFree: '🚦'.repeat(200) }],
    [
      'a lock by its name alone or with its holder',
      { any: [{ lockHeld: 'm' }, { lockHeld: { name: 'm', by: 'w:1' } }] },
    ],
    ['every issue there is', { issuesComplete: {} }],
    ['a path as the text to look for', { fileContains: { path: 'p', pattern: '/etc/hosts.conf' } }],
    ['a command line over several lines', { command: { cmd: 'set -e\nmake' } }],
    ['a program with an empty argument', { command: { cmd: ['printf', ''] } }],
    ['all and any of nothing', { all: [{ all: [] }, { any: [] }] }],
  ])('%s', (_, value) => {
    expect(parseCondition(value)).toEqual({ ok: true, condition: value });
  });
});
