// A holder that asks again, over HTTP: a re-entry is the outer hold, seen by another.

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { connect, NotAcquired } from 'signalbox/client';
import { LOCAL } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, type Wired, wired } from '../support/wire.ts';

let { clock, server, wire, box } = {} as Wired;

beforeEach(async () => {
  const all = await wired();
  ({ clock, server, wire, box } = all);
  return all.close;
});

const inTime = <T>(promise: Promise<T>): Promise<T> => settledIn(clock, promise);
const isAcquire = (path: string): boolean => path.endsWith('/acquire');
/** The server is killed before it keeps its answer, which gets lost: the repeat is carried out anew. */
const killServerAtAcquire = (): void => {
  const killed = { kind: 'first', done: () => Promise.resolve(false), failed: () => Promise.resolve(false) } as const;
  vi.spyOn(server.box.once, 'begin').mockResolvedValueOnce(killed);
  wire.losesAnswer = isAcquire;
};
const shared = { holder: 'h', mode: 'shared' } as const;
const doOthersGetIt = async (): Promise<boolean> => (await server.box.lock('main').tryAcquire({ holder: 'other' })).ok;

describe('a reader that asks for the lock again, to write', () => {
  it('re-enters: both have the mode and the token of the writer, and only the release of the outer hold frees the lock', async () => {
    const outer = await box.lock('main').acquire(shared);
    const before = outer.token;
    const inner = await box.lock('main').acquire({ holder: 'h' });
    expect(inner.isReentry).toBe(true);
    expect(inner.token).toBeGreaterThan(before);
    expect([outer.token, outer.mode, inner.mode]).toEqual([inner.token, 'exclusive', 'exclusive']);
    expect(await inner.release()).toEqual({ kind: 'still-held' });
    expect(await doOthersGetIt()).toBe(false);
    await clock.advance(120_000);
    expect(outer.isValid).toBe(true);
    expect(await outer.release()).toEqual({ kind: 'released' });
    expect(await box.lock('main').isFree()).toBe(true);
  });

  it('re-enters after a wait for other readers', async () => {
    const outer = await box.lock('main').acquire(shared);
    const reader = await server.box.lock('main').acquire({ holder: 'reader', mode: 'shared' });
    const asked = box.lock('main').acquire({ holder: 'h' });
    await expect.poll(async () => (await box.lock('main').inspect()).waiting.length).toBe(1);
    await reader.release();
    const inner = await inTime(asked);
    expect([inner.isReentry, outer.token, outer.mode]).toEqual([true, inner.token, 'exclusive']);
    await clock.advance(120_000);
    expect([outer.isValid, inner.isValid]).toEqual([true, true]);
  });

  it('keeps its outer hold when it gives up, although the server has made it the writer', async () => {
    const outer = await box.lock('main').acquire(shared);
    const before = outer.token;
    const over = new AbortController();
    const asked = box.lock('main').acquire({ holder: 'h', signal: over.signal });
    over.abort();
    await expect(asked).rejects.toThrow(NotAcquired);
    await expect.poll(() => outer.token > before).toBe(true);
    await clock.advance(120_000);
    expect([outer.isValid, await doOthersGetIt()]).toEqual([true, false]);
    expect(await outer.release()).toEqual({ kind: 'released' });
  });

  it.each([
    ['the answer gets lost', () => (wire.losesAnswer = isAcquire)],
    ['the server is killed before it keeps its answer', killServerAtAcquire],
  ])('re-enters although %s', async (_, trouble) => {
    const outer = await box.lock('main').acquire(shared);
    trouble();
    const inner = await inTime(box.lock('main').acquire({ holder: 'h' }));
    expect([inner.isReentry, outer.token, outer.mode]).toEqual([true, inner.token, 'exclusive']);
    expect(await inner.release()).toEqual({ kind: 'still-held' });
    await clock.advance(60_000);
    expect([outer.isValid, await doOthersGetIt()]).toEqual([true, false]);
  });

  it('keeps its outer hold while the answer is on its way, although the old token renews nothing', async () => {
    let deliver = (): void => undefined;
    const delivered = new Promise<void>((resolve) => (deliver = resolve));
    let isDelayed = false;
    const delayed: typeof fetch = async (input, init) => {
      const response = await wire.fetch(input, init);
      if (isDelayed && isAcquire(String(input))) await delivered;
      return response;
    };
    await using slow = connect(URL_OF_TESTS, { token: LOCAL, fetch: delayed, clock });
    const outer = await slow.lock('main').acquire({ ...shared, ttlMs: 30_000 });
    isDelayed = true;
    const asked = slow.lock('main').acquire({ holder: 'h' });
    await clock.advance(15_000);
    expect(wire.sent.filter(({ path }) => path.endsWith('/renew'))).not.toEqual([]);
    deliver();
    const inner = await asked;
    expect([outer.isValid, outer.token]).toEqual([true, inner.token]);
    await clock.advance(60_000);
    expect(outer.isValid).toBe(true);
  });
});

describe('a re-entry of a client', () => {
  it('shows the token and the mode of its outer hold after an upgrade and a downgrade by either', async () => {
    const outer = await box.lock('main').acquire(shared);
    const inner = await box.lock('main').acquire(shared);
    await outer.upgrade();
    expect([inner.token, inner.mode]).toEqual([outer.token, 'exclusive']);
    await inner.downgrade();
    expect([outer.token, outer.mode]).toEqual([inner.token, 'shared']);
    await inner.upgrade();
    expect([outer.token, outer.mode, inner.mode]).toEqual([inner.token, 'exclusive', 'exclusive']);
    await clock.advance(120_000);
    expect([outer.isValid, inner.isValid]).toEqual([true, true]);
  });

  it('of an upgraded hold is one although its answer got lost', async () => {
    const outer = await box.lock('main').acquire(shared);
    await outer.upgrade();
    killServerAtAcquire();
    const inner = await inTime(box.lock('main').acquire({ holder: 'h' }));
    expect(inner.isReentry).toBe(true);
    expect(await inner.release()).toEqual({ kind: 'still-held' });
    expect(await doOthersGetIt()).toBe(false);
    expect(await outer.release()).toEqual({ kind: 'released' });
    // The client has forgotten the hold, so this is a hold of its own.
    killServerAtAcquire();
    const next = await inTime(box.lock('main').acquire({ holder: 'h' }));
    expect([next.isReentry, await next.release()]).toEqual([false, { kind: 'released' }]);
  });

  it('ends with its outer hold', async () => {
    const outer = await box.lock('main').acquire({ holder: 'h' });
    const inner = await box.lock('main').acquire({ holder: 'h' });
    await outer.release();
    expect([inner.isValid, inner.signal.aborted, inner.lost?.why]).toEqual([false, true, 'released-elsewhere']);
    expect(await inner.release()).toEqual({ kind: 'already-lost', why: 'released-elsewhere' });
    const broken = await box.lock('main').acquire({ holder: 'h', ttlMs: 30_000 });
    const within = await box.lock('main').acquire({ holder: 'h' });
    await server.box.lock('main').break({ holder: 'ann', reason: 'maintenance' });
    await clock.advance(15_000);
    expect([broken.isValid, within.isValid]).toEqual([false, false]);
  });

  it('is none if its outer hold is released before it hears of it: it asks again, and has a hold of its own', async () => {
    let deliver = (): void => undefined;
    const delivered = new Promise<void>((resolve) => (deliver = resolve));
    let isDelayed = false;
    let isAnswered = false;
    const delayed: typeof fetch = async (input, init) => {
      const response = await wire.fetch(input, init);
      if (!isDelayed || !isAcquire(String(input))) return response;
      isAnswered = true;
      await delivered;
      return response;
    };
    await using slow = connect(URL_OF_TESTS, { token: LOCAL, fetch: delayed, clock });
    const outer = await slow.lock('main').acquire({ holder: 'h' });
    isDelayed = true;
    const asked = slow.lock('main').acquire({ holder: 'h' });
    await expect.poll(() => isAnswered).toBe(true);
    expect(await outer.release()).toEqual({ kind: 'released' });
    deliver();
    const next = await asked;
    expect([next.isReentry, next.isValid, await doOthersGetIt()]).toEqual([false, true, false]);
    expect(await next.release()).toEqual({ kind: 'released' });
  });

  it('is none if its outer hold was asked for at the same time, and is released before it hears of it', async () => {
    let deliver = (): void => undefined;
    const delivered = new Promise<void>((resolve) => (deliver = resolve));
    let answers = 0;
    const delayed: typeof fetch = async (input, init) => {
      const response = await wire.fetch(input, init);
      if (isAcquire(String(input)) && ++answers === 2) await delivered;
      return response;
    };
    await using slow = connect(URL_OF_TESTS, { token: LOCAL, fetch: delayed, clock });
    const [first, second] = [slow.lock('main').acquire({ holder: 'h' }), slow.lock('main').acquire({ holder: 'h' })];
    const outer = await first;
    await expect.poll(() => answers).toBe(2);
    expect(await outer.release()).toEqual({ kind: 'released' });
    deliver();
    const next = await second;
    expect([next.isReentry, next.isValid, await doOthersGetIt()]).toEqual([false, true, false]);
    expect(await next.release()).toEqual({ kind: 'released' });
  });

  it.each([
    ['extended', shared, shared],
    ['upgraded', shared, { holder: 'h' }],
  ])('into the hold of another program is one although its answer got lost: %s', async (_, first, second) => {
    const outer = await server.box.lock('main').acquireDetached(first);
    wire.losesAnswer = isAcquire;
    const inner = await inTime(box.lock('main').acquire(second));
    expect(inner.isReentry).toBe(true);
    expect(await inner.release()).toEqual({ kind: 'still-held' });
    expect(await server.box.lock('main').isHeldBy(outer.holder)).toBe(true);
  });

  it('into the hold of another program makes it the writer, and its first program keeps it under the new token', async () => {
    const outer = await box.lock('main').acquire(shared);
    await using other = connect(URL_OF_TESTS, { token: LOCAL, fetch: wire.fetch, clock });
    const inner = await other.lock('main').acquire({ holder: 'h' });
    expect(inner.id).toBe(outer.id);
    await clock.advance(120_000);
    expect([outer.isValid, outer.token, inner.isValid]).toEqual([true, inner.token, true]);
    expect(await inner.release()).toEqual({ kind: 'still-held' });
    const again = await other.lock('main').acquire({ holder: 'h' });
    await outer.downgrade();
    await again.upgrade();
    expect(await outer.release()).toEqual({ kind: 'released' });
    expect(await box.lock('main').isFree()).toBe(true);
  });

  it('that wants more slots makes its outer hold grow', async () => {
    const slots = box.semaphore('gpus', { capacity: 4 });
    const outer = await slots.acquire({ holder: 'h' });
    const inner = await slots.acquire({ holder: 'h', weight: 3 });
    expect([inner.isReentry, inner.weight, inner.token]).toEqual([true, 3, outer.token]);
    expect([outer.weight, outer.slots]).toEqual([3, inner.slots]);
    const least = await slots.acquire({ holder: 'h', weight: 2 });
    expect([least.weight, outer.weight]).toEqual([3, 3]);
    expect(await inner.release()).toEqual({ kind: 'still-held' });
    expect((await slots.inspect()).usedSlots).toBe(3);
    expect(await outer.release()).toEqual({ kind: 'released' });
    expect((await slots.inspect()).usedSlots).toBe(0);
  });

  it('that wants more slots of another program is one although its answer got lost', async () => {
    await server.box.semaphore('gpus', { capacity: 4 }).acquireDetached({ holder: 'h' });
    wire.losesAnswer = isAcquire;
    const inner = await inTime(box.semaphore('gpus').acquire({ holder: 'h', weight: 3 }));
    expect([inner.isReentry, await inner.release()]).toEqual([true, { kind: 'still-held' }]);
    expect((await box.semaphore('gpus').inspect()).usedSlots).toBe(3);
  });
});
