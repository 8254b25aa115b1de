import type { Signalbox } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

describe.each(transports)('a long queue on $transport', ({ atOnce }) => {
  it('of a thousand in one process is served in order', async () => {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('process');
    const { box } = process!;
    const hold = await box.lock('db').acquire();
    const order: number[] = [];
    const all = Array.from({ length: 1000 }, (_, place) => box.lock('db').run(() => void order.push(place)));
    await settled();
    expect((await box.lock('db').inspect()).waiting).toHaveLength(1000);
    await hold.release();
    await Promise.all(all);
    expect(order).toEqual(Array.from({ length: 1000 }, (_, place) => place));
  });

  it('may share one signal of the caller, which Node does not take for a leak', async () => {
    const warnings: Error[] = [];
    const heard = (warning: Error): void => {
      // Of others that are loaded at that moment, others may warn.
      if (warning.name === 'MaxListenersExceededWarning') warnings.push(warning);
    };
    process.on('warning', heard);
    const [one] = await new Fleet(atOnce).startAll('process');
    const hold = await one!.box.lock('db').acquire();
    const over = new AbortController();
    const all = Array.from({ length: 20 }, () => one!.box.lock('db').acquire({ signal: over.signal }));
    await settled();
    over.abort();
    await Promise.allSettled(all);
    await hold.release();
    await new Promise(setImmediate);
    process.off('warning', heard);
    expect(warnings).toEqual([]);
  });

  it('of a thousand in four processes is served in the order in which they came', async () => {
    const fleet = new Fleet(atOnce);
    const processes = await fleet.startAll('one', 'two', 'three', 'four');
    const hold = await processes[0]!.box.lock('db').acquire();
    const order: number[] = [];
    const all: Promise<void>[] = [];
    for (let place = 0; place < 1000; place++) {
      all.push(processes[place % 4]!.box.lock('db').run(() => void order.push(place)));
      await settled();
    }
    await hold.release();
    await Promise.all(all);
    expect(order).toEqual(Array.from({ length: 1000 }, (_, place) => place));
  });

  it('of which every other one gives up is served in order all the same', async () => {
    const fleet = new Fleet(atOnce);
    const processes = await fleet.startAll('one', 'two');
    const hold = await processes[0]!.box.lock('db').acquire();
    const order: number[] = [];
    const quit = new AbortController();
    const all: Promise<unknown>[] = [];
    for (let place = 0; place < 200; place++) {
      const options = place % 2 === 0 ? { signal: quit.signal } : {};
      all.push(
        processes[place % 3 === 0 ? 0 : 1]!.box.lock('db')
          .run(() => void order.push(place), options)
          .catch(() => 'gave up'),
      );
      await settled();
    }
    quit.abort();
    await settled();
    await hold.release();
    expect((await Promise.all(all)).filter((end) => end === 'gave up')).toHaveLength(100);
    expect(order).toEqual(Array.from({ length: 100 }, (_, place) => 2 * place + 1));
  });

  it('of readers is let in with one release, however many', async () => {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('process');
    const { box } = process!;
    const writer = await box.lock('db').acquire();
    const readers = Array.from({ length: 300 }, () => box.lock('db').acquire({ mode: 'shared' }));
    await settled();
    await writer.release();
    const holds = await Promise.all(readers);
    expect(new Set(holds.map(({ token }) => token)).size).toBe(300);
    await Promise.all(holds.map((hold) => hold.release()));
    expect(await box.lock('db').isFree()).toBe(true);
  });

  it('lets two processes that always want it take turns', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const order: string[] = [];
    const keepAsking = async (name: string, box: Signalbox): Promise<void> => {
      for (let time = 0; time < 50; time++) {
        await box.lock('db').run(async () => {
          order.push(name);
          await settled();
        });
      }
    };
    await Promise.all([keepAsking('one', one!.box), keepAsking('other', other!.box)]);
    expect(order).toHaveLength(100);
    const turns = order.slice(2).filter((name, place) => name !== order[place + 1]);
    expect(turns).toHaveLength(98);
  });

  it('never lets two in at once, and every token is larger than the last', async () => {
    const fleet = new Fleet(atOnce);
    const processes = await fleet.startAll('one', 'two', 'three');
    let inside = 0;
    let last = 0;
    const work = async (box: Signalbox): Promise<void> => {
      for (let time = 0; time < 40; time++) {
        await box.lock('db').run(async ({ token }) => {
          expect(++inside).toBe(1);
          expect(token).toBeGreaterThan(last);
          last = token;
          await settled();
          inside -= 1;
        });
      }
    };
    await Promise.all(processes.flatMap(({ box }) => [work(box), work(box)]));
    expect(inside).toBe(0);
  });
});
