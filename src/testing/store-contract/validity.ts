import assert from 'node:assert/strict';
import type { Compare, Operation, Transaction } from '../../store/contract.ts';
import { apply, choose, exists, keys, nested, put, read, refuses, remove } from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

function puts(count: number, prefix = 'k/'): Operation[] {
  return Array.from({ length: count }, (_, i) => put(`${prefix}${i}`));
}

export const validityPromises: readonly StorePromise[] = [
  promise('no key may be put twice in one branch', async ({ store }) => {
    await refuses('invalid', () => apply(store, put('a', '1'), put('b'), put('a', '2')));
    await refuses('invalid', () => apply(store, ...puts(20), put('k/7')));
    assert.deepEqual(await keys(store), []);
  }),

  promise('no key may be put and deleted in one branch, in whichever order', async ({ store }) => {
    await refuses('invalid', () => apply(store, put('a'), remove('a')));
    await refuses('invalid', () => apply(store, remove('a'), put('a')));
    await refuses('invalid', () => apply(store, put('a/1'), remove('a/', 'a0')));
    await refuses('invalid', () => apply(store, remove('a', '\0'), put('b')));
    await refuses('invalid', () => apply(store, ...puts(20), remove('k/19')));
    assert.deepEqual(await keys(store), []);
    await apply(store, put('a0'), remove('a/', 'a0'), put('b'), remove('c', '\0'));
    assert.deepEqual(await keys(store), ['a0', 'b']);
  }),

  promise('the two branches may change the same key: only one of them is applied', async ({ store }) => {
    await choose(store, [exists('a')], [put('a', 'again')], [put('a', 'new')]);
    await choose(store, [exists('a')], [remove('a')], [put('a')]);
    await apply(store, nested([exists('a')], [put('a')], [put('a'), put('b')]));
    assert.deepEqual(await keys(store), ['a', 'b']);
  }),

  promise('what is nested must not clash with what is beside it, in whichever order and depth', async ({ store }) => {
    await refuses('invalid', () => apply(store, put('a'), nested([], [put('a')])));
    await refuses('invalid', () => apply(store, nested([], [], [put('a')]), put('a')));
    await refuses('invalid', () => apply(store, nested([], [put('a')]), nested([exists('b')], [], [put('a')])));
    await refuses('invalid', () => apply(store, nested([], [put('a')]), nested([], [remove('a')])));
    await refuses('invalid', () => apply(store, nested([], [remove('a')]), nested([], [put('a')])));
    await refuses('invalid', () => apply(store, nested([], [nested([], [put('a/1')])]), remove('a/', 'a0')));
    await refuses('invalid', () => apply(store, nested([], [put('a'), put('a')])));
    assert.deepEqual(await keys(store), []);
  }),

  promise('a branch that makes no sense is refused even if it would not be applied', async ({ store }) => {
    await refuses('invalid', () => choose(store, [exists('a')], [put('a'), put('a')], [put('b')]));
    await refuses('invalid', () => choose(store, [exists('a')], [put('')], [put('b')]));
    assert.deepEqual(await keys(store), []);
  }),

  promise('a branch has at most 128 operations, and there are at most 128 comparisons', async ({ store }) => {
    await refuses('invalid', () => apply(store, ...puts(129)));
    await refuses('invalid', () => choose(store, [exists('a')], puts(129), []));
    await refuses('invalid', () => choose(store, [], [], puts(129)));
    await refuses('invalid', () =>
      choose(
        store,
        Array.from({ length: 129 }, (_, i) => exists(`c/${i}`)),
        [],
      ),
    );
    assert.deepEqual(await keys(store), []);
    const full: Compare[] = Array.from({ length: 128 }, (_, i) => ({
      key: `c/${i}`,
      target: 'version',
      is: '=',
      than: 0,
    }));
    const { succeeded, results } = await choose(store, full, puts(128), puts(128));
    assert.deepEqual([succeeded, results.length, (await keys(store)).length], [true, 128, 128]);
  }),

  promise('what is nested has as many operations to itself as those around it left of the 128', async ({ store }) => {
    await refuses('invalid', () => apply(store, ...puts(99), nested([], puts(29, 'n/'))));
    await refuses('invalid', () => apply(store, nested([], [nested([], puts(127, 'n/'))])));
    assert.deepEqual(await keys(store), []);
    await apply(store, ...puts(99), nested([], puts(28, 'n/')));
    assert.equal((await keys(store)).length, 127);
  }),

  promise('the empty key is refused wherever a key is expected', async ({ store }) => {
    const compare: Compare = { key: '', target: 'version', is: '=', than: 0 };
    for (const operation of [put(''), remove(''), read(''), nested([compare], []), nested([], [put('')])]) {
      await refuses('invalid', () => apply(store, put('a'), operation));
    }
    await refuses('invalid', () => choose(store, [compare], [put('a')]));
    await refuses('invalid', () => store.watch({ key: '' }, 'now', new AbortController().signal));
    assert.deepEqual(await keys(store), []);
  }),

  promise('the empty text is refused as the end of a range', async ({ store }) => {
    await refuses('invalid', () => apply(store, remove('a', '')));
    await refuses('invalid', () => apply(store, read({ key: 'a', end: '' })));
    await refuses('invalid', () => choose(store, [{ key: 'a', end: '', target: 'version', is: '=', than: 0 }], []));
  }),

  promise('a limit is a whole number from 1', async ({ store }) => {
    for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await refuses('invalid', () => apply(store, read({ key: 'a', end: 'b' }, { limit })));
    }
  }),

  promise('a key with half a surrogate pair is refused, because no bytes can stand for it', async ({ store }) => {
    for (const key of ['\ud834', 'a\udd1e', '\udd1e\ud834'])
      await refuses('invalid', () => apply(store, put('a'), put(key)));
    assert.deepEqual(await keys(store), []);
  }),

  promise('what is no operation and no comparison is refused, and nothing is applied', async ({ store }) => {
    const wrong = [
      { compare: [], success: [put('a'), { do: 'increment', key: 'b' }], failure: [] },
      { compare: [], success: [put('a'), { do: 'put', key: 'b', value: undefined }], failure: [] },
      { compare: [{ key: 'a', target: 'size', is: '=', than: 0 }], success: [], failure: [put('a')] },
      { compare: [{ key: 'a', target: 'value', is: '<', than: 'x' }], success: [], failure: [put('a')] },
    ];
    for (const transaction of wrong)
      await refuses('invalid', () => store.transaction(transaction as unknown as Transaction));
    assert.deepEqual(await keys(store), []);
  }),
];
