import assert from 'node:assert/strict';
import type { Compare } from '../../store/contract.ts';
import { prefixed } from '../../store/contract.ts';
import { apply, holds, put, remove } from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

const NUMBERS = ['version', 'create', 'mod'] as const;

export const comparisonPromises: readonly StorePromise[] = [
  promise('version, create and mod revision compare as numbers', async ({ store }) => {
    const create = (await apply(store, put('a'))).revision;
    const mod = (await apply(store, put('a'))).revision;
    for (const [target, actual] of [
      ['version', 2],
      ['create', create],
      ['mod', mod],
    ] as const) {
      const answers = async (than: number): Promise<boolean[]> =>
        Promise.all((['=', '!=', '<', '>'] as const).map((is) => holds(store, { key: 'a', target, is, than })));
      assert.deepEqual(await answers(actual), [true, false, false, false], `${target} and itself`);
      assert.deepEqual(await answers(actual + 1), [false, true, true, false], `${target} and more`);
      assert.deepEqual(await answers(actual - 1), [false, true, false, true], `${target} and less`);
    }
  }),

  promise('a key that does not exist has version, create and mod revision 0', async ({ store }) => {
    await apply(store, put('b'));
    await apply(store, remove('b'));
    for (const key of ['a', 'b']) {
      for (const target of NUMBERS) {
        assert.equal(await holds(store, { key, target, is: '=', than: 0 }), true);
        assert.equal(await holds(store, { key, target, is: '<', than: 1 }), true);
        assert.equal(await holds(store, { key, target, is: '>', than: 0 }), false);
        assert.equal(await holds(store, { key, target, is: '!=', than: 0 }), false);
      }
    }
  }),

  promise('values compare as text, character by character', async ({ store }) => {
    await apply(store, put('a', 'é☃'), put('empty', ''));
    const value = (key: string, is: '=' | '!=', than: string): Compare => ({ key, target: 'value', is, than });
    assert.equal(await holds(store, value('a', '=', 'é☃')), true);
    assert.equal(await holds(store, value('a', '!=', 'é☃')), false);
    assert.equal(
      await holds(store, value('a', '=', 'e\u0301☃')),
      false,
      'another way to write the same letters is another text',
    );
    assert.equal(await holds(store, value('a', '!=', 'é')), true);
    assert.equal(await holds(store, value('empty', '=', '')), true);
  }),

  promise(
    'a comparison of values never holds where there is no key, not even for "unequal" or the empty text',
    async ({ store }) => {
      for (const is of ['=', '!='] as const) {
        for (const than of ['', 'x']) {
          assert.equal(await holds(store, { key: 'a', target: 'value', is, than }), false);
          assert.equal(await holds(store, { ...prefixed('a/'), target: 'value', is, than }), false);
        }
      }
    },
  ),

  promise('leases compare by id, and null stands for none, as it does where there is no key', async ({ store }) => {
    const one = await store.grantLease(60_000);
    const two = await store.grantLease(60_000);
    await apply(store, put('leased', 'x', one.id), put('free'));
    const lease = (key: string, is: '=' | '!=', than: string | null): Compare => ({ key, target: 'lease', is, than });
    assert.equal(
      await holds(store, lease('leased', '=', one.id), lease('leased', '!=', two.id), lease('leased', '!=', null)),
      true,
    );
    assert.equal(await holds(store, lease('leased', '=', two.id)), false);
    assert.equal(await holds(store, lease('leased', '=', null)), false);
    for (const key of ['free', 'missing']) {
      assert.equal(await holds(store, lease(key, '=', null), lease(key, '!=', one.id)), true);
      assert.equal(await holds(store, lease(key, '!=', null)), false);
      assert.equal(await holds(store, lease(key, '=', one.id)), false);
    }
  }),

  promise('"version = 0" over a range says that it is empty', async ({ store }) => {
    const empty = (prefix: string): Promise<boolean> =>
      holds(store, { ...prefixed(prefix), target: 'version', is: '=', than: 0 });
    await apply(store, put('q/a/1'), put('q/c/1'), put('q/b'), put('q/b0'));
    assert.deepEqual(
      [await empty('q/'), await empty('q/a/'), await empty('q/b/'), await empty('q/c/'), await empty('r/')],
      [false, false, true, false, true],
    );
    await apply(store, put('q/b/1'));
    assert.equal(await empty('q/b/'), false);
    await apply(store, remove('q/b/1'));
    assert.equal(await empty('q/b/'), true);
    await apply(store, put('q/b/1'));
    assert.equal(await empty('q/b/'), false, 'a key that came back');
  }),

  promise(
    'whether a range is empty is right at every moment while its keys and its neighbours come and go',
    async ({ store }) => {
      const empty = (prefix: string): Promise<boolean> =>
        holds(store, { ...prefixed(prefix), target: 'version', is: '=', than: 0 });
      const names = Array.from(
        { length: 150 },
        (_, i) => `q/${String(i % 5)}/${String((i * 37) % 150).padStart(3, '0')}`,
      );
      for (const [i, name] of names.entries()) {
        await apply(store, put(name));
        assert.deepEqual(
          [await empty('q/0/'), await empty('q/4/'), await empty('q/4'), await empty('q/5/')],
          [false, i < 4, i < 4, true],
        );
      }
      for (const [i, name] of names.entries()) {
        await apply(store, remove(name));
        assert.deepEqual([await empty('q/0/'), await empty('q/4/'), await empty('q/')], [i >= 145, i >= 149, i >= 149]);
      }
    },
  ),

  promise('over a range a comparison must hold for every key in it', async ({ store }) => {
    const first = (await apply(store, put('a/1'), put('a/2'))).revision;
    await apply(store, put('a/3'), put('b'));
    await apply(store, put('a/3'));
    const range = prefixed('a/');
    assert.equal(await holds(store, { ...range, target: 'version', is: '>', than: 0 }), true);
    assert.equal(await holds(store, { ...range, target: 'version', is: '<', than: 2 }), false);
    assert.equal(await holds(store, { key: 'a/', end: 'a/3', target: 'version', is: '<', than: 2 }), true);
    assert.equal(await holds(store, { ...range, target: 'create', is: '<', than: first + 1 }), false);
    assert.equal(await holds(store, { key: 'a/', end: 'a/3', target: 'mod', is: '=', than: first }), true);
    assert.equal(await holds(store, { ...range, target: 'value', is: '=', than: 'x' }), true);
    assert.equal(await holds(store, { ...range, target: 'lease', is: '=', than: null }), true);
  }),

  promise('over an empty range a comparison holds as it would for a key that does not exist', async ({ store }) => {
    await apply(store, put('a'));
    const range = prefixed('none/');
    assert.equal(await holds(store, { ...range, target: 'version', is: '=', than: 0 }), true);
    assert.equal(await holds(store, { ...range, target: 'version', is: '>', than: 0 }), false);
    assert.equal(await holds(store, { ...range, target: 'mod', is: '<', than: 5 }), true);
    assert.equal(await holds(store, { ...range, target: 'create', is: '!=', than: 0 }), false);
    assert.equal(await holds(store, { ...range, target: 'lease', is: '=', than: null }), true);
    assert.equal(
      await holds(store, { key: 'b', end: 'a', target: 'version', is: '=', than: 0 }),
      true,
      'a range that ends before it begins',
    );
  }),
];
