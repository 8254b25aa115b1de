// How long an operation takes where each request takes 80 ms. The time is the clock's of the test, so that it counts nothing
// but requests that wait for one another.

import { expect, it } from 'vitest';
import { TestClock } from 'signalbox/testing';
import { LockManager, OctokitClient } from 'signalbox/github';
import { pause } from '../../src/clock.ts';
import { fetchFrom } from '../../src/github/local/fetch.ts';
import { LocalGitHub } from '../../src/github/local/local-github.ts';

// Loaded before the clock runs.
await import('../../src/github/octokit.ts');

function far(): {
  readonly clock: TestClock;
  manager(): LockManager;
  timed<T>(work: Promise<T>): Promise<{ readonly ms: number; readonly result: T }>;
} {
  const clock = new TestClock();
  const github = new LocalGitHub({ now: () => clock.now() });
  github.repository.addIssue(1);
  const near = fetchFrom(github);
  const fetch: typeof globalThis.fetch = async (input, init) => {
    await pause(40, undefined, clock);
    const answer = await near(input, init);
    await pause(40, undefined, clock);
    return answer;
  };
  return {
    clock,
    manager: () =>
      new LockManager({
        clock,
        client: new OctokitClient({ githubRepo: github.name, token: 'x', baseUrl: github.url, fetch, env: {} }),
      }),
    async timed(work) {
      const since = clock.monotonic();
      let ms: number | undefined;
      const over = work.finally(() => (ms = clock.monotonic() - since));
      while (ms === undefined) {
        // What needs no time comes first.
        for (let turn = 0; turn < 10; turn++) await clock.advance(0);
        await clock.advance(20);
      }
      return { ms, result: await over };
    },
  };
}

it('a free lock takes at most half a second, a release at most 300 ms', async () => {
  const { manager, timed } = far();
  const acquired = await timed(manager().acquireLock(1, { workerId: 'w', nodeId: 'n' }));
  if (!acquired.result.success) throw new Error(acquired.result.error);
  expect(acquired.ms).toBeLessThanOrEqual(500);
  const released = await timed(acquired.result.lock.release());
  expect(released.result).toEqual({ kind: 'released' });
  expect(released.ms).toBeLessThanOrEqual(300);
});

it('a lock that is released meanwhile takes two to ten seconds', async () => {
  const { clock, manager, timed } = far();
  const { result: first } = await timed(manager().acquireLock(1, { workerId: 'w', nodeId: 'n' }));
  if (!first.success) throw new Error(first.error);
  const second = timed(manager().acquireLock(1, { workerId: 'v', nodeId: 'n' }));
  // Released after a second and a half: between the first retry and the second.
  let left = 75;
  const release = (): void => void (left-- > 0 ? clock.timer(20, release) : first.lock.release());
  release();
  const { ms, result } = await second;
  expect(result).toMatchObject({ success: true, token: 2 });
  expect(ms).toBeGreaterThanOrEqual(2_000);
  expect(ms).toBeLessThanOrEqual(10_000);
});
