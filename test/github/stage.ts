// A local GitHub whose every exchange is checked against GitHub's own description, and managers on it.

import { afterEach, expect } from 'vitest';
import { type Exchange, fakeGitHub, type LocalGitHub, type LocalGitHubOptions, TestClock } from 'signalbox/testing';
import { LockManager, type LockManagerOptions } from 'signalbox/github';
import { Description } from './description.ts';

// Loaded before any clock is advanced: time that a test lets pass must not outrun the loading of a module.
await import('../../src/github/octokit.ts');

let description: Description | undefined;
const problems: string[] = [];

afterEach(() => {
  expect(problems.splice(0)).toEqual([]);
});

/** For `onExchange`. */
export function checked(exchange: Exchange): void {
  try {
    description ??= new Description();
    problems.push(...description.problems(exchange));
  } catch (error) {
    // Thrown in the middle of an answer, it would look like a broken connection.
    problems.push((error as Error).message);
  }
}

export interface Stage {
  readonly clock: TestClock;
  readonly github: LocalGitHub;
  /** `METHOD /path` of all requests since the last look. */
  requests(): readonly string[];
  manager(options?: LockManagerOptions & { readonly as?: string }): LockManager;
  /** Lets time pass until the promise is settled. */
  settled<T>(promise: Promise<T>): Promise<T>;
}

export function stage(options: LocalGitHubOptions = {}): Stage {
  const clock = new TestClock();
  const asked: string[] = [];
  const onExchange = (exchange: Exchange): void => {
    asked.push(
      `${exchange.request.method} ${exchange.request.path.replace(/\?.*/, '').replace('/repos/local/repository', '')}`,
    );
    checked(exchange);
  };
  const fake = fakeGitHub({ now: () => clock.now(), onExchange, ...options });
  for (const number of [1, 2, 3]) fake.github.repository.addIssue(number, `Issue ${number}`, clock.now());
  return {
    clock,
    github: fake.github,
    requests: () => asked.splice(0),
    manager: ({ as = 'local', ...rest } = {}) => new LockManager({ client: fake.clientOf(as), clock, ...rest }),
    async settled(promise) {
      let isDone = false;
      const over = promise.finally(() => (isDone = true));
      over.catch(() => undefined);
      for (let steps = 0; !isDone && steps < 10_000; steps++) await clock.advance(steps < 20 ? 0 : 500);
      return over;
    },
  };
}

export const WORKER = {
  workerId: 'worker:1',
  nodeId: 'node-1',
  taskInfo: { complexity: 'low', estimated_duration: '5m' },
};
export const OTHER = { workerId: 'worker:2', nodeId: 'node-2' };
