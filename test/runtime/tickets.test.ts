// A request that waits keeps its place while its caller is away, and any process on the store can go on with it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NotAcquired, open, type Signalbox } from 'signalbox';

const engines = {
  memory: () => ({ url: `memory:tickets-${Math.random()}`, remove: () => undefined }),
  embedded: () => {
    const dir = mkdtempSync(join(tmpdir(), 'signalbox-tickets-'));
    return { url: `file:${join(dir, 'store')}`, remove: () => rmSync(dir, { recursive: true, force: true }) };
  },
};

describe.each(Object.keys(engines) as (keyof typeof engines)[])('a ticket on %s', (engine) => {
  let place: ReturnType<(typeof engines)[typeof engine]>;
  let boxes: Signalbox[];
  const another = async (): Promise<Signalbox> => {
    const box = await open(place.url);
    boxes.push(box);
    return box;
  };

  beforeEach(() => {
    place = engines[engine]();
    boxes = [];
  });
  afterEach(async () => {
    await Promise.all(boxes.map((box) => box.close()));
    place.remove();
  });

  it('is not needed for a lock that is free', async () => {
    const box = await another();
    const answer = await box.lock('main').askDetached({ holder: 'a', mode: 'shared' });
    expect(answer).toMatchObject({ kind: 'acquired', hold: { holder: 'a', mode: 'shared', resource: 'lock/main' } });
  });

  it('is not the request of a process that waits for itself, whatever its id: neither its place nor its session is touched', async () => {
    const [box, process, other] = [await another(), await another(), await another()];
    const held = await box.lock('main').acquire({ holder: 'a' });
    const own = await process.lock('own').acquire({ holder: 'q' });
    const waiting = process.lock('main').acquire({ holder: 'b' });
    const ids = async (): Promise<readonly string[]> =>
      (await box.survey({ resource: { kind: 'lock', name: 'main' } })).locks.flatMap((lock) =>
        lock.waiting.map(({ id }) => id),
      );
    await expect.poll(ids).toHaveLength(1);
    const [ticket = ''] = await ids();
    expect(await other.lock('main').collect({ ticket, holder: 'b' })).toEqual({ kind: 'gone' });
    expect(await other.lock('main').withdraw({ ticket, holder: 'b' })).toEqual({ kind: 'gone' });
    expect(await ids()).toEqual([ticket]);
    await held.release();
    expect((await waiting).isValid).toBe(true);
    expect(await box.lock('own').inspect()).toMatchObject({ holders: [{ holder: 'q', isStale: false }] });
    expect(own.isValid).toBe(true);
  });

  it('keeps its place among others, and gets the lock in its turn', async () => {
    const lock = (await another()).lock('main');
    const held = await lock.acquireDetached({ holder: 'a' });
    const [first, second] = [await lock.askDetached({ holder: 'b' }), await lock.askDetached({ holder: 'c' })];
    if (first.kind !== 'waiting' || second.kind !== 'waiting') throw new Error('they should wait');
    expect(await lock.collect({ ticket: second.ticket, holder: 'c' })).toMatchObject({ kind: 'waiting', position: 2 });
    expect(first.holders).toMatchObject([{ holder: 'a' }]);
    const waiting = lock.collect({ ticket: first.ticket, holder: 'b' }, { waitMs: 60_000 });
    await lock.release(held);
    const got = await waiting;
    if (got.kind !== 'acquired') throw new Error(`it is ${got.kind}`);
    expect(await lock.collect({ ticket: second.ticket, holder: 'c' })).toMatchObject({ kind: 'waiting', position: 1 });
    // The answer may be asked for again.
    expect(await lock.collect({ ticket: first.ticket, holder: 'b' })).toMatchObject({
      kind: 'acquired',
      hold: { token: got.hold.token },
    });
    await lock.release(got.hold);
    expect(await lock.collect({ ticket: first.ticket, holder: 'b' })).toEqual({ kind: 'gone' });
    expect(await lock.collect({ ticket: second.ticket, holder: 'c' })).toMatchObject({ kind: 'acquired' });
  });

  it('is of no use to another holder, who has guessed it, and not lost by that', async () => {
    const box = await another();
    const lock = box.lock('main');
    const held = await lock.acquireDetached({ holder: 'a' });
    const asked = await lock.askDetached({ holder: 'b' });
    if (asked.kind !== 'waiting') throw new Error('it should wait');
    const { ticket } = asked;
    for (const foreign of [lock, box.lock('other')]) {
      expect(await foreign.withdraw({ ticket, holder: 'c' })).toEqual({ kind: 'gone' });
      expect(await foreign.collect({ ticket, holder: 'c' }, { waitMs: 60_000 })).toEqual({ kind: 'gone' });
    }
    expect(await box.lock('other').withdraw({ ticket, holder: 'b' })).toEqual({ kind: 'gone' });
    await lock.release(held);
    expect(await lock.collect({ ticket, holder: 'b' }, { waitMs: 60_000 })).toMatchObject({ kind: 'acquired' });
  });

  it('outlives the process that made it: another one goes on with it, and hears of the grant', async () => {
    const [one, two] = [await another(), await another()];
    const held = await two.lock('main').acquireDetached({ holder: 'a' });
    const asked = await one.lock('main').askDetached({ holder: 'b', maxHoldMs: 60_000 });
    if (asked.kind !== 'waiting') throw new Error('it should wait');
    await one.close();
    const waiting = two.lock('main').collect({ ticket: asked.ticket, holder: 'b' }, { waitMs: 60_000 });
    await two.lock('main').release(held);
    expect(await waiting).toMatchObject({ kind: 'acquired', hold: { holder: 'b', maxHoldMs: 60_000 } });
    expect(await two.lock('main').inspect()).toMatchObject({ holders: [{ holder: 'b', isStale: false }] });
  });

  it('that was granted while its process was alive and nobody asked is still granted', async () => {
    const [one, two] = [await another(), await another()];
    const held = await two.lock('main').acquireDetached({ holder: 'a' });
    const asked = await one.lock('main').askDetached({ holder: 'b' });
    if (asked.kind !== 'waiting') throw new Error('it should wait');
    await two.lock('main').release(held);
    // The letter about the grant has arrived at `one` before this answer of a later write.
    await one.lock('other').acquireDetached({ holder: 'x' });
    expect(await two.lock('main').collect({ ticket: asked.ticket, holder: 'b' })).toMatchObject({ kind: 'acquired' });
    expect(await one.lock('main').collect({ ticket: asked.ticket, holder: 'b' })).toMatchObject({ kind: 'acquired' });
  });

  it('is of no use to another holder', async () => {
    const lock = (await another()).lock('main');
    await lock.acquireDetached({ holder: 'a' });
    const asked = await lock.askDetached({ holder: 'b' });
    if (asked.kind !== 'waiting') throw new Error('it should wait');
    expect(await lock.collect({ ticket: asked.ticket, holder: 'c' })).toEqual({ kind: 'gone' });
    expect(await lock.withdraw({ ticket: asked.ticket, holder: 'c' })).toEqual({ kind: 'gone' });
    expect(await lock.collect({ ticket: asked.ticket, holder: 'b' })).toMatchObject({ kind: 'waiting' });
  });

  it('that is withdrawn leaves the queue, and gives back what it was granted', async () => {
    const lock = (await another()).lock('main');
    const held = await lock.acquireDetached({ holder: 'a' });
    const [b, c] = [await lock.askDetached({ holder: 'b' }), await lock.askDetached({ holder: 'c' })];
    if (b.kind !== 'waiting' || c.kind !== 'waiting') throw new Error('they should wait');
    expect(await lock.withdraw({ ticket: b.ticket, holder: 'b' })).toEqual({ kind: 'withdrawn' });
    expect((await lock.inspect()).waiting.map(({ holder }) => holder)).toEqual(['c']);
    await lock.release(held);
    expect(await lock.withdraw({ ticket: c.ticket, holder: 'c' })).toEqual({ kind: 'withdrawn' });
    expect(await lock.isFree()).toBe(true);
  });

  it('that closes a deadlock is refused with the cycle', async () => {
    const box = await another();
    await box.lock('x').acquireDetached({ holder: 'a' });
    await box.lock('y').acquireDetached({ holder: 'b' });
    const first = await box.lock('y').askDetached({ holder: 'a' });
    const second = await box.lock('x').askDetached({ holder: 'b' });
    if (first.kind !== 'waiting' || second.kind !== 'waiting') throw new Error('they should wait');
    const refused = box.lock('x').collect({ ticket: second.ticket, holder: 'b' }, { waitMs: 60_000 });
    await expect(refused).rejects.toMatchObject({ refusal: { kind: 'deadlock' } });
    await expect(refused).rejects.toBeInstanceOf(NotAcquired);
  });

  it('waits for slots too', async () => {
    const pool = (await another()).semaphore('pool', { capacity: 2 });
    const held = await pool.acquireDetached({ holder: 'a', weight: 2 });
    const asked = await pool.askDetached({ holder: 'b', weight: 1 });
    if (asked.kind !== 'waiting') throw new Error('it should wait');
    await pool.release(held);
    const got = await pool.collect({ ticket: asked.ticket, holder: 'b' }, { waitMs: 60_000 });
    expect(got).toMatchObject({ kind: 'acquired', hold: { weight: 1, slots: [0] } });
  });

  it('takes the time that the lock allows', async () => {
    const lock = (await another()).lock('main');
    await lock.configure({ ttlMs: 20_000 });
    const held = await lock.acquireDetached({ holder: 'a' });
    const asked = await lock.askDetached({ holder: 'b', ttlMs: 90_000 });
    if (asked.kind !== 'waiting') throw new Error('it should wait');
    await lock.release(held);
    expect(await lock.collect({ ticket: asked.ticket, holder: 'b' })).toMatchObject({
      kind: 'acquired',
      hold: { ttlMs: 20_000 },
    });
  });

  it('keeps its place for its own time, and the hold lasts for the time of the hold', async () => {
    const lock = (await another()).lock('main');
    const held = await lock.acquireDetached({ holder: 'a' });
    const asked = await lock.askDetached({ holder: 'b', ttlMs: 3_600_000, ticketMs: 30_000 });
    if (asked.kind !== 'waiting') throw new Error('it should wait');
    await lock.release(held);
    const got = await lock.collect({ ticket: asked.ticket, holder: 'b' });
    expect(got).toMatchObject({ kind: 'acquired', hold: { ttlMs: 3_600_000 } });
    const atOnce = await (
      await another()
    )
      .lock('free')
      .askDetached({ holder: 'b', ttlMs: 3_600_000, ticketMs: 30_000 });
    expect(atOnce).toMatchObject({ kind: 'acquired', hold: { ttlMs: 3_600_000 } });
  });

  it('is what a request without one waits on too, if it says so', async () => {
    const [one, two] = [await another(), await another()];
    const held = await one.lock('main').acquireDetached({ holder: 'a' });
    let queued = (): void => undefined;
    const isQueued = new Promise<void>((resolve) => (queued = resolve));
    const waits = { holder: 'b', ttlMs: 3_600_000, ticketMs: 30_000, onWaiting: queued };
    const waiting = two.lock('main').acquireDetached(waits);
    await isQueued;
    await one.lock('main').release(held);
    expect(await waiting).toMatchObject({ holder: 'b', outcome: 'acquired', ttlMs: 3_600_000 });
    expect(await two.lock('main').renew(await waiting)).toMatchObject({ kind: 'refreshed', ttlMs: 3_600_000 });
  });

  it('that nobody asks for leaves the queue, and a grant that nobody collects goes to the next in line', async () => {
    const [one, two] = [await another(), await another()];
    const lock = one.lock('main');
    const held = await lock.acquireDetached({ holder: 'a' });
    const abandoned = { ttlMs: 3_600_000, ticketMs: 300 };
    for (const holder of ['b', 'c']) await lock.askDetached({ holder, ...abandoned });
    const last = two.lock('main').acquireDetached({ holder: 'd' });
    await lock.release(held);
    expect(await last).toMatchObject({ holder: 'd' });
    expect(await lock.inspect()).toMatchObject({ holders: [{ holder: 'd' }], waiting: [] });
  });
});
