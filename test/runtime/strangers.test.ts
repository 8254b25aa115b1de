/** Processes that have only just come, have no session yet, or hear of things in another order than they happened. */
import { describe, expect, it } from 'vitest';
import { HoldLost, NotAcquired } from 'signalbox';
import { Fleet, transports } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

describe.each(transports)('a process that has just come, on $transport', ({ atOnce }) => {
  it('renews, extends and releases a detached hold that another one took', async () => {
    const fleet = new Fleet(atOnce);
    const taker = await fleet.start('taker');
    const hold = await taker.box.lock('deploy').acquireDetached({ holder: 'script', ttlMs: 60_000 });
    const renewer = await fleet.start('renewer');
    expect((await renewer.box.lock('deploy').renew(hold)).kind).toBe('refreshed');
    const extender = await fleet.start('extender');
    expect((await extender.box.lock('deploy').extend(hold, 120_000)).kind).toBe('refreshed');
    const releaser = await fleet.start('releaser');
    expect((await releaser.box.lock('deploy').release(hold)).kind).toBe('released');
    expect(await releaser.box.lock('deploy').isFree()).toBe(true);
  });

  it('breaks a lock, and the old holder learns of it before the next one gets it', async () => {
    const fleet = new Fleet(atOnce);
    const old = await fleet.start('old');
    const hold = await old.box.lock('main').acquire();
    const administrator = await fleet.start('administrator');
    expect(await administrator.box.lock('main').break({ holder: 'user:root', reason: 'stuck' })).toEqual({ broken: 1 });
    await settled();
    expect(hold.isValid).toBe(false);
    expect(hold.lost).toBeInstanceOf(HoldLost);
    expect(hold.lost?.reason).toBe('stuck');
  });

  it('releases by token what another process holds, and that process learns of it', async () => {
    const fleet = new Fleet(atOnce);
    const owner = await fleet.start('owner');
    const hold = await owner.box.lock('main').acquire({ holder: 'worker:1' });
    const other = await fleet.start('other');
    await other.box.lock('main').release({ holder: 'worker:1', token: hold.token });
    await settled();
    expect(hold.isValid).toBe(false);
  });

  it('wakes a request that waits for slots that it adds', async () => {
    const fleet = new Fleet(atOnce);
    const user = await fleet.start('user');
    const slots = user.box.semaphore('slots', { capacity: 1 });
    await slots.acquire();
    const second = user.box.semaphore('slots').acquire();
    await settled();
    const administrator = await fleet.start('administrator');
    await administrator.box.semaphore('slots').resize(2);
    expect((await second).slots).toEqual([1]);
  });

  it('takes over at once from one who was dead before it came', async () => {
    const fleet = new Fleet(atOnce);
    const dead = await fleet.start('dead');
    await dead.box.lock('main').acquire();
    dead.crash();
    await fleet.advance(20_000);
    const heir = await fleet.start('heir');
    expect(await heir.box.lock('main').tryAcquire()).toMatchObject({ kind: 'reclaimed' });
  });
});

describe.each(transports)('closing on $transport', ({ atOnce }) => {
  it('lets nobody in who still waits in the same process', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('closing');
    const lock = box.lock('main');
    await lock.acquire();
    let worked = false;
    const waiting = lock.run(() => void (worked = true)).catch((error: unknown) => error);
    await settled();
    await box.close();
    const refused = await waiting;
    expect(refused).toBeInstanceOf(NotAcquired);
    expect((refused as NotAcquired).refusal.kind).toBe('closed');
    expect(worked).toBe(false);
  });
});

describe.each(transports)('wanting several things on $transport', ({ atOnce }) => {
  it('gives none of them to one who has already given up', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('given-up');
    const wanted = box.acquireAll([{ lock: 'a' }, { lock: 'b' }], { signal: AbortSignal.abort('too late') });
    await expect(wanted).rejects.toMatchObject({ refusal: { kind: 'aborted', reason: 'too late' } });
    expect([await box.lock('a').isFree(), await box.lock('b').isFree()]).toEqual([true, true]);
  });
});

describe('a wait on a store that cannot be reached', () => {
  it('ends when its time is up or it is aborted, although there is no session to ask under', async () => {
    const fleet = new Fleet(false);
    const { box, link } = await fleet.start('alone');
    link.cutOff('refusing');
    const timed = box
      .lock('a')
      .acquire({ waitMs: 100 })
      .catch((error: unknown) => error);
    const abort = new AbortController();
    const aborted = box
      .lock('a')
      .acquire({ signal: abort.signal })
      .catch((error: unknown) => error);
    abort.abort();
    await fleet.advance(150);
    expect(await aborted).toMatchObject({ refusal: { kind: 'aborted' } });
    expect(await timed).toMatchObject({ refusal: { kind: 'timed-out', waitedMs: 100 } });
  });
});

describe('a queue of two thousand in one process', () => {
  it('survives the look that catches missed answers, and is served to the last', async () => {
    const fleet = new Fleet(true);
    const { box } = await fleet.start('crowd');
    const lock = box.lock('door');
    const first = await lock.acquire();
    const served: number[] = [];
    const crowd = Array.from({ length: 2000 }, (_, number) => lock.run(() => void served.push(number)));
    await settled();
    await fleet.advance(31_000);
    expect(first.isValid).toBe(true);
    await first.release();
    await Promise.all(crowd);
    expect(served).toEqual(Array.from({ length: 2000 }, (_, number) => number));
  });
});
