import type { EventPattern, Signalbox, SignalboxEvent } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { errorOf, settled } from '../support/outcome.ts';

/** So many events wait for a slow handler. */
const LONGEST_QUEUE = 1000;

async function cycles(box: Signalbox, times: number): Promise<void> {
  for (let time = 0; time < times; time++) await (await box.lock('busy').acquire()).release();
  await settled();
}

describe.each(transports)('events on $transport', ({ atOnce }) => {
  it.each([
    ['lock:acquired', ['lock:acquired']],
    ['lock:*', ['lock:acquired', 'lock:released']],
    ['semaphore:*', ['semaphore:acquired', 'semaphore:released']],
    ['*', ['lock:acquired', 'semaphore:acquired', 'semaphore:released', 'lock:released']],
  ] as const)('come by pattern: %s', async (pattern: EventPattern, expected: readonly string[]) => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const told: string[] = [];
    await box.on(pattern, ({ type }) => void told.push(type));
    const lock = await box.lock('a').acquire();
    await (await box.semaphore('pool', { capacity: 1 }).acquire()).release();
    await lock.release();
    await settled();
    expect(told).toEqual(expected);
  });

  it('are the same for everyone, with the same ids, in the same order', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const here: SignalboxEvent[] = [];
    const there: SignalboxEvent[] = [];
    await one!.box.on('*', (event) => void here.push(event));
    await other!.box.on('*', (event) => void there.push(event));
    const hold = await one!.box.lock('ü/x').acquire({ holder: 'first' });
    const waiting = other!.box.lock('ü/x').acquire({ holder: 'second' });
    await settled();
    await hold.release();
    await (await waiting).release();
    await settled();
    expect(here).toEqual(there);
    expect(here.map(({ type }) => type)).toEqual([
      'lock:acquired',
      'lock:queued',
      'lock:released',
      'lock:acquired',
      'lock:released',
    ]);
    expect(new Set(here.map(({ id }) => id)).size).toBe(5);
    expect(here[0]).toMatchObject({ resource: 'lock/ü/x', holder: 'first', token: hold.token, at: fleet.clock.now() });
  });

  it('that a write carries come once each over connections that break', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const ids: (string | undefined)[] = [];
    await other!.box.on('lock:*', ({ id }) => void ids.push(id));
    for (let time = 0; time < 5; time++) {
      await (await one!.box.lock('a').acquire()).release();
      other!.link.cutWatches();
      await (await one!.box.lock('a').acquire()).release();
      await fleet.advance(3000);
    }
    expect(ids).toHaveLength(20);
    expect(new Set(ids).size).toBe(20);
  });

  it('of a refusal stay with the process that was refused', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const here: SignalboxEvent[] = [];
    const there: SignalboxEvent[] = [];
    await one!.box.on('lock:denied', (event) => void here.push(event));
    await other!.box.on('lock:denied', (event) => void there.push(event));
    await one!.box.lock('a').acquire();
    await one!.box.lock('a').tryAcquire({ holder: 'me' });
    await settled();
    expect(here).toMatchObject([{ type: 'lock:denied', holder: 'me', resource: 'lock/a' }]);
    expect(here[0]?.id).toBeUndefined();
    expect(there).toEqual([]);
  });

  it('reach an async handler one after another, and a slow one delays nobody else', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const slow: string[] = [];
    const quick: string[] = [];
    let finish = (): void => {};
    await box.on('lock:*', async ({ type }) => {
      slow.push(type);
      await new Promise<void>((resolve) => (finish = resolve));
    });
    await box.on('lock:*', ({ type }) => void quick.push(type));
    await (await box.lock('a').acquire()).release();
    await settled();
    expect(slow).toEqual(['lock:acquired']);
    expect(quick).toEqual(['lock:acquired', 'lock:released']);
    finish();
    await settled();
    expect(slow).toEqual(['lock:acquired', 'lock:released']);
  });

  it('that are too many for a slow handler become a resync, and are never silently lost', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const told: SignalboxEvent[] = [];
    let finish = (): void => {};
    const blocked = new Promise<void>((resolve) => (finish = resolve));
    await box.on('lock:*', (event) => {
      told.push(event);
      return blocked;
    });
    await cycles(box, LONGEST_QUEUE / 2 + 10);
    expect(told).toHaveLength(1);
    finish();
    await settled();
    const types = told.map(({ type }) => type);
    expect(types.filter((type) => type === 'resync')).toHaveLength(1);
    expect(types[1]).toBe('resync');
    expect(types.at(-1)).toBe('lock:released');
    expect(told.length).toBeLessThan(LONGEST_QUEUE);
  });

  it('that history has forgotten become a resync, whatever the pattern, and later ones come again', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const told: string[] = [];
    await other!.box.on('semaphore:acquired', ({ type }) => void told.push(type));
    other!.link.cutOff('refusing');
    await cycles(one!.box, 3);
    await fleet.store.compact(await fleet.revision());
    other!.link.reconnect();
    await fleet.advance(5000);
    expect(told).toEqual(['resync']);
    await one!.box.semaphore('pool', { capacity: 1 }).acquire();
    await settled();
    expect(told).toEqual(['resync', 'semaphore:acquired']);
  });

  it('end with the subscription', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const told: string[] = [];
    {
      using _subscription = await box.on('lock:*', ({ type }) => void told.push(type));
      await box.lock('a').acquire();
      await settled();
    }
    await box.lock('b').acquire();
    await settled();
    expect(told).toEqual(['lock:acquired']);
  });

  it('are refused as unavailable where the store cannot be reached', async () => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('process');
    link.cutOff('refusing');
    const refused = errorOf(box.on('lock:*', () => {}));
    await fleet.advance(10_000);
    expect(await refused).toMatchObject({ code: 'unavailable' });
    link.reconnect();
    const told: string[] = [];
    await box.on('lock:*', ({ type }) => void told.push(type));
    const acquired = box.lock('a').acquire();
    await fleet.advance(5000);
    await acquired;
    await settled();
    expect(told).toEqual(['lock:acquired']);
  });

  describe('as an iterator', () => {
    async function collect(box: Signalbox, into: string[], signal?: AbortSignal): Promise<void> {
      for await (const { type } of box.events('lock:*', signal === undefined ? {} : { signal })) into.push(type);
    }

    it('come in order, and end when their signal aborts', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const stop = new AbortController();
      const told: string[] = [];
      const collecting = collect(box, told, stop.signal);
      await settled();
      await (await box.lock('a').acquire()).release();
      await settled();
      stop.abort();
      await collecting;
      expect(told).toEqual(['lock:acquired', 'lock:released']);
    });

    it('end when the signalbox is closed', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const told: string[] = [];
      const collecting = collect(box, told);
      await settled();
      await (await box.lock('a').acquire()).release();
      await settled();
      await box.close();
      await collecting;
      expect(told).toEqual(['lock:acquired', 'lock:released']);
    });

    it('end at once under a signal that has aborted already', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const told: string[] = [];
      await collect(box, told, AbortSignal.abort());
      expect(told).toEqual([]);
    });

    it('that are too many for an iterator become a resync', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      const stop = new AbortController();
      const events = box.events('lock:*', { signal: stop.signal })[Symbol.asyncIterator]();
      const first = events.next();
      await settled();
      await cycles(box, LONGEST_QUEUE / 2 + 10);
      await first;
      const types: string[] = [];
      for (;;) {
        const next = await Promise.race([events.next(), settled().then(() => undefined)]);
        if (next?.done !== false) break;
        types.push(next.value.type);
      }
      stop.abort();
      expect(types).toContain('resync');
      expect(types.length).toBeLessThanOrEqual(LONGEST_QUEUE);
    });
  });
});
