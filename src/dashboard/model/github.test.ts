import { describe, expect, it } from 'vitest';
import { gitHubIn, matchingIssues } from './github.ts';

const ANSWER = {
  ...{ repository: 'acme/shop', asOf: 1_000, trouble: null, everyMs: 15_000 },
  locks: [
    {
      ...{ issue: 7, title: 'Seven', isLocked: true, assignee: 'bot', token: 3, isStale: true },
      metadata: {
        lock: {
          ...{ worker_id: 'agent:1', node_id: 'runner', claimed_at: '2026-01-01T00:00:00Z' },
          ...{ heartbeat_last: '2026-01-01T00:01:00Z', task_info: { task_type: 'fix', priority: 2, odd: { x: 1 } } },
        },
      },
    },
    { issue: 8, title: null, token: 1, metadata: null },
  ],
};

describe('locks on GitHub', () => {
  it('are read with what the worker said of its task, and odd values are left out', () => {
    const { repository, locks } = gitHubIn(ANSWER);
    expect(repository).toBe('acme/shop');
    expect(locks[0]).toMatchObject({
      ...{ issue: 7, worker: 'agent:1', node: 'runner', login: 'bot', isStale: true },
      ...{ since: Date.parse('2026-01-01T00:00:00Z'), renewedAt: Date.parse('2026-01-01T00:01:00Z') },
      task: [
        ['task type', 'fix'],
        ['priority', '2'],
      ],
    });
    expect(locks[1]).toMatchObject({ issue: 8, title: null, worker: '', since: null, isStale: false });
    expect(gitHubIn('nonsense')).toMatchObject({ repository: null, locks: [] });
  });

  it.each([
    ['', '', [7, 8]],
    ['#7', '', [7]],
    ['SEVEN', '', [7]],
    ['runner', '', [7]],
    ['3', '', [7]],
    ['', 'lost', [7]],
    ['', 'held', [7, 8]],
    ['', 'free', []],
    ['', 'queue', []],
  ])('are found by %j and state %j', (text, is, issues) => {
    expect(matchingIssues(gitHubIn(ANSWER), { text, is }).map(({ issue }) => issue)).toEqual(issues);
  });
});
