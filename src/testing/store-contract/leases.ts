import assert from 'node:assert/strict';
import type { Store } from '../../store/contract.ts';
import { prefixed } from '../../store/contract.ts';
import {
  apply,
  EVERYTHING,
  eventually,
  get,
  keys,
  list,
  put,
  Reader,
  refuses,
  remove,
  revisionOf,
  told,
} from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

const LONG_MS = 60_000;

async function attachedTo(store: Store, id: string): Promise<string[]> {
  return [...((await store.leaseState(id))?.keys ?? ['no lease'])].sort();
}

export const leasePromises: readonly StorePromise[] = [
  promise('a lease is granted for at least the time asked for, under an id of its own', async ({ store, minTtlMs }) => {
    const leases = [
      await store.grantLease(minTtlMs),
      await store.grantLease(minTtlMs),
      await store.grantLease(LONG_MS),
    ];
    assert.equal(new Set(leases.map((lease) => lease.id)).size, 3);
    assert.ok((leases[0]?.ttlMs ?? 0) >= minTtlMs);
    assert.ok((leases[2]?.ttlMs ?? 0) >= LONG_MS);
    const state = await store.leaseState(leases[2]?.id ?? '');
    assert.ok(state);
    assert.deepEqual([state.id, state.ttlMs, state.keys], [leases[2]?.id, leases[2]?.ttlMs, []]);
    assert.ok(state.remainingMs > 0 && state.remainingMs <= state.ttlMs);
  }),

  promise('a time to live that is no finite number above 0 is refused', async ({ store }) => {
    for (const ttlMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
      await refuses('invalid', () => store.grantLease(ttlMs));
  }),

  promise(
    'when a lease runs out its keys are deleted in one revision, in order, and other keys stay',
    async (subject) => {
      const { store, minTtlMs } = subject;
      const { id } = await store.grantLease(minTtlMs);
      for (const key of ['k/c', 'k/a', 'é', '𝄞', '\ufffd', 'k/b']) await apply(store, put(key, 'x', id));
      await apply(store, put('stays'));
      const before = await revisionOf(store);
      const reader = await Reader.open(subject, EVERYTHING, 'now');
      const { revision, changes } = await reader.next();
      assert.deepEqual(changes.map(told), [
        'delete k/a',
        'delete k/b',
        'delete k/c',
        'delete é',
        'delete \ufffd',
        'delete 𝄞',
      ]);
      for (const change of changes) assert.equal(change.kind === 'delete' && change.revision, revision);
      assert.equal(revision, before + 1);
      assert.deepEqual(await keys(store), ['stays']);
      assert.equal(await store.leaseState(id), null);
    },
  ),

  promise('a lease does not run out before its time', async (subject) => {
    const { store, minTtlMs } = subject;
    const { id, ttlMs } = await store.grantLease(2 * minTtlMs);
    await apply(store, put('a', 'x', id));
    await subject.advance(ttlMs / 2);
    const state = await store.leaseState(id);
    assert.ok(state);
    assert.ok(state.remainingMs <= ttlMs / 2 + 1, `${state.remainingMs} of ${ttlMs} ms remain after half of them`);
    assert.deepEqual(await keys(store), ['a']);
  }),

  promise('keeping a lease alive gives it its full time again, as often as it is done', async (subject) => {
    const { store, minTtlMs } = subject;
    const { id, ttlMs } = await store.grantLease(2 * minTtlMs);
    await apply(store, put('a', 'x', id));
    for (let i = 0; i < 4; i++) {
      await subject.advance(ttlMs / 2);
      assert.deepEqual(await store.keepLeaseAlive(id), { id, ttlMs });
    }
    assert.deepEqual(await attachedTo(store, id), ['a']);
    await eventually(subject, async () => (await get(store, 'a')) === undefined, 'the lease did not run out');
    assert.equal(await store.keepLeaseAlive(id), null);
  }),

  promise('a lease that ran out never comes back', async (subject) => {
    const { store, minTtlMs } = subject;
    const { id } = await store.grantLease(minTtlMs);
    await apply(store, put('a', 'x', id));
    await eventually(subject, async () => (await store.leaseState(id)) === null, 'the lease did not run out');
    assert.equal(await store.keepLeaseAlive(id), null);
    assert.equal(await store.leaseState(id), null);
    assert.deepEqual(await keys(store), []);
    await refuses('not-found', () => apply(store, put('a', 'x', id)));
    await subject.advance(minTtlMs);
    assert.deepEqual(await keys(store), []);
  }),

  promise('asking about a lease whose time is over finds it ended, however busy its timer', async (subject) => {
    const { store, minTtlMs } = subject;
    const { id, ttlMs } = await store.grantLease(minTtlMs);
    await apply(store, put('a', 'x', id));
    await subject.advance(3 * ttlMs);
    assert.equal(await store.keepLeaseAlive(id), null);
    assert.deepEqual(await keys(store), []);
  }),

  promise('revoking a lease ends it at once, in one revision and in order', async (subject) => {
    const { store } = subject;
    const { id } = await store.grantLease(LONG_MS);
    await apply(store, put('b', 'x', id), put('a', 'x', id), put('c'));
    const reader = await Reader.open(subject, EVERYTHING, 'now');
    await store.revokeLease(id);
    assert.deepEqual((await reader.next()).changes.map(told), ['delete a', 'delete b']);
    assert.deepEqual(await keys(store), ['c']);
    assert.equal(await store.keepLeaseAlive(id), null);
    await refuses('not-found', () => apply(store, put('a', 'x', id)));
  }),

  promise('the end of a lease without keys changes nothing', async ({ store }) => {
    const { id } = await store.grantLease(LONG_MS);
    const before = await revisionOf(store);
    await store.revokeLease(id);
    assert.equal(await revisionOf(store), before);
  }),

  promise('ending a lease that has ended, or never was, is not an error', async ({ store }) => {
    const { id } = await store.grantLease(LONG_MS);
    await store.revokeLease(id);
    await store.revokeLease(id);
    await store.revokeLease('7387894723462');
    assert.equal(await store.leaseState('7387894723462'), null);
    assert.equal(await store.keepLeaseAlive('7387894723462'), null);
  }),

  promise('a put with a lease that does not exist is refused and changes nothing', async ({ store }) => {
    const before = await revisionOf(store);
    await refuses('not-found', () => apply(store, put('a'), put('b', 'x', '7387894723462'), put('c')));
    assert.deepEqual(await keys(store), []);
    assert.equal(await revisionOf(store), before);
  }),

  promise('a lease is asked for only where the put is applied', async ({ store }) => {
    const gone = '7387894723462';
    await store.transaction({
      compare: [],
      success: [put('a')],
      failure: [put('b', 'x', gone), put('c', 'x', 'keep')],
    });
    assert.deepEqual(await keys(store), ['a']);
  }),

  promise('putting a key again without a lease takes it off the one it had', async ({ store }) => {
    const { id } = await store.grantLease(LONG_MS);
    await apply(store, put('a', 'x', id), put('b', 'x', id));
    await apply(store, put('a', 'free'));
    assert.equal((await get(store, 'a'))?.lease, null);
    assert.deepEqual(await attachedTo(store, id), ['b']);
    await store.revokeLease(id);
    assert.deepEqual(await keys(store), ['a']);
  }),

  promise('putting a key again with another lease moves it there', async ({ store }) => {
    const one = await store.grantLease(LONG_MS);
    const two = await store.grantLease(LONG_MS);
    await apply(store, put('a', 'x', one.id), put('b', 'x', one.id), put('c', 'x', one.id));
    await apply(store, put('a', 'x', two.id), put('b', 'x', one.id));
    assert.deepEqual([await attachedTo(store, one.id), await attachedTo(store, two.id)], [['b', 'c'], ['a']]);
    await store.revokeLease(one.id);
    assert.deepEqual(await keys(store), ['a']);
    assert.equal((await get(store, 'a'))?.lease, two.id);
  }),

  promise('`keep` leaves a key on the lease it has, or on none', async ({ store }) => {
    const { id } = await store.grantLease(LONG_MS);
    await apply(store, put('a', 'x', id), put('b'));
    await apply(store, put('a', 'new', 'keep'), put('b', 'new', 'keep'));
    assert.deepEqual([(await get(store, 'a'))?.lease, (await get(store, 'b'))?.lease], [id, null]);
    await store.revokeLease(id);
    assert.deepEqual(await keys(store), ['b']);
  }),

  promise('`keep` on a key that is not there is refused and changes nothing', async ({ store }) => {
    await apply(store, put('was'));
    await apply(store, remove('was'));
    await refuses('not-found', () => apply(store, put('a'), put('was', 'x', 'keep')));
    await refuses('not-found', () => apply(store, put('a'), put('never', 'x', 'keep')));
    assert.deepEqual(await keys(store), []);
  }),

  promise('a deleted key is off its lease, also when it comes back', async ({ store }) => {
    const { id } = await store.grantLease(LONG_MS);
    await apply(store, put('a', 'x', id), put('b', 'x', id), put('c', 'x', id));
    await apply(store, remove('a'));
    assert.deepEqual(await attachedTo(store, id), ['b', 'c']);
    await apply(store, put('a'));
    assert.equal((await get(store, 'a'))?.lease, null);
    await store.revokeLease(id);
    assert.deepEqual(await keys(store), ['a']);
  }),

  promise('keys of many leases come and go, and each lease takes its own with it', async ({ store }) => {
    const ids = await Promise.all(Array.from({ length: 8 }, async () => (await store.grantLease(LONG_MS)).id));
    for (let i = 0; i < 300; i++) {
      // Keys change leases, lose them and are deleted in an order that a wrong index could not get right by luck.
      const key = (step: number): string => `k/${(i * step) % 37}`;
      const gone = new Set([key(11), key(23)]);
      gone.delete(key(5));
      await apply(
        store,
        put(key(5), String(i), ids[(i * i) % 7]),
        ...(i % 3 === 0 ? [...gone].map((each) => remove(each)) : []),
      );
      if (i % 7 === 0) await apply(store, put(key(29)));
    }
    await apply(
      store,
      ...(await list(store)).pairs.filter((pair) => pair.lease === null).map((pair) => remove(pair.key)),
    );
    const all = await Promise.all(ids.map((id) => attachedTo(store, id)));
    assert.deepEqual(all.flat().sort(), [...(await keys(store, prefixed('k/')))].sort());
    for (const [i, id] of ids.entries()) {
      await store.revokeLease(id);
      assert.deepEqual(
        (await keys(store)).sort(),
        all
          .slice(i + 1)
          .flat()
          .sort(),
      );
    }
  }),
];
