import assert from 'node:assert/strict';
import { prefixed } from '../../store/contract.ts';
import {
  apply,
  choose,
  EVERYTHING,
  exists,
  isMissing,
  nested,
  put,
  Reader,
  refuses,
  remove,
  revisionOf,
  soon,
  told,
} from './steps.ts';
import { promise, type StorePromise } from './subject.ts';

export const watchPromises: readonly StorePromise[] = [
  promise('a watch delivers every put with the whole pair, and every deletion with its revision', async (subject) => {
    const { store } = subject;
    const { id } = await store.grantLease(60_000);
    const made = await apply(store, put('a', 'one', id));
    const reader = await Reader.open(subject, { key: 'a' }, 'now');
    const changed = await apply(store, put('a', 'two', 'keep'));
    const first = await reader.next();
    const [change] = first.changes;
    assert.ok(change?.kind === 'put');
    const { value, ...rest } = change.pair;
    assert.deepEqual([first.revision, first.changes.length, value.text], [changed.revision, 1, 'two']);
    assert.deepEqual(rest, {
      key: 'a',
      createRevision: made.revision,
      modRevision: changed.revision,
      version: 2,
      lease: id,
    });
    const deleted = await apply(store, remove('a'));
    assert.deepEqual(await reader.next(), {
      revision: deleted.revision,
      changes: [{ kind: 'delete', key: 'a', revision: deleted.revision }],
    });
  }),

  promise('a watch from now on says where it starts and delivers nothing from before', async (subject) => {
    const { revision } = await apply(subject.store, put('a', 'before'));
    const reader = await Reader.open(subject, EVERYTHING, 'now');
    assert.equal(reader.watch.since, revision);
    await apply(subject.store, put('a', 'after'));
    assert.deepEqual(await reader.tell(1), ['put a=after']);
  }),

  promise('whatever is written once a watch is open is delivered, however soon', async (subject) => {
    for (let i = 0; i < 20; i++) {
      const reader = await Reader.open(subject, { key: 'a' }, 'now');
      await apply(subject.store, put('a', String(i)));
      assert.deepEqual(await reader.tell(1), [`put a=${i}`]);
      reader.abort();
    }
  }),

  promise('a watch of a range delivers what is in it and nothing else', async (subject) => {
    const { store } = subject;
    const prefix = await Reader.open(subject, prefixed('b/'), 'now');
    const single = await Reader.open(subject, { key: 'b' }, 'now');
    const endless = await Reader.open(subject, { key: 'b0', end: '\0' }, 'now');
    for (const key of ['a', 'b', 'b/', 'b/1', 'b0', 'c']) await apply(store, put(key));
    await apply(store, remove('a', 'c'));
    await apply(store, put('b'), put('b/last'), put('d'));
    assert.deepEqual(await prefix.tell(5), ['put b/=x', 'put b/1=x', 'delete b/', 'delete b/1', 'put b/last=x']);
    assert.deepEqual(await single.tell(3), ['put b=x', 'delete b', 'put b=x']);
    assert.deepEqual(await endless.tell(4), ['put b0=x', 'put c=x', 'delete b0', 'put d=x']);
  }),

  promise('a watch orders keys as the store does, beyond ASCII too', async (subject) => {
    const reader = await Reader.open(subject, { key: '\ue000', end: '𝄞' }, 'now');
    for (const key of ['z', '\ue000', '\ufffd', '𐀀', '𝄞', '中']) await apply(subject.store, put(key));
    await apply(subject.store, put('\ue001', 'last'));
    assert.deepEqual(await reader.tell(4), ['put \ue000=x', 'put \ufffd=x', 'put 𐀀=x', 'put \ue001=last']);
  }),

  promise('what one transaction changed is delivered as a whole, in the order of its operations', async (subject) => {
    const { store } = subject;
    await apply(store, put('k/3'), put('k/1'), put('k/2'));
    const reader = await Reader.open(subject, prefixed('k/'), 'now');
    const { revision } = await apply(
      store,
      put('k/z'),
      put('other'),
      remove('k/1', 'k/4'),
      nested([], [put('k/b')]),
      put('k/a'),
    );
    const { revision: delivered, changes } = await reader.next();
    assert.equal(delivered, revision);
    assert.deepEqual(changes.map(told), [
      'put k/z=x',
      'delete k/1',
      'delete k/2',
      'delete k/3',
      'put k/b=x',
      'put k/a=x',
    ]);
    for (const change of changes)
      assert.equal(change.kind === 'put' ? change.pair.modRevision : change.revision, revision);
  }),

  promise('what was refused, or changed nothing, is not delivered', async (subject) => {
    const { store } = subject;
    const reader = await Reader.open(subject, EVERYTHING, 'now');
    await refuses('not-found', () => apply(store, put('a'), put('b', 'x', 'keep')));
    await refuses('invalid', () => apply(store, put('a'), put('a')));
    await choose(store, [exists('a')], [put('a')]);
    await apply(store, remove('a'));
    await choose(store, [isMissing('a')], [put('a', 'real')], [put('b')]);
    assert.deepEqual(await reader.tell(1), ['put a=real']);
  }),

  promise('a watch since an old revision delivers everything after it, in order, then goes on', async (subject) => {
    const { store } = subject;
    const { revision } = await apply(store, put('a', '0'));
    for (let i = 1; i < 10; i++) await apply(store, put('a', String(i)), put(`b/${i}`));
    await apply(store, remove('a'));
    const reader = await Reader.open(subject, { key: 'a' }, revision);
    assert.equal(reader.watch.since, revision);
    const expected = Array.from({ length: 9 }, (_, i) => `put a=${i + 1}`);
    assert.deepEqual(await reader.tell(10), [...expected, 'delete a']);
    await apply(store, put('a', 'on'));
    assert.deepEqual(await reader.tell(1), ['put a=on']);
  }),

  promise('a watch since the beginning delivers the first change there was', async (subject) => {
    await apply(subject.store, put('first'));
    await apply(subject.store, put('second'));
    const reader = await Reader.open(subject, EVERYTHING, 0);
    assert.deepEqual(await reader.tell(2), ['put first=x', 'put second=x']);
  }),

  promise('a watch resumed after the last revision it delivered neither repeats nor skips', async (subject) => {
    const { store } = subject;
    const start = await revisionOf(store);
    for (let i = 0; i < 12; i++) await apply(store, put('k/a', String(i)), put('k/b', String(i)));
    const lines: string[] = [];
    for (let since = start; lines.length < 24;) {
      const reader = await Reader.open(subject, prefixed('k/'), since);
      for (let i = 0; i < 3; i++) {
        const { revision, changes } = await reader.next();
        lines.push(...changes.map(told));
        since = revision;
      }
      reader.abort();
    }
    assert.deepEqual(lines, Array.from({ length: 12 }, (_, i) => [`put k/a=${i}`, `put k/b=${i}`]).flat());
  }),

  promise('a watch since a revision that is still to come delivers what comes after it', async (subject) => {
    const { store } = subject;
    const { revision } = await apply(store, put('a', '0'));
    const reader = await Reader.open(subject, { key: 'a' }, revision + 2);
    for (let i = 1; i <= 4; i++) await apply(store, put('a', String(i)));
    assert.deepEqual(await reader.tell(2), ['put a=3', 'put a=4']);
  }),

  promise('a reader that takes its time misses nothing', async (subject) => {
    const { store } = subject;
    const reader = await Reader.open(subject, prefixed('k/'), 'now');
    const lines: string[] = [];
    for (let i = 0; i < 300; i++) {
      await apply(store, put(i % 3 === 0 ? 'other' : `k/${i}`, String(i)));
      if (i % 10 === 0 && i > 0) lines.push(...(await reader.tell(1)));
    }
    lines.push(...(await reader.tell(200 - lines.length)));
    assert.deepEqual(
      lines,
      Array.from({ length: 300 }, (_, i) => i)
        .filter((i) => i % 3 !== 0)
        .map((i) => `put k/${i}=${i}`),
    );
  }),

  promise('many watches of many paces all see the same, each from where it started', async (subject) => {
    const { store } = subject;
    const readers: Reader[] = [];
    const start = await revisionOf(store);
    for (let i = 0; i < 40; i++) {
      readers.push(await Reader.open(subject, prefixed('k/'), i % 2 === 0 ? 'now' : start));
      await apply(store, put(`k/${i}`));
      const eager = readers[i >> 1];
      if (i % 5 === 0 && eager !== undefined) await eager.next();
    }
    await apply(store, put('k/end'));
    for (const [i, reader] of readers.entries()) {
      let last = '';
      let revision = 0;
      while (last !== 'put k/end=x') {
        const changes = await reader.next();
        assert.ok(changes.revision > revision, `watch ${i} went from revision ${revision} to ${changes.revision}`);
        if (revision > 0) assert.equal(changes.revision, revision + 1);
        ({ revision } = changes);
        last = changes.changes.map(told).join();
      }
    }
  }),

  promise('several may wait for the next change of one watch, and each gets one of its own', async (subject) => {
    const abort = new AbortController();
    const watch = await subject.store.watch({ key: 'a' }, 'now', abort.signal);
    const iterator = watch[Symbol.asyncIterator]();
    const both = Promise.all([iterator.next(), iterator.next()]);
    await apply(subject.store, put('a', '1'));
    await apply(subject.store, put('a', '2'));
    const steps = await soon(subject, both, 'not both were delivered');
    assert.deepEqual(
      steps.map((step) => (step.done ? 'done' : step.value.changes.map(told).join())),
      ['put a=1', 'put a=2'],
    );
    abort.abort();
  }),

  promise('aborting its signal ends a watch without an error, also while a reader waits', async (subject) => {
    const waiting = await Reader.open(subject, { key: 'a' }, 'now');
    const ended = waiting.end();
    waiting.abort();
    await ended;
    await waiting.end();
    const idle = await Reader.open(subject, { key: 'a' }, 'now');
    idle.abort();
    await apply(subject.store, put('a'));
    await idle.end();
  }),

  promise('a watch whose signal was aborted before it opened is over, or is not opened at all', async (subject) => {
    const reason = new Error('no longer wanted');
    const watch = await subject.store
      .watch({ key: 'a' }, 'now', AbortSignal.abort(reason))
      .catch((error: unknown) => error);
    if (watch === reason) return;
    assert.ok(
      watch instanceof Object && Symbol.asyncIterator in watch,
      `neither a watch nor the reason: ${String(watch)}`,
    );
    await new Reader(watch as never, subject, new AbortController()).end();
  }),

  promise('leaving the loop that reads it ends a watch', async (subject) => {
    const watch = await subject.store.watch({ key: 'a' }, 'now', new AbortController().signal);
    await apply(subject.store, put('a'));
    const readOne = async (): Promise<string[]> => {
      for await (const { changes } of watch) return changes.map(told);
      return [];
    };
    assert.deepEqual(await soon(subject, readOne(), 'nothing was delivered'), ['put a=x']);
    await new Reader(watch, subject, new AbortController()).end();
  }),

  promise('a watch for which only the ends of leases are urgent has missed nothing when one ends', async (subject) => {
    const writer = (await subject.reopen?.()) ?? subject.store;
    const abort = new AbortController();
    const watch = await subject.store.watch(prefixed('a'), 'now', abort.signal, { urgent: 'lease-ends' });
    const reader = new Reader(watch, subject, abort);
    const { id } = await writer.grantLease(60_000);
    await apply(writer, put('a1', 'x', id));
    await apply(writer, put('a2', 'y'));
    await apply(writer, remove('a2'));
    await writer.revokeLease(id);
    assert.deepEqual(await reader.tell(4), ['put a1=x', 'put a2=y', 'delete a2', 'delete a1']);
    if (writer !== subject.store) await writer.close();
  }),

  promise('a watch of nothing, or since no revision, is refused', async ({ store }) => {
    const { signal } = new AbortController();
    await refuses('invalid', () => store.watch({ key: 'b', end: 'a' }, 'now', signal));
    await refuses('invalid', () => store.watch({ key: 'b', end: 'b' }, 'now', signal));
    for (const since of [-1, 1.5, Number.NaN]) await refuses('invalid', () => store.watch({ key: 'a' }, since, signal));
  }),
];
