import { type Lock, NotAcquired, type Signalbox, type SignalboxEvent } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { errorOf, isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('a lock on $transport', ({ atOnce }) => {
  async function alone(): Promise<{ fleet: Fleet; box: Signalbox; lock: Lock }> {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('process');
    const { box } = process!;
    return { fleet, box, lock: box.lock('db') };
  }

  describe('acquired', () => {
    it('gives a hold with its holder, token and resource, and says so to whoever looks', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire({ holder: 'worker:7', reason: 'migrating', metadata: { step: [1, 2] } });
      expect(hold).toMatchObject({ holder: 'worker:7', resource: 'lock/db', mode: 'exclusive', isValid: true });
      expect(hold.token).toBeGreaterThan(0);
      expect(hold.signal.aborted).toBe(false);
      expect(() => hold.check()).not.toThrow();
      expect(await lock.inspect()).toMatchObject({
        name: 'db',
        isFree: false,
        onStale: 'reclaim',
        holders: [
          {
            holder: 'worker:7',
            token: hold.token,
            mode: 'exclusive',
            isStale: false,
            reason: 'migrating',
            metadata: { step: [1, 2] },
          },
        ],
        waiting: [],
      });
    });

    it('gives a larger token every time', async () => {
      const { lock, box } = await alone();
      const tokens: number[] = [];
      for (let time = 0; time < 5; time++) {
        const hold = await lock.acquire();
        tokens.push(hold.token);
        await hold.release();
        // Other resources move the store's revision along.
        await (await box.lock('other').acquire()).release();
      }
      expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other));
      expect(tokens).toHaveLength(5);
    });

    it('is free again once released, and releasing it again changes nothing', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire();
      expect(await lock.isFree()).toBe(false);
      expect(await hold.release()).toEqual({ kind: 'released' });
      expect(await hold.release()).toEqual({ kind: 'released' });
      expect(hold.isValid).toBe(false);
      expect(() => hold.check()).toThrow();
      expect(await lock.isFree()).toBe(true);
    });

    it('does not fire its loss signal when it is released', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire();
      const { signal } = hold;
      await hold.release();
      await settled();
      expect(signal.aborted).toBe(false);
      expect(hold.lost).toBeUndefined();
    });

    it('is released at the end of its block', async () => {
      const { lock } = await alone();
      {
        await using hold = await lock.acquire();
        expect(await lock.isHeldBy(hold.holder)).toBe(true);
      }
      expect(await lock.isFree()).toBe(true);
    });

    it('runs work under it, gives its result, and releases whatever happens', async () => {
      const { lock } = await alone();
      expect(await lock.run(async () => ((await lock.isFree()) ? 'free' : 'held'))).toBe('held');
      expect(await lock.isFree()).toBe(true);
      const own = new Error('failed');
      expect(await errorOf(lock.run(() => Promise.reject(own)))).toBe(own);
      expect(await lock.isFree()).toBe(true);
    });

    it('keeps names apart that resemble each other', async () => {
      const { box } = await alone();
      const names = ['a', 'a/b', 'a%2Fb', 'a b', 'ä', 'ab', '100/a', '🚦', 'a/', '.', '%'];
      const holds = await Promise.all(names.map((name) => box.lock(name).tryAcquire()));
      expect(holds.map(({ kind }) => kind)).toEqual(names.map(() => 'acquired'));
      const waiting = box.lock('a/b').acquire({ holder: 'waiter' });
      await settled();
      expect((await box.lock('a').inspect()).waiting).toEqual([]);
      expect((await box.lock('a/b').inspect()).waiting).toHaveLength(1);
      expect(await isPending(waiting)).toBe(true);
    });
  });

  describe('held by somebody else', () => {
    it('tells who tries that it is busy, with whom and why', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire({ holder: 'worker:1', reason: 'migrating' });
      const attempt = await lock.tryAcquire();
      expect(attempt).toMatchObject({
        kind: 'busy',
        holders: [{ holder: 'worker:1', reason: 'migrating', token: hold.token }],
      });
      expect((await lock.inspect()).waiting).toEqual([]);
    });

    it('writes nothing for a try that is refused', async () => {
      const { fleet, lock } = await alone();
      await lock.acquire();
      const before = await fleet.revision();
      await lock.tryAcquire();
      await errorOf(lock.acquire({ strategy: 'fail-fast' }));
      expect(await fleet.revision()).toBe(before);
    });

    it('is waited for, and whoever waits is told so', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire({ holder: 'first' });
      const told: unknown[] = [];
      const waiting = lock.acquire({ holder: 'second', reason: 'next', onWaiting: (word) => told.push(word) });
      await settled();
      expect(told).toHaveLength(1);
      expect((await lock.inspect()).waiting).toMatchObject([{ holder: 'second', reason: 'next', priority: 0 }]);
      await hold.release();
      expect(await lock.isHeldBy((await waiting).holder)).toBe(true);
      expect(told).toHaveLength(1);
    });

    it('throws an error that names the holder and its reason where waiting is not wanted', async () => {
      const { lock } = await alone();
      await lock.acquire({ holder: 'worker:1', reason: 'migrating' });
      const error = await errorOf(lock.acquire({ strategy: 'fail-fast' }));
      expect(error).toBeInstanceOf(NotAcquired);
      expect(error).toMatchObject({ code: 'not-acquired', resource: 'lock/db', refusal: { kind: 'busy' } });
      expect((error as Error).message).toBe('lock/db: held by worker:1 (migrating)');
    });

    it('is refused when the time is over with who holds it by then, not with who held it at first', async () => {
      const fleet = new Fleet(atOnce);
      const [one, two, hasty] = await fleet.startAll('one', 'two', 'hasty');
      const first = await one!.box.lock('db').acquire({ holder: 'first' });
      const second = two!.box.lock('db').acquire({ holder: 'second' });
      await settled();
      const refusal = refusalOf(hasty!.box.lock('db').acquire({ holder: 'hasty', waitMs: 5000 }));
      await settled();
      await first.release();
      await second;
      await fleet.advance(5000);
      expect(await refusal).toMatchObject({ kind: 'timed-out', holders: [{ holder: 'second' }] });
    });

    it('is waited for no longer than asked', async () => {
      const { fleet, lock } = await alone();
      await lock.acquire({ holder: 'deploy', reason: 'rolling out' });
      const waiting = lock.acquire({ waitMs: 5000 });
      const error = errorOf(waiting);
      await fleet.advance(4999);
      expect(await isPending(waiting)).toBe(true);
      await fleet.advance(1);
      expect(await error).toMatchObject({
        message: 'lock/db: not granted within 5000 ms; held by deploy (rolling out)',
        refusal: { kind: 'timed-out', waitedMs: 5000, holders: [{ holder: 'deploy', reason: 'rolling out' }] },
      });
      expect((await lock.inspect()).waiting).toEqual([]);
    });

    it('is not waited for at all with a wait of zero, and had at once if it is free', async () => {
      const { fleet, box, lock } = await alone();
      await lock.acquire();
      const refused = refusalOf(lock.acquire({ waitMs: 0 }));
      await fleet.advance(0);
      expect(await refused).toMatchObject({ kind: 'timed-out' });
      expect((await box.lock('free').acquire({ waitMs: 0 })).isValid).toBe(true);
    });

    it('is not lost by a wait that was granted in time', async () => {
      const { fleet, lock } = await alone();
      const hold = await lock.acquire();
      const waiting = lock.acquire({ waitMs: 5000 });
      await settled();
      await hold.release();
      const next = await waiting;
      await fleet.advance(60_000);
      expect(next.isValid).toBe(true);
    });
  });

  describe('with an abort signal', () => {
    it('that has fired already, nothing is asked', async () => {
      const { fleet, lock } = await alone();
      const before = await fleet.revision();
      const why = new Error('no more');
      const error = await errorOf(lock.acquire({ signal: AbortSignal.abort(why) }));
      expect(error).toMatchObject({ code: 'not-acquired', refusal: { kind: 'aborted', reason: why } });
      expect(await lock.isFree()).toBe(true);
      expect(await fleet.revision()).toBe(before);
    });

    it('that fires while it waits, it waits no more and leaves no trace', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire();
      const quit = new AbortController();
      const waiting = lock.acquire({ signal: quit.signal });
      await settled();
      const why = new Error('no more');
      quit.abort(why);
      expect(await refusalOf(waiting)).toEqual({ kind: 'aborted', reason: why });
      await settled();
      expect((await lock.inspect()).waiting).toEqual([]);
      await hold.release();
      expect(await lock.isFree()).toBe(true);
    });

    it('that fires after it was granted, the hold stays', async () => {
      const { lock } = await alone();
      const quit = new AbortController();
      const hold = await lock.acquire({ signal: quit.signal });
      quit.abort();
      await settled();
      expect(hold.isValid).toBe(true);
      expect(await lock.isHeldBy(hold.holder)).toBe(true);
    });

    it('that fires in the moment of the release, either holds or leaves it to the next', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire();
      const quit = new AbortController();
      const waiting = lock.acquire({ signal: quit.signal });
      const next = lock.acquire();
      await settled();
      const released = hold.release();
      quit.abort();
      await released;
      const result = await waiting.catch(() => undefined);
      await result?.release();
      expect((await next).isValid).toBe(true);
    });
  });

  describe('with priorities', () => {
    it('goes to the highest first, and among equals to the request that came first', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire();
      const order: string[] = [];
      const wait = (holder: string, priority?: number): Promise<void> =>
        lock.run(() => void order.push(holder), { holder, ...(priority !== undefined && { priority }) });
      const all = [];
      for (const [holder, priority] of [['low', -5], ['first'], ['high', 10], ['second'], ['high too', 10]] as const) {
        all.push(wait(holder, priority));
        await settled();
      }
      await hold.release();
      await Promise.all(all);
      expect(order).toEqual(['high', 'high too', 'first', 'second', 'low']);
    });

    it('lets nobody starve, however many come with a higher one', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire();
      const order: string[] = [];
      const low = lock.run(() => void order.push('low'), { priority: -100 });
      await settled();
      const high = Array.from({ length: 20 }, () => lock.run(() => void order.push('high'), { priority: 100 }));
      await settled();
      await hold.release();
      await Promise.all([low, ...high]);
      expect(order).toHaveLength(21);
      expect(order.indexOf('low')).toBe(8);
    });
  });

  describe('re-entered by the same holder', () => {
    it('is the same hold with the same token, and the inner release does not release the outer', async () => {
      const { lock } = await alone();
      const outer = await lock.acquire({ holder: 'me' });
      const attempt = await lock.tryAcquire({ holder: 'me' });
      expect(attempt.kind).toBe('extended');
      const inner = await lock.acquire({ holder: 'me' });
      expect(inner.token).toBe(outer.token);
      expect(await inner.release()).toEqual({ kind: 'still-held' });
      expect(outer.isValid).toBe(true);
      expect(await lock.tryAcquire()).toMatchObject({ kind: 'busy' });
      expect(await outer.release()).toEqual({ kind: 'released' });
      expect(await lock.isFree()).toBe(true);
    });

    it('tells the inner one when the outer is released', async () => {
      const { lock } = await alone();
      const outer = await lock.acquire({ holder: 'me' });
      const inner = await lock.acquire({ holder: 'me' });
      const { signal } = inner;
      await outer.release();
      expect(lossOf(signal)?.why).toBe('released-elsewhere');
      expect(inner.isValid).toBe(false);
      expect(await inner.release()).toEqual({ kind: 'already-lost', why: 'released-elsewhere' });
    });

    it('never passes as the holder where no holder was named', async () => {
      const { lock } = await alone();
      const hold = await lock.acquire();
      expect(await lock.tryAcquire()).toMatchObject({ kind: 'busy' });
      expect(await lock.tryAcquire({ holder: hold.holder })).toMatchObject({ kind: 'extended' });
    });

    it('goes past those who wait: they wait for the outer hold', async () => {
      const { lock } = await alone();
      const outer = await lock.acquire({ holder: 'me' });
      const other = lock.acquire({ holder: 'other' });
      await settled();
      await (await lock.acquire({ holder: 'me' })).release();
      expect(await isPending(other)).toBe(true);
      await outer.release();
      expect((await other).isValid).toBe(true);
    });

    it('in another process, is told when the outer hold is released, before others have the lock', async () => {
      const fleet = new Fleet(atOnce);
      const [parent, child, other] = await fleet.startAll('parent', 'child', 'other');
      const outer = await parent!.box.lock('db').acquire({ holder: 'job:1' });
      const inner = await child!.box.lock('db').acquire({ holder: 'job:1' });
      const { signal } = inner;
      expect(inner.token).toBe(outer.token);
      await outer.release();
      await other!.box.lock('db').acquire();
      await settled();
      expect(lossOf(signal)?.why).toBe('released-elsewhere');
      expect(inner.isValid).toBe(false);
    });

    it('in another process, is told when that process loses its session', async () => {
      const fleet = new Fleet(atOnce);
      const [parent, child] = await fleet.startAll('parent', 'child');
      const outer = await parent!.box.lock('db').acquire({ holder: 'job:1' });
      const inner = await child!.box.lock('db').acquire({ holder: 'job:1' });
      const { signal } = inner;
      child!.link.cutOff('refusing');
      await fleet.advance(20_000);
      expect(inner.isValid).toBe(false);
      expect(lossOf(signal)?.why).toBe('disconnected');
      expect(outer.isValid).toBe(true);
    });

    it('in another process, does not release the outer hold', async () => {
      const fleet = new Fleet(atOnce);
      const [parent, child] = await fleet.startAll('parent', 'child');
      const outer = await parent!.box.lock('db').acquire({ holder: 'job:1' });
      const inner = await child!.box.lock('db').acquire({ holder: 'job:1' });
      expect(await inner.release()).toEqual({ kind: 'still-held' });
      await child!.box.close();
      await settled();
      expect(outer.isValid).toBe(true);
      expect(await parent!.box.lock('db').tryAcquire()).toMatchObject({ kind: 'busy' });
    });
  });

  describe('asked about', () => {
    it('says whether it is free, held by somebody, and stale', async () => {
      const fleet = new Fleet(atOnce);
      const [one, other] = await fleet.startAll('one', 'other');
      const lock = other!.box.lock('db');
      expect([await lock.isFree(), await lock.isHeldBy('me'), await lock.isStale()]).toEqual([true, false, false]);
      await one!.box.lock('db').acquire({ holder: 'me' });
      expect([await lock.isFree(), await lock.isHeldBy('me'), await lock.isStale()]).toEqual([false, true, false]);
      expect(await lock.isHeldBy('you')).toBe(false);
      one!.crash();
      await fleet.advance(16_000);
      expect([await lock.isFree(), await lock.isHeldBy('me'), await lock.isStale()]).toEqual([false, true, true]);
    });

    it('tells when it was acquired and when its holder was last heard of', async () => {
      const fleet = new Fleet(atOnce);
      const [one, other] = await fleet.startAll('one', 'other');
      const acquiredAt = fleet.clock.now();
      await one!.box.lock('db').acquire({ holder: 'me' });
      await fleet.advance(7000);
      const [holder] = (await other!.box.lock('db').inspect()).holders;
      expect(holder).toMatchObject({ acquiredAt, lastHeartbeat: acquiredAt + 5000 });
    });
  });

  it('tells its events to a subscriber in the order of what happened', async () => {
    const { box, lock } = await alone();
    const events: SignalboxEvent[] = [];
    await box.on('lock:*', (event) => void events.push(event));
    const hold = await lock.acquire({ holder: 'first' });
    const waiting = lock.acquire({ holder: 'second' });
    await settled();
    await lock.tryAcquire({ holder: 'third' });
    await hold.release();
    await (await waiting).release();
    await settled();
    expect(events.filter(({ type }) => type !== 'lock:denied').map(({ type, holder }) => `${type} ${holder}`)).toEqual([
      'lock:acquired first',
      'lock:queued second',
      'lock:released first',
      'lock:acquired second',
      'lock:released second',
    ]);
    expect(events.find(({ type }) => type === 'lock:denied')).toMatchObject({ holder: 'third', resource: 'lock/db' });
  });
});
