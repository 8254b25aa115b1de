// Extension, queue, deadlocks, cache: what is beside the lock itself.

import { validate } from '@octokit/graphql-schema';
import { describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { memoryCache, storeCache } from 'signalbox/github';
import { GRAPHQL } from '../../src/github/octokit-client.ts';
import { OTHER, stage, WORKER } from './stage.ts';

it("the GraphQL that is sent is valid by GitHub's own schema", () => {
  expect(GRAPHQL.flatMap((query) => validate(query))).toEqual([]);
});

describe('an extension', () => {
  it('lets a lock outlive its usual timeout, for its holder and for thieves', async () => {
    const { clock, github, manager, settled } = stage();
    const result = await manager().acquireLock(1, WORKER);
    if (!result.success) throw new Error(result.error);
    expect(await settled(result.lock.extend(600_000))).toBe(true);
    github.fault({ kind: 'broken-before', match: 'POST /repos/local/repository/git/commits', times: 10_000 });
    await clock.advance(500_000);
    expect(result.lock.isValid).toBe(true);
    github.faults.length = 0;
    const thief = manager({ maxRetries: 0 });
    expect(await thief.acquireLock(1, { ...OTHER, conflictStrategy: 'steal-stale' })).toMatchObject({ success: false });
  });
});

describe('the queue', () => {
  it('serves by priority and then by arrival, and is empty afterwards', async () => {
    const { clock, github, manager, settled } = stage();
    const first = await manager().acquireLock(1, WORKER);
    if (!first.success) throw new Error(first.error);
    const order: string[] = [];
    const wait = async (workerId: string, priority: 'low' | 'high'): Promise<void> => {
      const result = await manager({ maxRetries: 100 }).acquireLock(1, {
        workerId,
        nodeId: 'n',
        queue: true,
        priority,
      });
      if (!result.success) throw new Error(result.error);
      order.push(workerId);
      await result.lock.release();
    };
    const all: Promise<void>[] = [];
    for (const [workerId, priority] of [
      ['early', 'low'],
      ['late', 'low'],
      ['urgent', 'high'],
    ] as const) {
      all.push(wait(workerId, priority));
      await clock.advance(3_000);
    }
    expect((await manager().getQueue(1)).map(({ workerId }) => workerId)).toEqual(['urgent', 'early', 'late']);
    await first.lock.release();
    await settled(Promise.all(all));
    expect(order).toEqual(['urgent', 'early', 'late']);
    expect([...github.repository.refs.keys()].filter((ref) => ref.includes('queue'))).toEqual([]);
  });

  it('passes over a ticket that nobody renews', async () => {
    const { clock, github, manager, settled } = stage();
    const { repository } = github;
    const message = JSON.stringify({
      v: 1,
      ticket: 'x',
      worker_id: 'dead',
      priority: 50,
      timeout_ms: 60_000,
      holds: [],
    });
    repository.makeRef(
      'refs/signalbox/queue/issue-1/x',
      repository.makeCommit(message, [], clock.now())?.sha ?? '',
      clock.now(),
    );
    await clock.advance(61_000);
    expect(await settled(manager().acquireLock(1, { ...WORKER, queue: true }))).toMatchObject({ success: true });
    expect([...repository.refs.keys()].filter((ref) => ref.includes('queue'))).toEqual([]);
  });

  it('refuses one of two that wait for each other, and names the circle', async () => {
    const { clock, manager, settled } = stage();
    const [one, two] = [manager(), manager()];
    await one.acquireLock(1, WORKER);
    await two.acquireLock(2, OTHER);
    const first = one.acquireLock(2, { ...WORKER, queue: true, priority: 'high' });
    await clock.advance(1_000);
    const second = two.acquireLock(1, { ...OTHER, queue: true });
    const refused = await settled(second);
    expect(refused).toMatchObject({
      success: false,
      reason: { kind: 'deadlock', cycle: ['worker:2 waits for #1', 'worker:1 waits for #2'] },
    });
    await two.releaseLock(2, 'worker:2');
    expect(await settled(first)).toMatchObject({ success: true });
  });

  it('refuses a priority that is none', async () => {
    const { manager } = stage();
    await expect(manager().acquireLock(1, { ...WORKER, priority: 'urgent' as never })).rejects.toThrow(
      /high, medium, low/,
    );
  });
});

describe('the cache', () => {
  it('has the lock from its acquisition to its release, as the memory tool wants it', async () => {
    const { clock, manager } = stage();
    const calls: unknown[] = [];
    const kept = new Map<string, string>();
    const cache = memoryCache((name, args) => {
      const { action, key, value } = args as { action: string; key: string; value: string };
      calls.push({ name, ...args });
      if (action === 'store') kept.set(key, value);
      if (action === 'delete') kept.delete(key);
      return Promise.resolve({ content: [{ type: 'text', text: JSON.stringify({ value: kept.get(key) ?? null }) }] });
    });
    const locks = manager({ cache });
    await locks.acquireLock(1, WORKER);
    expect(calls).toEqual([
      {
        name: 'memory_usage',
        action: 'store',
        key: 'lock:issue-1',
        namespace: 'distributed-locks',
        ttl: 300_000,
        value: expect.stringContaining('"worker:1"') as string,
      },
    ]);
    await clock.advance(31_000);
    expect(calls).toHaveLength(2);
    expect(await locks.getLockFromMemory(1)).toMatchObject({ issue: 1, token: 1, lock: { worker_id: 'worker:1' } });
    await locks.releaseLock(1, 'worker:1');
    expect(kept.size).toBe(0);
    expect(await locks.getLockFromMemory(1)).toBeNull();
  });

  it('takes other names and units', async () => {
    const calls: unknown[] = [];
    const cache = memoryCache((name, args) => Promise.resolve(calls.push({ name, args })), {
      tool: 'remember',
      ttlUnit: 's',
      names: { action: 'do' },
    });
    await cache.set({ issue: 1, token: 1, lock: {} as never }, 1_500);
    expect(calls).toMatchObject([{ name: 'remember', args: { do: 'store', ttl: 2 } }]);
  });

  it('that is away costs a debug line', async () => {
    const said: string[] = [];
    const { manager } = stage();
    const cache = memoryCache(() => Promise.reject(new Error('away')));
    const locks = manager({ cache, onDebug: (line) => said.push(line) });
    expect(await locks.acquireLock(1, WORKER)).toMatchObject({ success: true });
    expect(await locks.getLockFromMemory(1)).toBeNull();
    expect(said.join('\n')).toContain('away');
  });

  it('can be a signalbox store', async () => {
    await using box = await open('memory:');
    const { manager } = stage();
    const locks = manager({ cache: storeCache(box) });
    await locks.acquireLock(1, WORKER);
    await expect.poll(() => locks.getLockFromMemory(1)).toMatchObject({ issue: 1, lock: { worker_id: 'worker:1' } });
    await locks.releaseLock(1, 'worker:1');
    await expect.poll(() => locks.getLockFromMemory(1)).toBeNull();
  });
});
