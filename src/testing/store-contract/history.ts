import assert from 'node:assert/strict';
import { apply, EVERYTHING, keys, list, put, Reader, refuses, remove, revisionOf, told } from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

export const historyPromises: readonly StorePromise[] = [
  promise('compaction forgets history and keeps every value as it is', async ({ store }) => {
    await apply(store, put('a', '1'), put('b'));
    await apply(store, put('a', '2'));
    await apply(store, remove('b'));
    const before = await list(store);
    const { revision } = await store.health();
    await store.compact(revision);
    const after = await list(store);
    assert.deepEqual(
      after.pairs.map((pair) => ({ ...pair, value: pair.value.text })),
      before.pairs.map((pair) => ({ ...pair, value: pair.value.text })),
    );
    assert.deepEqual(await store.health(), { revision, compacted: revision });
  }),

  promise('after compaction a watch may start at the compacted revision or later', async (subject) => {
    const { store } = subject;
    await apply(store, put('a', '1'));
    const { revision } = await apply(store, put('a', '2'));
    await apply(store, put('a', '3'));
    await apply(store, put('a', '4'));
    await store.compact(revision);
    assert.deepEqual(await (await Reader.open(subject, { key: 'a' }, revision)).tell(2), ['put a=3', 'put a=4']);
    assert.deepEqual(await (await Reader.open(subject, { key: 'a' }, revision + 1)).tell(1), ['put a=4']);
  }),

  promise(
    'a watch that starts before what is compacted fails with `compacted`, even by one revision',
    async (subject) => {
      const { store } = subject;
      await apply(store, put('a', '1'));
      await apply(store, put('a', '2'));
      const { revision } = await apply(store, remove('a'));
      await apply(store, put('a', '3'));
      await store.compact(revision);
      for (const since of [0, revision - 2, revision - 1]) {
        const failure = await (await Reader.open(subject, { key: 'a' }, since)).failure();
        assert.equal(
          failure?.code,
          'compacted',
          `since ${since}, compacted ${revision}: ${failure?.message ?? 'something was delivered'}`,
        );
      }
    },
  ),

  promise('a watch that has been given everything is not touched by compaction', async (subject) => {
    const { store } = subject;
    await apply(store, put('a', '0'));
    const quiet = await Reader.open(subject, { key: 'quiet' }, 'now');
    const reader = await Reader.open(subject, { key: 'a' }, 'now');
    await apply(store, put('a', '1'));
    assert.deepEqual(await reader.tell(1), ['put a=1']);
    for (let i = 2; i < 5; i++) await apply(store, put('b', String(i)));
    await store.compact(await revisionOf(store));
    await apply(store, put('a', '2'), put('quiet'));
    assert.deepEqual(await reader.tell(1), ['put a=2']);
    assert.deepEqual(await quiet.tell(1), ['put quiet=x']);
  }),

  promise(
    'a reader that compaction overtakes gets every change or fails with `compacted`: never a gap',
    async (subject) => {
      const { store } = subject;
      const reader = await Reader.open(subject, EVERYTHING, 'now');
      for (let i = 0; i < 20; i++) await apply(store, put('a', String(i)));
      assert.deepEqual(await reader.tell(1), ['put a=0']);
      await store.compact((await revisionOf(store)) - 5);
      for (let i = 1; i < 20; i++) {
        const changes = await reader.next().catch((error: unknown) => error);
        if (changes instanceof Error) {
          assert.equal((changes as { code?: string }).code, 'compacted');
          await reader.end();
          return;
        }
        assert.deepEqual((changes as { changes: never[] }).changes.map(told), [`put a=${i}`]);
      }
    },
  ),

  promise('history is compacted once, and not before it has happened', async ({ store }) => {
    for (let i = 0; i < 5; i++) await apply(store, put('a', String(i)));
    const { revision } = await store.health();
    await store.compact(revision - 2);
    assert.equal((await store.health()).compacted, revision - 2);
    await refuses('compacted', () => store.compact(revision - 2));
    await refuses('compacted', () => store.compact(revision - 3));
    await refuses('invalid', () => store.compact(revision + 1));
    for (const wrong of [0, -1, 1.5, Number.NaN]) await refuses('invalid', () => store.compact(wrong));
    await store.compact(revision);
    assert.deepEqual(await store.health(), { revision, compacted: revision });
    assert.deepEqual(await keys(store), ['a']);
  }),
];
