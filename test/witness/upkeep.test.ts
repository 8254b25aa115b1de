// What maintenance does with the record of the witness.

import type { Signalbox, SignalboxEvent } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { faultyStore } from '../../src/testing/faulty-store.ts';
import { ScriptedFaults } from '../../src/testing/scripted-faults.ts';
import { TestClock } from '../../src/testing/test-clock.ts';
import { always, openMemory, prefixed, readRange, Value } from '../../src/store/index.ts';
import { found, keysOf, opening, use } from './boxes.ts';
import { signer } from './history.ts';

describe('maintenance', () => {
  function hearing(box: Signalbox): { events: SignalboxEvent[]; on: Promise<unknown> } {
    const events: SignalboxEvent[] = [];
    return { events, on: box.on('witness:*', (event) => void events.push(event)) };
  }

  async function settled(): Promise<void> {
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  }

  it('warns once when the record fills, and trims it when it is full', async () => {
    const box = await opening(openMemory());
    const { events, on } = hearing(box);
    await on;
    await box.witness.configure({ mostEntries: 10, checkpointMs: 0 });
    await use(box, 'main', 4);
    await box.maintain();
    await box.maintain();
    await settled();
    expect(events).toMatchObject([{ type: 'witness:filling', entries: 9, filled: 90 }]);
    await use(box, 'main', 1);
    await box.maintain();
    await settled();
    expect(events.slice(1)).toMatchObject([{ type: 'witness:trimmed', trimmed: 11, entries: 0, checkpoint: 1 }]);
    expect((await box.witness.verify()).finding).toBeUndefined();
  });

  it.each([
    ['was trimmed by hand', async (box: Signalbox) => void (await box.witness.checkpoint(), await box.witness.trim())],
    ['may be larger now', async (box: Signalbox) => void (await box.witness.configure({ mostEntries: 100 }))],
  ])('no longer warns of a record that %s', async (_, relieve) => {
    const box = await opening(openMemory());
    await box.witness.configure({ mostEntries: 10, checkpointMs: 0 });
    await use(box, 'main', 4);
    await box.maintain();
    expect((await box.witness.warnings()).isFilling).toBe(true);
    await relieve(box);
    await box.maintain();
    expect((await box.witness.warnings()).isFilling).toBe(false);
  });

  it('seals the record when the time has passed, and only if there is something new', async () => {
    const clock = new TestClock(1_800_000_000_000);
    const box = await opening(openMemory({ clock }), { clock, maintenanceMs: 86_400_000 });
    await box.witness.configure({ checkpointMs: 60_000 });
    const sealedAfter = async (ms: number): Promise<readonly number[]> => {
      await clock.advance(ms);
      await box.maintain();
      return (await box.witness.checkpoints()).map(({ number }) => number);
    };
    expect(await sealedAfter(0)).toEqual([1]);
    await use(box, 'main', 2);
    expect(await sealedAfter(59_999)).toEqual([1]);
    expect(await sealedAfter(1)).toEqual([1, 2]);
    expect(await sealedAfter(60_000)).toEqual([1, 2]);
    expect(await box.witness.verify()).toMatchObject({ checkpoints: 2, covered: 5 });
  });

  it('names a damaged chain once, and seals and trims the others', async () => {
    const store = openMemory();
    const box = await opening(store);
    const { events, on } = hearing(box);
    await on;
    await use(box, 'bad', 2);
    await use(box, 'good', 2);
    const [key = ''] = await keysOf(store, 'witness/lock/bad/');
    await store.transaction(always([{ do: 'put', key, value: Value.text('no entry') }]));
    await box.witness.configure({ mostEntries: 5, checkpointMs: 0 });
    await box.maintain();
    await box.maintain();
    await settled();
    expect(events.filter(({ type }) => type === 'witness:damaged')).toMatchObject([{ chain: 'lock/bad' }]);
    expect(await keysOf(store, 'witness/lock/good/')).toEqual([]);
    expect(await keysOf(store, 'witness/lock/bad/')).toHaveLength(4);
  });

  it('signs, anchors and archives in the process that can, and in no other', async () => {
    const store = openMemory();
    const { sign } = signer();
    const anchored: number[] = [];
    const archived: string[][] = [];
    const keeper = await opening(store, {
      keepsRecord: {
        sign,
        anchor: async ({ number }) => void anchored.push(number),
        archive: async (some) => {
          const all: string[] = [];
          for await (const line of some) all.push(line);
          archived.push(all);
        },
      },
    });
    const other = await opening(store);
    await other.witness.configure({ mostEntries: 3, checkpointMs: 1000 });
    await use(other, 'main', 2);
    await keeper.maintain();
    expect(anchored).toEqual([1]);
    expect(archived.map((all) => found(all))).toEqual([undefined]);
    await use(other, 'main', 2);
    await other.maintain();
    expect((await other.witness.size()).entries).toBe(4);
    await keeper.maintain();
    expect((await other.witness.size()).entries).toBe(0);
    expect((await other.witness.checkpoints()).every(({ signature }) => signature !== undefined)).toBe(true);
  });

  it('does not stop the rounds for the store while an archive hangs', async () => {
    const clock = new TestClock();
    const store = openMemory({ clock });
    let archives = 0;
    const archive = (): Promise<void> => {
      archives += 1;
      return new Promise(() => undefined);
    };
    const box = await opening(store, { clock, maintains: true, maintenanceMs: 1000, keepsRecord: { archive } });
    await box.witness.configure({ mostEntries: 3 });
    await use(box, 'main', 2);
    await clock.advance(10_000);
    expect(archives).toBe(1);
    const events: string[] = [];
    await box.on('lock:stale', ({ resource }) => void events.push(resource));
    await box.lock('left').acquireDetached({ holder: 'gone', ttlMs: 2000 });
    await box.lock('left').configure({ onStale: 'alert' });
    await clock.advance(30_000);
    expect(events).toEqual(['lock/left']);
  });

  it('estimates the bytes from entries of all chains, however small those of the first ones are', async () => {
    const store = openMemory();
    const box = await opening(store);
    const enter = async (component: string, payload: string): Promise<void> => {
      for (let i = 0; i < 120; i++) await box.witness.record({ event: 'x:y', component, payload });
    };
    await enter('a', '');
    await enter('z', 'x'.repeat(900));
    const { pairs } = await readRange(store, prefixed('witness/'));
    const real = pairs.reduce((sum, { key, value }) => sum + key.length + value.text.length, 0);
    const { entries, bytes } = await box.witness.size();
    expect(entries).toBe(240);
    expect(bytes).toBeGreaterThan(0.9 * real);
    expect(bytes).toBeLessThan(1.1 * real);
  });

  it('knows the bytes of what a checkpoint covers, wherever in a chain the large entries are', async () => {
    const store = openMemory();
    const box = await opening(store);
    for (const payload of ['', 'x'.repeat(900)])
      for (let i = 0; i < 120; i++) await box.witness.record({ event: 'x:y', component: 'a', payload });
    await box.witness.checkpoint();
    const real = (await readRange(store, prefixed('witness/'))).pairs.reduce(
      (sum, { key, value }) => sum + key.length + value.text.length,
      0,
    );
    const { bytes } = await box.witness.size();
    expect(bytes).toBeGreaterThan(0.9 * real);
  });

  describe('whose archive or anchor fails', () => {
    const boot = 1_800_000_000_000;

    /** A keeper on a clock that stands still until the test moves it. */
    async function failing(step: 'anchor' | 'archive') {
      const clock = new TestClock(boot);
      const tries: number[] = [];
      let isBroken = true;
      const attempt = (): Promise<void> => {
        tries.push(clock.now() - boot);
        return isBroken ? Promise.reject(new Error('the disk is full')) : Promise.resolve();
      };
      const store = openMemory({ clock });
      // Another process uses the store once this one is closed.
      const shared = { ...faultyStore(store, new ScriptedFaults()), close: () => Promise.resolve() };
      const box = await opening(shared, {
        clock,
        maintenanceMs: 86_400_000,
        keepsRecord: { [step]: attempt },
      });
      const heard = hearing(box);
      await heard.on;
      await box.witness.configure({ mostEntries: 3, checkpointMs: 0 });
      await use(box, 'main', 2);
      /** Maintenance, every half minute. */
      const rounds = async (times: number): Promise<void> => {
        for (let i = 0; i < times; i++) {
          await box.maintain().catch(() => undefined);
          await clock.advance(30_000);
        }
      };
      return { box, store, clock, events: heard.events, tries, rounds, repair: () => void (isBroken = false) };
    }

    it.each(['archive', 'anchor'] as const)('tries the %s again later each time, and says so once', async (step) => {
      const { box, events, tries, rounds } = await failing(step);
      await rounds(40);
      expect(tries.map((at) => at / 60_000)).toEqual([0, 1, 3, 7, 15]);
      expect(await box.witness.checkpoints()).toHaveLength(5);
      await settled();
      const said = { type: 'witness:failed', step, why: 'the disk is full', checkpoint: 1 };
      expect(events.filter(({ type }) => type === 'witness:failed')).toMatchObject([said]);
      expect((await box.witness.size()).failing).toBe(`${step}: the disk is full`);
      expect((await box.witness.size()).entries).toBeGreaterThan(3);
    });

    it('has warned since the same time, whatever fails meanwhile', async () => {
      const { box, rounds } = await failing('archive');
      await rounds(2);
      const { isFilling, at } = await box.witness.warnings();
      expect({ isFilling, at }).toEqual({ isFilling: true, at: boot + 30_000 });
      await rounds(5);
      expect(await box.witness.warnings()).toEqual({ isFilling: true, damaged: [], at });
    });

    it.each(['archive', 'anchor'] as const)('has nothing more to say once nobody asks for the %s', async (step) => {
      const { box, store, clock, rounds } = await failing(step);
      await rounds(1);
      await box.close();
      const other = await opening(store, { clock, maintenanceMs: 86_400_000 });
      await other.maintain();
      const { entries, failing: why } = await other.witness.size();
      expect({ entries, why }).toEqual({ entries: 0, why: undefined });
    });

    it('trims once it works again, and has nothing more to say', async () => {
      const { box, rounds, repair } = await failing('archive');
      await rounds(1);
      repair();
      await rounds(3);
      const { entries, failing: why } = await box.witness.size();
      expect({ entries, why }).toEqual({ entries: 0, why: undefined });
    });
  });

  it('that finds nothing to trim in a full record tries again later each time, and says so once', async () => {
    const boot = 1_800_000_000_000;
    const clock = new TestClock(boot);
    const store = openMemory({ clock });
    const archived: number[] = [];
    const box = await opening(store, {
      clock,
      maintenanceMs: 86_400_000,
      keepsRecord: { archive: async () => void archived.push((clock.now() - boot) / 60_000) },
    });
    const { events, on } = hearing(box);
    await on;
    await use(box, 'bad', 4);
    const damage = await keysOf(store, 'witness/lock/bad/');
    await store.transaction(always([{ do: 'put', key: damage[0] ?? '', value: Value.text('no entry') }]));
    await box.witness.configure({ mostEntries: 5, checkpointMs: 0 });
    for (let round = 0; round < 16; round++) {
      await box.maintain();
      await clock.advance(30_000);
    }
    await settled();
    // The first round still trims the entry of the setting. The second finds nothing, and then the pauses begin.
    expect(archived).toEqual([0, 0.5, 1.5, 3.5, 7.5]);
    expect(events.filter(({ type }) => type === 'witness:failed')).toMatchObject([{ step: 'trim' }]);
    expect((await box.witness.size()).failing).toMatch(/^trim: the record is full/);
    await box.witness.configure({ mostEntries: 100 });
    await box.maintain();
    expect((await box.witness.size()).failing).toBeUndefined();
  });
});
