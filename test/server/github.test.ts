// The locks of a repository on GitHub, over HTTP: a server in front of a local GitHub.

import { LockManager } from 'signalbox/github';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { TestClock } from 'signalbox/testing';
import { serveLocalGitHub, type LocalServer } from '../../src/github/local/serve.ts';
import { GitHubBoard } from '../../src/github/board.ts';
import { serve } from '../../src/server/serve.ts';
import { Scratch } from '../support/cli.ts';

let github: LocalServer;
let scratch: Scratch;

beforeEach(async () => {
  scratch = new Scratch();
  github = await serveLocalGitHub();
  github.github.repository.addIssue(7, 'Seven', Date.now());
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await github.close();
  scratch.remove();
});

it('a server that follows a repository lists its locked issues', async () => {
  vi.stubEnv('GITHUB_TOKEN', 'local');
  vi.stubEnv('GITHUB_API_URL', github.url);
  await using locks = new LockManager({ githubRepo: 'local/repository' });
  expect(await locks.acquireLock(7, { workerId: 'agent:1', nodeId: 'n' })).toMatchObject({ success: true });
  const serving = await serve({ store: scratch.store, port: 0, host: '127.0.0.1', github: 'local/repository' });
  try {
    const headers = { authorization: `Bearer ${serving.localToken}` };
    const answer = await fetch(`${serving.url}/v1/github/locks`, { headers });
    expect(await answer.json()).toMatchObject({
      repository: 'local/repository',
      trouble: null,
      locks: [{ issue: 7, title: 'Seven', isLocked: true, metadata: { lock: { worker_id: 'agent:1' } } }],
    });
  } finally {
    await serving.close();
  }
});

it('many look, and GitHub is asked once in 15 s; what it said last stays when it cannot be asked', async () => {
  const clock = new TestClock();
  let asked = 0;
  let isAway = false;
  const listLocks = (): Promise<never[]> => {
    asked += 1;
    return isAway ? Promise.reject(new Error('GitHub does not answer')) : Promise.resolve([]);
  };
  const board = new GitHubBoard('a/b', { listLocks }, clock);
  const since = clock.now();
  await Promise.all([board.look(), board.look()]);
  await board.look();
  expect(asked).toBe(1);
  isAway = true;
  await clock.advance(15_000);
  expect(await board.look()).toEqual({
    ...{ repository: 'a/b', asOf: since, trouble: 'GitHub does not answer' },
    ...{ everyMs: 15_000, locks: [] },
  });
  expect(asked).toBe(2);
});
