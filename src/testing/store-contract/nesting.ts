import assert from 'node:assert/strict';
import type { Operation, ReadResult } from '../../store/contract.ts';
import { apply, choose, exists, isMissing, keys, list, nested, put, read, refuses, remove } from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

export const nestingPromises: readonly StorePromise[] = [
  promise('a nested transaction chooses a branch of its own and answers which', async ({ store }) => {
    await apply(store, put('a'));
    const { results } = await apply(
      store,
      nested([exists('a')], [put('yes')], [put('no')]),
      nested([exists('b')], [put('maybe')], [put('not'), read('a')]),
    );
    assert.equal(results.length, 2);
    const [first, second] = results;
    assert.ok(first?.do === 'transaction' && second?.do === 'transaction');
    assert.deepEqual([first.succeeded, second.succeeded, second.results.length], [true, false, 2]);
    assert.equal((second.results[1] as ReadResult).count, 1);
    assert.deepEqual(await keys(store), ['a', 'not', 'yes']);
  }),

  promise('all that is nested happens in the one revision of the whole transaction', async ({ store }) => {
    const { revision } = await apply(store, put('a'));
    const result = await apply(store, put('b'), nested([], [put('c'), nested([], [put('d')])]));
    assert.equal(result.revision, revision + 1);
    assert.deepEqual(
      (await list(store, { key: 'b', end: 'z' })).pairs.map((pair) => pair.modRevision),
      Array(3).fill(revision + 1),
    );
  }),

  promise('nested comparisons look at the store as it was before the transaction', async ({ store }) => {
    await apply(store, put('gone'));
    const { results } = await apply(
      store,
      put('a'),
      remove('gone'),
      nested([isMissing('a'), exists('gone')], [put('before')], [put('after')]),
    );
    assert.equal(results[2]?.do === 'transaction' && results[2].succeeded, true);
    assert.deepEqual(await keys(store), ['a', 'before']);
  }),

  promise('nested reads see what was changed before them in the whole transaction', async ({ store }) => {
    const { results } = await apply(store, put('a', '1'), nested([], [read('a'), put('b')]), read('b'));
    const inner = results[1];
    assert.ok(inner?.do === 'transaction');
    assert.equal((inner.results[0] as ReadResult).pairs[0]?.value.text, '1');
    assert.equal((results[2] as ReadResult).count, 1);
  }),

  promise('what is nested in the branch that is not applied is not applied either', async ({ store }) => {
    const { succeeded } = await choose(
      store,
      [exists('a')],
      [nested([], [put('b')])],
      [nested([exists('a')], [put('c')], [nested([], [put('d')])])],
    );
    assert.equal(succeeded, false);
    assert.deepEqual(await keys(store), ['d']);
  }),

  promise('a nested transaction that changes nothing does not raise the revision', async ({ store }) => {
    const { revision } = await apply(store, put('a'));
    assert.equal((await apply(store, nested([exists('b')], [put('c')], [read('a'), remove('b')]))).revision, revision);
  }),

  promise('a lease that is gone, deep inside, keeps all of the transaction from being applied', async ({ store }) => {
    const { id } = await store.grantLease(60_000);
    await store.revokeLease(id);
    await refuses('not-found', () => apply(store, put('a'), nested([], [put('b'), nested([], [put('c', 'x', id)])])));
    await refuses('not-found', () => apply(store, put('a'), nested([], [put('b', 'x', 'keep')])));
    assert.deepEqual(await keys(store), []);
  }),

  promise('transactions nest sixteen deep', async ({ store }) => {
    let operation: Operation = put('core');
    for (let depth = 0; depth < 16; depth++)
      operation = nested([isMissing('core')], [operation], [put(`wrong/${depth}`)]);
    await apply(store, operation);
    assert.deepEqual(await keys(store), ['core']);
  }),
];
