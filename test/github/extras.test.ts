// Extension, queue, deadlocks, cache: what is beside the lock itself.

import { validate } from '@octokit/graphql-schema';
import { describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { type GitHubHold, memoryCache, storeCache } from 'signalbox/github';
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

describe('a fenced publish', () => {
  const MAIN = 'refs/heads/main';

  function branch({ github: { repository }, clock }: ReturnType<typeof stage>): { from: string; to: string } {
    const commit = (message: string, parents: readonly string[]): string =>
      repository.makeCommit(message, parents, clock.now())?.sha ?? '';
    const from = commit('before', []);
    repository.makeRef(MAIN, from, clock.now());
    return { from, to: commit('after', [from]) };
  }

  async function locked({ manager }: ReturnType<typeof stage>): Promise<GitHubHold> {
    const result = await manager().acquireLock(1, WORKER);
    if (!result.success) throw new Error(result.error);
    return result.lock;
  }

  it('moves a branch and renews the lock in one step, and says so again when asked again', async () => {
    const on = stage();
    const move = { ref: MAIN, ...branch(on) };
    const lock = await locked(on);
    on.requests();
    expect(await on.settled(lock.publish(move))).toEqual({ kind: 'published' });
    expect(on.requests()).toEqual(['GET /git/ref/heads/main', 'POST /git/commits', 'POST /graphql']);
    expect(on.github.repository.refs.get(MAIN)).toBe(move.to);
    expect(lock.held.record.seq).toBe(1);
    expect(await on.settled(lock.publish(move))).toEqual({ kind: 'published' });
    expect(lock.isValid).toBe(true);
  });

  it('leaves a branch alone that somebody else has moved', async () => {
    const on = stage();
    const { from, to } = branch(on);
    const lock = await locked(on);
    expect(await on.settled(lock.publish({ ref: MAIN, from: to, to: 'a'.repeat(40) }))).toEqual({
      kind: 'moved',
      at: from,
    });
    expect(await on.settled(lock.publish({ ref: 'refs/heads/none', from, to }))).toEqual({ kind: 'moved', at: null });
    expect(on.github.repository.refs.get(MAIN)).toBe(from);
  });

  it('by a worker whose lock was taken changes nothing, and tells it of the loss', async () => {
    const on = stage();
    const move = { ref: MAIN, ...branch(on) };
    const lock = await locked(on);
    const forced = { ...OTHER, conflictStrategy: 'force', reason: 'it hangs' } as const;
    expect(await on.settled(on.manager().acquireLock(1, forced))).toMatchObject({ success: true });
    expect(await on.settled(lock.publish(move))).toEqual({ kind: 'lost' });
    expect(lock.signal.aborted).toBe(true);
    expect(on.github.repository.refs.get(MAIN)).toBe(move.from);
  });

  it('whose answer is lost is found to have landed', async () => {
    const on = stage();
    const move = { ref: MAIN, ...branch(on) };
    const lock = await locked(on);
    on.github.fault({ kind: 'dropped-after', match: 'POST /graphql', times: 1 });
    expect(await on.settled(lock.publish(move))).toEqual({ kind: 'published' });
    expect(on.github.repository.refs.get(MAIN)).toBe(move.to);
    expect(lock.isValid).toBe(true);
  });

  it('needs GraphQL, and names that make sense', async () => {
    const on = stage({ hasGraphql: false });
    const move = { ref: MAIN, ...branch(on) };
    const lock = await locked(on);
    expect(await on.settled(lock.publish(move))).toEqual({ kind: 'unsupported' });
    await expect(lock.publish({ ...move, ref: 'main' })).rejects.toThrow('expected refs/heads/NAME');
    await expect(lock.publish({ ...move, to: 'HEAD' })).rejects.toThrow('40 or 64 hexadecimal digits');
    expect(lock.isValid).toBe(true);
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
