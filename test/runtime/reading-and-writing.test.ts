import type { Lock } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports, TTL_MS } from '../support/fleet.ts';
import { errorOf, isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('reading and writing on $transport', ({ atOnce }) => {
  async function two(): Promise<{ fleet: Fleet; one: Process; other: Process; here: Lock; there: Lock }> {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    return { fleet, one: one!, other: other!, here: one!.box.lock('table'), there: other!.box.lock('table') };
  }

  it('several read at once, and nobody writes meanwhile', async () => {
    const { here, there } = await two();
    const first = await here.acquire({ mode: 'shared' });
    const second = await there.acquire({ mode: 'shared' });
    expect([first.mode, second.mode]).toEqual(['shared', 'shared']);
    expect(second.token).toBeGreaterThan(first.token);
    expect(await there.tryAcquire()).toMatchObject({ kind: 'busy' });
    const writing = there.acquire();
    await first.release();
    expect(await isPending(writing)).toBe(true);
    await second.release();
    expect((await writing).mode).toBe('exclusive');
  });

  it('nobody reads while one writes, and all who wait to read come in together', async () => {
    const { here, there } = await two();
    const writer = await here.acquire();
    const readers = [
      there.acquire({ mode: 'shared' }),
      here.acquire({ mode: 'shared' }),
      there.acquire({ mode: 'shared' }),
    ];
    expect(await isPending(Promise.race(readers))).toBe(true);
    await writer.release();
    const holds = await Promise.all(readers);
    expect(new Set(holds.map(({ token }) => token)).size).toBe(3);
    expect((await here.inspect()).holders).toHaveLength(3);
  });

  it('a reader that comes after a waiting writer does not pass it', async () => {
    const { here, there } = await two();
    const reader = await here.acquire({ mode: 'shared' });
    const writing = there.acquire();
    await settled();
    const late = here.acquire({ mode: 'shared' });
    expect(await isPending(late)).toBe(true);
    await reader.release();
    const writer = await writing;
    expect(await isPending(late)).toBe(true);
    await writer.release();
    expect((await late).mode).toBe('shared');
  });

  it('the only reader becomes the writer at once, with a new token', async () => {
    const { here, there } = await two();
    const hold = await here.acquire({ mode: 'shared' });
    const before = hold.token;
    expect(await hold.upgrade()).toBe(hold);
    expect(hold.mode).toBe('exclusive');
    expect(hold.token).toBeGreaterThan(before);
    expect(await there.tryAcquire({ mode: 'shared' })).toMatchObject({ kind: 'busy' });
    expect(await hold.release()).toEqual({ kind: 'released' });
    expect(await here.isFree()).toBe(true);
  });

  it('a reader that wants to write waits for the other readers, ahead of writers that came before', async () => {
    const { here, there } = await two();
    const hold = await here.acquire({ mode: 'shared' });
    const other = await there.acquire({ mode: 'shared' });
    const writing = there.acquire();
    await settled();
    const upgrading = hold.upgrade();
    expect(await isPending(upgrading)).toBe(true);
    await other.release();
    await upgrading;
    expect(hold.mode).toBe('exclusive');
    expect(await isPending(writing)).toBe(true);
    await hold.release();
    expect((await writing).isValid).toBe(true);
  });

  it('a second reader that wants to write too is refused at once, and told who was first', async () => {
    const { here, there } = await two();
    const first = await here.acquire({ mode: 'shared', holder: 'first' });
    const second = await there.acquire({ mode: 'shared', holder: 'second' });
    const upgrading = first.upgrade();
    await settled();
    const error = await errorOf(second.upgrade());
    expect(error).toMatchObject({ code: 'not-acquired', refusal: { kind: 'upgrade-conflict', by: 'first' } });
    expect((error as Error).message).toContain('first already waits to become the writer');
    expect(second.isValid).toBe(true);
    await second.release();
    expect((await upgrading).mode).toBe('exclusive');
  });

  it('an upgrade that is not to wait is refused while others read, and the reader goes on reading', async () => {
    const { here, there } = await two();
    const hold = await here.acquire({ mode: 'shared' });
    await there.acquire({ mode: 'shared' });
    expect(await refusalOf(hold.upgrade({ waitMs: 0 }))).toMatchObject({ kind: 'busy' });
    expect([hold.isValid, hold.mode]).toEqual([true, 'shared']);
  });

  it('an upgrade that is given up leaves no trace, and the reader goes on reading', async () => {
    const { fleet, here, there } = await two();
    const hold = await here.acquire({ mode: 'shared' });
    const other = await there.acquire({ mode: 'shared' });
    const timedOut = refusalOf(hold.upgrade({ waitMs: 1000 }));
    await fleet.advance(1000);
    expect(await timedOut).toMatchObject({ kind: 'timed-out' });
    const quit = new AbortController();
    const upgrading = hold.upgrade({ signal: quit.signal });
    await settled();
    quit.abort();
    expect(await refusalOf(upgrading)).toMatchObject({ kind: 'aborted' });
    await settled();
    expect((await here.inspect()).waiting).toEqual([]);
    await other.release();
    await settled();
    expect((await here.inspect()).holders).toMatchObject([{ mode: 'shared' }]);
    expect([hold.isValid, hold.mode]).toEqual([true, 'shared']);
  });

  it('an upgrade takes the place of one that is given up at the same moment', async () => {
    const { here, there } = await two();
    const reader = await there.acquire({ mode: 'shared' });
    const first = await here.acquire({ mode: 'shared', holder: 'first' });
    const second = await here.acquire({ mode: 'shared', holder: 'second' });
    const quit = new AbortController();
    const given = refusalOf(first.upgrade({ signal: quit.signal }));
    await settled();
    quit.abort();
    const upgrading = second.upgrade();
    expect(await given).toMatchObject({ kind: 'aborted' });
    await settled();
    expect((await there.inspect()).waiting.map(({ holder }) => holder)).toEqual(['second']);
    await Promise.all([reader.release(), first.release()]);
    expect((await upgrading).mode).toBe('exclusive');
  });

  it('an upgrade that is given up in the moment of its grant is given back', async () => {
    const { one, here, there } = await two();
    const hold = await here.acquire({ mode: 'shared' });
    const other = await there.acquire({ mode: 'shared' });
    const quit = new AbortController();
    const upgrading = hold.upgrade({ signal: quit.signal });
    await settled();
    one.link.holdNews();
    await other.release();
    quit.abort();
    expect(await refusalOf(upgrading)).toMatchObject({ kind: 'aborted' });
    one.link.deliverNews();
    await settled();
    expect((await there.inspect()).holders).toMatchObject([{ mode: 'shared' }]);
    expect(await there.tryAcquire({ mode: 'shared' })).toMatchObject({ kind: 'acquired' });
    expect(hold.isValid).toBe(true);
  });

  it('an upgrade of what is exclusive already is no more than that', async () => {
    const { here } = await two();
    const hold = await here.acquire();
    const { token } = hold;
    await hold.upgrade();
    expect([hold.mode, hold.token]).toEqual(['exclusive', token]);
  });

  it('a writer that becomes a reader keeps its hold, and waiting readers join', async () => {
    const { here, there } = await two();
    const hold = await here.acquire();
    const reading = there.acquire({ mode: 'shared' });
    await settled();
    const writing = there.acquire();
    await settled();
    expect(await hold.downgrade()).toBe(hold);
    expect(hold.mode).toBe('shared');
    expect((await reading).mode).toBe('shared');
    expect(await isPending(writing)).toBe(true);
    await hold.release();
    await (await reading).release();
    expect((await writing).isValid).toBe(true);
  });

  it('a dead reader does not stand in the way of an upgrade', async () => {
    const { fleet, other, here, there } = await two();
    const hold = await here.acquire({ mode: 'shared' });
    await there.acquire({ mode: 'shared' });
    const upgrading = hold.upgrade();
    await settled();
    other.crash();
    await fleet.advance(TTL_MS + 1000);
    expect((await upgrading).mode).toBe('exclusive');
  });

  it('upgrading what was taken away throws its loss', async () => {
    const { here, there } = await two();
    const hold = await here.acquire({ mode: 'shared' });
    await there.break({ holder: 'user:anna', reason: 'stuck' });
    await settled();
    expect(await errorOf(hold.upgrade())).toMatchObject({ code: 'hold-lost', why: 'forced' });
    expect(await errorOf(hold.downgrade())).toMatchObject({ code: 'hold-lost', why: 'forced' });
  });

  describe('asked to write by the holder that already reads', () => {
    it('the reading hold becomes the writer, and the inner release does not release it', async () => {
      const { here, there } = await two();
      const outer = await here.acquire({ mode: 'shared', holder: 'me' });
      const inner = await here.acquire({ mode: 'exclusive', holder: 'me' });
      expect(inner.mode).toBe('exclusive');
      await inner.release();
      expect(outer.isValid).toBe(true);
      expect(await there.tryAcquire()).toMatchObject({ kind: 'busy' });
      await outer.release();
      expect(await there.isFree()).toBe(true);
    });

    it('the reading hold knows the larger token that it has since', async () => {
      const { here } = await two();
      const outer = await here.acquire({ mode: 'shared', holder: 'me' });
      const inner = await here.acquire({ mode: 'exclusive', holder: 'me' });
      expect([outer.token, outer.mode]).toEqual([inner.token, 'exclusive']);
    });

    it('both are told when it is taken away', async () => {
      const { here, there } = await two();
      const outer = await here.acquire({ mode: 'shared', holder: 'me' });
      const inner = await here.acquire({ mode: 'exclusive', holder: 'me' });
      const signals = [outer.signal, inner.signal];
      await there.break({ holder: 'user:anna', reason: 'stuck' });
      await settled();
      expect(signals.map((signal) => lossOf(signal)?.why)).toEqual(['forced', 'forced']);
    });

    it('a try that succeeds says that the hold was upgraded', async () => {
      const { here } = await two();
      await here.acquire({ mode: 'shared', holder: 'me' });
      expect(await here.tryAcquire({ mode: 'exclusive', holder: 'me' })).toMatchObject({
        kind: 'upgraded',
        hold: { mode: 'exclusive', holder: 'me' },
      });
    });
  });
});
