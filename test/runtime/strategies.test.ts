import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports, TTL_MS } from '../support/fleet.ts';
import { errorOf, isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('conflicts on $transport', ({ atOnce }) => {
  /** A lock whose holder died, and one who comes after it. */
  async function stale(onStale: 'reclaim' | 'alert'): Promise<{ fleet: Fleet; next: Process; token: number }> {
    const fleet = new Fleet(atOnce);
    const [dead, next] = await fleet.startAll('dead', 'next');
    await dead!.box.lock('db').configure({ onStale });
    const { token } = await dead!.box.lock('db').acquire({ holder: 'dead' });
    dead!.crash();
    await fleet.advance(TTL_MS + 1000);
    return { fleet, next: next!, token };
  }

  describe('a stale hold', () => {
    it.each(['retry', 'fail-fast', 'steal-stale'] as const)(
      'is taken by "%s", and the token goes on',
      async (strategy) => {
        const { next, token } = await stale('reclaim');
        const hold = await next.box.lock('db').acquire({ strategy });
        expect(hold.token).toBeGreaterThan(token);
        expect((await next.box.lock('db').inspect()).holders).toHaveLength(1);
      },
    );

    it('is taken by a try that says from whom', async () => {
      const { next, token } = await stale('reclaim');
      const attempt = await next.box.lock('db').tryAcquire({ holder: 'next' });
      expect(attempt).toMatchObject({ kind: 'reclaimed', from: [{ holder: 'dead', token }], hold: { holder: 'next' } });
    });

    it('is reported as reclaimed, then as acquired', async () => {
      const { next } = await stale('reclaim');
      const told: string[] = [];
      await next.box.on('lock:*', ({ type, holder }) => void told.push(`${type} ${holder}`));
      await next.box.lock('db').acquire({ holder: 'next' });
      await settled();
      expect(told).toEqual(['lock:reclaimed dead', 'lock:acquired next']);
    });

    it('goes to the head of the queue and to no newcomer', async () => {
      const fleet = new Fleet(atOnce);
      const [dead, patient, newcomer] = await fleet.startAll('dead', 'patient', 'newcomer');
      await dead!.box.lock('db').acquire({ holder: 'dead' });
      const waiting = patient!.box.lock('db').acquire({ holder: 'patient' });
      await settled();
      dead!.crash();
      // The one who waits does not hear of it at first.
      patient!.link.holdNews();
      await fleet.advance(TTL_MS + 1000);
      const attempt = await newcomer!.box.lock('db').tryAcquire();
      expect(attempt.kind).toBe('busy');
      patient!.link.deliverNews();
      expect((await waiting).isValid).toBe(true);
    });
  });

  describe('a stale hold that must not change hands without a person', () => {
    it('is not taken by "fail-fast" or a try', async () => {
      const { next } = await stale('alert');
      expect(await next.box.lock('db').tryAcquire()).toMatchObject({ kind: 'busy' });
      expect(await refusalOf(next.box.lock('db').acquire({ strategy: 'fail-fast' }))).toMatchObject({ kind: 'busy' });
      expect(await next.box.lock('db').isHeldBy('dead')).toBe(true);
    });

    it('is waited for by "retry", until a person allows it', async () => {
      const { fleet, next } = await stale('alert');
      const waiting = next.box.lock('db').acquire({ strategy: 'retry' });
      await fleet.advance(120_000);
      expect(await isPending(waiting)).toBe(true);
      await next.box.lock('db').configure({ onStale: 'reclaim' });
      expect((await waiting).isValid).toBe(true);
    });

    it('is taken by "steal-stale"', async () => {
      const { next } = await stale('alert');
      expect(await next.box.lock('db').tryAcquire({ strategy: 'steal-stale' })).toMatchObject({ kind: 'reclaimed' });
      expect((await next.box.lock('db').inspect()).onStale).toBe('alert');
    });

    it('is taken by a "steal-stale" that waited for it to become stale', async () => {
      const fleet = new Fleet(atOnce);
      const [dead, next] = await fleet.startAll('dead', 'next');
      await dead!.box.lock('db').configure({ onStale: 'alert' });
      await dead!.box.lock('db').acquire();
      const waiting = next!.box.lock('db').acquire({ strategy: 'steal-stale' });
      await settled();
      dead!.crash();
      await fleet.advance(TTL_MS + 1000);
      expect((await waiting).isValid).toBe(true);
    });

    it('is not freed by maintenance, which warns of it once', async () => {
      const { next } = await stale('alert');
      const told: string[] = [];
      await next.box.on('lock:stale', ({ holder }) => void told.push(holder));
      expect(await next.box.maintain()).toMatchObject({ reclaimed: 0 });
      await next.box.maintain();
      await settled();
      expect(told).toEqual(['dead']);
      expect(await next.box.lock('db').isHeldBy('dead')).toBe(true);
    });
  });

  describe('"steal-stale"', () => {
    it('does not take from the living', async () => {
      const fleet = new Fleet(atOnce);
      const [one, other] = await fleet.startAll('one', 'other');
      const hold = await one!.box.lock('db').acquire();
      expect(await other!.box.lock('db').tryAcquire({ strategy: 'steal-stale' })).toMatchObject({ kind: 'busy' });
      expect(hold.isValid).toBe(true);
    });
  });

  describe('"force"', () => {
    it('takes from the living, past all waiters, and the old holder learns who and why', async () => {
      const fleet = new Fleet(atOnce);
      const [one, other, admin] = await fleet.startAll('one', 'other', 'admin');
      const hold = await one!.box.lock('db').acquire({ holder: 'one' });
      const { signal } = hold;
      const waiting = other!.box.lock('db').acquire();
      await settled();
      const forced = await admin!.box.lock('db').acquire({ strategy: 'force', holder: 'user:anna', reason: 'outage' });
      await settled();
      expect(lossOf(signal)).toMatchObject({ why: 'forced', by: 'user:anna', reason: 'outage' });
      expect(lossOf(signal)?.message).toContain('it was taken by user:anna (outage)');
      expect(await isPending(waiting)).toBe(true);
      expect(forced.token).toBeGreaterThan(hold.token);
      await forced.release();
      expect((await waiting).isValid).toBe(true);
    });

    it('takes within one process too', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const hold = await box.lock('db').acquire({ holder: 'one' });
      const { signal } = hold;
      await box.lock('db').acquire({ strategy: 'force', holder: 'user:anna', reason: 'outage' });
      expect(lossOf(signal)).toMatchObject({ why: 'forced', by: 'user:anna' });
      expect(await hold.release()).toEqual({ kind: 'already-lost', why: 'forced' });
      expect(await box.lock('db').isHeldBy('user:anna')).toBe(true);
    });

    it('is refused without a reason', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('admin');
      await box.lock('db').acquire({ holder: 'one' });
      for (const reason of [undefined, '']) {
        const options = { strategy: 'force' as const, holder: 'user:anna', ...(reason !== undefined && { reason }) };
        expect(await errorOf(box.lock('db').acquire(options))).toMatchObject({
          code: 'invalid',
          message: expect.stringContaining('reason') as string,
        });
      }
      expect(await box.lock('db').isHeldBy('one')).toBe(true);
    });

    it('is recorded with its reason', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('admin');
      const told: unknown[] = [];
      await box.on('lock:forced', (event) => void told.push(event));
      await box.lock('db').acquire({ holder: 'one' });
      await box.lock('db').acquire({ strategy: 'force', holder: 'user:anna', reason: 'outage' });
      await settled();
      expect(told).toMatchObject([{ holder: 'one', by: 'user:anna', reason: 'outage', resource: 'lock/db' }]);
    });

    it('takes no more slots of a semaphore than it needs, from the youngest first', async () => {
      const fleet = new Fleet(atOnce);
      const [one, admin] = await fleet.startAll('one', 'admin');
      const pool = one!.box.semaphore('pool', { capacity: 3 });
      const holds = [await pool.acquire(), await pool.acquire(), await pool.acquire()];
      const signals = holds.map(({ signal }) => signal);
      await admin!.box
        .semaphore('pool')
        .acquire({ strategy: 'force', holder: 'user:anna', reason: 'outage', weight: 1 });
      await settled();
      expect(signals.map((signal) => lossOf(signal)?.why)).toEqual([undefined, undefined, 'forced']);
      expect(await pool.usedSlots()).toBe(3);
    });
  });

  describe('breaking a lock', () => {
    it('ends every hold, tells each why, and lets the next in', async () => {
      const fleet = new Fleet(atOnce);
      const [one, other, admin] = await fleet.startAll('one', 'other', 'admin');
      const readers = [
        await one!.box.lock('db').acquire({ mode: 'shared' }),
        await other!.box.lock('db').acquire({ mode: 'shared' }),
      ];
      const signals = readers.map(({ signal }) => signal);
      const waiting = admin!.box.lock('db').acquire();
      await settled();
      expect(await admin!.box.lock('db').break({ holder: 'user:anna', reason: 'stuck' })).toEqual({ broken: 2 });
      await settled();
      for (const signal of signals) {
        expect(lossOf(signal)).toMatchObject({ why: 'forced', by: 'user:anna', reason: 'stuck' });
      }
      expect((await waiting).isValid).toBe(true);
    });

    it('that is free breaks nothing', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('admin');
      expect(await box.lock('db').break({ holder: 'user:anna', reason: 'stuck' })).toEqual({ broken: 0 });
    });
  });

  describe('a longest time to hold', () => {
    it('ends a hold although its process renews, and says so before anybody else has it', async () => {
      const fleet = new Fleet(atOnce);
      const [one, other] = await fleet.startAll('one', 'other');
      const hold = await one!.box.lock('db').acquire({ maxHoldMs: 60_000 });
      const order: string[] = [];
      hold.signal.addEventListener('abort', () => order.push('told'));
      const waiting = other!.box
        .lock('db')
        .acquire()
        .then((next) => {
          order.push('granted');
          return next;
        });
      await fleet.advance(50_000);
      expect(hold.isValid).toBe(true);
      await fleet.advance(5_000);
      expect(order).toEqual(['told']);
      expect(lossOf(hold.signal)?.why).toBe('expired');
      await fleet.advance(10_000);
      expect(order).toEqual(['told', 'granted']);
      expect((await waiting).token).toBeGreaterThan(hold.token);
    });

    it('ends nothing else that its process holds', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('one');
      const other = await box.lock('other').acquire();
      await box.lock('db').acquire({ maxHoldMs: 1000 });
      await fleet.advance(5000);
      expect(other.isValid).toBe(true);
    });

    it('does not begin while its holder waits', async () => {
      const fleet = new Fleet(atOnce);
      const [one, other] = await fleet.startAll('one', 'other');
      const hold = await one!.box.lock('db').acquire();
      const waiting = other!.box.lock('db').acquire({ maxHoldMs: 10_000 });
      await fleet.advance(60_000);
      await hold.release();
      const next = await waiting;
      await fleet.advance(8000);
      expect(next.isValid).toBe(true);
      await fleet.advance(2000);
      expect(next.isValid).toBe(false);
    });

    it('does not end a hold that was released before, nor the one after it', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('one');
      const hold = await box.lock('db').acquire({ maxHoldMs: 1000 });
      await hold.release();
      const next = await box.lock('db').acquire();
      await fleet.advance(10_000);
      expect(hold.signal.aborted).toBe(false);
      expect(next.isValid).toBe(true);
      expect(await box.lock('db').isStale()).toBe(false);
    });

    it('holds for slots of a semaphore too', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('one');
      const pool = box.semaphore('pool', { capacity: 1 });
      const hold = await pool.acquire({ maxHoldMs: 1000 });
      const waiting = pool.acquire();
      await fleet.advance(1100);
      expect(lossOf(hold.signal)?.why).toBe('expired');
      expect((await waiting).isValid).toBe(true);
    });

    it('reaches a holder that overslept it as reclaimed, with the name of the next', async () => {
      const fleet = new Fleet(atOnce);
      const slow = await fleet.start('slow', { sessionTtlMs: 600_000 });
      const [next] = await fleet.startAll('next');
      const hold = await slow.box.lock('db').acquire({ maxHoldMs: 1000 });
      const { signal } = hold;
      slow.clock.stall();
      await fleet.advance(1100);
      await next!.box.lock('db').acquire({ holder: 'next' });
      await settled();
      expect(lossOf(signal)).toMatchObject({ why: 'reclaimed', by: 'next' });
    });
  });
});
