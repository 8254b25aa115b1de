import { setMaxListeners } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  all,
  any,
  type Condition,
  fileExists,
  lockFree,
  lockHeld,
  memberAlive,
  not,
  open,
  semaphoreAvailable,
  taskDone,
} from 'signalbox';
import type { Guard } from 'signalbox/core';
import { fakeAdapters } from 'signalbox/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Fleet, type Process, quietMs, transports, TTL_MS } from '../support/fleet.ts';
import { isPending, settled } from '../support/outcome.ts';
import { settle } from '../../src/testing/test-clock.ts';

/** Nothing is polled before this: who is woken sooner was woken by an event. */
const NEVER_MS = 1e9;

const guard = (condition: Condition, id = 'guard'): Guard => ({ id, condition });

/** How often guards were looked at in this process. */
async function looksOf({ box }: Process): Promise<() => number> {
  let looks = 0;
  await box.on('guard:evaluating', () => void (looks += 1));
  return () => looks;
}

/** How often this process has read one of these keys, in how many transactions. */
function readsOf({ link }: Process, key: string): number {
  return link.asked.filter(({ transaction }) => transaction.success.some((op) => op.do === 'read' && op.key === key))
    .length;
}

describe.each(transports)('who waits for a guard, on $transport', ({ atOnce }) => {
  it.each([
    [
      'a lock is released',
      lockFree('x'),
      async ({ box }: Process) => {
        const hold = await box.lock('x').acquire();
        return () => hold.release();
      },
    ],
    [
      'a lock is broken',
      lockFree('x'),
      async ({ box }: Process) => {
        await box.lock('x').acquire();
        return () => box.lock('x').break({ holder: 'user:ana', reason: 'it hangs' });
      },
    ],
    [
      'a lock is taken',
      not(lockFree('x')),
      async ({ box }: Process) =>
        () =>
          box.lock('x').acquire(),
    ],
    [
      'that very holder is out, although another comes in at once',
      not(lockHeld('x', 'a')),
      async ({ box }: Process) => {
        const hold = await box.lock('x').acquire({ holder: 'a' });
        void box.lock('x').acquire({ holder: 'b' });
        await settled();
        return () => hold.release();
      },
    ],
    [
      'slots are free',
      semaphoreAvailable('x', 2),
      async ({ box }: Process) => {
        const hold = await box.semaphore('x', { capacity: 2 }).acquire();
        return () => hold.release();
      },
    ],
    [
      'there are more slots',
      semaphoreAvailable('x', 2),
      async ({ box }: Process) => {
        await box.semaphore('x', { capacity: 2 }).acquire();
        return () => box.semaphore('x').resize(3);
      },
    ],
    [
      'somebody has created the semaphore',
      semaphoreAvailable('x', 1),
      async ({ box }: Process) =>
        () =>
          box.semaphore('x', { capacity: 2 }).acquire(),
    ],
    [
      'the first one to use it says how many slots a semaphore has that was only configured',
      semaphoreAvailable('x', 1),
      async ({ box }: Process) => {
        await box.semaphore('x').configure({ onStale: 'alert' });
        return () => box.semaphore('x', { capacity: 2 }).acquire();
      },
    ],
    [
      'a semaphore is made by giving it a size',
      semaphoreAvailable('x', 3),
      async ({ box }: Process) =>
        () =>
          box.semaphore('x').resize(3),
    ],
    [
      'a semaphore that nobody holds is imported',
      semaphoreAvailable('x', 1),
      async ({ box }: Process) => {
        const directory = await mkdtemp(join(tmpdir(), 'signalbox-waking-'));
        onTestFinished(() => rm(directory, { recursive: true }));
        await using other = await open('memory:');
        await (await other.semaphore('x', { capacity: 2 }).acquire()).release();
        await other.saveState(directory);
        return () => box.loadState(directory);
      },
    ],
    [
      'a task is done',
      taskDone('x'),
      async ({ box }: Process) => {
        await box.tasks.publish('x', null);
        return async () => (await box.tasks.claim('x')).complete();
      },
    ],
    [
      'a member has joined',
      memberAlive('x'),
      async ({ box }: Process) =>
        () =>
          box.members.join('x'),
    ],
    [
      'a member has left',
      not(memberAlive('x')),
      async ({ box }: Process) => {
        const joined = await box.members.join('x');
        return () => (joined.kind === 'joined' ? joined.membership.leave() : Promise.reject(new Error('taken')));
      },
    ],
    [
      'one of several parts has changed',
      all([any([lockFree('x'), lockFree('y')]), not(lockHeld('z'))]),
      async ({ box }: Process) => {
        await box.lock('x').acquire();
        const hold = await box.lock('y').acquire();
        return () => hold.release();
      },
    ],
  ] as const)('is woken by an event of another process, and not by a poll, once %s', async (_, condition, prepare) => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const act = await prepare(worker!);
    const waiting = waiter!.box.guards.wait(condition, { pollMs: NEVER_MS });
    expect(await isPending(waiting)).toBe(true);
    await settle();
    expect(await isPending(waiting)).toBe(true);
    await act();
    expect(await waiting).toMatchObject({ kind: 'passed' });
  });

  it('misses nothing that happens while it takes its first look', async () => {
    const fleet = new Fleet(false);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const hold = await worker!.box.lock('x').acquire();
    waiter!.link.next('transaction', 'held', ({ success }) =>
      success.some((operation) => operation.do === 'read' && operation.key === 'r/lock/x'),
    );
    const kinds: string[] = [];
    const waiting = waiter!.box.guards.wait(lockFree('x'), {
      pollMs: NEVER_MS,
      onVerdict: ({ outcome }) => void kinds.push(outcome.kind),
    });
    await settle();
    await hold.release();
    await settle();
    waiter!.link.answerHeld();
    await settle();
    expect(await isPending(waiting)).toBe(false);
    expect(kinds).toEqual(['failed', 'passed']);
  });

  it('does not look again when the lock is handed to the next one by the same write', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, next, waiter] = await fleet.startAll('worker', 'next', 'waiter');
    const looks = await looksOf(waiter!);
    const first = await worker!.box.lock('x').acquire();
    const second = next!.box.lock('x').acquire();
    await settle();
    const waiting = waiter!.box.guards.wait(lockFree('x'), { pollMs: NEVER_MS });
    await settle();
    await first.release();
    const hold = await second;
    await settle();
    expect(looks()).toBe(1);
    expect(await isPending(waiting)).toBe(true);
    await hold.release();
    expect(await waiting).toMatchObject({ kind: 'passed' });
    expect(looks()).toBe(2);
  });

  it('is woken when what it asks for is handed to the holder whose holds do not count', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const { box } = worker!;
    const hold = await box.lock('x').acquire({ holder: 'a' });
    const slot = await box.semaphore('s', { capacity: 1 }).acquire({ holder: 'a' });
    const ours = [box.lock('x').acquire({ holder: 'me' }), box.semaphore('s').acquire({ holder: 'me' })];
    await settle();
    const wait = (condition: Condition) => waiter!.box.guards.wait(condition, { pollMs: NEVER_MS, own: 'me' });
    const waiting = [wait(lockFree('x')), wait(semaphoreAvailable('s', 1))];
    await settle();
    await Promise.all([hold.release(), slot.release(), ...ours]);
    await settle();
    expect(await Promise.all(waiting.map(isPending))).toEqual([false, false]);
  });

  it('looks again only for what it asks about, unless it says itself what wakes it', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const { box } = worker!;
    await box.lock('x').acquire();
    const looks = await looksOf(waiter!);
    const stop = new AbortController();
    const { signal } = stop;
    const derived = waiter!.box.guards.wait(guard(lockFree('x')), { pollMs: NEVER_MS, signal }).catch(() => undefined);
    await settle();
    await (await box.lock('y').acquire()).release();
    await (await box.semaphore('x', { capacity: 1 }).acquire()).release();
    await settle();
    expect(looks()).toBe(1);
    const said = waiter!.box.guards
      .wait({ ...guard(lockFree('x')), wakeOn: ['semaphore:released', 'task:*'] }, { pollMs: NEVER_MS, signal })
      .catch(() => undefined);
    await settle();
    await (await box.lock('y').acquire()).release();
    await settle();
    expect(looks()).toBe(2);
    await (await box.semaphore('other', { capacity: 1 }).acquire()).release();
    await settle();
    expect(looks()).toBe(3);
    await box.tasks.publish('any', null);
    await settle();
    expect(looks()).toBe(4);
    stop.abort();
    await Promise.all([derived, said]);
  });

  it('never polls what the store announces: no read and no timer while nothing happens', async () => {
    const fleet = new Fleet(atOnce);
    const [worker] = await fleet.startAll('worker');
    const waiter = await fleet.start('waiter', { maintains: false });
    await worker!.box.lock('x').acquire();
    await waiter.box.lock('unrelated').isFree();
    const looks = await looksOf(waiter);
    // Everything else that a process with a session does on its own.
    const first = waiter.box.guards.wait(lockFree('x'));
    await settle();
    const timers = fleet.clock.pendingTimers;
    const second = waiter.box.guards.wait(all([lockFree('x'), taskDone('t'), memberAlive('m')]));
    await settle();
    expect(fleet.clock.pendingTimers).toBe(timers);
    expect(looks()).toBe(2);
    const reads = readsOf(waiter, 'r/lock/x');
    await fleet.advance(quietMs(atOnce));
    expect(readsOf(waiter, 'r/lock/x')).toBe(reads);
    expect(looks()).toBe(2);
    expect([await isPending(first), await isPending(second)]).toEqual([true, true]);
  });

  it('polls what nobody announces, every two seconds unless said otherwise, and no more once it passes', async () => {
    const world = fakeAdapters();
    const fleet = new Fleet(atOnce);
    const waiter = await fleet.start('waiter', { adapters: world });
    const usual = waiter.box.guards.wait(fileExists('usual'));
    const slow = waiter.box.guards.wait(all([fileExists('slow'), lockFree('x')]), { pollMs: 60_000 });
    await settle();
    const asked = (path: string): number => world.files.asked.filter(([, name]) => name === path).length;
    expect([asked('usual'), asked('slow')]).toEqual([1, 1]);
    await fleet.advance(2000);
    expect([asked('usual'), asked('slow')]).toEqual([2, 1]);
    await fleet.advance(58_000);
    expect([asked('usual'), asked('slow')]).toEqual([31, 2]);
    world.files.write('usual', '');
    world.files.write('slow', '');
    await fleet.advance(60_000);
    expect([(await usual).kind, (await slow).kind]).toEqual(['passed', 'passed']);
    expect([asked('usual'), asked('slow')]).toEqual([32, 3]);
    await fleet.advance(quietMs(atOnce));
    expect([asked('usual'), asked('slow')]).toEqual([32, 3]);
  });

  it('tries again what could not be looked at, until it can', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const hold = await worker!.box.lock('x').acquire();
    const looks = await looksOf(waiter!);
    const kinds: string[] = [];
    const watch = await waiter!.box.guards.watch([guard(lockFree('x'))], { pollMs: 1000 });
    const look = async (): Promise<void> => {
      const [outcome] = await waiter!.box.guards.check([guard(lockFree('x'))]);
      kinds.push(outcome!.kind);
    };
    waiter!.link.next('transaction', 'refused');
    await look();
    const poll = watch.next();
    await fleet.advance(999);
    expect(await isPending(poll)).toBe(true);
    await fleet.advance(1);
    expect(await poll).toBe('poll');
    await look();
    expect(kinds).toEqual(['needsInput', 'failed']);
    // It can be looked at again: from here on only an event is worth another look.
    const event = watch.next();
    await fleet.advance(quietMs(atOnce));
    expect(await isPending(event)).toBe(true);
    expect(looks()).toBe(2);
    await hold.release();
    expect(await event).toBe('event');
    watch.close();
  });

  it('tries again what it could not look at, although somebody else could meanwhile', async () => {
    const fleet = new Fleet(atOnce);
    const [waiter] = await fleet.startAll('waiter');
    const kinds: string[] = [];
    let goOn = (): void => undefined;
    const busy = new Promise<void>((resolve) => (goOn = resolve));
    waiter!.link.next('transaction', 'refused', ({ success }) =>
      success.some((operation) => operation.do === 'read' && operation.key === 'r/lock/x'),
    );
    const handler = async ({ kind }: { readonly kind: string }): Promise<void> => {
      kinds.push(kind);
      await busy;
    };
    const registering = waiter!.box.guards.register(guard(lockFree('x')), handler, { pollMs: 1000 });
    await settle();
    expect(await waiter!.box.check(lockFree('x'))).toMatchObject({ kind: 'passed' });
    goOn();
    await registering;
    await fleet.advance(1000);
    expect(kinds).toEqual(['needsInput', 'passed']);
  });

  it('owes one look, however much has happened since the last one', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const watch = await waiter!.box.guards.watch([guard(lockFree('x'))], { pollMs: NEVER_MS });
    for (let time = 0; time < 5; time++) await (await worker!.box.lock('x').acquire()).release();
    await settle();
    expect(await watch.next()).toBe('event');
    const next = watch.next();
    await settle();
    expect(await isPending(next)).toBe(true);
    watch.close();
    expect(await next).toBe('aborted');
  });

  it('looks again after history was forgotten, because it may have missed something', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const hold = await worker!.box.lock('x').acquire();
    const watch = await waiter!.box.guards.watch([guard(lockFree('x'))], { pollMs: NEVER_MS });
    waiter!.link.cutOff('refusing');
    await hold.release();
    await fleet.store.compact(await fleet.revision());
    waiter!.link.reconnect();
    const next = watch.next();
    await fleet.advance(5000);
    expect(await next).toBe('resync');
    watch.close();
  });

  it('sees what happened over a connection that broke', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const hold = await worker!.box.lock('x').acquire();
    const waiting = waiter!.box.guards.wait(lockFree('x'), { pollMs: NEVER_MS });
    await settle();
    waiter!.link.cutOff('refusing');
    await hold.release();
    await fleet.advance(1000);
    waiter!.link.reconnect();
    await fleet.advance(5000);
    expect(await waiting).toMatchObject({ kind: 'passed' });
  });
});

describe.each(transports)('a lock whose holder died, on $transport', ({ atOnce }) => {
  it('is freed for a guard that waits for it, as soon as the holder is known to be gone', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, waiter] = await fleet.startAll('dead', 'waiter');
    await dead!.box.lock('x').acquire({ holder: 'worker:1' });
    await dead!.box.semaphore('s', { capacity: 1 }).acquire({ holder: 'worker:1' });
    const waiting = waiter!.box.guards.wait(all([lockFree('x'), semaphoreAvailable('s', 1)]), { pollMs: NEVER_MS });
    await settle();
    dead!.crash();
    await fleet.advance(TTL_MS - 1000);
    expect(await isPending(waiting)).toBe(true);
    await fleet.advance(2000);
    expect(await waiting).toMatchObject({ kind: 'passed' });
  });

  it('is left to maintenance once nobody waits for it any more', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, waiter] = await fleet.startAll('dead', 'waiter');
    await dead!.box.lock('x').acquire({ holder: 'worker:1' });
    expect(await waiter!.box.guards.wait(lockFree('x'), { timeoutMs: 0 })).toMatchObject({ kind: 'failed' });
    const registered = await waiter!.box.guards.register(guard(lockFree('x')));
    registered.unregister();
    dead!.crash();
    await fleet.advance(TTL_MS + 1000);
    expect(await waiter!.box.check(lockFree('x'))).toMatchObject({ reasons: ['lock "x" is held by worker:1 (stale)'] });
  });

  it('is freed as well if it was handed to that holder while it was waited for', async () => {
    const fleet = new Fleet(atOnce);
    const [first, dead, waiter] = await fleet.startAll('first', 'dead', 'waiter');
    const hold = await first!.box.lock('x').acquire();
    const handed = dead!.box.lock('x').acquire();
    await settle();
    const waiting = waiter!.box.guards.wait(lockFree('x'), { pollMs: NEVER_MS });
    await settle();
    await hold.release();
    await handed;
    await settle();
    dead!.crash();
    await fleet.advance(TTL_MS + 1000);
    expect(await isPending(waiting)).toBe(false);
  });

  it.each(['that it died is heard before that it got the lock', 'it got the lock while that was being read'] as const)(
    'is freed as well if %s',
    async (when) => {
      const fleet = new Fleet(false);
      const [first, dead, waiter] = await fleet.startAll('first', 'dead', 'waiter');
      const hold = await first!.box.lock('x').acquire();
      const handed = dead!.box.lock('x').acquire();
      await settle();
      const isRead = when === 'it got the lock while that was being read';
      if (isRead) {
        waiter!.link.next('transaction', 'held', ({ success }) =>
          success.some((operation) => operation.do === 'read' && operation.key === 'r/lock/x'),
        );
      }
      const waiting = waiter!.box.guards.wait(lockFree('x'), { pollMs: NEVER_MS });
      await settle();
      if (!isRead) waiter!.link.holdNews();
      await hold.release();
      await handed;
      await settle();
      waiter!.link.answerHeld();
      await settle();
      dead!.crash();
      await fleet.advance(TTL_MS + 1000);
      waiter!.link.deliverNews();
      await settle();
      expect(await isPending(waiting)).toBe(false);
    },
  );

  it('is freed as well if the holder died before anybody waited', async () => {
    const fleet = new Fleet(atOnce);
    const [dead] = await fleet.startAll('dead');
    await dead!.box.lock('x').acquire({ holder: 'worker:1' });
    dead!.crash();
    await fleet.advance(2 * TTL_MS);
    const waiter = await fleet.start('waiter');
    expect(await waiter.box.guards.wait(lockFree('x'), { pollMs: NEVER_MS })).toMatchObject({ kind: 'passed' });
  });

  it('is waited for by one who may not free it, until maintenance does', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, keeper] = await fleet.startAll('dead', 'keeper');
    const waiter = await fleet.start('waiter', { reclaim: false });
    await dead!.box.lock('x').acquire({ holder: 'worker:1' });
    const waiting = waiter.box.guards.wait(lockFree('x'), { pollMs: NEVER_MS });
    await settle();
    dead!.crash();
    await fleet.advance(TTL_MS + 5000);
    expect(await isPending(waiting)).toBe(true);
    await keeper!.box.maintain();
    expect(await waiting).toMatchObject({ kind: 'passed' });
  });

  it('stays as it is where a person has to decide', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, waiter] = await fleet.startAll('dead', 'waiter');
    await dead!.box.lock('x').configure({ onStale: 'alert' });
    await dead!.box.lock('x').acquire({ holder: 'worker:1' });
    const waiting = waiter!.box.guards.wait(lockFree('x'), { pollMs: NEVER_MS });
    await settle();
    dead!.crash();
    await fleet.advance(TTL_MS + 100_000);
    expect(await isPending(waiting)).toBe(true);
    await waiter!.box.lock('x').break({ holder: 'user:ana', reason: 'its machine is gone' });
    expect(await waiting).toMatchObject({ kind: 'passed' });
  });
});

describe.each(transports)('two hundred who wait for one lock, on $transport', ({ atOnce }) => {
  const MANY = 200;

  it('share one watch and one read, and each looks once when it is free', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const hold = await worker!.box.lock('x').acquire();
    const looks = await looksOf(waiter!);
    const watches = waiter!.link.asked.filter(({ call }) => call === 'watch').length;
    const first = readsOf(waiter!, 'r/lock/x');
    const waiting = Array.from({ length: MANY }, (_, place) =>
      waiter!.box.guards.wait(guard(lockFree('x'), `guard-${place}`), { pollMs: NEVER_MS }),
    );
    await settle();
    await settle();
    expect(waiter!.link.asked.filter(({ call }) => call === 'watch').length - watches).toBe(0);
    expect(looks()).toBe(MANY);
    const before = readsOf(waiter!, 'r/lock/x');
    expect(before - first).toBe(1);
    await hold.release();
    const outcomes = await Promise.all(waiting);
    await settle();
    expect(outcomes.every(({ kind }) => kind === 'passed')).toBe(true);
    expect(looks()).toBe(2 * MANY);
    expect(readsOf(waiter!, 'r/lock/x') - before).toBe(1);
  });

  it('do not look at all while it goes from one to the next', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, waiter] = await fleet.startAll('worker', 'waiter');
    const lock = worker!.box.lock('x');
    const holds = [await lock.acquire()];
    const queue = Array.from({ length: 10 }, () => lock.acquire());
    const looks = await looksOf(waiter!);
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const waiting = Array.from({ length: MANY }, (_, place) =>
      waiter!.box.guards
        .wait(guard(lockFree('x'), `guard-${place}`), { pollMs: NEVER_MS, signal: stop.signal })
        .catch(() => undefined),
    );
    await settle();
    for (const next of queue) {
      await holds.pop()!.release();
      holds.push(await next);
    }
    await settle();
    expect(looks()).toBe(MANY);
    stop.abort();
    await Promise.all(waiting);
  });
});
