import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports, TTL_MS } from '../support/fleet.ts';
import { isPending, settled } from '../support/outcome.ts';

const ROUND_MS = 30_000;

/** How often a process has gone through all records. */
function sweeps({ link }: Process): number {
  const isSweep = (operation: { do: string; key?: string; limit?: number | undefined }): boolean =>
    operation.do === 'read' && operation.key === 'r/' && operation.limit !== undefined;
  return link.asked.filter(({ transaction }) => transaction.success.some(isSweep)).length;
}

describe.each(transports)('maintenance on $transport', ({ atOnce }) => {
  it('frees what the dead left behind, although nobody asks for it', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, keeper] = await fleet.startAll('dead', 'keeper');
    const told: string[] = [];
    await keeper!.box.on('lock:*', ({ type, holder }) => void told.push(`${type} ${holder}`));
    await dead!.box.lock('db').acquire({ holder: 'dead' });
    dead!.crash();
    await fleet.advance(TTL_MS + 2 * ROUND_MS);
    expect(await keeper!.box.lock('db').isFree()).toBe(true);
    expect(told).toEqual(['lock:acquired dead', 'lock:stale dead', 'lock:reclaimed dead']);
  });

  it('frees slots of the dead too', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, keeper] = await fleet.startAll('dead', 'keeper');
    await dead!.box.semaphore('pool', { capacity: 2 }).acquire();
    dead!.crash();
    await fleet.advance(TTL_MS + 2 * ROUND_MS);
    expect(await keeper!.box.semaphore('pool').usedSlots()).toBe(0);
  });

  it('is done by one process of many, and by another once that one is gone', async () => {
    const fleet = new Fleet(atOnce);
    const processes = await fleet.startAll('one', 'two', 'three');
    await fleet.advance(4 * ROUND_MS);
    const busy = processes.filter((process) => sweeps(process) > 0);
    expect(busy).toHaveLength(1);
    const [maintainer] = busy;
    const rest = processes.filter((process) => process !== maintainer);
    maintainer!.crash();
    await fleet.advance(TTL_MS + 3 * ROUND_MS);
    expect(rest.filter((process) => sweeps(process) > 0)).toHaveLength(1);
  });

  it('only warns, and once, where freeing was not wanted', async () => {
    const fleet = new Fleet(atOnce);
    const [dead] = await fleet.startAll('dead');
    const keeper = await fleet.start('keeper', { reclaim: false });
    await keeper.box.semaphore('unused').tryAcquire();
    const told: string[] = [];
    await keeper.box.on('lock:*', ({ type }) => void told.push(type));
    await dead!.box.lock('db').acquire({ holder: 'dead' });
    dead!.crash();
    await fleet.advance(TTL_MS + 5 * ROUND_MS);
    expect(await keeper.box.maintain()).toMatchObject({ reclaimed: 0 });
    expect(await keeper.box.lock('db').isHeldBy('dead')).toBe(true);
    expect(told).toEqual(['lock:acquired', 'lock:stale']);
  });

  it('says what it did', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, keeper] = await fleet.startAll('dead', 'keeper');
    await dead!.box.lock('a').acquire();
    await dead!.box.lock('b').acquire();
    await keeper!.box.lock('c').acquire();
    expect(await keeper!.box.maintain()).toEqual({
      records: 3,
      warned: 0,
      reclaimed: 0,
      forgotten: 0,
      requeued: 0,
      forgottenTasks: 0,
      stale: [],
      malformed: [],
    });
    dead!.crash();
    await fleet.advance(TTL_MS + 1000);
    expect(await keeper!.box.maintain()).toMatchObject({ records: 3, warned: 2, reclaimed: 2 });
  });

  it('does not warn of the living, even of those it has not heard of yet', async () => {
    const fleet = new Fleet(atOnce);
    const [keeper] = await fleet.startAll('keeper');
    const told: string[] = [];
    await keeper!.box.on('lock:stale', ({ holder }) => void told.push(holder));
    keeper!.link.holdNews();
    const [fresh] = await fleet.startAll('fresh');
    const hold = await fresh!.box.lock('db').acquire();
    expect(await keeper!.box.maintain()).toMatchObject({ warned: 0, reclaimed: 0 });
    keeper!.link.deliverNews();
    await settled();
    expect(told).toEqual([]);
    expect(hold.isValid).toBe(true);
  });

  it('serves those who wait although a watch has fallen silent', async () => {
    const fleet = new Fleet(atOnce);
    const [holder, deaf] = await fleet.startAll('holder', 'deaf');
    const hold = await holder!.box.lock('db').acquire();
    const waiting = deaf!.box.lock('db').acquire();
    await settled();
    deaf!.link.holdNews();
    await hold.release();
    expect(await isPending(waiting)).toBe(true);
    await fleet.advance(ROUND_MS + 1000);
    expect((await waiting).isValid).toBe(true);
  });

  describe('forgets', () => {
    it('locks that are free and older than every process, and their tokens go on', async () => {
      const fleet = new Fleet(atOnce);
      const [old] = await fleet.startAll('old');
      const tokens: number[] = [];
      for (const name of ['a', 'b', 'c']) {
        const hold = await old!.box.lock(name).acquire();
        tokens.push(hold.token);
        await hold.release();
      }
      await old!.box.close();
      const [next] = await fleet.startAll('next');
      expect(await next!.box.maintain()).toMatchObject({ records: 3, forgotten: 3 });
      expect(await next!.box.maintain()).toMatchObject({ records: 0 });
      for (const [place, name] of ['a', 'b', 'c'].entries()) {
        expect((await next!.box.lock(name).acquire()).token).toBeGreaterThan(tokens[place] as number);
      }
    });

    it('no lock whose last token a living holder could fall below', async () => {
      const fleet = new Fleet(atOnce);
      const [sleepy, busy] = await fleet.startAll('sleepy', 'busy');
      // The sleepy one hears nothing of what goes on, so it knows only the revision it began at.
      sleepy!.link.holdNews();
      let token = 0;
      for (let time = 0; time < 20; time++) {
        const hold = await busy!.box.lock('db').acquire();
        token = hold.token;
        await hold.release();
      }
      await busy!.box.maintain();
      expect((await sleepy!.box.lock('db').acquire()).token).toBeGreaterThan(token);
    });

    it('no lock whose last token is ahead of the store, even if nobody is left', async () => {
      const fleet = new Fleet(atOnce);
      const [old] = await fleet.startAll('old');
      const writer = await old!.box.lock('db').acquire();
      // Fifty readers come in with one write: fifty tokens, one revision.
      const reading = Array.from({ length: 50 }, () => old!.box.lock('db').acquire({ mode: 'shared' }));
      await settled();
      await writer.release();
      const readers = await Promise.all(reading);
      const last = Math.max(...readers.map(({ token }) => token));
      await old!.box.lock('db').break({ holder: 'user:anna', reason: 'done' });
      await old!.box.close();
      await fleet.advance(60_000);

      const keeper = await fleet.start('keeper');
      await keeper.box.maintain();
      expect((await keeper.box.lock('db').acquire()).token).toBeGreaterThan(last);
    });

    it('nothing that is held, waited for, or set to need a person', async () => {
      const fleet = new Fleet(atOnce);
      const [old, next] = await fleet.startAll('old', 'next');
      await next!.box.lock('held').acquire();
      await (await old!.box.lock('alert').acquire()).release();
      await old!.box.lock('alert').configure({ onStale: 'alert' });
      await (await old!.box.semaphore('pool', { capacity: 3 }).acquire()).release();
      await old!.box.close();
      const [later] = await fleet.startAll('later');
      await later!.box.maintain();
      expect((await later!.box.lock('alert').inspect()).onStale).toBe('alert');
      expect((await later!.box.semaphore('pool').inspect()).capacity).toBe(3);
      expect(await later!.box.lock('held').isFree()).toBe(false);
    });
  });

  it('leaves waits and holds of a quiet fleet alone, hour after hour', async () => {
    const fleet = new Fleet(atOnce);
    const [holder, waiter] = await fleet.startAll('holder', 'waiter');
    const hold = await holder!.box.lock('db').acquire();
    const waiting = waiter!.box.lock('db').acquire();
    await fleet.advance(3_600_000);
    expect(hold.isValid).toBe(true);
    expect(await isPending(waiting)).toBe(true);
    expect((await holder!.box.lock('db').inspect()).waiting).toHaveLength(1);
    await hold.release();
    expect((await waiting).isValid).toBe(true);
  });
});
