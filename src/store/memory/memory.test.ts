/** What is this engine's own; what it has in common with the others is in test/contract. */
import { describe, expect, it } from 'vitest';
import { Failure } from '../../failure.ts';
import { settle, TestClock } from '../../testing/index.ts';
import type { KeyRange, Operation, ReadResult, Store, TransactionResult } from '../contract.ts';
import { prefixed } from '../contract.ts';
import { Value } from '../value.ts';
import { openMemory, openSharedMemory } from './index.ts';
import { CLEARED_AT_ONCE, KEPT_GONE } from './keyspace.ts';

const VALUE = Value.text('x');

function put(key: string, lease?: string): Operation {
  return { do: 'put', key, value: VALUE, lease };
}

function apply(store: Store, ...operations: Operation[]): TransactionResult {
  if (store.transactionNow === undefined) throw new Error('expected a store that answers at once');
  return store.transactionNow({ compare: [], success: operations, failure: [] });
}

function read(store: Store, range: KeyRange, options: object = {}): ReadResult {
  return apply(store, { do: 'read', ...range, ...options }).results[0] as ReadResult;
}

function isEmpty(store: Store, { key, end }: KeyRange): boolean | undefined {
  return store.transactionNow?.({
    compare: [{ key, end, target: 'version', is: '=', than: 0 }],
    success: [],
    failure: [],
  }).succeeded;
}

async function failureOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'none',
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );
}

describe('the memory engine', () => {
  it('forgets the places of keys that never come back, and finds those that do', () => {
    const store = openMemory();
    const all = prefixed('k/');
    for (let i = 0; i < 20_000; i++) {
      apply(store, put(`k/${i}`));
      if (i >= 100) apply(store, { do: 'delete', key: `k/${i - 100}` });
      if (i % 1000 === 999) {
        expect(read(store, all, { countOnly: true }).count).toBe(100);
        expect(isEmpty(store, prefixed(`k/${i}`))).toBe(false);
        expect(isEmpty(store, { key: 'k/0', end: 'k/1' })).toBe(true);
      }
    }
    apply(store, put('k/5'));
    expect(read(store, all, { order: 'create' }).pairs.at(-1)?.key).toBe('k/5');
    apply(store, { do: 'delete', ...all });
    expect(isEmpty(store, all)).toBe(true);
  });

  it('finds a key whose place is cleared by the very transaction that brings it back', () => {
    const store = openMemory();
    apply(store, put('last/1'), put('last/2'));
    // So many that places have been cleared once, and will be again at the next deletion: then that of `back` too.
    for (let i = 0; i < KEPT_GONE - 1 + CLEARED_AT_ONCE - 1; i++) {
      const key = i === CLEARED_AT_ONCE ? 'back' : `k/${i}`;
      apply(store, put(key));
      apply(store, { do: 'delete', key });
    }
    store.transactionNow({
      compare: [{ key: 'back', target: 'version', is: '=', than: 0 }],
      success: [{ do: 'delete', ...prefixed('last/') }, put('back')],
      failure: [],
    });
    apply(store, put('other'));
    expect([read(store, { key: 'back' }).count, read(store, prefixed('b')).count]).toEqual([1, 1]);
  });

  it('keeps as many revisions of history as it is told, and says from where', async () => {
    const store = openMemory({ historyLimit: 3 });
    const { revision } = apply(store, put('a'));
    for (let i = 0; i < 4; i++) apply(store, put('a'));
    expect(await store.health()).toEqual({ revision: revision + 4, compacted: revision + 1 });
    const { signal } = new AbortController();
    const late = await store.watch({ key: 'a' }, revision, signal);
    expect(await failureOf(late[Symbol.asyncIterator]().next())).toBe('compacted');
    const intime = await store.watch({ key: 'a' }, revision + 1, signal);
    for (const expected of [2, 3, 4])
      expect((await intime[Symbol.asyncIterator]().next()).value?.revision).toBe(revision + expected);
  });

  it('does not take a quiet watch for a late one: others may write as much as they like', async () => {
    const store = openMemory({ historyLimit: 3 });
    const { signal } = new AbortController();
    const asleep = (await store.watch({ key: 'a' }, 'now', signal))[Symbol.asyncIterator]();
    const woken = asleep.next();
    const unread = (await store.watch({ key: 'a' }, 'now', signal))[Symbol.asyncIterator]();
    for (let i = 0; i < 100; i++) apply(store, put('other'));
    const { revision } = apply(store, put('a'));
    expect((await woken).value?.revision).toBe(revision);
    expect((await unread.next()).value?.revision).toBe(revision);
  });

  it('tells a reader whose change was pushed out of history, and ends its watch', async () => {
    const store = openMemory({ historyLimit: 3 });
    const reader = (await store.watch({ key: 'a' }, 'now', new AbortController().signal))[Symbol.asyncIterator]();
    for (let i = 0; i < 4; i++) apply(store, put('a'));
    expect(await failureOf(reader.next())).toBe('compacted');
    expect((await reader.next()).done).toBe(true);
  });

  it('delivers to everyone who waits before anyone else runs, and never inside the transaction', async () => {
    const store = openMemory();
    const { signal } = new AbortController();
    const log: string[] = [];
    for (let i = 0; i < 3; i++) {
      const reader = (await store.watch({ key: 'a' }, 'now', signal))[Symbol.asyncIterator]();
      void reader.next().then(() => log.push(`watch ${i}`));
    }
    apply(store, put('a'));
    log.push('transaction answered');
    await settle();
    expect(log).toEqual(['transaction answered', 'watch 0', 'watch 1', 'watch 2']);
  });

  it('applies nothing when the text of a compared value cannot be made', () => {
    const store = openMemory();
    const circular: { self?: unknown } = {};
    circular.self = circular;
    apply(store, { do: 'put', key: 'a', value: Value.json(circular) });
    const before = read(store, { key: 'b' }).count;
    expect(() =>
      store.transactionNow({
        compare: [{ key: 'a', target: 'value', is: '=', than: '' }],
        success: [put('b')],
        failure: [put('b')],
      }),
    ).toThrow('circular');
    expect(read(store, { key: 'b' }).count).toBe(before);
  });

  it('refuses a history of no length', () => {
    for (const historyLimit of [0, -1, 1.5, Number.NaN]) expect(() => openMemory({ historyLimit })).toThrow(Failure);
  });
});

describe('a lease in memory', () => {
  it('is over when its time is, even if its timer has not rung yet', async () => {
    for (const ask of ['keepLeaseAlive', 'leaseState'] as const) {
      const clock = new TestClock(0);
      const store = openMemory({ clock });
      const { id } = await store.grantLease(100);
      apply(store, put('a', id));
      clock.setMillis(100);
      expect(read(store, { key: 'a' }).count).toBe(1);
      expect(await store[ask](id)).toBe(null);
      expect(read(store, { key: 'a' }).count).toBe(0);
      await clock.advance(1000);
      expect(clock.pendingTimers).toBe(0);
    }
  });

  it('runs on when the wall clock jumps, and ends when its time has passed', async () => {
    const clock = new TestClock();
    const store = openMemory({ clock });
    const { id } = await store.grantLease(100);
    clock.jumpWall(3_600_000);
    await clock.advance(99);
    expect((await store.leaseState(id))?.remainingMs).toBe(1);
    clock.jumpWall(-7_200_000);
    await clock.advance(1);
    expect(await store.leaseState(id)).toBe(null);
  });

  it('has one timer, however often it is kept alive', async () => {
    const clock = new TestClock();
    const store = openMemory({ clock });
    const { id } = await store.grantLease(100);
    for (let i = 0; i < 50; i++) {
      await clock.advance(60);
      await store.keepLeaseAlive(id);
      expect(clock.pendingTimers).toBe(1);
    }
    await clock.advance(99);
    expect(await store.leaseState(id)).not.toBe(null);
    await clock.advance(1);
    expect(clock.pendingTimers).toBe(0);
  });

  it('leaves no timer behind when it is revoked or its store is closed', async () => {
    const clock = new TestClock();
    const store = openMemory({ clock });
    const { id } = await store.grantLease(100);
    await store.grantLease(100);
    await store.revokeLease(id);
    expect(clock.pendingTimers).toBe(1);
    await store.close();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('shared memory', () => {
  it('lives until its last handle is closed, and is empty for the next one to open it', async () => {
    const one = openSharedMemory('shared');
    const two = openSharedMemory('shared');
    apply(one, put('a'));
    await one.close();
    await one.close();
    expect(read(two, { key: 'a' }).count).toBe(1);
    await two.close();
    const three = openSharedMemory('shared');
    expect(read(three, { key: 'a' }).count).toBe(0);
    await three.close();
  });

  it('keeps names apart', async () => {
    const [one, two] = [openSharedMemory('one'), openSharedMemory('two')];
    apply(one, put('a'));
    expect(read(two, { key: 'a' }).count).toBe(0);
    await Promise.all([one.close(), two.close()]);
  });

  it('refuses a second opener who wants another clock or history, and takes one who does not say', async () => {
    const clock = new TestClock();
    const one = openSharedMemory('options', { clock, historyLimit: 10 });
    expect(() => openSharedMemory('options', { clock: new TestClock() })).toThrow('clock');
    expect(() => openSharedMemory('options', { historyLimit: 11 })).toThrow('historyLimit');
    const handles = [openSharedMemory('options'), openSharedMemory('options', { clock, historyLimit: 10 })];
    await Promise.all([one, ...handles].map((each) => each.close()));
    const fresh = openSharedMemory('options', { historyLimit: 11 });
    await fresh.close();
  });

  it('stops its leases with its last handle', async () => {
    const clock = new TestClock();
    const [one, two] = [openSharedMemory('leases', { clock }), openSharedMemory('leases')];
    await one.grantLease(100);
    await one.close();
    expect(clock.pendingTimers).toBe(1);
    await two.close();
    expect(clock.pendingTimers).toBe(0);
  });
});
