// Rules that bind every holder of a lock or a semaphore, on every store.

import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { HoldLost, open, type Signalbox } from 'signalbox';
import { refusalOf } from '../support/outcome.ts';
import { TestClock } from '../../src/testing/test-clock.ts';
import { stopServer, stores } from './settings.ts';

afterAll(stopServer);

const MINUTE = 60_000;

describe.each(stores)('rules $name', ({ open: openPlace }) => {
  const ending: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end();
  });

  /** Two programs on one store, and a third that sets the rules. */
  async function programs(): Promise<readonly [Signalbox, Signalbox, Signalbox]> {
    const place = await openPlace();
    ending.push(() => place.close());
    const boxes = await Promise.all(
      [1, 2, 3].map(async () => open(await place.handle(), { clock: new TestClock(), maintains: false })),
    );
    for (const box of boxes) ending.push(() => box.close());
    return boxes as [Signalbox, Signalbox, Signalbox];
  }

  it('end every hold in time, whatever its holder asked for, also out of the queue and with others', async () => {
    const [one, two, admin] = await programs();
    await admin.ensureLock('main', { maxHoldMs: 10 * MINUTE });
    const longer = await one.lock('main').acquire({ holder: 'longer', maxHoldMs: 60 * MINUTE });
    const waiting = two.lock('main').acquire({ holder: 'waiting' });
    expect((await admin.lock('main').inspect()).holders).toMatchObject([{ holder: 'longer', maxHoldMs: 10 * MINUTE }]);
    await longer.release();
    await (await waiting).release();
    const shorter = await one.lock('main').acquire({ holder: 'shorter', maxHoldMs: MINUTE });
    expect((await admin.lock('main').inspect()).holders).toMatchObject([{ holder: 'shorter', maxHoldMs: MINUTE }]);
    await shorter.release();
    const all = await two.acquireAll([{ lock: 'main' }, { lock: 'other' }], { holder: 'both' });
    const { locks } = await admin.survey();
    expect(locks.flatMap(({ holds }) => holds.map(({ maxHoldMs }) => maxHoldMs))).toEqual([10 * MINUTE, undefined]);
    await all.release();
  });

  it('leave holds alone that exist already, and a limit can be removed again', async () => {
    const [one, two, admin] = await programs();
    const lock = admin.lock('main');
    const before = await one.lock('main').acquire({ holder: 'before', mode: 'shared' });
    await lock.configure({ maxHoldMs: MINUTE, onStale: 'alert' });
    const after = await two.lock('main').acquire({ holder: 'after', mode: 'shared' });
    const limits = async (): Promise<unknown[]> => (await lock.inspect()).holders.map(({ maxHoldMs }) => maxHoldMs);
    expect(await limits()).toEqual([undefined, MINUTE]);
    await lock.configure({ maxHoldMs: null });
    expect(await lock.inspect()).toMatchObject({ onStale: 'alert', maxHoldMs: undefined });
    await Promise.all([before.release(), after.release()]);
    await one.lock('main').acquire();
    expect(await limits()).toEqual([undefined]);
  });

  it('say how long a detached hold lasts without a renewal, and by when to renew it', async () => {
    const [one, two, admin] = await programs();
    await admin.ensureSemaphore('api', { capacity: 2, ttlMs: 20_000 });
    const pool = one.semaphore('api');
    const given = await pool.acquireDetached({ holder: 'a' });
    expect(given).toMatchObject({ ttlMs: 20_000, renewWithinMs: 5000 });
    const asked = await two.semaphore('api').acquireDetached({ holder: 'b', ttlMs: 4000 });
    expect(asked).toMatchObject({ ttlMs: 4000, renewWithinMs: 1000 });
    expect(await two.semaphore('api').renew(given)).toEqual({ kind: 'refreshed', ttlMs: 20_000, renewWithinMs: 5000 });
    // No holder gets more than the rule allows, not even later.
    expect(await pool.extend(asked, 10 * MINUTE)).toMatchObject({ kind: 'refreshed', ttlMs: 20_000 });
  });

  it('are kept while nobody holds it', async () => {
    const [one, , admin] = await programs();
    await admin.ensureLock('main', { maxHoldMs: MINUTE });
    await (await one.lock('main').acquire()).release();
    for (let round = 0; round < 3; round++) await admin.maintain();
    expect(await one.lock('main').inspect()).toMatchObject({ isFree: true, maxHoldMs: MINUTE });
  });

  it('make a semaphore before its first use, and refuse another capacity with both numbers', async () => {
    const [one, two, admin] = await programs();
    await admin.ensureSemaphore('api', { capacity: 2 });
    await one.ensureSemaphore('api', { capacity: 2, onStale: 'alert' });
    await two.semaphore('api').acquire({ weight: 2 });
    expect(await refusalOf(one.ensureSemaphore('api', { capacity: 3 }) as Promise<never>)).toEqual({
      kind: 'capacity-mismatch',
      capacity: 2,
      asked: 3,
    });
  });
});

describe('a hold that is older than the rule allows', () => {
  it('is lost before the next holder can have it, although its process is alive', async () => {
    const clock = new TestClock();
    await using box = await open('memory:', { clock });
    await box.ensureLock('main', { maxHoldMs: MINUTE });
    const hold = await box.lock('main').acquire({ holder: 'first' });
    const next = box.lock('main').acquire({ holder: 'next' });
    await clock.advance(MINUTE - 1);
    expect(hold.signal.aborted).toBe(true);
    expect(hold.signal.reason).toBeInstanceOf(HoldLost);
    await clock.advance(1);
    expect((await next).holder).toBe('next');
  });
});
