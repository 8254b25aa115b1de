import assert from 'node:assert/strict';
import type { KeyValue, ReadResult } from '../../store/contract.ts';
import { prefixed } from '../../store/contract.ts';
import { Value } from '../../store/value.ts';
import { apply, choose, exists, get, isMissing, keys, list, put, read, remove, revisionOf } from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

function meta({ createRevision, modRevision, version, lease }: KeyValue): unknown[] {
  return [createRevision, modRevision, version, lease];
}

export const transactionPromises: readonly StorePromise[] = [
  promise(
    'a put makes a key with version 1, and its revision is the one that the transaction answers',
    async ({ store }) => {
      const before = await revisionOf(store);
      const { revision, succeeded, results } = await apply(store, put('a', 'one'));
      assert.deepEqual([revision, succeeded, results], [before + 1, true, [{ do: 'put' }]]);
      const pair = await get(store, 'a');
      assert.ok(pair);
      assert.deepEqual([pair.key, pair.value.text, ...meta(pair)], ['a', 'one', revision, revision, 1, null]);
    },
  ),

  promise(
    'putting a key again raises its version and mod revision and leaves its create revision',
    async ({ store }) => {
      const first = await apply(store, put('a', 'one'));
      await apply(store, put('b'));
      const third = await apply(store, put('a', 'two'));
      const pair = await get(store, 'a');
      assert.ok(pair);
      assert.deepEqual([pair.value.text, ...meta(pair)], ['two', first.revision, third.revision, 2, null]);
    },
  ),

  promise('putting the value that is there already is a change like any other', async ({ store }) => {
    const first = await apply(store, put('a', 'same'));
    const second = await apply(store, put('a', 'same'));
    assert.equal(second.revision, first.revision + 1);
    assert.equal((await get(store, 'a'))?.version, 2);
  }),

  promise(
    'a key that is deleted and made again starts over at version 1 with a new create revision',
    async ({ store }) => {
      await apply(store, put('a'));
      await apply(store, put('a'));
      await apply(store, remove('a'));
      assert.equal(await get(store, 'a'), undefined);
      const again = await apply(store, put('a'));
      const pair = await get(store, 'a');
      assert.ok(pair);
      assert.deepEqual(meta(pair), [again.revision, again.revision, 1, null]);
    },
  ),

  promise(
    'a transaction that changes several keys raises the revision by one, and they all carry it',
    async ({ store }) => {
      const { revision } = await apply(store, put('a'), put('old'));
      const result = await apply(store, put('a'), put('b'), remove('old'), put('c'));
      assert.equal(result.revision, revision + 1);
      assert.deepEqual(
        (await list(store)).pairs.map((pair) => `${pair.key} ${pair.modRevision}`),
        ['a', 'b', 'c'].map((key) => `${key} ${revision + 1}`),
      );
    },
  ),

  promise('a transaction that changes nothing does not raise the revision', async ({ store }) => {
    const { revision } = await apply(store, put('a'));
    assert.equal((await apply(store)).revision, revision);
    assert.equal((await apply(store, read('a'), read('b'))).revision, revision);
    assert.equal((await choose(store, [exists('b')], [put('a')])).revision, revision);
    assert.equal(await revisionOf(store), revision);
  }),

  promise('deleting what is not there changes nothing and does not raise the revision', async ({ store }) => {
    const { revision } = await apply(store, put('a'));
    const result = await apply(store, remove('b'), remove('b/', 'b0'));
    assert.deepEqual(
      [result.revision, result.results],
      [
        revision,
        [
          { do: 'delete', deleted: 0 },
          { do: 'delete', deleted: 0 },
        ],
      ],
    );
  }),

  promise('a deletion takes the keys of its range and no others, and says how many they were', async ({ store }) => {
    await apply(store, put('a'), put('b'), put('b/1'), put('b/2'), put('b0'), put('c'));
    const { key, end } = prefixed('b/');
    assert.deepEqual((await apply(store, remove(key, end), remove('c'))).results, [
      { do: 'delete', deleted: 2 },
      { do: 'delete', deleted: 1 },
    ]);
    assert.deepEqual(await keys(store), ['a', 'b', 'b0']);
  }),

  promise('deletions may overlap: the first one takes the key', async ({ store }) => {
    await apply(store, put('a'), put('b'));
    assert.deepEqual((await apply(store, remove('a'), remove('a', 'c'))).results, [
      { do: 'delete', deleted: 1 },
      { do: 'delete', deleted: 1 },
    ]);
    assert.deepEqual(await keys(store), []);
  }),

  promise('operations see the ones before them, and each has its result in its place', async ({ store }) => {
    await apply(store, put('old'));
    const all = { key: 'a', end: 'z' };
    const { revision, results } = await apply(
      store,
      read(all),
      put('new', 'n'),
      read(all),
      remove('old'),
      read(all),
      read('new'),
    );
    assert.deepEqual(
      results.map((result) => result.do),
      ['read', 'put', 'read', 'delete', 'read', 'read'],
    );
    const found = (at: number): string[] => (results[at] as ReadResult).pairs.map((pair) => pair.key);
    assert.deepEqual([found(0), found(2), found(4), found(5)], [['old'], ['new', 'old'], ['new'], ['new']]);
    const [pair] = (results[5] as ReadResult).pairs;
    assert.ok(pair);
    assert.deepEqual([pair.value.text, ...meta(pair)], ['n', revision, revision, 1, null]);
  }),

  promise('the success branch is applied if every comparison holds, and nothing of the other', async ({ store }) => {
    await apply(store, put('a'));
    const result = await choose(store, [exists('a'), isMissing('b')], [put('yes')], [put('no')]);
    assert.equal(result.succeeded, true);
    assert.deepEqual(await keys(store), ['a', 'yes']);
  }),

  promise('the failure branch is applied, all of it, if one comparison does not hold', async ({ store }) => {
    await apply(store, put('a'), put('b'));
    const result = await choose(
      store,
      [exists('a'), isMissing('b')],
      [put('yes')],
      [put('no/1'), remove('b'), put('no/2'), read('no/1')],
    );
    assert.equal(result.succeeded, false);
    assert.deepEqual(
      result.results.map((each) => each.do),
      ['put', 'delete', 'put', 'read'],
    );
    assert.deepEqual(await keys(store), ['a', 'no/1', 'no/2']);
    const revisions = (await list(store, prefixed('no/'))).pairs.map((pair) => pair.modRevision);
    assert.deepEqual(revisions, [result.revision, result.revision]);
  }),

  promise('a value of 100 KiB comes back as it was', async ({ store }) => {
    const text = 'ab☃𝄞'.repeat(17_000);
    await apply(store, put('large', text));
    assert.equal((await get(store, 'large'))?.value.text, text);
  }),

  promise('text comes back character by character, documents as the JSON they are', async ({ store }) => {
    const texts = ['', ' ', '\0', '"\\\n\t', 'ÿ', 'é', '☃', '𝄞', '\ufeffmark', '{"not":json'];
    await apply(store, ...texts.map((text, i) => put(`t/${i}`, text)));
    assert.deepEqual(
      (await list(store, prefixed('t/'))).pairs.map((pair) => pair.value.text),
      texts,
    );
    const document = { text: 'ü', list: [1, 2.5, null, true], nested: { '': [] } };
    await apply(store, { do: 'put', key: 'd', value: Value.json(document) });
    assert.deepEqual((await get(store, 'd'))?.value.json, document);
    assert.equal((await get(store, 'd'))?.value.text, JSON.stringify(document));
  }),

  promise('a hundred increments at once, by compare and swap, lose none', async ({ store }) => {
    await apply(store, put('counter', '0'));
    const increment = async (): Promise<void> => {
      for (;;) {
        const seen = await get(store, 'counter');
        assert.ok(seen);
        const { succeeded } = await choose(
          store,
          [{ key: 'counter', target: 'mod', is: '=', than: seen.modRevision }],
          [put('counter', String(Number(seen.value.text) + 1))],
        );
        if (succeeded) return;
      }
    };
    await Promise.all(Array.from({ length: 100 }, increment));
    const counter = await get(store, 'counter');
    assert.deepEqual([counter?.value.text, counter?.version], ['100', 101]);
  }),

  promise('of many who try to make the same key only one does', async ({ store }) => {
    const tries = await Promise.all(
      Array.from({ length: 50 }, (_, i) => choose(store, [isMissing('a')], [put('a', String(i))], [read('a')])),
    );
    const winners = tries.flatMap((result, i) => (result.succeeded ? [String(i)] : []));
    assert.equal(winners.length, 1);
    assert.equal((await get(store, 'a'))?.value.text, winners[0]);
    for (const { succeeded, results } of tries)
      if (!succeeded) assert.equal((results[0] as ReadResult).pairs[0]?.value.text, winners[0]);
  }),

  promise('a call whose signal was aborted before changes nothing and throws the reason', async ({ store }) => {
    const reason = new Error('no longer wanted');
    await assert.rejects(
      store.transaction({ compare: [], success: [put('a')], failure: [] }, AbortSignal.abort(reason)),
      reason,
    );
    assert.deepEqual(await keys(store), []);
  }),
];
