import { type BusEvent, connect } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { errorOf, settled } from '../support/outcome.ts';

const told = (events: readonly BusEvent[]): string[] =>
  events.map(({ type, key, value }) => (type === 'PUT' ? `PUT ${key} ${value}` : `${type} ${key}`));

describe.each(transports)('the event bus on $transport', ({ atOnce }) => {
  it('puts, gets and deletes', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await using other = await connect(fleet.store, { clock: fleet.clock });
    expect(await box.bus.get('config/a')).toBeNull();
    const { revision } = await box.bus.put('config/a', 'ü');
    expect(revision).toBe(await fleet.revision());
    expect(await other.get('config/a')).toBe('ü');
    expect(await other.delete('config/a')).toEqual({ deleted: 1 });
    expect(await box.bus.get('config/a')).toBeNull();
  });

  it('compares and swaps, all or nothing', async () => {
    const fleet = new Fleet(atOnce);
    const { bus } = (await fleet.start('process')).box;
    const swap = (from: string, to: string): ReturnType<typeof bus.transaction> =>
      bus.transaction(
        [{ key: 'leader', target: 'value', is: '=', than: from }],
        [
          { do: 'put', key: 'leader', value: to },
          { do: 'get', key: 'leader' },
        ],
        [{ do: 'get', key: 'leader' }],
      );
    const isNew = [{ key: 'leader', target: 'version', is: '=', than: 0 }] as const;
    expect(await bus.transaction(isNew, [{ do: 'put', key: 'leader', value: 'a' }], [])).toMatchObject({
      succeeded: true,
      results: [{ do: 'put' }],
    });
    expect(await swap('b', 'c')).toMatchObject({
      succeeded: false,
      results: [{ pair: { key: 'leader', value: 'a' } }],
    });
    expect(await swap('a', 'b')).toMatchObject({
      succeeded: true,
      results: [{ do: 'put' }, { pair: { value: 'b', version: 2 } }],
    });
  });

  it('tells every change under a prefix, in order, and nothing else, until it is not wanted any more', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const events: BusEvent[] = [];
    await one!.box.bus.put('a/before', '0');
    const id = await other!.box.bus.watch('a/', (event) => void events.push(event));
    await one!.box.bus.put('a/x', '1');
    await one!.box.bus.put('b/x', '1');
    await one!.box.bus.put('a/x', '2');
    await one!.box.bus.delete('a/before');
    await one!.box.lock('a/x').run(() => undefined);
    await expect.poll(() => told(events)).toEqual(['PUT a/x 1', 'PUT a/x 2', 'DELETE a/before']);
    expect(other!.box.bus.unwatch(id)).toBe(true);
    expect(other!.box.bus.unwatch(id)).toBe(false);
    await one!.box.bus.put('a/x', '3');
    await settled();
    expect(events).toHaveLength(3);
  });

  it('misses nothing over connections that break', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const events: BusEvent[] = [];
    await other!.box.bus.watch('n', (event) => void events.push(event));
    for (let n = 0; n < 12; n++) {
      if (n % 3 === 0) other!.link.cutWatches();
      await one!.box.bus.put(`n${n}`, String(n));
      if (n % 4 === 0) await fleet.advance(3000);
    }
    await fleet.advance(5000);
    expect(told(events)).toEqual(Array.from({ length: 12 }, (_, n) => `PUT n${n} ${n}`));
  });

  it('says when history was forgotten, and tells the difference', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    for (const key of ['k/gone', 'k/changed', 'k/same']) await one!.box.bus.put(key, 'old');
    const events: BusEvent[] = [];
    await other!.box.bus.watch('k/', (event) => void events.push(event));
    other!.link.cutOff('refusing');
    await one!.box.bus.delete('k/gone');
    await one!.box.bus.put('k/changed', 'new');
    await one!.box.bus.put('k/came', 'new');
    await one!.box.bus.put('k/came-and-gone', 'new');
    await one!.box.bus.delete('k/came-and-gone');
    await fleet.store.compact(await fleet.revision());
    other!.link.reconnect();
    await fleet.advance(5000);
    await one!.box.bus.put('k/same', 'newer');
    await fleet.advance(1000);
    await expect
      .poll(() => told(events))
      .toEqual(['RESYNC k/', 'DELETE k/gone', 'PUT k/changed new', 'PUT k/came new', 'PUT k/same newer']);
  });

  it('tells a handler that fell too far behind the difference, and delays nobody for it', async () => {
    const fleet = new Fleet(atOnce);
    const { bus } = (await fleet.start('process')).box;
    const slow: BusEvent[] = [];
    let quick = 0;
    let goOn = (): void => undefined;
    const blocked = new Promise<void>((resolve) => (goOn = resolve));
    await bus.watch('n', (event) => {
      slow.push(event);
      return blocked;
    });
    await bus.watch('n', () => void (quick += 1));
    for (let n = 0; n < 1200; n++) {
      await bus.put(`n${n % 10}`, String(n));
      if (n % 100 === 0) await settled();
    }
    await expect.poll(() => quick).toBe(1200);
    expect(told(slow)).toEqual(['PUT n0 0']);
    goOn();
    await expect.poll(() => slow.length).toBeGreaterThanOrEqual(12);
    expect(told(slow).slice(1)).toEqual(['RESYNC n', ...Array.from({ length: 10 }, (_, n) => `PUT n${n} ${1190 + n}`)]);
  });

  it('answers a health check, and never throws for it', async () => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('process');
    expect(await box.bus.healthCheck()).toMatchObject({ isHealthy: true, revision: await fleet.revision() });
    link.cutOff('refusing');
    expect(await box.bus.healthCheck()).toMatchObject({ isHealthy: false, error: expect.any(String) as unknown });
    await box.close();
    expect(await box.bus.healthCheck()).toMatchObject({ isHealthy: false });
    expect(await errorOf(box.bus.put('a', 'b'))).toMatchObject({ code: 'closed' });
  });

  it('refuses what makes no sense, and cannot reach what is not plain', async () => {
    const fleet = new Fleet(atOnce);
    const { bus } = (await fleet.start('process')).box;
    for (const wrong of [
      bus.put('', 'x'),
      bus.put(7 as never, 'x'),
      bus.put('a', 7 as never),
      bus.put('a\0', 'x'),
      bus.put('a', 'x'.repeat(1024 * 1024 + 1)),
      bus.get('\ud800'),
      bus.watch('', () => undefined),
      bus.watch('a', 'x' as never),
      bus.transaction([], [{ do: 'range' } as never], []),
      connect('nonsense:'),
      connect('memory:', { requestTimeoutMs: 0 }),
    ]) {
      expect(await errorOf(wrong)).toMatchObject({ code: 'invalid' });
    }
    // The key of a session, of which there is none by this name.
    await bus.put('a/process1', 'x');
    const read = { do: 'read', key: 'a/process1' } as const;
    const { results } = await fleet.store.transaction({ compare: [], success: [read], failure: [] });
    expect(results).toMatchObject([{ count: 0 }]);
  });

  it('watches prefixes whatever they end in', async () => {
    const fleet = new Fleet(atOnce);
    const { bus } = (await fleet.start('process')).box;
    for (const prefix of ['ü', '🚂', '\ud7ff', 'x\u{10ffff}']) {
      const events: BusEvent[] = [];
      const id = await bus.watch(prefix, (event) => void events.push(event));
      await bus.put(prefix, '1');
      await bus.put(`${prefix}z`, '2');
      await expect.poll(() => events.length).toBe(2);
      bus.unwatch(id);
    }
  });
});
