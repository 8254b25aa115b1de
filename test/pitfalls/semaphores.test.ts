// Bugs of others that must never be ours: semaphores.

import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { isPending, settled } from '../support/outcome.ts';

describe.each(transports)('on $transport', ({ atOnce }) => {
  describe('17. a denied re-acquire reports success; reclaim frees only the last stale holder', () => {
    it('a holder that cannot grow is told no, and keeps what it had', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const pool = box.semaphore('pool', { capacity: 4 });
      const hold = await pool.acquire({ holder: 'grows', weight: 1 });
      await pool.acquire({ holder: 'other', weight: 2 });
      expect(await pool.tryAcquire({ holder: 'grows', weight: 3 })).toMatchObject({ kind: 'full', free: 1 });
      expect(hold.isValid).toBe(true);
      expect(hold.slots).toEqual([0]);
      expect(await pool.usedSlots()).toBe(3);
    });

    it('one acquire takes the slots of every stale holder that it needs', async () => {
      const fleet = new Fleet(atOnce);
      const dead = await fleet.startAll('one', 'two', 'three');
      for (const { box } of dead) await box.semaphore('pool', { capacity: 3 }).acquire();
      const next = await fleet.start('next');
      for (const process of dead) process.crash();
      await fleet.advance(TTL_MS + 1000);
      const attempt = await next.box.semaphore('pool').tryAcquire({ weight: 3 });
      expect(attempt).toMatchObject({ kind: 'reclaimed' });
      if (attempt.kind === 'reclaimed') expect(attempt.from).toHaveLength(3);
      expect(await next.box.semaphore('pool').usedSlots()).toBe(3);
    });

    it('maintenance frees every stale holder and warns of each', async () => {
      const fleet = new Fleet(atOnce);
      const dead = await fleet.startAll('one', 'two', 'three');
      for (const { box } of dead) await box.semaphore('pool', { capacity: 5 }).acquire();
      const keeper = await fleet.start('keeper');
      const alive = await keeper.box.semaphore('pool').acquire({ holder: 'alive' });
      const told: string[] = [];
      await keeper.box.on('semaphore:*', ({ type }) => void told.push(type));
      for (const process of dead) process.crash();
      await fleet.advance(TTL_MS + 1000);
      expect(await keeper.box.semaphore('pool').staleHolders()).toHaveLength(3);
      expect(await keeper.box.maintain()).toMatchObject({ reclaimed: 3 });
      await settled();
      expect(told.filter((type) => type === 'semaphore:stale')).toHaveLength(3);
      expect(told.filter((type) => type === 'semaphore:reclaimed')).toHaveLength(3);
      expect(await keeper.box.semaphore('pool').usedSlots()).toBe(1);
      expect(alive.isValid).toBe(true);
    });
  });

  describe('18. heavy requests starve behind light ones', () => {
    it('nobody light passes a heavy request that waits, although there would be room', async () => {
      const fleet = new Fleet(atOnce);
      const [light, heavy] = await fleet.startAll('light', 'heavy');
      const pool = light!.box.semaphore('builders', { capacity: 4 });
      const held = [await pool.acquire(), await pool.acquire(), await pool.acquire()];
      const whole = heavy!.box.semaphore('builders').acquire({ weight: 4 });
      await settled();
      const lightOnes = [pool.acquire(), pool.acquire()];
      expect(await isPending(Promise.race(lightOnes))).toBe(true);
      expect(await pool.tryAcquire()).toMatchObject({ kind: 'full', free: 1 });
      for (const hold of held) await hold.release();
      expect((await whole).weight).toBe(4);
      expect(await isPending(Promise.race(lightOnes))).toBe(true);
      await (await whole).release();
      await Promise.all(lightOnes);
    });

    it('a heavy build among a stream of light ones is built', async () => {
      const fleet = new Fleet(atOnce);
      const [light, heavy] = await fleet.startAll('light', 'heavy');
      const pool = light!.box.semaphore('builders', { capacity: 3 });
      let built = 0;
      let heavyAfter: number | undefined;
      const stream = async (): Promise<void> => {
        for (let build = 0; build < 20; build++) {
          const hold = await pool.acquire();
          await settled();
          built += 1;
          await hold.release();
        }
      };
      const streams = [stream(), stream(), stream()];
      await settled();
      const whole = heavy!.box.semaphore('builders').run(() => void (heavyAfter = built), { weight: 3 });
      await Promise.all([...streams, whole]);
      expect(built).toBe(60);
      // Those who were in when it came may finish; nobody who came later goes first.
      expect(heavyAfter).toBeLessThanOrEqual(6);
    });
  });
});
