// Bugs of others that must never be ours: locks and leases. Each describes what its user would have suffered.

import { HoldLost, NotAcquired } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { DEADLINE_MS, Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { changesRecord } from '../support/link.ts';
import { errorOf, isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('on $transport', ({ atOnce }) => {
  /** For what can only happen while an answer is on its way. */
  const afterAWhile = atOnce ? undefined : it;
  describe('1. a lease-based lock does not exclude by itself', () => {
    it('a holder that wakes up after its lease finds out before it goes on, and its token is the smaller one', async () => {
      const fleet = new Fleet(atOnce);
      const sleeper = await fleet.start('sleeper');
      const next = await fleet.start('next');
      const slept = await sleeper.box.lock('db').acquire();
      sleeper.clock.stall();
      sleeper.link.holdNews();
      await fleet.advance(TTL_MS + 1000);
      const held = await next.box.lock('db').acquire();

      // It wakes up: none of its timers has rung yet, and no news has arrived.
      expect(slept.isValid).toBe(false);
      expect(() => slept.check()).toThrow(HoldLost);
      expect(held.token).toBeGreaterThan(slept.token);
      expect(held.isValid).toBe(true);
    });

    it('a holder that cannot reach the store learns of its loss before anyone else gets the lock', async () => {
      const fleet = new Fleet(atOnce);
      const [cut, next] = await fleet.startAll('cut', 'next');
      const hold = await cut!.box.lock('db').acquire();
      const order: string[] = [];
      hold.signal.addEventListener('abort', () => order.push('told'));
      const waiting = next!.box.lock('db').acquire();
      void waiting.then(() => order.push('granted'));
      await settled();
      cut!.link.cutOff('refusing');

      await fleet.advance(DEADLINE_MS);
      expect(order).toEqual(['told']);
      await fleet.advance(TTL_MS);
      expect(order).toEqual(['told', 'granted']);
      expect(lossOf(hold.signal)?.why).toBe('disconnected');
    });
  });

  describe('2. and 3. a waiter is blind to the death of its own session', () => {
    it('a waiter whose lease ended is not granted when the lock becomes free; the next one is', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, dead, next] = await fleet.startAll('holder', 'dead', 'next');
      const hold = await holder!.box.lock('leader').acquire();
      const blind = dead!.box.lock('leader').acquire();
      await settled();
      const patient = next!.box.lock('leader').acquire();
      await settled();
      dead!.clock.stall();
      dead!.link.holdNews();
      await fleet.advance(TTL_MS + 1000);
      await hold.release();

      expect((await patient).isValid).toBe(true);
      expect(await isPending(blind)).toBe(true);
      dead!.link.deliverNews();
      dead!.clock.goOn();
      expect(await refusalOf(blind)).toEqual({ kind: 'session-lost' });
      expect((await patient).isValid).toBe(true);
    });

    it('a waiter that was granted while it slept does not lead once its lease is gone', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, sleeper, next] = await fleet.startAll('holder', 'sleeper', 'next');
      const hold = await holder!.box.lock('leader').acquire();
      const granted = sleeper!.box.lock('leader').acquire();
      await settled();
      sleeper!.clock.stall();
      sleeper!.link.holdNews();
      await hold.release();
      await fleet.advance(TTL_MS + 1000);
      const leader = await next!.box.lock('leader').acquire();

      sleeper!.link.deliverNews();
      expect(await refusalOf(granted)).toEqual({ kind: 'session-lost' });
      expect(leader.isValid).toBe(true);
    });

    it('a waiter learns that it lost its place, and may ask again under a new session', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, cut] = await fleet.startAll('holder', 'cut');
      const hold = await holder!.box.lock('leader').acquire();
      const refused = refusalOf(cut!.box.lock('leader').acquire());
      await settled();
      cut!.link.cutOff('refusing');
      await fleet.advance(TTL_MS);
      expect(await refused).toEqual({ kind: 'session-lost' });

      cut!.link.reconnect();
      const again = cut!.box.lock('leader').acquire();
      await fleet.advance(2000);
      await hold.release();
      expect((await again).isValid).toBe(true);
    });
  });

  describe("4. an unlock that comes late or twice deletes the next holder's lock", () => {
    it("a client that slept past its lease cannot release the next holder's lock", async () => {
      const fleet = new Fleet(atOnce);
      const [sleeper, next] = await fleet.startAll('sleeper', 'next');
      const slept = await sleeper!.box.lock('db').acquire();
      sleeper!.clock.stall();
      await fleet.advance(TTL_MS + 1000);
      const held = await next!.box.lock('db').acquire();

      expect(await slept.release()).toMatchObject({ kind: 'already-lost' });
      expect(held.isValid).toBe(true);
      expect(await next!.box.lock('db').isHeldBy(held.holder)).toBe(true);
    });

    it('a release that the network delivers after the next one has the lock changes nothing', async () => {
      const fleet = new Fleet(atOnce);
      const [first, next] = await fleet.startAll('first', 'next');
      const hold = await first!.box.lock('db').acquire();
      first!.link.next('transaction', 'late', changesRecord);
      expect(await hold.release()).toEqual({ kind: 'released' });
      const held = await next!.box.lock('db').acquire();

      first!.link.applyLate();
      await settled();
      expect((await next!.box.lock('db').inspect()).holders).toMatchObject([{ token: held.token }]);
      expect(await next!.box.lock('db').tryAcquire()).toMatchObject({ kind: 'busy' });
    });

    it('releasing twice releases once', async () => {
      const fleet = new Fleet(atOnce);
      const [first, next] = await fleet.startAll('first', 'next');
      const hold = await first!.box.lock('db').acquire();
      await hold.release();
      const held = await next!.box.lock('db').acquire();
      expect(await hold.release()).toEqual({ kind: 'released' });
      expect(await next!.box.lock('db').isHeldBy(held.holder)).toBe(true);
    });
  });

  describe('5. two tasks of one process share a session and both hold', () => {
    it('a second task in the same process waits like anybody else', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const first = await box.lock('db').acquire();
      const second = box.lock('db').acquire();
      expect(await isPending(second)).toBe(true);
      expect(await box.lock('db').tryAcquire()).toMatchObject({ kind: 'busy' });
      await first.release();
      expect((await second).token).toBeGreaterThan(first.token);
    });

    it('two tasks of one process take two slots of a semaphore', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const agents = box.semaphore('agents', { capacity: 2 });
      const [one, other] = await Promise.all([agents.acquire(), agents.acquire()]);
      expect([...one.slots, ...other.slots].sort()).toEqual([0, 1]);
      expect(await agents.tryAcquire()).toMatchObject({ kind: 'full', free: 0 });
    });
  });

  describe('6. a failed or cancelled wait leaves its claim behind and blocks the queue', () => {
    it('the waiter behind one that was aborted is next', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, quitter, patient] = await fleet.startAll('holder', 'quitter', 'patient');
      const hold = await holder!.box.lock('db').acquire();
      const quit = new AbortController();
      const given = quitter!.box.lock('db').acquire({ signal: quit.signal, holder: 'quitter' });
      await settled();
      const waiting = patient!.box.lock('db').acquire({ holder: 'patient' });
      await settled();
      quit.abort(new Error('changed my mind'));
      expect(await refusalOf(given)).toMatchObject({ kind: 'aborted' });
      await settled();

      const { waiting: queue } = await holder!.box.lock('db').inspect();
      expect(queue.map((waiter) => waiter.holder)).toEqual(['patient']);
      await hold.release();
      expect((await waiting).isValid).toBe(true);
    });

    it('the waiter behind one that timed out is next', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, hasty, patient] = await fleet.startAll('holder', 'hasty', 'patient');
      const hold = await holder!.box.lock('db').acquire();
      const given = hasty!.box.lock('db').acquire({ waitMs: 1000, holder: 'hasty' });
      await settled();
      const waiting = patient!.box.lock('db').acquire({ holder: 'patient' });
      const refused = refusalOf(given);
      await fleet.advance(1000);
      expect(await refused).toMatchObject({ kind: 'timed-out', waitedMs: 1000 });

      const { waiting: queue } = await holder!.box.lock('db').inspect();
      expect(queue.map((waiter) => waiter.holder)).toEqual(['patient']);
      await hold.release();
      expect((await waiting).isValid).toBe(true);
    });

    it('the dead at the head of the queue are passed by', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, dead, patient] = await fleet.startAll('holder', 'dead', 'patient');
      const hold = await holder!.box.lock('db').acquire();
      const never = dead!.box.lock('db').acquire();
      await settled();
      const waiting = patient!.box.lock('db').acquire();
      await settled();
      dead!.crash();
      await fleet.advance(TTL_MS + 1000);
      await hold.release();
      expect((await waiting).isValid).toBe(true);
      expect(await isPending(never)).toBe(true);
    });

    it('a head that dies while it is being granted does not keep the lock', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, dead, patient] = await fleet.startAll('holder', 'dead', 'patient');
      const hold = await holder!.box.lock('db').acquire();
      const never = dead!.box.lock('db').acquire();
      await settled();
      const waiting = patient!.box.lock('db').acquire();
      await settled();
      dead!.crash();
      await hold.release();
      expect(await isPending(waiting)).toBe(true);
      await fleet.advance(TTL_MS + 1000);
      expect((await waiting).isValid).toBe(true);
      expect(await isPending(never)).toBe(true);
    });

    it('a cancellation that the store refuses at first is carried out all the same', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, quitter, patient] = await fleet.startAll('holder', 'quitter', 'patient');
      const hold = await holder!.box.lock('db').acquire();
      const quit = new AbortController();
      const given = quitter!.box.lock('db').acquire({ signal: quit.signal });
      await settled();
      const waiting = patient!.box.lock('db').acquire();
      await settled();
      quitter!.link.cutOff('refusing');
      quit.abort();
      expect(await refusalOf(given)).toMatchObject({ kind: 'aborted' });
      await fleet.advance(2000);
      quitter!.link.reconnect();
      await fleet.advance(2000);
      await hold.release();
      expect((await waiting).isValid).toBe(true);
    });

    it('one that the releasing process has not heard of yet keeps its place', async () => {
      const fleet = new Fleet(atOnce);
      const holder = await fleet.start('holder');
      const hold = await holder.box.lock('db').acquire();
      holder.link.holdNews();
      const newcomer = await fleet.start('newcomer');
      const waiting = newcomer.box.lock('db').acquire();
      await settled();
      await hold.release();
      expect(await isPending(waiting)).toBe(false);
      expect((await waiting).isValid).toBe(true);
    });
  });

  describe('7. a read/write lock grants after the lease died', () => {
    it('a reader whose lease ended while it waited is not let in beside the next writer', async () => {
      const fleet = new Fleet(atOnce);
      const [writer, dead, next] = await fleet.startAll('writer', 'dead', 'next');
      const hold = await writer!.box.lock('table').acquire();
      const reading = dead!.box.lock('table').acquire({ mode: 'shared' });
      await settled();
      const writing = next!.box.lock('table').acquire();
      await settled();
      dead!.clock.stall();
      dead!.link.holdNews();
      await fleet.advance(TTL_MS + 1000);
      await hold.release();
      expect((await writing).isValid).toBe(true);
      dead!.link.deliverNews();
      dead!.clock.goOn();
      expect(await refusalOf(reading)).toEqual({ kind: 'session-lost' });
      expect((await next!.box.lock('table').inspect()).holders).toHaveLength(1);
    });

    it('a writer gets in only when the last living reader has left, dead ones beside it or not', async () => {
      const fleet = new Fleet(atOnce);
      const [alive, dead, writer] = await fleet.startAll('alive', 'dead', 'writer');
      const reader = await alive!.box.lock('table').acquire({ mode: 'shared' });
      await dead!.box.lock('table').acquire({ mode: 'shared' });
      const writing = writer!.box.lock('table').acquire();
      await settled();
      dead!.crash();
      await fleet.advance(TTL_MS + 1000);
      expect(await isPending(writing)).toBe(true);
      await reader.release();
      expect((await writing).mode).toBe('exclusive');
    });
  });

  describe('8. the loss is told only after twice the lease, by the wall clock', () => {
    it('a renewal counts from when it was sent, not from when it was answered', async () => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('slow');
      const hold = await box.lock('db').acquire();
      link.next('keepLeaseAlive', 'held');
      await fleet.advance(TTL_MS / 3 + 4000);
      link.answerHeld();
      await settled();
      link.cutOff('refusing');

      // Sent at 5 s, answered at 9 s: valid until 5 s + 13.5 s.
      await fleet.advance(9400);
      expect(hold.isValid).toBe(true);
      await fleet.advance(200);
      expect(hold.isValid).toBe(false);
      expect(lossOf(hold.signal)?.why).toBe('disconnected');
    });

    it('a laptop that was suspended knows it by the wall clock, although the monotonic one stood still', async () => {
      const fleet = new Fleet(atOnce);
      const { box, clock } = await fleet.start('laptop');
      const hold = await box.lock('db').acquire();
      clock.jumpWall(60_000);
      expect(hold.isValid).toBe(false);
      expect(lossOf(hold.signal)?.why).toBe('disconnected');
    });

    it('a wall clock that was set back does not keep a hold alive', async () => {
      const fleet = new Fleet(atOnce);
      const { box, clock, link } = await fleet.start('set-back');
      const hold = await box.lock('db').acquire();
      clock.jumpWall(-3_600_000);
      link.cutOff('refusing');
      await fleet.advance(DEADLINE_MS);
      expect(hold.isValid).toBe(false);
    });

    it('a wall clock that was set back still notices a suspended laptop afterwards', async () => {
      const fleet = new Fleet(atOnce);
      const { box, clock } = await fleet.start('laptop');
      const hold = await box.lock('db').acquire();
      clock.jumpWall(-3_600_000);
      await fleet.advance(TTL_MS);
      expect(hold.isValid).toBe(true);
      clock.jumpWall(600_000);
      expect(hold.isValid).toBe(false);
    });
  });

  describe('9. a grant that arrived already expired is handed to the caller', () => {
    it('a grant that reaches a process after its session is over is no hold', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, slow] = await fleet.startAll('holder', 'slow');
      const hold = await holder!.box.lock('db').acquire();
      const late = slow!.box.lock('db').acquire();
      await settled();
      slow!.link.holdNews();
      slow!.clock.stall();
      await hold.release();
      await fleet.advance(DEADLINE_MS + 1);
      slow!.link.deliverNews();
      expect(await refusalOf(late)).toEqual({ kind: 'session-lost' });
    });

    it('a hold whose longest time passed before it could be handed out is not handed out', async () => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('slow');
      await (await box.lock('warm-up').acquire()).release();
      link.next('grantLease', 'held');
      const late = box.lock('db').acquire({ maxHoldMs: 1000 });
      await fleet.advance(2000);
      link.answerHeld();
      expect(await errorOf(late)).toMatchObject({ name: expect.stringMatching(/^(NotAcquired|HoldLost)$/) as string });
      expect(await box.lock('db').isFree()).toBe(true);
    });

    afterAWhile?.(
      'a hold whose longest time passed while the store was slow to confirm it is not handed out',
      async () => {
        const fleet = new Fleet(atOnce);
        const { box, link } = await fleet.start('slow');
        await (await box.lock('db').acquire()).release();
        let writes = 0;
        link.next('transaction', 'held', (transaction) => changesRecord(transaction) && ++writes === 2);
        const late = box.lock('db').acquire({ maxHoldMs: 1000 });
        await fleet.advance(2000);
        link.answerHeld();
        expect(await errorOf(late)).toMatchObject({
          name: expect.stringMatching(/^(NotAcquired|HoldLost)$/) as string,
        });
      },
    );
  });

  describe('10. the renewal fails and nobody is told', () => {
    it('a hold is told that the store could not be reached', async () => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('cut');
      const hold = await box.lock('db').acquire();
      expect(hold.signal.aborted).toBe(false);
      link.cutOff('refusing');
      await fleet.advance(TTL_MS);
      expect(lossOf(hold.signal)).toMatchObject({ why: 'disconnected', resource: 'lock/db', code: 'hold-lost' });
    });

    it('a hold learns of its loss although the store never answers a renewal', async () => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('cut');
      const hold = await box.lock('db').acquire();
      expect(hold.signal.aborted).toBe(false);
      link.cutOff('silent');
      await fleet.advance(DEADLINE_MS);
      expect(lossOf(hold.signal)?.why).toBe('disconnected');
    });

    it('a hold is told that the store has ended its lease', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('ended');
      const hold = await box.lock('db').acquire();
      expect(hold.signal.aborted).toBe(false);
      // The first lease of this store is the session's.
      await fleet.store.revokeLease('1');
      await fleet.advance(TTL_MS / 3);
      expect(lossOf(hold.signal)?.why).toBe('expired');
    });

    it('one renewal that fails is made up for by the next', async () => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('unlucky');
      const hold = await box.lock('db').acquire();
      for (let time = 0; time < 10; time++) {
        link.next('keepLeaseAlive', 'refused');
        await fleet.advance(TTL_MS / 2);
      }
      expect(hold.isValid).toBe(true);
    });
  });

  describe("11. releasing an expired lock throws and hides its user's own error", () => {
    it('the error of the work is what comes out of run, lost hold or not', async () => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('cut');
      const own = new Error('disk full');
      const ran = box.lock('db').run(async (hold) => {
        link.cutOff('refusing');
        await new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
        throw own;
      });
      const error = errorOf(ran);
      await fleet.advance(TTL_MS);
      expect(await error).toBe(own);
    });

    it('the error of a block is what comes out of it, lost hold or not', async () => {
      const fleet = new Fleet(atOnce);
      const { box, clock } = await fleet.start('laptop');
      const own = new Error('disk full');
      const block = async (): Promise<void> => {
        await using hold = await box.lock('db').acquire();
        clock.jumpWall(TTL_MS);
        expect(hold.isValid).toBe(false);
        throw own;
      };
      expect(await errorOf(block())).toBe(own);
    });

    it('work that went well under a hold that was lost is told so', async () => {
      const fleet = new Fleet(atOnce);
      const { box, clock } = await fleet.start('laptop');
      const ran = box.lock('db').run((hold) => {
        clock.jumpWall(TTL_MS);
        return hold.isValid;
      });
      expect(await errorOf(ran)).toBeInstanceOf(HoldLost);
    });
  });

  describe('13. the holder is not told; there are two leaders; a failed release forgets the claim', () => {
    it('a holder whose lock is taken by force learns who took it and why, and there is one leader', async () => {
      const fleet = new Fleet(atOnce);
      const [old, admin] = await fleet.startAll('old', 'admin');
      const hold = await old!.box.lock('leader').acquire({ holder: 'worker:old' });
      const { signal } = hold;
      const taken = await admin!.box
        .lock('leader')
        .acquire({ strategy: 'force', holder: 'user:anna', reason: 'stuck since noon' });
      await settled();
      expect(lossOf(signal)).toMatchObject({ why: 'forced', by: 'user:anna', reason: 'stuck since noon' });
      expect([hold.isValid, taken.isValid]).toEqual([false, true]);
      expect((await old!.box.lock('leader').inspect()).holders).toMatchObject([{ holder: 'user:anna' }]);
    });

    it('a release that could not be delivered is tried until it is', async () => {
      const fleet = new Fleet(atOnce);
      const [cut, next] = await fleet.startAll('cut', 'next');
      const hold = await cut!.box.lock('leader').acquire();
      const waiting = next!.box.lock('leader').acquire();
      await settled();
      cut!.link.cutOff('refusing');
      const releasing = hold.release();
      await fleet.advance(4000);
      expect(await isPending(releasing)).toBe(true);
      cut!.link.reconnect();
      await fleet.advance(2000);
      expect(await releasing).toEqual({ kind: 'released' });
      expect((await waiting).isValid).toBe(true);
    });

    it('a release that failed for good is known to have failed, and the lease frees the lock', async () => {
      const fleet = new Fleet(atOnce);
      const [cut, next] = await fleet.startAll('cut', 'next');
      const hold = await cut!.box.lock('leader').acquire();
      const waiting = next!.box.lock('leader').acquire();
      await settled();
      cut!.link.cutOff('refusing');
      const released = hold.release().catch((error: unknown) => error);
      await fleet.advance(2 * TTL_MS);
      expect(await isPending(released)).toBe(false);
      expect(await released).not.toEqual({ kind: 'released' });
      expect(hold.isValid).toBe(false);
      expect((await waiting).isValid).toBe(true);
    });
  });

  describe('15. an abort that races a grant leaks the grant', () => {
    it('a grant that is on its way when its waiter gives up goes to the next', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, quitter, next] = await fleet.startAll('holder', 'quitter', 'next');
      const hold = await holder!.box.lock('db').acquire();
      const quit = new AbortController();
      const given = quitter!.box.lock('db').acquire({ signal: quit.signal });
      await settled();
      quitter!.link.holdNews();
      await hold.release();
      const waiting = next!.box.lock('db').acquire();
      expect(await isPending(waiting)).toBe(true);
      quit.abort();
      expect(await refusalOf(given)).toMatchObject({ kind: 'aborted' });
      quitter!.link.deliverNews();
      expect((await waiting).isValid).toBe(true);
    });

    it('a wait that times out at the very moment of its grant holds nothing', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, hasty] = await fleet.startAll('holder', 'hasty');
      const hold = await holder!.box.lock('db').acquire();
      const given = refusalOf(hasty!.box.lock('db').acquire({ waitMs: 1000 }));
      await settled();
      hasty!.link.holdNews();
      await hold.release();
      await fleet.advance(1000);
      expect(await given).toMatchObject({ kind: 'timed-out' });
      hasty!.link.deliverNews();
      await settled();
      expect(await holder!.box.lock('db').isFree()).toBe(true);
    });

    it('an abort in the same moment as the acquire leaves the lock free', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('quitter');
      await (await box.lock('warm-up').acquire()).release();
      const quit = new AbortController();
      const given = box.lock('db').acquire({ signal: quit.signal });
      quit.abort();
      const result = await given.catch((error: unknown) => error);
      await settled();
      if (result instanceof NotAcquired) expect(await box.lock('db').isFree()).toBe(true);
      else expect(result).toMatchObject({ isValid: true });
    });

    it('slots granted to one who gave up go back', async () => {
      const fleet = new Fleet(atOnce);
      const [holder, quitter] = await fleet.startAll('holder', 'quitter');
      const pool = holder!.box.semaphore('pool', { capacity: 3 });
      const hold = await pool.acquire({ weight: 3 });
      const quit = new AbortController();
      const given = quitter!.box.semaphore('pool').acquire({ weight: 2, signal: quit.signal });
      await settled();
      quitter!.link.holdNews();
      await hold.release();
      expect(await pool.usedSlots()).toBe(2);
      quit.abort();
      expect(await refusalOf(given)).toMatchObject({ kind: 'aborted' });
      quitter!.link.deliverNews();
      await settled();
      expect(await pool.usedSlots()).toBe(0);
    });
  });

  describe('16. the clocks of clients decide who expired', () => {
    it.each([-86_400_000, 86_400_000])(
      'a process whose clock is wrong by %d ms takes nothing from a living holder',
      async (wrongBy) => {
        const fleet = new Fleet(atOnce);
        const [holder, wrong] = await fleet.startAll('holder', 'wrong');
        wrong!.clock.jumpWall(wrongBy);
        const hold = await holder!.box.lock('db').acquire({ maxHoldMs: 3_600_000 });
        expect(await wrong!.box.lock('db').tryAcquire({ strategy: 'steal-stale' })).toMatchObject({ kind: 'busy' });
        expect(await wrong!.box.lock('db').isStale()).toBe(false);
        expect(await wrong!.box.maintain()).toMatchObject({ warned: 0, reclaimed: 0 });
        expect(hold.isValid).toBe(true);
      },
    );

    it('the longest time of a hold is measured by the store, whatever the clock of its holder said', async () => {
      const fleet = new Fleet(atOnce);
      const [wrong, next] = await fleet.startAll('wrong', 'next');
      wrong!.clock.jumpWall(-86_400_000);
      await wrong!.box.lock('db').acquire({ maxHoldMs: 2000 });
      const waiting = next!.box.lock('db').acquire();
      await fleet.advance(1900);
      expect(await isPending(waiting)).toBe(true);
      await fleet.advance(200);
      expect((await waiting).isValid).toBe(true);
    });
  });

  describe('20. a slow worker is not a dead one', () => {
    it('a lock that must not change hands without a person stays with its stale holder, and one event reports it', async () => {
      const fleet = new Fleet(atOnce);
      const [slow, next] = await fleet.startAll('slow', 'next');
      const told: string[] = [];
      await next!.box.on('lock:stale', ({ holder }) => void told.push(holder));
      await slow!.box.lock('release').configure({ onStale: 'alert' });
      await slow!.box.lock('release').acquire({ holder: 'slow' });
      const waiting = next!.box.lock('release').acquire();
      slow!.crash();
      await fleet.advance(120_000);

      expect(await isPending(waiting)).toBe(true);
      expect(await next!.box.lock('release').isStale()).toBe(true);
      expect(await next!.box.lock('release').isHeldBy('slow')).toBe(true);
      expect(told).toEqual(['slow']);
    });

    it('a lock under alert whose holder finished in good order is free for the next', async () => {
      const fleet = new Fleet(atOnce);
      const [first, next] = await fleet.startAll('first', 'next');
      await first!.box.lock('release').configure({ onStale: 'alert' });
      await first!.box.lock('release').acquire();
      await first!.box.close();
      expect(await next!.box.lock('release').tryAcquire()).toMatchObject({ kind: 'acquired' });
    });
  });
});
