import type { Signalbox, Want } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { errorOf, isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('several at once on $transport', ({ atOnce }) => {
  async function two(): Promise<{ fleet: Fleet; here: Signalbox; there: Signalbox }> {
    const fleet = new Fleet(atOnce);
    const [here, there] = await fleet.startAll('here', 'there');
    return { fleet, here: here!.box, there: there!.box };
  }

  const wants: readonly Want[] = [
    { lock: 'b' },
    { lock: 'a', mode: 'shared' },
    { semaphore: 'pool', weight: 2, capacity: 3 },
  ];

  it('are all held, or none', async () => {
    const { here, there } = await two();
    const attempt = await here.tryAcquireAll(wants);
    expect(attempt.kind).toBe('acquired');
    if (attempt.kind !== 'acquired') return;
    expect(attempt.holds.isValid).toBe(true);
    expect(attempt.holds.holds.map(({ resource }) => resource).sort()).toEqual(['lock/a', 'lock/b', 'semaphore/pool']);

    const refused = await there.tryAcquireAll([{ lock: 'c' }, { lock: 'b' }, { semaphore: 'pool', weight: 2 }]);
    expect(refused).toMatchObject({
      kind: 'refused',
      refusals: [
        { resource: 'lock/b', refusal: { kind: 'busy' } },
        { resource: 'semaphore/pool', refusal: { kind: 'full', free: 1 } },
      ],
    });
    expect(await here.lock('c').isFree()).toBe(true);
    expect(await here.semaphore('pool').usedSlots()).toBe(2);

    expect((await attempt.holds.release()).map(({ kind }) => kind)).toEqual(['released', 'released', 'released']);
    expect([await here.lock('a').isFree(), await here.lock('b').isFree()]).toEqual([true, true]);
  });

  it('are taken in one write, if they are free', async () => {
    const { fleet, here } = await two();
    const before = await fleet.revision();
    await here.acquireAll(wants);
    expect(await fleet.revision()).toBe(before + 1);
  });

  it('may be 50, stale ones among them, and 51 are refused with that number', async () => {
    const { fleet, here, there } = await two();
    const many = (count: number): Want[] => Array.from({ length: count }, (_, nth) => ({ lock: `many:${nth}` }));
    const set = await here.acquireAll(many(50));
    expect(set.holds).toHaveLength(50);
    await set.release();
    for (const { lock } of many(50) as { lock: string }[]) {
      await there.lock(lock).acquireDetached({ holder: 'dead', ttlMs: 1_000 });
    }
    await fleet.advance(1_600);
    expect((await here.tryAcquireAll(many(50))).kind).toBe('acquired');
    const error = await errorOf(here.tryAcquireAll(many(51)));
    expect(error).toMatchObject({ code: 'invalid', message: '51 are wanted at once; expected at most 50' });
  });

  it('are had without waiting from holders that died before this process began', async () => {
    const { fleet, here } = await two();
    const [first, ...others] = ['a', 'b', 'c'].map((lock) => ({ lock }));
    for (const { lock } of [first!, ...others]) await here.lock(lock).acquireDetached({ holder: 'dead', ttlMs: 1_000 });
    await fleet.advance(1_600);
    const late = await fleet.start('late');
    expect((await late.box.tryAcquireAll([first!])).kind).toBe('acquired');
    expect((await late.box.acquireAll(others, { waitMs: 0 })).holds).toHaveLength(2);
  });

  it('go back if one of them was taken away before the answer came', async () => {
    const { fleet, there } = await two();
    const one = await fleet.start('one');
    await (await one.box.lock('other').acquire()).release();
    one.link.next('transaction', 'severed', ({ success }) => success.every((one) => one.do === 'put'));
    const asking = one.box.tryAcquireAll([{ lock: 'a' }, { lock: 'b' }]);
    await settled();
    await there.lock('a').acquire({ holder: 'admin', strategy: 'force', reason: 'stuck' });
    one.link.reconnect();
    const refused = refusalOf(asking);
    for (let second = 0; second < 3; second++) await fleet.advance(1_000);
    expect(await refused).toMatchObject({ kind: 'lost' });
    expect(await there.lock('b').isFree()).toBe(true);
  });

  it('are waited for, and had once all are free', async () => {
    const { here, there } = await two();
    const a = await here.lock('a').acquire();
    const b = await here.lock('b').acquire();
    const waiting = there.acquireAll([{ lock: 'a' }, { lock: 'b' }]);
    await settled();
    await b.release();
    expect(await isPending(waiting)).toBe(true);
    await a.release();
    const set = await waiting;
    expect(set.isValid).toBe(true);
    expect(set.holds).toHaveLength(2);
  });

  it('do not deadlock when two want the same in different order', async () => {
    const { here, there } = await two();
    let inside = 0;
    const both = async (box: Signalbox, names: readonly string[]): Promise<void> => {
      for (let time = 0; time < 20; time++) {
        await using _set = await box.acquireAll(names.map((lock) => ({ lock })));
        expect(++inside).toBe(1);
        await settled();
        inside -= 1;
      }
    };
    await Promise.all([both(here, ['a', 'b', 'c']), both(there, ['c', 'b', 'a']), both(there, ['b', 'c'])]);
    expect(inside).toBe(0);
  });

  it('that cannot be had in time are all given back', async () => {
    const { fleet, here, there } = await two();
    await here.lock('b').acquire();
    const refused = refusalOf(there.acquireAll([{ lock: 'a' }, { lock: 'b' }], { waitMs: 1000 }));
    await fleet.advance(1000);
    expect(await refused).toMatchObject({ kind: 'timed-out' });
    await settled();
    expect(await here.lock('a').isFree()).toBe(true);
    expect((await here.lock('b').inspect()).waiting).toEqual([]);
  });

  it('that are given up are all given back', async () => {
    const { here, there } = await two();
    await here.lock('b').acquire();
    const quit = new AbortController();
    const waiting = there.acquireAll([{ lock: 'a' }, { lock: 'b' }], { signal: quit.signal });
    await settled();
    quit.abort();
    expect(await refusalOf(waiting)).toMatchObject({ kind: 'aborted' });
    await settled();
    expect(await here.lock('a').isFree()).toBe(true);
  });

  it('are not waited for with a wait of zero', async () => {
    const { here, there } = await two();
    await here.lock('b').acquire();
    expect(await refusalOf(there.acquireAll([{ lock: 'a' }, { lock: 'b' }], { waitMs: 0 }))).toMatchObject({
      kind: 'busy',
    });
    expect(await here.lock('a').isFree()).toBe(true);
  });

  it('are not waited for if one of them is impossible', async () => {
    const { here, there } = await two();
    await here.lock('a').acquire();
    await (await here.semaphore('pool', { capacity: 3 }).acquire()).release();
    expect(await refusalOf(there.acquireAll([{ lock: 'a' }, { semaphore: 'pool', weight: 9 }]))).toMatchObject({
      kind: 'impossible',
    });
    expect(await refusalOf(there.acquireAll([{ lock: 'a' }, { semaphore: 'pool', capacity: 9 }]))).toMatchObject({
      kind: 'capacity-mismatch',
    });
  });

  it('are lost as soon as one of them is', async () => {
    const { here, there } = await two();
    const set = await here.acquireAll([{ lock: 'a' }, { lock: 'b' }]);
    const { signal } = set;
    await there.lock('b').break({ holder: 'user:anna', reason: 'stuck' });
    await settled();
    expect(lossOf(signal)).toMatchObject({ why: 'forced', resource: 'lock/b' });
    expect(set.isValid).toBe(false);
    expect((await set.release()).map(({ kind }) => kind).sort()).toEqual(['already-lost', 'released']);
  });

  it('include what the holder has already, which is not released with them', async () => {
    const { here } = await two();
    const outer = await here.lock('a').acquire({ holder: 'me' });
    const set = await here.acquireAll([{ lock: 'a' }, { lock: 'b' }], { holder: 'me' });
    await set.release();
    expect(outer.isValid).toBe(true);
    expect([await here.lock('a').isFree(), await here.lock('b').isFree()]).toEqual([false, true]);
  });

  it('that pass nobody who waits for one of them', async () => {
    const { here, there } = await two();
    const hold = await here.lock('a').acquire();
    const waiting = here.lock('a').acquire();
    await settled();
    const set = there.acquireAll([{ lock: 'a' }, { lock: 'b' }]);
    await settled();
    await hold.release();
    const first = await waiting;
    expect(await isPending(set)).toBe(true);
    await first.release();
    expect((await set).isValid).toBe(true);
  });

  it('do not deadlock with a process that takes them one by one in another order', async () => {
    const { here, there } = await two();
    const z = await here.lock('z').acquire({ holder: 'nested' });
    const set = there.acquireAll([{ lock: 'a' }, { lock: 'z' }], { holder: 'set' });
    await settled();
    // The set has `a` and waits for `z`; the nested one has `z` and now wants `a`.
    const nested = here.lock('a').acquire({ holder: 'nested' });
    const inner = await nested.then(
      (hold) => hold.release(),
      (error: { refusal: unknown }) => error.refusal,
    );
    await z.release();
    const outer = await set.catch((error: { refusal: unknown }) => error.refusal);
    expect([inner, outer]).toContainEqual(expect.objectContaining({ kind: 'deadlock' }));
    expect([inner, outer].filter((end) => (end as { kind?: string }).kind === 'deadlock')).toHaveLength(1);
  });

  describe('asked for without sense', () => {
    const senseless: readonly [string, readonly Want[], object][] = [
      ['nothing', [], {}],
      ['the same twice', [{ lock: 'a' }, { lock: 'a' }], {}],
      ['a lock without a name', [{ lock: 'a' }, { lock: '' }], {}],
      ['a name with a line break', [{ lock: 'a' }, { semaphore: 'x\ny', capacity: 1 }], {}],
      ['an unknown mode', [{ lock: 'a' }, { lock: 'b', mode: 'weird' as never }], {}],
      ['a capacity of zero', [{ lock: 'a' }, { semaphore: 's', capacity: 0 }], {}],
      ['neither a lock nor a semaphore', [{ lock: 'a' }, { mutex: 'b' } as never], {}],
      ['an empty holder', [{ lock: 'a' }], { holder: '' }],
      ['a priority that is no number', [{ lock: 'a' }], { priority: Number.NaN }],
      ['a negative wait', [{ lock: 'a' }], { waitMs: -1 }],
      ['metadata that is too large', [{ lock: 'a' }], { metadata: 'x'.repeat(65 * 1024) }],
    ];

    it.each(senseless)('%s: refused as invalid, and nothing is changed', async (_what, wanted, options) => {
      const { fleet, here } = await two();
      const before = await fleet.revision();
      expect(await errorOf(here.tryAcquireAll(wanted, options))).toMatchObject({ code: 'invalid' });
      expect(await errorOf(here.acquireAll(wanted, options))).toMatchObject({ code: 'invalid' });
      expect(await fleet.revision()).toBe(before);
    });
  });
});
