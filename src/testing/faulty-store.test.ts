import { describe, expect, it } from 'vitest';
import { Failure } from '../failure.ts';
import { type KeyValue, openMemory, type ReadResult, type Store, Value } from '../store/index.ts';
import { faultyStore, ScriptedFaults, settle } from './index.ts';

function open(): { inner: Store; store: Store; faults: ScriptedFaults } {
  const inner = openMemory();
  const faults = new ScriptedFaults();
  return { inner, store: faultyStore(inner, faults), faults };
}

async function put(store: Store, key: string, value: Value = Value.text('x'), signal?: AbortSignal): Promise<string> {
  return answerOf(store.transaction({ compare: [], success: [{ do: 'put', key, value }], failure: [] }, signal));
}

async function get(store: Store, key: string): Promise<KeyValue | undefined> {
  const { results } = await store.transaction({ compare: [], success: [{ do: 'read', key }], failure: [] });
  return (results[0] as ReadResult).pairs[0];
}

async function answerOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'answered',
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );
}

/** A decision that is put off until somebody opens. */
function gate(): { readonly promise: Promise<'pass'>; readonly open: () => void } {
  let open = (): void => {};
  const promise = new Promise<'pass'>((resolve) => {
    open = () => resolve('pass');
  });
  return { promise, open };
}

/** What a promise has come to by now. */
async function stateOf(promise: Promise<string>): Promise<string> {
  await settle();
  return Promise.race([promise, Promise.resolve('pending')]);
}

describe('a faulty store', () => {
  it('fails a call before it is applied, and says that it certainly was not', async () => {
    const { inner, store, faults } = open();
    faults.next('transaction', 'fail');
    expect(await put(store, 'a')).toBe('unavailable');
    expect(await get(inner, 'a')).toBe(undefined);
    expect(await put(store, 'a')).toBe('answered');
  });

  it('drops a request or its answer, and the caller cannot tell which', async () => {
    const { inner, store, faults } = open();
    faults.next('transaction', 'drop-request', 'pass', 'drop-answer');
    expect([await put(store, 'a'), await put(store, 'b'), await put(store, 'c')]).toEqual([
      'outcome-unknown',
      'answered',
      'outcome-unknown',
    ]);
    expect([await get(inner, 'a'), (await get(inner, 'b'))?.key, (await get(inner, 'c'))?.key]).toEqual([
      undefined,
      'b',
      'c',
    ]);
  });

  it('calls it unavailable where nothing could have been applied', async () => {
    const { store, faults } = open();
    for (const kind of ['health', 'leaseState', 'watch'] as const) faults.always(kind, 'drop-answer');
    faults.always('keepLeaseAlive', 'drop-answer');
    const { signal } = new AbortController();
    expect([
      await answerOf(store.health()),
      await answerOf(store.leaseState('1')),
      await answerOf(store.watch({ key: 'a' }, 'now', signal)),
    ]).toEqual(Array(3).fill('unavailable'));
    expect(await answerOf(store.keepLeaseAlive('1'))).toBe('outcome-unknown');
  });

  it('never answers a call that hangs, applied or not, unless the caller gives up', async () => {
    const { inner, store, faults } = open();
    faults.next('transaction', 'hang', 'hang-answer', 'hang');
    const giveUp = new AbortController();
    const [one, two, three] = [put(store, 'a'), put(store, 'b'), put(store, 'c', Value.text('x'), giveUp.signal)];
    expect([await stateOf(one), await stateOf(two), await stateOf(three)]).toEqual(['pending', 'pending', 'pending']);
    expect([await get(inner, 'a'), (await get(inner, 'b'))?.key]).toEqual([undefined, 'b']);
    giveUp.abort('given up');
    expect(await three).toBe('given up');
  });

  it('delays a call for as long as its decision takes, on either side', async () => {
    const { inner, store, faults } = open();
    const before = gate();
    const after = gate();
    faults.next('transaction', { before: before.promise, after: after.promise });
    const call = put(store, 'a');
    await settle();
    expect(await get(inner, 'a')).toBe(undefined);
    before.open();
    await settle();
    expect((await get(inner, 'a'))?.key).toBe('a');
    expect(await stateOf(call)).toBe('pending');
    after.open();
    expect(await call).toBe('answered');
  });

  it('lets a later call overtake one that is delayed', async () => {
    const { inner, store, faults } = open();
    const late = gate();
    faults.next('transaction', { before: late.promise });
    const first = put(store, 'a', Value.text('first'));
    await put(store, 'a', Value.text('second'));
    late.open();
    await first;
    expect((await get(inner, 'a'))?.value.text).toBe('first');
  });

  it('cuts every open watch at once, also in the middle of a wait; a new one takes up where it was cut', async () => {
    const { inner, store, faults } = open();
    const { signal } = new AbortController();
    const waiting = (await store.watch({ key: 'a' }, 'now', signal))[Symbol.asyncIterator]();
    const idle = (await store.watch({ key: 'a' }, 'now', signal))[Symbol.asyncIterator]();
    const next = waiting.next();
    await put(inner, 'a');
    const { value } = await next;
    const cut = answerOf(waiting.next());
    await settle();
    faults.cutWatches();
    expect([await cut, await answerOf(idle.next())]).toEqual(['unavailable', 'unavailable']);
    expect((await waiting.next()).done).toBe(true);
    await put(inner, 'a');
    const again = (await store.watch({ key: 'a' }, value?.revision ?? 0, signal))[Symbol.asyncIterator]();
    expect((await again.next()).value?.revision).toBe((value?.revision ?? 0) + 1);
  });

  it('holds back what watches deliver until it is released, and loses it if they are cut before', async () => {
    const { inner, store, faults } = open();
    const { signal } = new AbortController();
    faults.holdWatches();
    const late = (await store.watch({ key: 'a' }, 'now', signal))[Symbol.asyncIterator]();
    await put(inner, 'a');
    const held = answerOf(late.next());
    expect(await stateOf(held)).toBe('pending');
    faults.releaseWatches();
    expect(await held).toBe('answered');
    faults.holdWatches();
    await put(inner, 'a');
    const lost = answerOf(late.next());
    expect(await stateOf(lost)).toBe('pending');
    faults.cutWatches();
    expect(await lost).toBe('unavailable');
  });

  it('ends a watch without an error when its own signal aborts, held back or not', async () => {
    const { inner, store, faults } = open();
    faults.holdWatches();
    const abort = new AbortController();
    const reader = (await store.watch({ key: 'a' }, 'now', abort.signal))[Symbol.asyncIterator]();
    await put(inner, 'a');
    const next = reader.next();
    await settle();
    abort.abort();
    expect((await next).done).toBe(true);
  });

  it('passes nothing but text: documents arrive as copies, in both directions', async () => {
    const { inner, store } = open();
    const document = { list: [1, 2, 3] };
    const reader = (await store.watch({ key: 'a' }, 'now', new AbortController().signal))[Symbol.asyncIterator]();
    const next = reader.next();
    await put(store, 'a', Value.json(document));
    const stored = (await get(inner, 'a'))?.value.json;
    const [change] = (await next).value?.changes ?? [];
    const read = (await get(store, 'a'))?.value.json;
    for (const copy of [stored, read, change?.kind === 'put' ? change.pair.value.json : undefined]) {
      expect(copy).toEqual(document);
      expect(copy).not.toBe(document);
    }
    expect(read).not.toBe(stored);
    expect(store.transactionNow).toBe(undefined);
  });

  it('keeps a record of what was asked, in order', async () => {
    const { store, faults } = open();
    faults.next('transaction', 'fail');
    await put(store, 'a');
    const { id } = await store.grantLease(1000);
    await store.revokeLease(id);
    expect(faults.calls.map((call) => call.kind)).toEqual(['transaction', 'grantLease', 'revokeLease']);
  });
});
