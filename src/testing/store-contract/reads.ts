import assert from 'node:assert/strict';
import { prefixed } from '../../store/contract.ts';
import { apply, keys, list, put, read, remove } from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

/** Sorted by their UTF-8 bytes. Sorted by UTF-16, the last three would come right after the character before U+E000. */
const IN_ORDER = [
  'A',
  'B',
  'a',
  'a\0',
  'a/',
  'a/1',
  'a0',
  'b',
  'é',
  'ē',
  '中',
  '\ue000',
  '\uffed',
  '\ufffd',
  '𐀀',
  '𝄞',
  '\u{10ffff}',
];

export const readPromises: readonly StorePromise[] = [
  promise('keys come in the order of their UTF-8 bytes, those past U+FFFF last', async ({ store }) => {
    for (const key of [...IN_ORDER].reverse()) await apply(store, put(key));
    assert.deepEqual(await keys(store), IN_ORDER);
    assert.deepEqual(await keys(store, { key: '\ue000', end: '𝄞' }), ['\ue000', '\uffed', '\ufffd', '𐀀']);
    assert.deepEqual(await keys(store, { key: '𐀀', end: '\0' }), ['𐀀', '𝄞', '\u{10ffff}']);
    assert.deepEqual((await apply(store, remove('\uffed', '𝄞'))).results, [{ do: 'delete', deleted: 3 }]);
  }),

  promise('a range has its first key and not its end', async ({ store }) => {
    await apply(store, ...['a', 'b', 'b/', 'b/1', 'b/2', 'b0', 'c'].map((key) => put(key)));
    assert.deepEqual(await keys(store, { key: 'b', end: 'c' }), ['b', 'b/', 'b/1', 'b/2', 'b0']);
    assert.deepEqual(await keys(store, prefixed('b/')), ['b/', 'b/1', 'b/2']);
    assert.deepEqual(await keys(store, { key: 'b' }), ['b']);
    assert.deepEqual(await keys(store, { key: 'bb', end: 'bc' }), []);
    assert.deepEqual(await keys(store, { key: 'c', end: 'a' }), [], 'a range that ends before it begins');
    assert.deepEqual(await keys(store, { key: 'b', end: 'b' }), []);
    assert.deepEqual(await keys(store, { key: 'b0', end: '\0' }), ['b0', 'c'], 'a range without an end');
  }),

  promise('a limit says how many, and `more` whether there were others', async ({ store }) => {
    await apply(store, ...['a', 'b', 'c', 'd'].map((key) => put(key)));
    const range = { key: 'a', end: 'd' };
    for (const [limit, found, more] of [
      [1, 1, true],
      [2, 2, true],
      [3, 3, false],
      [4, 3, false],
    ] as const) {
      const result = await list(store, range, { limit });
      assert.deepEqual([result.pairs.length, result.more, result.count], [found, more, found], `limit ${limit}`);
    }
    const all = await list(store, range);
    assert.deepEqual([all.pairs.length, all.more, all.count], [3, false, 3]);
    const none = await list(store, prefixed('x/'));
    assert.deepEqual([none.pairs, none.more, none.count], [[], false, 0]);
  }),

  promise('a count comes without the pairs', async ({ store }) => {
    await apply(store, put('a/1'), put('a/2'), put('b'));
    const result = await list(store, prefixed('a/'), { countOnly: true, limit: 1 });
    assert.deepEqual([result.pairs, result.more, result.count], [[], false, 2]);
    assert.deepEqual((await list(store, 'b', { countOnly: true })).count, 1);
    assert.deepEqual((await list(store, 'c', { countOnly: true })).count, 0);
  }),

  promise('by age, the oldest come first, whatever was put again since', async ({ store }) => {
    for (const key of ['q/c', 'q/a', 'q/d', 'q/b']) await apply(store, put(key));
    await apply(store, put('q/c', 'again'));
    const range = prefixed('q/');
    assert.deepEqual(await keys(store, range, { order: 'create' }), ['q/c', 'q/a', 'q/d', 'q/b']);
    assert.deepEqual(await keys(store, range, { order: 'create', limit: 2 }), ['q/c', 'q/a']);
    const limited = await list(store, range, { order: 'create', limit: 2 });
    assert.deepEqual([limited.more, limited.count], [true, 2]);
    assert.deepEqual(await keys(store, range, { order: 'key', limit: 2 }), ['q/a', 'q/b']);
  }),

  promise('by age, a key that is deleted and made again is the youngest', async ({ store }) => {
    for (const key of ['q/a', 'q/b', 'q/c']) await apply(store, put(key));
    await apply(store, remove('q/a'));
    await apply(store, put('q/a'));
    assert.deepEqual(await keys(store, prefixed('q/'), { order: 'create' }), ['q/b', 'q/c', 'q/a']);
  }),

  promise('by age, those made in one transaction come in order of their keys', async ({ store }) => {
    await apply(store, put('q/m'));
    await apply(store, put('q/z'), put('q/a'), put('q/n'));
    await apply(store, put('q/b'));
    assert.deepEqual(await keys(store, prefixed('q/'), { order: 'create' }), ['q/m', 'q/a', 'q/n', 'q/z', 'q/b']);
  }),

  promise('a queue of a thousand is read from its head, ten at a time, while it moves on', async ({ store }) => {
    const name = (i: number): string => `q/${String((i * 389) % 1000).padStart(3, '0')}`;
    for (let i = 0; i < 1000; i += 100) await apply(store, put(`before/${i}`), put(`z/${i}`));
    for (let i = 0; i < 1000; i++) await apply(store, put(name(i)));
    for (let head = 0; head < 1000; head += 125) {
      const [first] = (await apply(store, read(prefixed('q/'), { order: 'create', limit: 10 }))).results;
      assert.ok(first?.do === 'read');
      assert.deepEqual([first.more, first.count], [true, 10]);
      assert.deepEqual(
        first.pairs.map((pair) => pair.key),
        Array.from({ length: 10 }, (_, i) => name(head + i)),
      );
      for (let i = head; i < head + 125; i += 25)
        await apply(store, ...Array.from({ length: 25 }, (_, j) => remove(name(i + j))));
      for (let i = head; i < head + 125; i++) await apply(store, put(name(i)));
    }
  }),

  promise('a thousand keys are listed in pages, none twice and none left out', async ({ store }) => {
    const names = Array.from({ length: 1000 }, (_, i) => `p/${String((i * 617) % 1000).padStart(3, '0')}`);
    for (let i = 0; i < names.length; i += 100) await apply(store, ...names.slice(i, i + 100).map((key) => put(key)));
    const listed: string[] = [];
    for (let from = 'p/', more = true; more; from = `${listed.at(-1)}\0`) {
      const page = await list(store, { key: from, end: 'p0' }, { limit: 64 });
      listed.push(...page.pairs.map((pair) => pair.key));
      more = page.more;
    }
    assert.deepEqual(listed, [...names].sort());
  }),
];
