import { describe, expect, it } from 'vitest';
import { fakeGitHub, TestClock } from 'signalbox/testing';
import { type LockReason, LockManager } from 'signalbox/github';
import { OTHER, stage, WORKER } from './stage.ts';

// Loaded before any clock is advanced.
await import('../../src/github/octokit.ts');

const HOUR_MS = 3_600_000;
/** Between one process and the next. */
const START_MS = 5_000;
/** Each whole hour takes five seconds: SIGNALBOX_LONG=1. Else it is a third of one, and the rate of its second half counts. */
const IS_LONG = process.env['SIGNALBOX_LONG'] !== undefined;
const FOR_MS = IS_LONG ? HOUR_MS - 1_000 : 1_200_000;
const SETTLED_MS = 600_000;

/** One lock each for so many processes on one token, for an hour. */
async function anHourOf(
  processes: number,
  forMs = FOR_MS,
): Promise<{
  held: number;
  refused: readonly LockReason[];
  lost: number;
  peaks: object;
  perHour: number;
  said: number;
}> {
  const clock = new TestClock();
  const { github, clientOf } = fakeGitHub({ now: () => clock.now() });
  for (let issue = 1; issue <= processes; issue++) github.repository.addIssue(issue);
  const managers = Array.from({ length: processes }, () => new LockManager({ client: clientOf('token'), clock }));
  const refused: LockReason[] = [];
  let lost = 0;
  let held = 0;
  for (const [place, manager] of managers.entries()) {
    const result = await manager.acquireLock(place + 1, { workerId: `worker:${place}`, nodeId: 'node' });
    await clock.advance(START_MS);
    if (!result.success) refused.push(result.reason);
    else {
      held += 1;
      result.lock.signal.addEventListener('abort', () => (lost += 1));
    }
  }
  const used = (): number => Number(github.account('token').headers('core', clock.now())['x-ratelimit-used']);
  // The rate once all have begun and know of each other.
  await clock.advance(SETTLED_MS - processes * START_MS);
  const before = used();
  await clock.advance(forMs - SETTLED_MS);
  const perHour = ((used() - before) * HOUR_MS) / (forMs - SETTLED_MS);
  return { held, refused, lost, peaks: github.peaks('token'), perHour, said: managers[0]?.getBudget().capacity ?? 0 };
}

describe('an hour of locks on one token', () => {
  it.each([16, 50])('%i processes stay inside four fifths of every limit, and lose nothing', async (processes) => {
    const { held, lost, peaks, perHour } = await anHourOf(processes);
    expect(perHour).toBeLessThanOrEqual(4_000);
    expect(perHour).toBeGreaterThan(3_000);
    expect({ held, lost }).toEqual({ held: processes, lost: 0 });
    for (const [limit, share] of Object.entries(peaks)) expect(share, limit).toBeLessThanOrEqual(0.8);
  });

  it('of 80 processes as many are refused as the manager said, with a time, and nothing is lost', async () => {
    const { held, refused, lost, said } = await anHourOf(80);
    expect(said).toBe(50);
    expect({ held, lost }).toEqual({ held: 50, lost: 0 });
    expect(refused).toHaveLength(30);
    expect(refused[0]).toMatchObject({ kind: 'rate-limited', until: expect.stringMatching(/^2026-/) as string });
  });
});

describe('when many processes start at the same moment', () => {
  it('the budget is kept although none of them saw the others', async () => {
    const clock = new TestClock();
    const { github, clientOf } = fakeGitHub({
      now: () => clock.now(),
      limits: { contentPerMinute: 1000, pointsPerMinute: 10_000 },
    });
    // At this timeout a token carries five.
    const settings = { lockTimeoutMs: 30_000, heartbeatIntervalMs: 9_000 };
    for (let issue = 1; issue <= 8; issue++) github.repository.addIssue(issue);
    const managers = Array.from(
      { length: 8 },
      () => new LockManager({ client: clientOf('token'), clock, ...settings }),
    );
    const results = await Promise.all(
      managers.map((manager, place) => manager.acquireLock(place + 1, { workerId: `w${place}`, nodeId: 'n' })),
    );
    expect(managers[0]?.getBudget().capacity).toBe(5);
    expect(results.filter(({ success }) => success).length).toBeLessThanOrEqual(5);
    expect(results.filter(({ success }) => success).length).toBeGreaterThan(0);
  });
});

describe('the requests of each operation', () => {
  it('are these, and not one more', async () => {
    const { clock, manager, requests } = stage();
    const locks = manager();
    const hold = await locks.acquireLock(1, WORKER);
    if (!hold.success) throw new Error(hold.error);
    expect(requests().toSorted()).toEqual(
      [
        // Once for each manager.
        'GET /user',
        // What others hold with this token, before and after.
        ...['POST /graphql', 'POST /graphql'],
        ...['GET /issues/1', 'GET /git/ref/signalbox/locks/issue-1', 'POST /git/commits', 'POST /git/refs'],
        ...['POST /issues/1/assignees', 'POST /issues/1/comments'],
      ].toSorted(),
    );
    await clock.advance(31_000);
    expect(requests()).toEqual(['POST /git/commits', 'PATCH /git/refs/signalbox/locks/issue-1']);
    const refused = manager();
    await refused.getLockStatus(1);
    requests();
    await refused.acquireLock(1, { ...OTHER, conflictStrategy: 'fail-fast' });
    expect(requests().toSorted()).toEqual([
      'GET /git/ref/signalbox/locks/issue-1',
      'GET /issues/1',
      'GET /user',
      'POST /graphql',
    ]);
    await hold.lock.release();
    expect(requests().toSorted()).toEqual(
      [
        'POST /git/commits',
        'POST /issues/1/comments',
        'DELETE /issues/1/assignees',
        'PATCH /git/refs/signalbox/locks/issue-1',
      ].toSorted(),
    );
  });

  it('of a heartbeat are two however many locks there are, and never a comment that is new', async () => {
    const { clock, github, manager, requests } = stage();
    expect(await manager().acquireMany([1, 2, 3], WORKER)).toMatchObject({ success: true });
    requests();
    await clock.advance(31_000);
    expect(requests()).toEqual(['POST /git/commits', 'POST /graphql']);
    const before = github.repository.comments.size;
    await clock.advance(600_000);
    expect(github.repository.comments.size).toBe(before);
    expect(requests().filter((line) => line.startsWith('PATCH /issues/comments')).length).toBeGreaterThan(3);
  });

  it('of a look at the whole repository are two', async () => {
    const { manager, requests } = stage();
    const locks = manager();
    await manager().acquireLock(2, WORKER);
    requests();
    expect(await locks.listLocks()).toMatchObject([
      { issue: 2, title: 'Issue 2', isLocked: true, metadata: { lock: { worker_id: 'worker:1' } } },
    ]);
    expect(requests()).toHaveLength(2);
  });
});

describe('limits', () => {
  it('of GitHub itself refuse with a time, by the clock of the server', async () => {
    const { github, manager } = stage();
    github.fault({ kind: 'limit-reached', match: 'GET /repos/local/repository/issues/1' });
    const refused = await manager().acquireLock(1, WORKER);
    expect(refused).toMatchObject({ reason: { kind: 'rate-limited', until: '2026-01-01T01:00:00.000Z' } });
    expect(refused).toHaveProperty('error', expect.stringContaining('rate limit') as string);
  });

  it('that are secondary do not cost the hold', async () => {
    const { clock, github, manager } = stage();
    const result = await manager().acquireLock(1, WORKER);
    if (!result.success) throw new Error(result.error);
    github.fault({ kind: 'secondary-limit', match: 'POST /repos/local/repository/git/commits', times: 2 });
    await clock.advance(600_000);
    expect(result.lock.isValid).toBe(true);
  });
});

describe('an answer that is lost', () => {
  it.each(['dropped-after', 'refused-after', 'broken-before', 'refused'] as const)(
    'to the move of the ref, %s, makes no second holder and no false one',
    async (kind) => {
      const { github, manager, settled } = stage();
      github.fault({ kind, match: 'POST /repos/local/repository/git/refs' });
      expect(await settled(manager().acquireLock(1, WORKER))).toMatchObject({ success: true, token: 1 });
      expect(github.repository.changes).toHaveLength(1);
    },
  );

  it.each(['dropped-after', 'refused-after', 'old-read'] as const)(
    'to a heartbeat, %s, does not cost the hold',
    async (kind) => {
      const { clock, github, manager } = stage();
      const result = await manager().acquireLock(1, WORKER);
      if (!result.success) throw new Error(result.error);
      if (kind === 'old-read') github.fault({ kind: 'refused-after', match: 'PATCH' });
      github.fault({ kind, match: kind === 'old-read' ? 'GET' : 'PATCH' });
      await clock.advance(600_000);
      expect(result.lock.isValid).toBe(true);
      expect(await result.lock.release()).toEqual({ kind: 'released' });
    },
  );
});
