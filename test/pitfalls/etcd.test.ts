// Bugs of others that must never be ours, on a real etcd in real time: pauses are longer than the lease, processes are
// stopped and killed, and networks stand still. What takes a cluster is in etcd-cluster.test.ts; what an engine has to
// promise for all of this, without a server, in the other files here.

import { HoldLost } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type AtEnd, EtcdFleet, eventually, inQueue, TTL_MS, untilWaiting } from '../support/etcd/fleet.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { errorOf, lossOf, refusalOf } from '../support/outcome.ts';
import { built } from '../support/run-processes.ts';

// They wait for leases to end: all together, each with locks of its own.
vi.setConfig({ maxConcurrency: 40 });

/** Of sessions that have to live on, also on a machine that is busy with other tests. */
const LIVING_MS = 8000;

describe.skipIf(isMissing('etcd'))('on etcd', { concurrent: true }, () => {
  let server: EtcdServer;
  beforeAll(async () => {
    built();
    server = await startEtcd();
  });
  afterAll(() => server?.stop());

  const fleet = (atEnd: AtEnd): EtcdFleet => new EtcdFleet(server, atEnd);

  describe('1. a lease-based lock does not exclude by itself', () => {
    it('a process that was stopped for longer than its lease writes nothing once another has the lock', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [sleeper, next] = [await processes.startRemote(), await processes.startRemote(15_000)];
      sleeper.tell({ do: 'acquire', name: '1-stopped' });
      const slept = await sleeper.acquired('1-stopped');
      next.tell({ do: 'acquire', name: '1-stopped' });
      await next.said({ kind: 'waiting' });
      sleeper.pause();
      const token = await next.acquired('1-stopped');
      sleeper.resume();
      expect(await sleeper.said({ kind: 'lost' })).toMatchObject({ why: 'disconnected' });
      expect(token).toBeGreaterThan(slept);
      // It had the whole of its wake-up to write in; the next one has written all the while.
      next.tell({ do: 'release', name: '1-stopped' });
      await next.said({ kind: 'done', do: 'release' });
      expect(processes.written).toEqual([slept, token]);
    });

    it('a holder whose network stands still is told before anybody else gets the lock', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [cut, next] = [await processes.start({ isShort: true }), await processes.start()];
      const hold = await cut.box.lock('1-stalled').acquire();
      const order: string[] = [];
      hold.signal.addEventListener('abort', () => order.push('told'));
      const { granted } = await inQueue(next.box.lock('1-stalled'));
      cut.way.stall();
      await granted.then(() => order.push('granted'));
      expect(order).toEqual(['told', 'granted']);
      expect(lossOf(hold.signal)?.why).toBe('disconnected');
    });
  });

  describe('2. and 3. a waiter is blind to the death of its own session', () => {
    it('a waiter that was stopped past its lease is not let in when it wakes; the next one is', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [holder, patient] = [await processes.start(), await processes.start()];
      const blind = await processes.startRemote();
      const hold = await holder.box.lock('2-blind').acquire();
      blind.tell({ do: 'acquire', name: '2-blind' });
      await blind.said({ kind: 'waiting' });
      const { granted } = await inQueue(patient.box.lock('2-blind'), { holder: 'patient' });
      blind.pause();
      await untilWaiting(holder.box.lock('2-blind'), 'patient');
      await hold.release();
      const next = await granted;
      blind.resume();
      expect(await blind.said({ kind: 'failed' })).toMatchObject({ refusal: 'session-lost' });
      expect(next.isValid).toBe(true);
    });

    it('a waiter that was granted while it was stopped does not lead once its lease is gone', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [holder, next] = [await processes.start(), await processes.start()];
      const sleeper = await processes.startRemote();
      const hold = await holder.box.lock('2-granted').acquire();
      sleeper.tell({ do: 'acquire', name: '2-granted' });
      await sleeper.said({ kind: 'waiting' });
      sleeper.pause();
      await hold.release();
      const leader = await next.box.lock('2-granted').acquire();
      sleeper.resume();
      expect(await sleeper.said({ kind: 'failed' })).toMatchObject({ refusal: 'session-lost' });
      expect(leader.isValid).toBe(true);
    });
  });

  describe("4. an unlock that comes late or twice deletes the next holder's lock", () => {
    it("a process that was stopped past its lease cannot release the next holder's lock", async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [sleeper, next] = [await processes.startRemote(), await processes.start()];
      sleeper.tell({ do: 'acquire', name: '4-slept' });
      await sleeper.acquired('4-slept');
      sleeper.pause();
      sleeper.tell({ do: 'release', name: '4-slept' });
      const held = await next.box.lock('4-slept').acquire();
      sleeper.resume();
      expect(await sleeper.said({ kind: 'done', do: 'release' })).toMatchObject({ released: 'already-lost' });
      expect(await next.box.lock('4-slept').isHeldBy(held.holder)).toBe(true);
    });

    it('a release that the network delivers when the next one has the lock changes nothing', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [late, next] = [await processes.start({ isShort: true }), await processes.start()];
      const hold = await late.box.lock('4-late').acquire();
      late.way.stall('requests');
      const releasing = hold.release().catch((error: unknown) => error);
      const held = await next.box.lock('4-late').acquire();
      late.way.goOn();
      await releasing;
      // Whatever was on its way has arrived before this.
      expect(await late.box.lock('4-late').tryAcquire()).toMatchObject({ kind: 'busy' });
      expect((await next.box.lock('4-late').inspect()).holders).toMatchObject([{ token: held.token }]);
      expect(held.isValid).toBe(true);
    });
  });

  describe('5. two tasks of one process share a session and both hold', () => {
    it('a second task in the same process waits like anybody else', async ({ onTestFinished }) => {
      const { box } = await fleet(onTestFinished).start();
      const first = await box.lock('5').acquire();
      const { granted } = await inQueue(box.lock('5'));
      expect(await box.lock('5').tryAcquire()).toMatchObject({ kind: 'busy' });
      await first.release();
      expect((await granted).token).toBeGreaterThan(first.token);
      const agents = box.semaphore('5', { capacity: 2 });
      const [one, other] = await Promise.all([agents.acquire(), agents.acquire()]);
      expect([...one.slots, ...other.slots].sort()).toEqual([0, 1]);
      expect(await agents.tryAcquire()).toMatchObject({ kind: 'full', free: 0 });
    });
  });

  describe('6. a failed or cancelled wait leaves its claim behind and blocks the queue', () => {
    it('whoever waits behind one that gave up, or ran out of time, is next', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [holder, quitter, patient] = [await processes.start(), await processes.start(), await processes.start()];
      const hold = await holder.box.lock('6-quit').acquire();
      const quit = new AbortController();
      const aborted = await inQueue(quitter.box.lock('6-quit'), { signal: quit.signal, holder: 'quitter' });
      const hasty = await inQueue(quitter.box.lock('6-quit'), { waitMs: 5000, holder: 'hasty' });
      const { granted } = await inQueue(patient.box.lock('6-quit'), { holder: 'patient' });
      quit.abort();
      expect(await refusalOf(aborted.granted)).toMatchObject({ kind: 'aborted' });
      expect(await refusalOf(hasty.granted)).toMatchObject({ kind: 'timed-out' });
      await untilWaiting(holder.box.lock('6-quit'), 'patient');
      await hold.release();
      expect((await granted).isValid).toBe(true);
    });

    it('the killed at the head of the queue are passed by', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [holder, patient] = [await processes.start(), await processes.start()];
      const dead = await processes.startRemote();
      const hold = await holder.box.lock('6-killed').acquire();
      dead.tell({ do: 'acquire', name: '6-killed' });
      await dead.said({ kind: 'waiting' });
      const { granted } = await inQueue(patient.box.lock('6-killed'), { holder: 'patient' });
      await dead.kill();
      await untilWaiting(holder.box.lock('6-killed'), 'patient');
      await hold.release();
      expect((await granted).isValid).toBe(true);
    });

    it('a head that is killed before it hears of its grant does not keep the lock', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [holder, patient] = [await processes.start(), await processes.start()];
      const dead = await processes.startRemote();
      const hold = await holder.box.lock('6-unheard').acquire();
      dead.tell({ do: 'acquire', name: '6-unheard' });
      await dead.said({ kind: 'waiting' });
      const { granted } = await inQueue(patient.box.lock('6-unheard'));
      dead.pause();
      await hold.release();
      await dead.kill();
      expect((await granted).isValid).toBe(true);
    });
  });

  describe('7. a read/write lock grants after the lease died', () => {
    it('a reader that was stopped past its lease is not let in beside the next writer', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [writer, next] = [await processes.start(), await processes.start()];
      const reader = await processes.startRemote();
      const hold = await writer.box.lock('7').acquire();
      reader.tell({ do: 'acquire', name: '7', mode: 'shared' });
      await reader.said({ kind: 'waiting' });
      const { granted } = await inQueue(next.box.lock('7'), { holder: 'next' });
      reader.pause();
      await untilWaiting(writer.box.lock('7'), 'next');
      await hold.release();
      await granted;
      reader.resume();
      expect(await reader.said({ kind: 'failed' })).toMatchObject({ refusal: 'session-lost' });
      expect((await next.box.lock('7').inspect()).holders).toMatchObject([{ holder: 'next' }]);
    });
  });

  describe('8. the loss is told only after twice the lease, by the wall clock', () => {
    it('a holder whose renewals were slow is still told before the lock goes to another', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [slow, next] = [await processes.start({ isShort: true }), await processes.start()];
      const hold = await slow.box.lock('8').acquire();
      const order: string[] = [];
      hold.signal.addEventListener('abort', () => order.push('told'));
      const { granted } = await inQueue(next.box.lock('8'));
      // Were time counted from the answer on, the lock would go to the next one before it is told.
      slow.way.delay(300);
      const { lastHeartbeat: first = 0 } = (await next.box.lock('8').inspect()).holders[0] ?? {};
      await eventually(
        async () => (await next.box.lock('8').inspect()).holders[0]?.lastHeartbeat,
        (found) => (found ?? 0) > first + 1000,
      );
      slow.way.stall();
      await granted.then(() => order.push('granted'));
      expect(order).toEqual(['told', 'granted']);
    });

    it('a laptop that was suspended knows it by the wall clock, although the monotonic one stood still', async ({
      onTestFinished,
    }) => {
      const { box, clock } = await fleet(onTestFinished).start();
      const hold = await box.lock('8-laptop').acquire();
      clock.jumpWall(60_000);
      expect(hold.isValid).toBe(false);
    });
  });

  describe('9. a grant that arrived already expired is handed to the caller', () => {
    it('a grant that the network delivers when the session is over is no hold', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [holder, slow, next] = [
        await processes.start(),
        await processes.start({ isShort: true }),
        await processes.start(),
      ];
      const hold = await holder.box.lock('9').acquire();
      const late = await inQueue(slow.box.lock('9'));
      const { granted } = await inQueue(next.box.lock('9'));
      slow.way.stall('answers');
      const refused = refusalOf(late.granted);
      await hold.release();
      await granted;
      slow.way.goOn();
      expect(await refused).toEqual({ kind: 'session-lost' });
    });
  });

  describe('10. the renewal fails and nobody is told', () => {
    it('a hold is told that etcd could not be reached', async ({ onTestFinished }) => {
      const { box, way } = await fleet(onTestFinished).start({ isShort: true });
      const hold = await box.lock('10-cut').acquire();
      const told = new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
      way.cut();
      await told;
      expect(lossOf(hold.signal)).toMatchObject({ why: 'disconnected', resource: 'lock/10-cut', code: 'hold-lost' });
    });

    it('a connection that breaks and comes back costs nobody a hold', async ({ onTestFinished }) => {
      const { box, way } = await fleet(onTestFinished).start({ sessionTtlMs: LIVING_MS });
      const hold = await box.lock('10-back').acquire();
      const begun = performance.now();
      while (performance.now() < begun + 1.2 * LIVING_MS) {
        way.drop();
        await box.lock('10-back').inspect();
        // Nothing is waited for by it. etcd's leases run in real time, and this is so much of it between two cuts.
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(hold.isValid).toBe(true);
      expect(await hold.release()).toEqual({ kind: 'released' });
    });
  });

  describe("11. releasing an expired lock throws and hides its user's own error", () => {
    it('the error of the work is what comes out of run, lost hold or not', async ({ onTestFinished }) => {
      const { box, way } = await fleet(onTestFinished).start({ isShort: true });
      const own = new Error('disk full');
      const ran = box.lock('11').run(async (hold) => {
        way.cut();
        await new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
        throw own;
      });
      expect(await errorOf(ran)).toBe(own);
    });

    it('work that went well under a hold that was lost is told so', async ({ onTestFinished }) => {
      const { box, way } = await fleet(onTestFinished).start({ isShort: true });
      const ran = box.lock('11-well').run(async (hold) => {
        way.cut();
        await new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
      });
      expect(await errorOf(ran)).toBeInstanceOf(HoldLost);
    });
  });

  describe('13. the holder is not told; there are two leaders; a failed release forgets the claim', () => {
    it('a holder whose lock is taken by force learns who took it and why, and there is one leader', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [old, admin] = [await processes.start(), await processes.start()];
      const hold = await old.box.lock('13-force').acquire({ holder: 'worker:old' });
      const told = new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
      const force = { strategy: 'force', holder: 'user:anna', reason: 'stuck since noon' } as const;
      const taken = await admin.box.lock('13-force').acquire(force);
      await told;
      expect(lossOf(hold.signal)).toMatchObject({ why: 'forced', by: 'user:anna', reason: 'stuck since noon' });
      expect([hold.isValid, taken.isValid]).toEqual([false, true]);
      expect((await old.box.lock('13-force').inspect()).holders).toMatchObject([{ holder: 'user:anna' }]);
    });

    it('a release that could not be delivered is tried until it is', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [cut, next] = [await processes.start(), await processes.start()];
      const hold = await cut.box.lock('13-release').acquire();
      const { granted } = await inQueue(next.box.lock('13-release'));
      cut.way.cut();
      const releasing = hold.release();
      setTimeout(() => cut.way.goOn(), 500);
      expect(await releasing).toEqual({ kind: 'released' });
      expect((await granted).isValid).toBe(true);
    });

    it('a release that never arrived is known to have failed, and the lease frees the lock', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [cut, next] = [await processes.start({ isShort: true }), await processes.start()];
      const hold = await cut.box.lock('13-failed').acquire();
      const { granted } = await inQueue(next.box.lock('13-failed'));
      cut.way.cut();
      const released = await hold.release().catch((error: unknown) => error);
      expect(released).not.toEqual({ kind: 'released' });
      expect(hold.isValid).toBe(false);
      expect((await granted).isValid).toBe(true);
    });
  });

  describe('15. an abort that races a grant leaks the grant', () => {
    it('one who gives up as the lock is handed to it, and leaves, leaves nothing behind', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const holder = await processes.start();
      for (let round = 0; round < 8; round++) {
        const quitter = await processes.start();
        const lock = holder.box.lock(`15-${round}`);
        const hold = await lock.acquire();
        const quit = new AbortController();
        const { granted } = await inQueue(quitter.box.lock(`15-${round}`), { signal: quit.signal });
        const ended = granted.catch(() => undefined);
        const released = hold.release();
        // A little later each time: before, while and after the grant is on its way.
        await new Promise((resolve) => setTimeout(resolve, round));
        quit.abort();
        await ended;
        await quitter.box.close();
        await released;
        expect(await lock.isFree()).toBe(true);
      }
    });
  });

  describe('16. the clocks of clients decide who expired', () => {
    it.for([-86_400_000, 86_400_000])(
      'a process whose clock is wrong by %d ms takes nothing from a living holder',
      async (wrongBy, { onTestFinished }) => {
        const processes = fleet(onTestFinished);
        const [holder, wrong] = [await processes.start(), await processes.start()];
        wrong.clock.jumpWall(wrongBy);
        const name = `16-${wrongBy}`;
        const hold = await holder.box.lock(name).acquire({ maxHoldMs: 3_600_000 });
        expect(await wrong.box.lock(name).tryAcquire({ strategy: 'steal-stale' })).toMatchObject({ kind: 'busy' });
        expect(await wrong.box.lock(name).isStale()).toBe(false);
        expect(hold.isValid).toBe(true);
      },
    );

    it('the longest time of a hold is measured by etcd, whatever the clock of its holder said', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [wrong, next] = [await processes.start(), await processes.start()];
      wrong.clock.jumpWall(-86_400_000);
      const begun = performance.now();
      await wrong.box.lock('16-limit').acquire({ maxHoldMs: TTL_MS });
      expect((await next.box.lock('16-limit').acquire()).isValid).toBe(true);
      expect(performance.now() - begun).toBeGreaterThan(TTL_MS);
    });
  });

  describe('25. a callback on the path of the watch or the renewal ends the session', () => {
    it('a handler that never returns costs nobody the session, and grants still arrive', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [holder, busy] = [await processes.start(), await processes.start({ sessionTtlMs: LIVING_MS })];
      await busy.box.on('*', () => new Promise(() => {}));
      const kept = await busy.box.lock('25-kept').acquire();
      const hold = await holder.box.lock('25').acquire({ maxHoldMs: 1.2 * LIVING_MS });
      const { granted } = await inQueue(busy.box.lock('25'));
      expect(hold.isValid).toBe(true);
      // Let in when the time of the other one was over: later than its own lease would have ended without renewals.
      expect((await granted).isValid).toBe(true);
      expect(kept.isValid).toBe(true);
    });
  });

  describe('26. the event loop stands still for seconds', () => {
    it('after a stall past the lease a hold says so before anything else is done', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [stalled, next] = [await processes.startRemote(), await processes.start()];
      stalled.tell({ do: 'acquire', name: '26' });
      await stalled.acquired('26');
      stalled.tell({ do: 'block', name: '26', ms: 1.5 * TTL_MS });
      expect(await stalled.said({ kind: 'done', do: 'block' })).toMatchObject({ isValid: false });
      expect((await next.box.lock('26').acquire()).isValid).toBe(true);
    });

    it('a short stall harms nobody', async ({ onTestFinished }) => {
      const stalled = await fleet(onTestFinished).startRemote(3 * TTL_MS);
      stalled.tell({ do: 'acquire', name: '26-short' });
      await stalled.acquired('26-short');
      stalled.tell({ do: 'block', name: '26-short', ms: TTL_MS });
      expect(await stalled.said({ kind: 'done', do: 'block' })).toMatchObject({ isValid: true });
      stalled.tell({ do: 'release', name: '26-short' });
      expect(await stalled.said({ kind: 'done', do: 'release' })).toMatchObject({ released: 'released' });
    });
  });

  describe('28. the smallest lease is 2 s, and the end of one is noticed up to half a second late', () => {
    it('a hold that asked for less has 2 s, and is told so', async ({ onTestFinished }) => {
      // One and a half election timeouts, in whole seconds: with the timeout that etcd has unless told otherwise.
      const usual = await startEtcd({ flags: ['--heartbeat-interval', '100', '--election-timeout', '1000'] });
      onTestFinished(() => usual.stop());
      const processes = new EtcdFleet(usual, onTestFinished);
      const [script, next] = [await processes.start(), await processes.start()];
      const begun = performance.now();
      const held = await script.box.lock('28').acquireDetached({ holder: 'script', ttlMs: 100 });
      expect(held.ttlMs).toBe(2000);
      expect((await next.box.lock('28').acquire()).isValid).toBe(true);
      expect(performance.now() - begun).toBeGreaterThan(2000);
    });
  });
});
