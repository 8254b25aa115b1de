// What goes wrong where a decision relies on seeing the whole queue, or on fitting into one write.
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { isPending, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('whoever waits, on $transport,', ({ atOnce }) => {
  it('to read and reads already goes on reading, beside other readers', async () => {
    const fleet = new Fleet(atOnce);
    const [here, there] = await fleet.startAll('here', 'there');
    const [lock, elsewhere] = [here!.box.lock('cfg'), there!.box.lock('cfg')];
    const first = await lock.acquire({ holder: 'first' });
    const reads = [
      elsewhere.acquire({ holder: 'x', mode: 'shared' }),
      elsewhere.acquire({ holder: 'h', mode: 'shared' }),
    ];
    await settled();
    const stop = new AbortController();
    const writes = refusalOf(elsewhere.acquire({ holder: 'w', signal: stop.signal }));
    await settled();
    await lock.tryAcquire({ holder: 'z' });
    const again = elsewhere.acquire({ holder: 'h', mode: 'shared' });
    await settled();
    await first.release();
    await Promise.all(reads);
    stop.abort();
    await writes;
    expect((await again).mode).toBe('shared');
    expect((await lock.inspect()).holders.map(({ holder, mode }) => [holder, mode])).toEqual([
      ['x', 'shared'],
      ['h', 'shared'],
    ]);
  });

  it.each(['the same process', 'another process'])(
    'for what its holder has by now gets it, however many wait between its two requests, from %s',
    async (where) => {
      const fleet = new Fleet(atOnce);
      const [here, there] = await fleet.startAll('here', 'there');
      const holds = await here!.box.lock('cfg').acquire();
      const first = there!.box.lock('cfg').acquire({ holder: 'h' });
      await settled();
      const stop = new AbortController();
      const between = Array.from({ length: 300 }, () =>
        refusalOf(there!.box.lock('cfg').acquire({ signal: stop.signal })),
      );
      await settled();
      const second = (where === 'the same process' ? there : here)!.box.lock('cfg').acquire({ holder: 'h' });
      await settled();
      await holds.release();
      const outer = await first;
      // Its own process looks soon; another one when it looks for all answers that it missed.
      const seconds = where === 'the same process' ? 2 : 60;
      for (let time = 0; time < seconds && (await isPending(second)); time++) await fleet.advance(1_000);
      expect(await isPending(second)).toBe(false);
      expect((await second).token).toBe(outer.token);
      stop.abort();
      await Promise.all(between);
    },
  );

  it('twice to become the writer becomes it once, and the lock goes on', async () => {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('one');
    const lock = process!.box.lock('cfg');
    const [a, b] = [
      await lock.acquire({ mode: 'shared', holder: 'a' }),
      await lock.acquire({ mode: 'shared', holder: 'b' }),
    ];
    const first = a.upgrade();
    await settled();
    const second = lock.acquire({ holder: 'a' });
    await settled();
    await b.release();
    await first;
    expect((await second).mode).toBe('exclusive');
    await a.release();
    expect((await lock.acquire()).isValid).toBe(true);
  });

  it('to become the writer, and gives up, leaves no trace', async () => {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('one');
    const lock = process!.box.lock('cfg');
    const a = await lock.acquire({ mode: 'shared', holder: 'a' });
    const b = await lock.acquire({ mode: 'shared', holder: 'b' });
    const refused = refusalOf(lock.acquire({ holder: 'a', waitMs: 100 }));
    await fleet.advance(100);
    expect(await refused).toMatchObject({ kind: 'timed-out' });
    await settled();
    expect((await lock.inspect()).waiting).toEqual([]);
    await b.release();
    expect([a.mode, (await lock.inspect()).holders.length]).toEqual(['shared', 1]);
  });

  it('for more slots than there are left, or believes in others, is refused and holds nobody up', async () => {
    const fleet = new Fleet(atOnce);
    const [here, there] = await fleet.startAll('here', 'there');
    const slots = here!.box.semaphore('pool', { capacity: 5 });
    const hold = await slots.acquire({ weight: 5 });
    const heavy = refusalOf(there!.box.semaphore('pool').acquire({ weight: 5 }));
    await settled();
    await slots.resize(3);
    expect(await heavy).toMatchObject({ kind: 'impossible', capacity: 3 });
    const mistaken = refusalOf(there!.box.semaphore('pool', { capacity: 10 }).acquire());
    const light = there!.box.semaphore('pool').acquire();
    await settled();
    await hold.release();
    expect(await mistaken).toMatchObject({ kind: 'capacity-mismatch', capacity: 3, asked: 10 });
    expect((await light).slots).toEqual([0]);
  });

  it('for what 150 hold gets it, by break and by force', async () => {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('one');
    const { box } = process!;
    const slots = box.semaphore('pool', { capacity: 150 });
    for (let i = 0; i < 150; i++) await slots.acquire({ holder: `h${i}` });
    for (let i = 0; i < 150; i++) await box.lock('cfg').acquire({ holder: `h${i}`, mode: 'shared' });
    expect(await slots.break({ holder: 'admin', reason: 'stuck' })).toEqual({ broken: 150 });
    const hold = await box.lock('cfg').acquire({ strategy: 'force', reason: 'stuck', holder: 'admin' });
    expect([hold.mode, (await box.lock('cfg').inspect()).holders.length]).toEqual(['exclusive', 1]);
    expect(await slots.usedSlots()).toBe(0);
  });

  it('for a million slots gets them, and for more is told the limit', async () => {
    const fleet = new Fleet(atOnce);
    const [process] = await fleet.startAll('one');
    const budget = process!.box.semaphore('bytes', { capacity: 8_000_000_000 });
    expect((await budget.acquire({ weight: 1_000_000 })).slots).toHaveLength(1_000_000);
    const refusal = await refusalOf(budget.acquire({ weight: 100_000_000 }));
    expect(refusal).toMatchObject({ kind: 'impossible', why: expect.stringContaining('1000000') as string });
  });
});
