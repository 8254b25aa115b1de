import type { Semaphore, Signalbox } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { errorOf, isPending, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('a semaphore on $transport', ({ atOnce }) => {
  async function pool(capacity: number): Promise<{ fleet: Fleet; box: Signalbox; pool: Semaphore }> {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('process');
    const { box } = process!;
    return { fleet, box, pool: box.semaphore('pool', { capacity }) };
  }

  describe('a drain', () => {
    const by = { holder: 'ops', reason: 'the database moves' };

    it('lets others wait, refuses tries with its reason, and lets them in when it is undone elsewhere', async () => {
      const { fleet, pool: slots } = await pool(2);
      const [other] = await fleet.startAll('other');
      const there = other!.box.semaphore('pool');
      const held = await slots.acquire({ holder: 'a' });
      const { kind, drain } = await there.drain(by);
      expect([kind, drain.by]).toEqual(['drained', 'ops']);
      expect(await slots.tryAcquire()).toMatchObject({ kind: 'full', free: 0, drained: { by: 'ops' } });
      expect(await slots.tryAcquire({ strategy: 'force', reason: 'mine' })).toMatchObject({ ok: false, kind: 'full' });
      const waiting = slots.acquire({ holder: 'b' });
      await held.release();
      await settled();
      expect(await isPending(waiting)).toBe(true);
      expect(await slots.inspect()).toMatchObject({
        ...{ availableSlots: 0, usedSlots: 0, drained: { by: 'ops', reason: by.reason }, waiting: [{ holder: 'b' }] },
      });
      expect(await there.undrain({ holder: 'ops', revision: drain.revision + 1000 })).toMatchObject({
        kind: 'another-drain',
      });
      expect(await there.undrain({ holder: 'ops', revision: drain.revision })).toMatchObject({ kind: 'undrained' });
      expect((await waiting).slots).toEqual([0]);
      expect((await slots.inspect()).drained).toBeUndefined();
    });

    it('is refused without a reason, and its end with a revision that is none', async () => {
      const { pool: slots } = await pool(2);
      expect(await errorOf(slots.drain({ holder: 'ops' } as never))).toMatchObject({ code: 'invalid' });
      expect(await errorOf(slots.undrain({ holder: 'ops', revision: 1.5 }))).toMatchObject({
        message: expect.stringContaining('revision is 1.5'),
      });
    });
  });

  describe('slots', () => {
    it('are the lowest free ones, and stay the same while they are held', async () => {
      const { pool: slots } = await pool(5);
      const one = await slots.acquire({ weight: 2 });
      const two = await slots.acquire();
      const three = await slots.acquire({ weight: 2 });
      expect([one.slots, two.slots, three.slots]).toEqual([[0, 1], [2], [3, 4]]);
      await two.release();
      await one.release();
      const four = await slots.acquire({ weight: 3 });
      expect(four.slots).toEqual([0, 1, 2]);
      expect(three.slots).toEqual([3, 4]);
    });

    it.each([0, -1, 1.5])('of a weight of %s are refused, and are not waited for by mistake', async (weight) => {
      const { fleet, pool: slots } = await pool(2);
      const [other] = await fleet.startAll('other');
      const there = other!.box.semaphore('pool', { capacity: 2 });
      const held = await there.acquire({ weight: 2 });
      // Both in one write, which fails: nobody here has heard of the other process.
      const [waiting, mistaken] = [slots.acquire(), refusalOf(slots.acquire({ weight }))];
      expect(await mistaken).toMatchObject({ kind: 'impossible' });
      await settled();
      expect((await there.inspect()).waiting).toHaveLength(1);
      await held.release();
      expect((await waiting).slots).toEqual([0]);
    });

    it('are never more in use than there are, whatever many ask at once', async () => {
      const { pool: slots } = await pool(7);
      let used = 0;
      let most = 0;
      await Promise.all(
        Array.from({ length: 60 }, (_, place) => {
          const weight = (place % 4) + 1;
          return slots.run(
            async () => {
              used += weight;
              most = Math.max(most, used);
              await settled();
              used -= weight;
            },
            { weight },
          );
        }),
      );
      expect(most).toBe(7);
      expect(await slots.usedSlots()).toBe(0);
    });

    it('given to several processes are never the same', async () => {
      const fleet = new Fleet(atOnce);
      const processes = await fleet.startAll('one', 'two', 'three');
      const holds = await Promise.all(
        processes.map(({ box }) => box.semaphore('ports', { capacity: 6 }).acquire({ weight: 2 })),
      );
      expect(holds.flatMap(({ slots }) => slots).sort()).toEqual([0, 1, 2, 3, 4, 5]);
    });

    it('can be asked about', async () => {
      const { pool: slots } = await pool(5);
      expect([await slots.usedSlots(), await slots.canAcquire(1)]).toEqual([0, false]);
      await slots.acquire({ weight: 3, holder: 'me', reason: 'building', metadata: { job: 7 } });
      expect([await slots.usedSlots(), await slots.availableSlots()]).toEqual([3, 2]);
      expect([await slots.canAcquire(2), await slots.canAcquire(3)]).toEqual([true, false]);
      const waiting = slots.acquire({ weight: 4, holder: 'heavy' });
      await settled();
      // There is room for one, but not past those who wait.
      expect(await slots.canAcquire(1)).toBe(false);
      expect(await slots.inspect()).toMatchObject({
        name: 'pool',
        capacity: 5,
        usedSlots: 3,
        availableSlots: 2,
        onStale: 'reclaim',
        holders: [
          { holder: 'me', weight: 3, slots: [0, 1, 2], reason: 'building', metadata: { job: 7 }, isStale: false },
        ],
        waiting: [{ holder: 'heavy', weight: 4, priority: 0 }],
      });
      expect(await slots.staleHolders()).toEqual([]);
      expect(await isPending(waiting)).toBe(true);
    });

    it.each([0, -1, 1.5, Number.NaN])('that make no sense (%d) cannot be had', async (weight) => {
      const { pool: slots } = await pool(5);
      await (await slots.acquire()).release();
      expect(await slots.canAcquire(weight)).toBe(false);
    });

    it('of the dead are reported as stale, and given to the next', async () => {
      const fleet = new Fleet(atOnce);
      const [dead, next] = await fleet.startAll('dead', 'next');
      await dead!.box.semaphore('pool', { capacity: 2 }).acquire({ weight: 2, holder: 'dead' });
      const waiting = next!.box.semaphore('pool').acquire();
      await settled();
      expect(await isPending(waiting)).toBe(true);
      dead!.crash();
      await fleet.advance(TTL_MS + 1000);
      expect((await waiting).slots).toEqual([0]);
    });
  });

  describe('a try', () => {
    it('says how many are free, and who has the others', async () => {
      const { pool: slots } = await pool(3);
      await slots.acquire({ weight: 2, holder: 'worker:1', reason: 'building' });
      const attempt = await slots.tryAcquire({ weight: 2 });
      expect(attempt).toMatchObject({ kind: 'full', free: 1, holders: [{ holder: 'worker:1', weight: 2 }] });
      const error = await errorOf(slots.acquire({ weight: 2, strategy: 'fail-fast' }));
      expect((error as Error).message).toBe('semaphore/pool: only 1 free; held by worker:1 (building)');
    });

    it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 4])(
      'for %d of three slots is impossible',
      async (weight) => {
        const { fleet, pool: slots } = await pool(3);
        await (await slots.acquire()).release();
        const before = await fleet.revision();
        const attempt = await slots.tryAcquire({ weight });
        expect(attempt).toMatchObject({ kind: 'impossible', capacity: 3 });
        const error = await errorOf(slots.acquire({ weight }));
        expect(error).toMatchObject({ code: 'not-acquired', refusal: { kind: 'impossible' } });
        expect((error as Error).message).toContain(String(weight));
        expect(await fleet.revision()).toBe(before);
      },
    );

    it('that is impossible does not make a semaphore that nobody has used', async () => {
      const { fleet, pool: slots } = await pool(3);
      const before = await fleet.revision();
      expect(await slots.tryAcquire({ weight: 4 })).toMatchObject({ kind: 'impossible' });
      expect(await fleet.revision()).toBe(before);
    });
  });

  describe('growth', () => {
    it('adds to what the holder has: the weight is the total, the token stays', async () => {
      const { pool: slots } = await pool(5);
      const hold = await slots.acquire({ holder: 'me', weight: 2 });
      const attempt = await slots.tryAcquire({ holder: 'me', weight: 4 });
      expect(attempt).toMatchObject({ kind: 'increased', hold: { token: hold.token, weight: 4, slots: [0, 1, 2, 3] } });
      expect([hold.weight, hold.slots]).toEqual([4, [0, 1, 2, 3]]);
      expect(await slots.usedSlots()).toBe(4);
    });

    it('to what one has already changes nothing', async () => {
      const { pool: slots } = await pool(5);
      const hold = await slots.acquire({ holder: 'me', weight: 3 });
      const inner = await slots.tryAcquire({ holder: 'me', weight: 2 });
      expect(inner).toMatchObject({ kind: 'already-held', hold: { token: hold.token, weight: 3 } });
      if (inner.kind === 'already-held') expect(await inner.hold.release()).toEqual({ kind: 'still-held' });
      expect(await slots.usedSlots()).toBe(3);
      expect(hold.isValid).toBe(true);
    });

    it('waits for room, keeps what it has meanwhile, and passes nobody', async () => {
      const { pool: slots } = await pool(4);
      const hold = await slots.acquire({ holder: 'me', weight: 1 });
      const other = await slots.acquire({ holder: 'other', weight: 3 });
      const first = slots.acquire({ holder: 'first', weight: 2 });
      await settled();
      const growing = slots.acquire({ holder: 'me', weight: 2 });
      expect(await isPending(growing)).toBe(true);
      expect(hold.isValid).toBe(true);
      await other.release();
      expect((await first).slots).toHaveLength(2);
      expect((await growing).slots).toHaveLength(2);
      expect(hold.weight).toBe(2);
      expect(await slots.usedSlots()).toBe(4);
    });

    it('is released with the outer hold, as a whole', async () => {
      const { pool: slots } = await pool(5);
      const hold = await slots.acquire({ holder: 'me', weight: 1 });
      const grown = await slots.acquire({ holder: 'me', weight: 3 });
      expect(await grown.release()).toEqual({ kind: 'still-held' });
      expect(await hold.release()).toEqual({ kind: 'released' });
      expect(await slots.usedSlots()).toBe(0);
    });

    it('that is given up keeps what the holder had', async () => {
      const { fleet, pool: slots } = await pool(4);
      const hold = await slots.acquire({ holder: 'me', weight: 1 });
      const other = await slots.acquire({ holder: 'other', weight: 3 });
      const refused = refusalOf(slots.acquire({ holder: 'me', weight: 2, waitMs: 1000 }));
      await fleet.advance(1000);
      expect(await refused).toMatchObject({ kind: 'timed-out' });
      await other.release();
      await settled();
      expect([hold.weight, await slots.usedSlots(), hold.isValid]).toEqual([1, 1, true]);
    });

    it('beyond the capacity is impossible', async () => {
      const { pool: slots } = await pool(4);
      await slots.acquire({ holder: 'me', weight: 1 });
      expect(await slots.tryAcquire({ holder: 'me', weight: 5 })).toMatchObject({ kind: 'impossible' });
    });

    it('asked for together with a lock is known to the outer hold', async () => {
      const { box, pool: slots } = await pool(4);
      const hold = await slots.acquire({ holder: 'me', weight: 1 });
      await box.acquireAll([{ semaphore: 'pool', weight: 3 }, { lock: 'db' }], { holder: 'me' });
      expect([hold.weight, hold.slots]).toEqual([3, [0, 1, 2]]);
    });
  });

  describe('the capacity', () => {
    it('has to be named by the first who uses it', async () => {
      const { box } = await pool(1);
      const error = await errorOf(box.semaphore('new').acquire());
      expect((error as Error).message).toContain('capacity must be named');
      await (await box.semaphore('new', { capacity: 2 }).acquire()).release();
      expect((await box.semaphore('new').acquire()).isValid).toBe(true);
    });

    it('named differently by two callers is an error that says both', async () => {
      const { box, pool: slots } = await pool(3);
      await slots.acquire();
      expect(await box.semaphore('pool', { capacity: 5 }).tryAcquire()).toEqual({
        ok: false,
        kind: 'capacity-mismatch',
        capacity: 3,
        asked: 5,
      });
      const error = await errorOf(box.semaphore('pool', { capacity: 5 }).acquire());
      expect((error as Error).message).toMatch(/the capacity is 3, not 5/);
    });

    it('may shrink in the same write as a grant, below what is then in use', async () => {
      const { pool: slots } = await pool(2);
      const first = await slots.acquire();
      const [second] = await Promise.all([slots.acquire(), slots.resize(1)]);
      expect([first.slots, second.slots]).toEqual([[0], [1]]);
      expect(await slots.inspect()).toMatchObject({ capacity: 1, usedSlots: 2 });
    });

    it('can grow, and those who wait come in', async () => {
      const { pool: slots, box } = await pool(1);
      await slots.acquire();
      const waiting = [box.semaphore('pool').acquire(), box.semaphore('pool').acquire()];
      await settled();
      await slots.resize(3);
      expect((await Promise.all(waiting)).map((hold) => hold.slots)).toEqual([[1], [2]]);
      expect((await slots.inspect()).capacity).toBe(3);
    });

    it('can shrink below what is in use, which takes effect as holders leave', async () => {
      const { box, pool: slots } = await pool(4);
      const big = await slots.acquire({ weight: 3 });
      const small = await slots.acquire({ weight: 1 });
      await slots.resize(2);
      expect([big.isValid, await slots.usedSlots(), await slots.availableSlots()]).toEqual([true, 4, 0]);
      await small.release();
      const waiting = box.semaphore('pool').acquire();
      expect(await isPending(waiting)).toBe(true);
      await big.release();
      expect((await waiting).slots).toEqual([0]);
    });

    it('that shrinks below what somebody waits for tells it that it waits in vain', async () => {
      const { box, pool: slots } = await pool(4);
      await slots.acquire({ weight: 2 });
      const waiting = box.semaphore('pool').acquire({ weight: 4 });
      await settled();
      await slots.resize(3);
      expect(await refusalOf(waiting)).toMatchObject({ kind: 'impossible', capacity: 3 });
    });

    it('can be set before anybody uses it', async () => {
      const { box } = await pool(1);
      await box.semaphore('new').resize(3);
      expect((await box.semaphore('new').acquire({ weight: 3 })).weight).toBe(3);
    });

    it('is not spoilt by configuring what nobody has used yet', async () => {
      const { pool: slots } = await pool(3);
      await slots.configure({ onStale: 'alert' });
      expect(await slots.tryAcquire({ weight: 2 })).toMatchObject({ kind: 'acquired' });
      expect(await slots.inspect()).toMatchObject({ capacity: 3, onStale: 'alert' });
    });

    it.each([0, -1, 2.5, Number.NaN, '3' as never])('cannot be %s', async (capacity) => {
      const { box, pool: slots } = await pool(3);
      expect(() => box.semaphore('other', { capacity })).toThrow(/capacity.*expected a whole number/);
      expect(await errorOf(slots.resize(capacity))).toMatchObject({ code: 'invalid' });
    });
  });

  describe('the queue', () => {
    it('lets a higher priority go first', async () => {
      const { pool: slots } = await pool(1);
      const hold = await slots.acquire();
      const order: string[] = [];
      const all = [slots.run(() => void order.push('normal'))];
      await settled();
      all.push(slots.run(() => void order.push('urgent'), { priority: 10 }));
      await settled();
      await hold.release();
      await Promise.all(all);
      expect(order).toEqual(['urgent', 'normal']);
    });

    it('serves one of higher priority that the releasing process had not heard of', async () => {
      const fleet = new Fleet(atOnce);
      const [here, there] = await fleet.startAll('here', 'there');
      const slots = here!.box.semaphore('pool', { capacity: 2 });
      const [one] = [await slots.acquire(), await slots.acquire()];
      const heavy = slots.acquire({ weight: 2 });
      await settled();
      const urgent = there!.box.semaphore('pool').acquire({ priority: 10 });
      await settled();
      await one.release();
      expect(await isPending(urgent)).toBe(false);
      expect(await isPending(heavy)).toBe(true);
    });
  });
});
