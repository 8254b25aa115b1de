import assert from 'node:assert/strict';
import type { Changes, Store, Transaction, TransactionResult, Watch } from '../../store/contract.ts';
import { Failure } from '../../failure.ts';
import { apply, choose, EVERYTHING, get, isMissing, keys, put, Reader, refuses, revisionOf } from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

export const handlePromises: readonly StorePromise[] = [
  promise('a closed store refuses every call with `closed`, and closing it again is fine', async ({ store }) => {
    const { id } = await store.grantLease(60_000);
    await store.close();
    await store.close();
    await refuses('closed', () => apply(store, put('a')));
    await refuses('closed', () => store.watch({ key: 'a' }, 'now', new AbortController().signal));
    await refuses('closed', () => store.grantLease(60_000));
    await refuses('closed', () => store.keepLeaseAlive(id));
    await refuses('closed', () => store.revokeLease(id));
    await refuses('closed', () => store.leaseState(id));
    await refuses('closed', () => store.compact(1));
    await refuses('closed', () => store.health());
  }),

  promise('closing a store ends its watches without an error, also while a reader waits', async (subject) => {
    const waiting = await Reader.open(subject, EVERYTHING, 'now');
    const idle = await Reader.open(subject, EVERYTHING, 'now');
    const ended = waiting.end();
    await subject.store.close();
    await ended;
    await idle.end();
  }),

  promise(
    'a store that was removed or replaced ends its watches and refuses every call with `closed`',
    async (subject) => {
      const { store, replace } = subject;
      if (replace === undefined) return;
      assert.ok(store.over !== undefined && !store.over.aborted);
      const { over } = store;
      const { id } = await store.grantLease(60_000);
      await apply(store, put('a'));
      const watch = await store.watch({ key: 'b' }, 'now', new AbortController().signal);
      const unread = refuses('closed', async () => {
        for await (const _ of reopened(store, watch)) continue;
      });
      const isOver = new Promise<void>((resolve) => over.addEventListener('abort', () => resolve()));
      await replace();
      // Renews, as a process that holds something does; one that holds nothing is in no hurry to learn of the end.
      await store.keepLeaseAlive(id).catch(() => undefined);
      await isOver;
      assert.ok(Failure.is(over.reason, 'closed'));
      await unread;
      await refuses('closed', () => apply(store, put('a')));
      await refuses('closed', () => store.watch({ key: 'a' }, 'now', new AbortController().signal));
      await refuses('closed', () => store.grantLease(60_000));
      await refuses('closed', () => store.keepLeaseAlive(id));
      await refuses('closed', () => store.health());
      await store.close();
    },
  ),

  promise('two handles on one store see each other’s writes, watches and leases', async (subject) => {
    const { store } = subject;
    const other = await subject.reopen?.();
    if (other === undefined) return;
    const reader = await Reader.open(subject, EVERYTHING, 'now', other);
    const { revision } = await apply(store, put('a', '1'));
    assert.deepEqual(await reader.tell(1), ['put a=1']);
    assert.equal((await get(other, 'a'))?.modRevision, revision);
    assert.equal(await revisionOf(other), revision);
    const { id } = await other.grantLease(60_000);
    await apply(store, put('leased', 'x', id));
    assert.deepEqual((await other.leaseState(id))?.keys, ['leased']);
    await store.revokeLease(id);
    assert.deepEqual(await keys(other), ['a']);
    await other.close();
  }),

  promise('of two handles that race to make a key one wins, every time', async (subject) => {
    const { store } = subject;
    const other = await subject.reopen?.();
    if (other === undefined) return;
    for (let i = 0; i < 25; i++) {
      const key = `k/${i}`;
      const tries: TransactionResult[] = await Promise.all(
        [store, other, store, other].map((handle, n) => choose(handle, [isMissing(key)], [put(key, String(n))])),
      );
      assert.equal(tries.filter((each) => each.succeeded).length, 1);
      assert.equal((await get(other, key))?.value.text, String(tries.findIndex((each) => each.succeeded)));
    }
    await other.close();
  }),

  promise('two handles that count together lose no increment', async (subject) => {
    const other = await subject.reopen?.();
    if (other === undefined) return;
    await apply(subject.store, put('counter', '0'));
    const increment = async (store: typeof other): Promise<void> => {
      for (let succeeded = false; !succeeded;) {
        const seen = await get(store, 'counter');
        assert.ok(seen);
        const next = put('counter', String(Number(seen.value.text) + 1));
        ({ succeeded } = await choose(
          store,
          [{ key: 'counter', target: 'value', is: '=', than: seen.value.text }],
          [next],
        ));
      }
    };
    await Promise.all(Array.from({ length: 40 }, (_, i) => increment(i % 2 === 0 ? subject.store : other)));
    assert.equal((await get(subject.store, 'counter'))?.value.text, '40');
    await other.close();
  }),

  promise('closing one handle ends its watches and refuses its calls, and the other goes on', async (subject) => {
    const other = await subject.reopen?.();
    if (other === undefined) return;
    const mine = await Reader.open(subject, EVERYTHING, 'now');
    const theirs = await Reader.open(subject, EVERYTHING, 'now', other);
    await other.close();
    await theirs.end();
    await refuses('closed', () => apply(other, put('a')));
    await apply(subject.store, put('a'));
    assert.deepEqual(await mine.tell(1), ['put a=x']);
  }),

  promise('a lease runs on when the handle that was granted it is closed, and ends in its time', async (subject) => {
    const other = await subject.reopen?.();
    if (other === undefined) return;
    const { id } = await other.grantLease(subject.minTtlMs);
    await apply(other, put('a', 'x', id));
    await other.close();
    assert.deepEqual(await keys(subject.store), ['a']);
    const reader = await Reader.open(subject, EVERYTHING, 'now');
    assert.deepEqual(await reader.tell(1), ['delete a']);
  }),

  promise('a store that answers at once answers the same, and wakes nobody before it has answered', async (subject) => {
    const { store } = subject;
    if (store.transactionNow === undefined) return;
    const reader = await Reader.open(subject, EVERYTHING, 'now');
    let woken = false;
    const delivered = reader.tell(1).then((lines) => {
      woken = true;
      return lines;
    });
    await Promise.resolve();
    const transaction: Transaction = { compare: [isMissing('a')], success: [put('a', 'now')], failure: [put('b')] };
    const first = store.transactionNow(transaction);
    assert.equal(woken, false);
    assert.deepEqual([first.succeeded, first.revision], [true, (await store.health()).revision]);
    assert.deepEqual(await delivered, ['put a=now']);
    assert.equal((await store.transaction(transaction)).succeeded, false);
    assert.throws(
      () => store.transactionNow?.({ compare: [], success: [put('')], failure: [] }),
      (error) => Failure.is(error, 'invalid'),
    );
    await store.close();
    assert.throws(
      () => store.transactionNow?.(transaction),
      (error) => Failure.is(error, 'closed'),
    );
  }),
];

/** A watch, and the ones that are opened after it because the connection broke. */
async function* reopened(store: Store, first: Watch): AsyncIterable<Changes> {
  for (let watch = first; ; watch = await store.watch({ key: 'b' }, first.since, new AbortController().signal)) {
    try {
      yield* watch;
      return;
    } catch (error) {
      if (!Failure.is(error, 'unavailable')) throw error;
    }
  }
}
