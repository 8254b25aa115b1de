// Bugs of others that must never be ours: answers that get lost, callbacks, and event loops that stand still.

import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { changesRecord, queuesTicket, type Trouble } from '../support/link.ts';
import { isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

const unknown: readonly Trouble[] = ['lost', 'unanswered', 'late'];

describe.each(transports)('on $transport', ({ atOnce }) => {
  describe('24. what was not answered is sent again blindly and applied twice', () => {
    it.each(unknown)('an acquire whose answer is lost (%s) holds once', async (trouble) => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('unlucky');
      await (await box.lock('warm-up').acquire()).release();
      link.next('transaction', trouble, changesRecord);
      const hold = await box.lock('db').acquire({ holder: 'me' });
      link.applyLate();
      await settled();
      expect(hold.isValid).toBe(true);
      expect((await box.lock('db').inspect()).holders).toMatchObject([{ holder: 'me', token: hold.token }]);
      await hold.release();
      expect(await box.lock('db').isFree()).toBe(true);
    });

    it('an acquire that lands after its hold was released does not take the lock again', async () => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('unlucky');
      await (await box.lock('warm-up').acquire()).release();
      link.next('transaction', 'late', changesRecord);
      const hold = await box.lock('db').acquire();
      await hold.release();
      link.applyLate();
      await settled();
      expect(await box.lock('db').isFree()).toBe(true);
    });

    it('an acquire that lands after its process gave up does not take a lock that nobody will release', async () => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('unlucky');
      await (await box.lock('warm-up').acquire()).release();
      link.next('transaction', 'late', changesRecord);
      const quit = new AbortController();
      const given = box.lock('db').acquire({ signal: quit.signal });
      quit.abort();
      const result = await given.catch(() => 'refused');
      await settled();
      link.applyLate();
      await settled();
      expect(await box.lock('db').isFree()).toBe(result === 'refused');
    });

    it.each(unknown)('slots whose answer is lost (%s) are taken once', async (trouble) => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('unlucky');
      const pool = box.semaphore('pool', { capacity: 5 });
      await pool.acquire();
      link.next('transaction', trouble, changesRecord);
      const hold = await pool.acquire({ weight: 2 });
      link.applyLate();
      await settled();
      expect(await pool.usedSlots()).toBe(3);
      await hold.release();
      expect(await pool.usedSlots()).toBe(1);
    });

    it.each(unknown)('a growth whose answer is lost (%s) grows once', async (trouble) => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('unlucky');
      const pool = box.semaphore('pool', { capacity: 5 });
      const hold = await pool.acquire({ holder: 'me' });
      link.next('transaction', trouble, changesRecord);
      await pool.acquire({ holder: 'me', weight: 3 });
      link.applyLate();
      await settled();
      expect(await pool.usedSlots()).toBe(3);
      expect(hold.slots).toEqual([0, 1, 2]);
    });

    it.each(unknown)('a wait whose answer is lost (%s) waits once, and is granted once', async (trouble) => {
      const fleet = new Fleet(atOnce);
      const [holder, unlucky, next] = await fleet.startAll('holder', 'unlucky', 'next');
      const hold = await holder!.box.lock('db').acquire();
      await (await unlucky!.box.lock('warm-up').acquire()).release();
      unlucky!.link.next('transaction', trouble, queuesTicket);
      const waiting = unlucky!.box.lock('db').acquire({ holder: 'unlucky' });
      await settled();
      const behind = next!.box.lock('db').acquire({ holder: 'next' });
      await settled();
      unlucky!.link.applyLate();
      await settled();
      const { waiting: queue } = await holder!.box.lock('db').inspect();
      expect(queue.map((waiter) => waiter.holder)).toEqual(['unlucky', 'next']);
      await hold.release();
      await (await waiting).release();
      expect((await behind).isValid).toBe(true);
    });

    it.each(unknown)(
      'a release whose answer is lost (%s) releases once, and the next one is let in',
      async (trouble) => {
        const fleet = new Fleet(atOnce);
        const [unlucky, next] = await fleet.startAll('unlucky', 'next');
        const hold = await unlucky!.box.lock('db').acquire();
        const waiting = next!.box.lock('db').acquire();
        await settled();
        unlucky!.link.next('transaction', trouble, changesRecord);
        expect(await hold.release()).toEqual({ kind: 'released' });
        const held = await waiting;
        unlucky!.link.applyLate();
        await settled();
        expect((await next!.box.lock('db').inspect()).holders).toMatchObject([{ token: held.token }]);
      },
    );

    it.each(unknown)('several at once whose answer is lost (%s) are held once, or not at all', async (trouble) => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('unlucky');
      await (await box.lock('warm-up').acquire()).release();
      link.next('transaction', trouble, changesRecord);
      const set = await box.acquireAll([{ lock: 'a' }, { semaphore: 'pool', weight: 2, capacity: 4 }]);
      link.applyLate();
      await settled();
      expect(set.isValid).toBe(true);
      expect(await box.semaphore('pool').usedSlots()).toBe(2);
      await set.release();
      expect(await box.semaphore('pool').usedSlots()).toBe(0);
      expect(await box.lock('a').isFree()).toBe(true);
    });

    it('breaking a lock is not repeated on the next holder: the administrator learns that it is done', async () => {
      const fleet = new Fleet(atOnce);
      const [admin, stuck, next] = await fleet.startAll('admin', 'stuck', 'next');
      await stuck!.box.lock('db').acquire();
      const waiting = next!.box.lock('db').acquire();
      await settled();
      admin!.link.next('transaction', 'unanswered', changesRecord);
      await (await admin!.box.lock('warm-up').acquire()).release();
      admin!.link.next('transaction', 'unanswered', changesRecord);
      const broken = admin!.box.lock('db').break({ holder: 'user:anna', reason: 'stuck' });
      expect(await broken).toEqual({ broken: 1 });
      const held = await waiting;
      await settled();
      expect(held.isValid).toBe(true);
    });
  });

  describe('25. a callback on the path of the watch or the renewal ends the session', () => {
    it('a handler that never returns costs its subscriber its events, and nobody the session', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const told: string[] = [];
      await box.on('*', () => new Promise(() => {}));
      await box.on('lock:*', ({ type }) => void told.push(type));
      const hold = await box.lock('db').acquire();
      await fleet.advance(10 * TTL_MS);
      expect(hold.isValid).toBe(true);
      await hold.release();
      await settled();
      expect(told).toEqual(['lock:acquired', 'lock:released']);
    });

    it('a grant reaches its waiter although a handler in its process never returns', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, waiter] = await fleet.startAll('holder', 'waiter');
      await waiter!.box.on('*', () => new Promise(() => {}));
      const hold = await holder!.box.lock('db').acquire();
      const waiting = waiter!.box.lock('db').acquire();
      await settled();
      await hold.release();
      expect((await waiting).isValid).toBe(true);
    });

    it('a callback that throws when its request has to wait does not stop the lock for everybody', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const hold = await box.lock('db').acquire();
      const own = new Error('a bug in the callback');
      const waiting = box.lock('db').acquire({
        onWaiting: () => {
          throw own;
        },
      });
      await expect(waiting).rejects.toBe(own);
      const next = box.lock('db').acquire();
      await settled();
      await hold.release();
      expect((await next).isValid).toBe(true);
    });
  });

  describe('26. the event loop stands still for seconds', () => {
    it('after a stall past the lease a hold says so before any timer has rung', async () => {
      const fleet = new Fleet(atOnce);
      const { box, clock } = await fleet.start('stalled');
      const hold = await box.lock('db').acquire();
      clock.stall();
      await fleet.advance(TTL_MS);
      expect(hold.isValid).toBe(false);
      expect(lossOf(hold.signal)?.why).toBe('disconnected');
    });

    it('after a stall past its longest time a hold says so before any timer has rung', async () => {
      const fleet = new Fleet(atOnce);
      const { box, clock } = await fleet.start('stalled', { sessionTtlMs: 3_600_000 });
      const hold = await box.lock('db').acquire({ maxHoldMs: 2000 });
      clock.stall();
      await fleet.advance(1000);
      expect(hold.isValid).toBe(true);
      await fleet.advance(1500);
      expect(hold.isValid).toBe(false);
      expect(() => hold.check()).toThrow(/lost/);
    });

    it('a short stall harms nobody', async () => {
      const fleet = new Fleet(atOnce);
      const { box, clock } = await fleet.start('stalled');
      const hold = await box.lock('db').acquire();
      for (let time = 0; time < 5; time++) {
        clock.stall();
        await fleet.advance(TTL_MS / 2);
        clock.goOn();
        await settled();
      }
      expect(hold.isValid).toBe(true);
      expect(await hold.release()).toEqual({ kind: 'released' });
    });

    it('a grant that waited for a stalled process is given back, and the next one gets the lock', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, stalled, next] = await fleet.startAll('holder', 'stalled', 'next');
      const hold = await holder!.box.lock('db').acquire();
      const late = stalled!.box.lock('db').acquire();
      await settled();
      const waiting = next!.box.lock('db').acquire();
      await settled();
      stalled!.clock.stall();
      stalled!.link.holdNews();
      await hold.release();
      expect(await isPending(waiting)).toBe(true);
      await fleet.advance(TTL_MS);
      stalled!.link.deliverNews();
      expect(await refusalOf(late)).toEqual({ kind: 'session-lost' });
      expect((await waiting).isValid).toBe(true);
    });
  });
});
