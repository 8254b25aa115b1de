import { describe, expect, it } from 'vitest';
import { ConflictStrategy, LockLost, LockManager } from 'signalbox/github';
import { OTHER, stage, WORKER } from './stage.ts';

describe('a lock on an issue', () => {
  it('shows on the issue who has it, and is free again after its release', async () => {
    const { github, manager } = stage();
    const locks = manager();
    const result = await locks.acquireLock(1, WORKER);
    expect(result).toMatchObject({ success: true, lockId: 1, token: 1 });
    expect(github.repository.issues.get(1)?.assignees).toEqual(['local']);
    const [comment] = github.repository.commentsOf(1);
    const json = /```json\n([^]*?)\n```/.exec(comment?.body ?? '')?.[1] ?? '';
    expect(JSON.parse(json)).toEqual({
      lock: {
        ...{ worker_id: 'worker:1', node_id: 'node-1', claimed_at: '2026-01-01T00:00:00.000Z' },
        ...{ heartbeat_last: '2026-01-01T00:00:00.000Z', task_info: { complexity: 'low', estimated_duration: '5m' } },
      },
    });
    expect(await locks.getLockStatus(1)).toMatchObject({
      isLocked: true,
      assignee: 'local',
      metadata: { lock: { worker_id: 'worker:1' } },
    });
    expect(await locks.releaseLock(1, 'worker:1')).toEqual({ success: true, lockId: 1 });
    expect(github.repository.issues.get(1)?.assignees).toEqual([]);
    expect(github.repository.commentsOf(1).at(-1)?.body).toMatch(
      /Released by `worker:1` after 0 s \(token 1\): `completed`.*refs\/signalbox\/locks\/issue-1/,
    );
    expect(await locks.getLockStatus(1)).toEqual({
      isLocked: false,
      assignee: null,
      metadata: null,
      token: 1,
      isStale: false,
    });
  });

  it('has one holder although both workers use the same account', async () => {
    const { manager } = stage();
    expect(await manager().acquireLock(1, WORKER)).toMatchObject({ success: true });
    const refused = await manager().acquireLock(1, { ...OTHER, conflictStrategy: ConflictStrategy.FAIL_FAST });
    expect(refused).toMatchObject({
      success: false,
      lockId: 1,
      reason: { kind: 'already-locked', by: { worker_id: 'worker:1' } },
    });
    expect(refused).toHaveProperty('error', expect.stringContaining('already locked') as string);
  });

  it('gives up after five retries, and counts one conflict', async () => {
    const { manager, settled, requests } = stage();
    await manager().acquireLock(1, WORKER);
    const other = manager();
    await other.getLockStatus(1);
    requests();
    const refused = await settled(other.acquireLock(1, OTHER));
    expect(refused).toMatchObject({
      reason: { kind: 'retries-exhausted', tries: 6, last: { kind: 'already-locked' } },
    });
    expect(other.getMetrics()).toMatchObject({ totalAcquisitions: 0, totalConflicts: 1, failedAcquisitions: 1 });
    // Refused tries write nothing.
    expect(
      requests().filter((line) => !line.startsWith('GET') && !line.includes('graphql') && !line.includes('git/')),
    ).toEqual([]);
  });

  it('goes to one who retries as soon as it is released', async () => {
    const { clock, manager, settled } = stage();
    const first = await manager().acquireLock(1, WORKER);
    if (!first.success) throw new Error(first.error);
    const waiting = manager();
    const second = waiting.acquireLock(1, OTHER);
    await clock.advance(2_000);
    await first.lock.release();
    expect(await settled(second)).toMatchObject({ success: true, token: 2 });
    expect(waiting.getMetrics()).toMatchObject({ totalAcquisitions: 1, totalConflicts: 1, failedAcquisitions: 0 });
    expect(waiting.getMetrics().averageAcquisitionTimeMs).toBeGreaterThan(2_000);
  });

  it('is held although GitHub takes no more comments, and assigns nobody', async () => {
    const { github, manager } = stage({ tokens: { one: 'bot' } });
    github.repository.mostComments = 0;
    github.fault({ kind: 'broken-before', match: '/assignees' });
    const result = await manager({ as: 'one' }).acquireLock(1, WORKER);
    expect(result).toMatchObject({ success: true, lock: { isAssigned: false } });
    expect(github.repository.comments.size).toBe(0);
  });

  it('is given back by `await using`', async () => {
    const { manager } = stage();
    const locks = manager();
    {
      const result = await locks.acquireLock(1, WORKER);
      if (!result.success) throw new Error(result.error);
      await using _hold = result.lock;
    }
    expect(await locks.getLockStatus(1)).toMatchObject({ isLocked: false });
  });

  it('is refused on a closed issue, a missing one, and one that a person has', async () => {
    const { github, manager, settled } = stage();
    (github.repository.issues.get(1) as { isOpen: boolean }).isOpen = false;
    github.allow('ana', 'write');
    github.repository.assign(github.repository.issues.get(2) as never, ['ana'], 0);
    expect(await manager().acquireLock(1, WORKER)).toMatchObject({ reason: { kind: 'issue-closed' } });
    expect(await manager().acquireLock(9, WORKER)).toMatchObject({ reason: { kind: 'issue-missing' } });
    const assigned = await settled(
      manager().acquireLock(2, { ...WORKER, conflictStrategy: ConflictStrategy.FAIL_FAST }),
    );
    expect(assigned).toMatchObject({ reason: { kind: 'assigned', assignees: ['ana'] } });
  });

  it('is not taken where the ref is of another program', async () => {
    const { github, manager } = stage();
    const commit = github.repository.makeCommit('hello', [], 0);
    github.repository.makeRef('refs/signalbox/locks/issue-1', commit?.sha ?? '', 0);
    expect(await manager().acquireLock(1, WORKER)).toMatchObject({ reason: { kind: 'foreign-ref' } });
  });

  it('is refused to a token that may not write, and to a wrong one', async () => {
    const { github, manager } = stage({ tokens: { good: 'bot' } });
    github.allow('bot', 'read');
    expect(await manager({ as: 'good' }).acquireLock(1, WORKER)).toMatchObject({ reason: { kind: 'unauthorised' } });
    expect(await manager({ as: 'bad' }).acquireLock(1, WORKER)).toMatchObject({ reason: { kind: 'unauthorised' } });
  });

  it('is released only by its owner; an earlier process of the same worker counts as the owner', async () => {
    const { manager } = stage();
    await manager().acquireLock(1, WORKER);
    expect(await manager().releaseLock(1, 'worker:2')).toMatchObject({
      success: false,
      reason: { kind: 'not-owner', by: 'worker:1' },
    });
    expect(await manager().releaseLock(1, 'worker:1')).toMatchObject({ success: true });
    expect(await manager().releaseLock(1, 'worker:1')).toMatchObject({
      success: false,
      reason: { kind: 'not-owner', by: null },
    });
  });

  it('is given back if the caller gave up while it was being granted', async () => {
    const { manager } = stage();
    const locks = manager();
    const leaving = new AbortController();
    const acquiring = locks.acquireLock(1, { ...WORKER, signal: leaving.signal });
    leaving.abort();
    expect(await acquiring).toMatchObject({ success: false, reason: { kind: 'aborted' } });
    expect(await locks.getLockStatus(1)).toMatchObject({ isLocked: false });
  });
});

describe('a lock that is not renewed', () => {
  it('is lost before anybody can take it, and taken with STEAL_STALE only', async () => {
    const { clock, github, manager, settled } = stage({ tokens: { one: 'bot-1', two: 'bot-2' } });
    const first = await manager({ as: 'one' }).acquireLock(1, WORKER);
    if (!first.success) throw new Error(first.error);
    github.fault({ kind: 'broken-before', match: 'POST /repos/local/repository/git/commits', times: 10_000 });
    await clock.advance(289_000);
    expect(first.lock.isValid).toBe(true);
    await clock.advance(2_000);
    expect(first.lock.signal.reason).toBeInstanceOf(LockLost);
    expect(first.lock.signal.reason).toMatchObject({ why: 'expired' });
    await clock.advance(20_000);
    github.faults.length = 0;
    const thief = manager({ as: 'two' });
    expect(await thief.acquireLock(1, { ...OTHER, conflictStrategy: ConflictStrategy.FAIL_FAST })).toMatchObject({
      reason: { kind: 'already-locked', isStale: true },
    });
    const stolen = await settled(thief.acquireLock(1, { ...OTHER, conflictStrategy: ConflictStrategy.STEAL_STALE }));
    expect(stolen).toMatchObject({ success: true, token: 2 });
    expect(thief.getMetrics()).toMatchObject({ staleLocksClaimed: 1 });
    expect(github.repository.issues.get(1)?.assignees).toEqual(['bot-2']);
    expect(github.repository.commentsOf(1)[0]?.body).toMatch(/taken over by `worker:2`/);
    expect(await first.lock.release()).toEqual({ kind: 'already-lost' });
    expect(await thief.getLockStatus(1)).toMatchObject({
      isLocked: true,
      metadata: { lock: { worker_id: 'worker:2' } },
    });
  });

  it('marks the comment of a worker that died before it could note its number', async () => {
    const { clock, github, manager, settled } = stage();
    const dead = await manager().acquireLock(1, WORKER);
    expect(dead.success).toBe(true);
    github.fault({ kind: 'broken-before', match: 'POST /repos/local/repository/git/commits', times: 10_000 });
    await clock.advance(310_000);
    github.faults.length = 0;
    await settled(manager().acquireLock(1, { ...OTHER, conflictStrategy: ConflictStrategy.STEAL_STALE }));
    expect(github.repository.commentsOf(1).filter(({ body }) => body.includes('taken over'))).toHaveLength(1);
  });
});

describe('a forced lock', () => {
  const force = { ...OTHER, conflictStrategy: ConflictStrategy.FORCE_ACQUIRE };

  it('needs a reason, which people can read, and an administrator', async () => {
    const { github, manager } = stage({ tokens: { one: 'bot', boss: 'boss' } });
    github.allow('boss', 'admin');
    await manager({ as: 'one' }).acquireLock(1, WORKER);
    await expect(manager({ as: 'boss' }).acquireLock(1, force)).rejects.toMatchObject({ code: 'invalid' });
    const reason = 'the runner burns';
    expect(await manager({ as: 'one' }).acquireLock(1, { ...force, reason })).toMatchObject({
      reason: { kind: 'unauthorised' },
    });
    expect(await manager({ as: 'boss' }).acquireLock(1, { ...force, reason })).toMatchObject({
      success: true,
      token: 2,
    });
    expect(
      github.repository
        .commentsOf(1)
        .map(({ body }) => body)
        .join('\n'),
    ).toContain('the runner burns');
  });

  it('ends the hold of the one before as soon as that one hears of it', async () => {
    const { clock, manager } = stage();
    const first = await manager().acquireLock(1, WORKER);
    if (!first.success) throw new Error(first.error);
    await manager().acquireLock(1, { ...force, reason: 'now' });
    await clock.advance(31_000);
    expect(first.lock.signal.reason).toMatchObject({ why: 'taken' });
  });
});

describe('several locks', () => {
  it('are had all at once or not at all, by one move', async () => {
    const { manager, requests } = stage();
    const locks = manager();
    await manager().acquireLock(2, OTHER);
    requests();
    const refused = await locks.acquireMany([3, 2, 1], { ...WORKER, conflictStrategy: ConflictStrategy.FAIL_FAST });
    expect(refused).toMatchObject({ success: false, lockIds: [1, 2, 3], reason: { kind: 'already-locked', issue: 2 } });
    expect(requests().filter((line) => line.startsWith('POST /git'))).toEqual([]);
    const both = await locks.acquireMany([3, 1], WORKER);
    expect(both).toMatchObject({ success: true, lockIds: [1, 3] });
    expect(requests().filter((line) => line.startsWith('POST /git'))).toEqual(['POST /git/commits']);
  });

  it('are had one after the other where there is no GraphQL, and given back if one is missing', async () => {
    const { manager } = stage({ hasGraphql: false });
    await manager().acquireLock(2, OTHER);
    const refused = await manager().acquireMany([1, 2], { ...WORKER, conflictStrategy: ConflictStrategy.FAIL_FAST });
    expect(refused).toMatchObject({ success: false, reason: { kind: 'already-locked', issue: 2 } });
    expect(await manager().getLockStatus(1)).toMatchObject({ isLocked: false });
    expect(await manager().acquireMany([1, 3], WORKER)).toMatchObject({ success: true, lockIds: [1, 3] });
  });
});

describe('settings that contradict each other', () => {
  it.each([
    [{ heartbeatIntervalMs: 100_000 }, /below a third/],
    [{ lockTimeoutMs: -1 }, /lockTimeoutMs is -1/],
    [{ maxRetries: 1.5 }, /whole number/],
    [{ initialBackoffMs: 20_000 }, /above maxBackoffMs/],
    [{ heartbeatIntervalMs: Number.NaN }, /heartbeatIntervalMs is NaN/],
  ])('are refused at once: %j', (options, message) => {
    expect(() => new LockManager({ githubRepo: 'a/b', ...options })).toThrow(message);
  });

  it.each(['', 'a', 'a/b/c', '../b', 'a/..'])('so is the repository %j', (githubRepo) => {
    expect(() => new LockManager({ githubRepo, env: {} })).toThrow(/owner\/name/);
  });
});
