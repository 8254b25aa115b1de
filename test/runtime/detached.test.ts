import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { changesRecord } from '../support/link.ts';
import { errorOf, isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('a detached hold on $transport', ({ atOnce }) => {
  it('outlives the process that took it, and is released by whoever knows its token', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    const hold = await script!.box.lock('deploy').acquireDetached({ holder: 'user:anna', ttlMs: 120_000 });
    expect(hold).toMatchObject({ resource: 'lock/deploy', holder: 'user:anna', ttlMs: 120_000 });
    await script!.box.close();
    await fleet.advance(60_000);
    const lock = later!.box.lock('deploy');
    expect([await lock.isHeldBy('user:anna'), await lock.isStale()]).toEqual([true, false]);
    expect(await lock.release(hold)).toEqual({ kind: 'released' });
    expect(await lock.isFree()).toBe(true);
    expect(await lock.release(hold)).toEqual({ kind: 'already-free' });
  });

  it('lasts a minute unless said otherwise', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    const hold = await script!.box.lock('deploy').acquireDetached({ holder: 'user:anna' });
    expect(hold.ttlMs).toBe(60_000);
    const waiting = later!.box.lock('deploy').acquire();
    await fleet.advance(59_000);
    expect(await isPending(waiting)).toBe(true);
    await fleet.advance(2000);
    expect((await waiting).token).toBeGreaterThan(hold.token);
  });

  it('is kept by renewing it, from any process', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    const hold = await script!.box.lock('deploy').acquireDetached({ holder: 'user:anna', ttlMs: 10_000 });
    for (let time = 0; time < 5; time++) {
      await fleet.advance(9000);
      expect(await later!.box.lock('deploy').renew(hold)).toMatchObject({ kind: 'refreshed', ttlMs: 10_000 });
    }
    expect(await later!.box.lock('deploy').isStale()).toBe(false);
  });

  it('that was stale stays lost: a renewal does not revive it, and a release does not touch the next', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    const lock = script!.box.lock('deploy');
    const hold = await lock.acquireDetached({ holder: 'user:anna', ttlMs: 10_000 });
    await fleet.advance(11_000);
    expect(await lock.isStale()).toBe(true);
    expect(await lock.renew(hold)).toEqual({ kind: 'lost' });
    expect(await lock.extend(hold, 60_000)).toEqual({ kind: 'lost' });
    const next = await later!.box.lock('deploy').acquire();
    expect(await lock.renew(hold)).toEqual({ kind: 'not-owner' });
    expect(await lock.release(hold)).toEqual({ kind: 'not-owner' });
    expect(next.isValid).toBe(true);
    expect(await lock.isHeldBy(next.holder)).toBe(true);
  });

  it('cannot be renewed, extended or released with the token of an earlier grant', async () => {
    const fleet = new Fleet(atOnce);
    const [script] = await fleet.startAll('script');
    const lock = script!.box.lock('deploy');
    const old = await lock.acquireDetached({ holder: 'user:anna' });
    await lock.release(old);
    const hold = await lock.acquireDetached({ holder: 'user:anna' });
    expect(hold.token).toBeGreaterThan(old.token);
    expect(await lock.renew(old)).toEqual({ kind: 'not-owner' });
    expect(await lock.extend(old, 1000)).toEqual({ kind: 'not-owner' });
    expect(await lock.release(old)).toEqual({ kind: 'not-owner' });
    expect(await lock.renew({ ...hold, holder: 'user:bert' })).toEqual({ kind: 'not-owner' });
    expect(await lock.renew(hold)).toMatchObject({ kind: 'refreshed' });
  });

  it('can be given more time, or less, by whoever has it', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    const lock = later!.box.lock('deploy');
    const hold = await script!.box.lock('deploy').acquireDetached({ holder: 'user:anna', ttlMs: 10_000 });
    expect(await lock.extend(hold, 100_000)).toMatchObject({ kind: 'refreshed', ttlMs: 100_000 });
    await fleet.advance(50_000);
    expect(await lock.isStale()).toBe(false);
    expect(await lock.renew(hold)).toMatchObject({ kind: 'refreshed', ttlMs: 100_000 });
    expect(await lock.extend(hold, 1000)).toMatchObject({ kind: 'refreshed', ttlMs: 1000 });
    await fleet.advance(1100);
    expect(await lock.isStale()).toBe(true);
  });

  it('waits its turn, and does not become stale while it waits', async () => {
    const fleet = new Fleet(atOnce);
    const [holder, script] = await fleet.startAll('holder', 'script');
    const first = await holder!.box.lock('deploy').acquire();
    const waiting = script!.box.lock('deploy').acquireDetached({ holder: 'user:anna', ttlMs: 5000 });
    await fleet.advance(60_000);
    expect(await isPending(waiting)).toBe(true);
    await first.release();
    const hold = await waiting;
    expect(await holder!.box.lock('deploy').isStale()).toBe(false);
    expect(await script!.box.lock('deploy').renew(hold)).toMatchObject({ kind: 'refreshed' });
  });

  it('that is refused, times out or is aborted leaves nothing behind', async () => {
    const fleet = new Fleet(atOnce);
    const [holder, script] = await fleet.startAll('holder', 'script');
    await holder!.box.lock('deploy').acquire();
    const lock = script!.box.lock('deploy');
    expect(await refusalOf(lock.acquireDetached({ holder: 'user:anna', strategy: 'fail-fast' }))).toMatchObject({
      kind: 'busy',
    });
    const timedOut = refusalOf(lock.acquireDetached({ holder: 'user:anna', waitMs: 1000 }));
    await fleet.advance(1000);
    expect(await timedOut).toMatchObject({ kind: 'timed-out' });
    const quit = new AbortController();
    const aborted = refusalOf(lock.acquireDetached({ holder: 'user:anna', signal: quit.signal }));
    await settled();
    quit.abort();
    expect(await aborted).toMatchObject({ kind: 'aborted' });
    await settled();
    expect((await lock.inspect()).waiting).toEqual([]);
  });

  it('taken again by the same holder is the same hold, for its full time again', async () => {
    const fleet = new Fleet(atOnce);
    const [script] = await fleet.startAll('script');
    const lock = script!.box.lock('deploy');
    const hold = await lock.acquireDetached({ holder: 'user:anna', ttlMs: 10_000 });
    await fleet.advance(8000);
    const again = await lock.acquireDetached({ holder: 'user:anna', ttlMs: 10_000 });
    expect(again.token).toBe(hold.token);
    await fleet.advance(8000);
    expect(await lock.isStale()).toBe(false);
  });

  it('ends at its longest time, however well it is renewed', async () => {
    const fleet = new Fleet(atOnce);
    const [agent] = await fleet.startAll('agent');
    const lock = agent!.box.lock('deploy');
    const hold = await lock.acquireDetached({ holder: 'agent:1', ttlMs: 10_000, maxHoldMs: 30_500 });
    for (let time = 0; time < 4; time++) {
      await fleet.advance(7000);
      expect(await lock.renew(hold)).toMatchObject({ kind: 'refreshed' });
    }
    await fleet.advance(3000);
    expect(await lock.isStale()).toBe(true);
    expect(await lock.renew(hold)).toEqual({ kind: 'lost' });
  });

  it('ends at its longest time, although the process that took it was killed before it could say so', async () => {
    const fleet = new Fleet(atOnce);
    const [killed, agent] = await fleet.startAll('killed', 'agent');
    const request = { holder: 'agent:1', ttlMs: 10_000, maxHoldMs: 30_500 };
    killed!.link.next('transaction', 'severed', changesRecord);
    void killed!.box
      .lock('deploy')
      .acquireDetached(request)
      .catch(() => undefined);
    await settled();
    killed!.crash();
    const lock = agent!.box.lock('deploy');
    expect(await lock.isHeldBy('agent:1')).toBe(true);
    const hold = await lock.acquireDetached(request);
    for (let time = 0; time < 4; time++) {
      await fleet.advance(7000);
      expect(await lock.renew(hold)).toMatchObject({ kind: 'refreshed' });
    }
    // Taken once more, it has what is left of its limit, and gets no other.
    const again = await lock.acquireDetached(request);
    expect(again.id).toBe(hold.id);
    expect(again.maxHoldMs).toBeLessThanOrEqual(2_500);
    await fleet.advance(3000);
    expect(await lock.isStale()).toBe(true);
  });

  it('of a semaphore has its slots, and gives them back', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    const hold = await script!.box
      .semaphore('ports', { capacity: 4 })
      .acquireDetached({ holder: 'user:anna', weight: 2 });
    expect(hold).toMatchObject({ resource: 'semaphore/ports', weight: 2, slots: [0, 1] });
    await script!.box.close();
    const ports = later!.box.semaphore('ports');
    expect(await ports.usedSlots()).toBe(2);
    expect(await ports.renew(hold)).toMatchObject({ kind: 'refreshed', ttlMs: 60_000 });
    expect(await ports.release(hold)).toEqual({ kind: 'released' });
    expect(await ports.release(hold)).toMatchObject({ kind: 'not-owner' });
    expect(await ports.usedSlots()).toBe(0);
  });

  it('does not need the process that took it to be there when it becomes stale', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    await script!.box.lock('deploy').acquireDetached({ holder: 'user:anna', ttlMs: 40_000 });
    script!.crash();
    await fleet.advance(TTL_MS + 5000);
    expect(await later!.box.lock('deploy').tryAcquire()).toMatchObject({ kind: 'busy' });
    await fleet.advance(25_000);
    expect(await later!.box.lock('deploy').tryAcquire()).toMatchObject({ kind: 'reclaimed' });
  });

  it('asks for a holder', async () => {
    const fleet = new Fleet(atOnce);
    const [script] = await fleet.startAll('script');
    const error = await errorOf(script!.box.lock('deploy').acquireDetached({} as never));
    expect(error).toMatchObject({ code: 'invalid', message: expect.stringContaining('holder') as string });
    expect(await script!.box.lock('deploy').isFree()).toBe(true);
  });

  describe('and one that hangs on a session', () => {
    it('is released by its token from elsewhere without ending what else its process holds', async () => {
      const fleet = new Fleet(atOnce);
      const [owner, other] = await fleet.startAll('owner', 'other');
      const kept = await owner!.box.lock('kept').acquire();
      const hold = await owner!.box.lock('deploy').acquire({ holder: 'worker:1' });
      const { signal } = hold;
      expect(await other!.box.lock('deploy').release({ holder: hold.holder, token: hold.token })).toEqual({
        kind: 'released',
      });
      expect(await other!.box.lock('kept').tryAcquire()).toMatchObject({ kind: 'busy' });
      await fleet.advance(TTL_MS);
      expect(kept.isValid).toBe(true);
      expect(lossOf(signal)?.why).toBe('released-elsewhere');
      expect(hold.isValid).toBe(false);
    });

    it('is not kept by others: a process that stopped to renew its session loses it', async () => {
      const fleet = new Fleet(atOnce);
      const [stuck, other] = await fleet.startAll('stuck', 'other');
      const { holder, token } = await stuck!.box.lock('deploy').acquire({ holder: 'worker:1' });
      await stuck!.box.lock('else').acquire();
      stuck!.crash();
      const lock = other!.box.lock('deploy');
      for (let time = 0; time < 2; time++) {
        await fleet.advance(TTL_MS / 3);
        expect(await lock.renew({ holder, token })).toEqual({ kind: 'attached', ttlMs: TTL_MS });
        expect(await lock.extend({ holder, token }, 60_000)).toEqual({ kind: 'attached', ttlMs: TTL_MS });
      }
      await fleet.advance(TTL_MS / 2);
      expect(await lock.renew({ holder, token })).toEqual({ kind: 'lost' });
      expect(await other!.box.lock('else').tryAcquire()).toMatchObject({ kind: 'reclaimed' });
    });

    it('may itself be given as the claim', async () => {
      const fleet = new Fleet(atOnce);
      const [owner] = await fleet.startAll('owner');
      const hold = await owner!.box.lock('deploy').acquire({ holder: 'worker:1' });
      expect(await owner!.box.lock('deploy').renew(hold)).toEqual({ kind: 'attached', ttlMs: TTL_MS });
      expect(await owner!.box.lock('deploy').release(hold)).toEqual({ kind: 'released' });
    });

    it('is extended by its token from elsewhere without ending what else its process holds', async () => {
      const fleet = new Fleet(atOnce);
      const [owner, other] = await fleet.startAll('owner', 'other');
      const kept = await owner!.box.lock('kept').acquire();
      const hold = await owner!.box.lock('deploy').acquire({ holder: 'worker:1' });
      await other!.box.lock('deploy').extend({ holder: hold.holder, token: hold.token }, 60_000);
      expect(await other!.box.lock('kept').tryAcquire()).toMatchObject({ kind: 'busy' });
      await fleet.advance(TTL_MS);
      expect(kept.isValid).toBe(true);
    });
  });
});
