// Who holds what and who waits for whom, as anyone can ask who may read the store.

import { afterEach, describe, expect, it } from 'vitest';
import { open, type Signalbox } from 'signalbox';
import { thisProcess } from '../../src/host/index.ts';
import { Fleet } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

const boxes: Signalbox[] = [];
afterEach(async () => {
  await Promise.all(boxes.splice(0).map((box) => box.close()));
});

async function started(fleet: Fleet, name: string, about?: object): Promise<Signalbox> {
  const { box } = await fleet.start(name, about === undefined ? {} : { about: about as never });
  boxes.push(box);
  return box;
}

describe('a survey', () => {
  it('tells who holds what, why, since when and with which token, without a session and without writing', async () => {
    const fleet = new Fleet(true);
    const worker = await started(fleet, 'w', { host: 'build-3', pid: 4711 });
    const since = fleet.clock.now();
    const hold = await worker.lock('main').acquire({ holder: 'worker:1', reason: 'merging', metadata: { change: 42 } });
    const slots = await worker.semaphore('builds', { capacity: 4 }).acquire({ holder: 'worker:1', weight: 2 });
    await fleet.advance(3000);
    const looker = await started(fleet, 'l');
    const revision = await fleet.revision();

    const survey = await looker.survey();
    expect(await fleet.revision()).toBe(revision);
    expect(survey).toMatchObject({ revision, at: fleet.clock.now() });
    expect(survey.locks).toMatchObject([
      {
        name: 'main',
        resource: 'lock/main',
        token: hold.token,
        holds: [
          {
            holder: 'worker:1',
            token: hold.token,
            mode: 'exclusive',
            acquiredAt: since,
            reason: 'merging',
            metadata: { change: 42 },
            isAttached: true,
            session: { host: 'build-3', pid: 4711 },
            health: 'renewed',
            isStale: false,
            lease: { ttlMs: 15_000, renewedMs: 3000, remainingMs: 12_000 },
          },
        ],
        waiting: [],
      },
    ]);
    expect(survey.semaphores).toMatchObject([
      { name: 'builds', capacity: 4, usedSlots: 2, availableSlots: 2, holds: [{ weight: 2, slots: [0, 1] }] },
    ]);
    expect(survey.sessions).toHaveLength(1);
    expect(slots.weight).toBe(2);
  });

  it('lists those who wait in the order in which they would be served, and whom each waits for', async () => {
    const fleet = new Fleet(true);
    const box = await started(fleet, 'w');
    const lock = box.lock('main');
    const hold = await lock.acquire({ holder: 'a' });
    const waits = [
      lock.acquire({ holder: 'b' }),
      lock.acquire({ holder: 'c', priority: 5, reason: 'urgent' }),
      lock.acquire({ holder: 'd', mode: 'shared' }),
    ];
    await settled();

    const { locks } = await box.survey();
    expect(locks[0]?.waiting.map(({ holder, position, waitsFor }) => ({ holder, position, waitsFor }))).toEqual([
      { holder: 'c', position: 1, waitsFor: ['a'] },
      { holder: 'b', position: 2, waitsFor: ['a', 'c'] },
      { holder: 'd', position: 3, waitsFor: ['a', 'b'] },
    ]);
    expect(locks[0]?.waiting[0]).toMatchObject({ priority: 5, reason: 'urgent', mode: 'exclusive' });
    await hold.release();
    for (const wait of [waits[1], waits[0], waits[2]]) await (await wait)?.release();
  });

  it('tells apart one that is renewed, one that is late, one that has fallen silent, and one that is merely slow', async () => {
    const fleet = new Fleet(true);
    const [late, silent] = [await fleet.start('late'), await fleet.start('silent')];
    const slow = await started(fleet, 'slow');
    await late.box.lock('late').acquire();
    await silent.box.lock('silent').acquire();
    await slow.lock('slow').acquire({ maxHoldMs: 10_000 });
    const health = async (): Promise<Record<string, string>> => {
      const { locks } = await slow.survey();
      return Object.fromEntries(locks.map(({ name, holds }) => [name, `${holds[0]?.health} ${holds[0]?.isStale}`]));
    };
    expect(await health()).toEqual({ late: 'renewed false', silent: 'renewed false', slow: 'renewed false' });

    silent.crash();
    await fleet.advance(9000);
    late.crash();
    expect(await health()).toMatchObject({ late: 'renewed false', silent: 'overdue false' });
    await fleet.advance(8000);
    expect(await health()).toEqual({ late: 'overdue false', silent: 'silent true', slow: 'slow true' });
  });

  it('knows that a process on this machine has ended, where it said which one it was', async () => {
    const own = thisProcess();
    if (own === undefined) return;
    const fleet = new Fleet(true);
    const here = await started(fleet, 'here', { host: 'h', ...own });
    // The same pid, started at another time: whoever had it before.
    const gone = await started(fleet, 'gone', { host: 'h', ...own, start: '1' });
    const elsewhere = await started(fleet, 'elsewhere', { host: 'h', ...own, boot: 'another', start: '1' });
    for (const [name, box] of Object.entries({ here, gone, elsewhere })) await box.lock(name).acquire();
    const { locks } = await here.survey();
    expect(Object.fromEntries(locks.map(({ name, holds }) => [name, holds[0]?.health]))).toEqual({
      here: 'renewed',
      gone: 'process-gone',
      elsewhere: 'renewed',
    });
  });

  it('shows a detached hold as such, however long the process that took it has been gone', async () => {
    const fleet = new Fleet(true);
    const box = await started(fleet, 'b');
    const agent = await fleet.start('a');
    await agent.box.lock('main').acquireDetached({ holder: 'agent:7', ttlMs: 60_000 });
    await agent.box.close();
    await fleet.advance(20_000);
    const { locks, sessions } = await box.survey();
    expect(locks[0]?.holds[0]).toMatchObject({ isAttached: false, session: undefined, health: 'renewed' });
    expect(locks[0]?.holds[0]?.lease).toMatchObject({ ttlMs: 60_000, remainingMs: 40_000 });
    expect(sessions).toEqual([]);
  });

  it('of one resource shows just that one, free if nobody has used it', async () => {
    const fleet = new Fleet(true);
    const box = await started(fleet, 'b');
    await box.lock('a').acquire();
    await box.lock('a/b').acquire();
    const only = await box.survey({ resource: { kind: 'lock', name: 'a' } });
    expect(only.locks.map(({ name }) => name)).toEqual(['a']);
    const unused = await box.survey({ resource: { kind: 'semaphore', name: 'x' } });
    expect(unused.semaphores).toMatchObject([{ name: 'x', capacity: 0, holds: [] }]);
  });

  it('tells who does the maintenance, and leaves out what was not asked for', async () => {
    const fleet = new Fleet(true);
    const box = await started(fleet, 'b');
    await box.lock('a').acquire();
    expect((await box.survey()).maintainer).toBeUndefined();
    await fleet.advance(31_000);
    const { maintainer, locks } = await box.survey({ leases: false });
    expect(maintainer).toMatch(/^b\d+$/);
    expect(locks[0]?.holds[0]).toMatchObject({ lease: undefined, health: 'renewed' });
  });
});

describe('a process that leaves the maintenance to others', () => {
  it('never becomes the maintainer, but still looks after its own waits', async () => {
    const fleet = new Fleet(true);
    const { box } = await fleet.start('b', { maintains: false });
    boxes.push(box);
    await box.lock('a').acquire();
    await fleet.advance(100_000);
    expect((await box.survey()).maintainer).toBeUndefined();
  });
});

describe('a probe', () => {
  it('writes, is heard of, is read, and leaves nothing behind', async () => {
    const box = await open('memory:probed');
    const other = await open('memory:probed');
    boxes.push(box, other);
    const probe = await box.probe(other);
    expect(probe.wakeMs).toBeGreaterThanOrEqual(0);
    expect(probe.writeMs).toBeGreaterThanOrEqual(0);
    expect((await box.survey()).sessions).toEqual([]);
  });
});
