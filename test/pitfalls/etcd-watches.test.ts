// Bugs of others that must never be ours, on a real etcd: watches that skip, hang or pretend, and answers that get lost.

import type { SignalboxEvent } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type AtEnd, EtcdFleet, eventually, inQueue } from '../support/etcd/fleet.ts';
import { GatewayStore } from '../support/etcd/gateway-store.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { refusalOf } from '../support/outcome.ts';

vi.setConfig({ maxConcurrency: 40 });

/** Of one lock only: all tests here share one etcd. */
function heardOf(name: string, into: SignalboxEvent[]): (event: SignalboxEvent) => void {
  return (event) => {
    if (event.resource === `lock/${name}` || event.type === 'resync') into.push(event);
  };
}

describe.skipIf(isMissing('etcd'))('on etcd', { concurrent: true }, () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server?.stop());

  const fleet = (atEnd: AtEnd): EtcdFleet => new EtcdFleet(server, atEnd);

  describe('21. a watch that reconnects from the wrong revision skips events', () => {
    it('a subscriber whose connection breaks again and again hears everything once, in order', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [unlucky, steady, writer] = [await processes.start(), await processes.start(), await processes.start()];
      const [heard, all]: [SignalboxEvent[], SignalboxEvent[]] = [[], []];
      await unlucky.box.on('lock:*', heardOf('21', heard));
      await steady.box.on('lock:*', heardOf('21', all));
      const lock = writer.box.lock('21');
      for (let turn = 0; turn < 150; turn++) {
        if (turn % 10 === 5) unlucky.way.drop();
        await lock.run(() => undefined);
      }
      await eventually(
        () => all.length,
        (found) => found === 300,
      );
      await eventually(
        () => heard.length,
        (found) => found >= 300,
      );
      expect(heard.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    });
  });

  describe('22. a watch hangs silently when partitioned', () => {
    it('a waiter whose connection fell silent hears of its grant all the same', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [holder, deaf] = [await processes.start(), await processes.start({ requestTimeoutMs: 10_000 })];
      const hold = await holder.box.lock('22').acquire();
      const { granted } = await inQueue(deaf.box.lock('22'));
      deaf.way.freeze();
      await hold.release();
      expect((await granted).isValid).toBe(true);
    });

    it('a subscriber whose connection fell silent hears what it missed', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [writer, deaf] = [await processes.start(), await processes.start({ requestTimeoutMs: 10_000 })];
      const heard: SignalboxEvent[] = [];
      await deaf.box.on('lock:*', heardOf('22-events', heard));
      deaf.way.freeze();
      await writer.box.lock('22-events').run(() => undefined);
      await eventually(
        () => heard.map(({ type }) => type).join(),
        (found) => found === 'lock:acquired,lock:released',
      );
    });
  });

  describe('24. what was not answered is sent again blindly and applied twice', () => {
    it('an acquire that was applied, and whose answer was lost, holds once', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [unlucky, other] = [await processes.start(), await processes.start()];
      await unlucky.box.lock('24-warm-up').run(() => undefined);
      unlucky.way.stall('answers');
      const acquiring = unlucky.box.lock('24').acquire({ holder: 'me' });
      await eventually(
        () => other.box.lock('24').isHeldBy('me'),
        (found) => found,
      );
      unlucky.way.drop();
      unlucky.way.goOn();
      const hold = await acquiring;
      expect((await other.box.lock('24').inspect()).holders).toMatchObject([{ holder: 'me', token: hold.token }]);
      expect(await hold.release()).toEqual({ kind: 'released' });
      expect(await other.box.lock('24').isFree()).toBe(true);
    });

    it('an acquire that never arrived is sent again', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const unlucky = await processes.start();
      await unlucky.box.lock('24-lost').run(() => undefined);
      unlucky.way.stall('requests');
      const acquiring = unlucky.box.lock('24-lost').acquire({ holder: 'me' });
      await new Promise(setImmediate);
      unlucky.way.drop();
      unlucky.way.goOn();
      expect((await acquiring).isValid).toBe(true);
    });

    it('slots that were taken, and whose answer was lost, are taken once', async ({ onTestFinished }) => {
      const processes = fleet(onTestFinished);
      const [unlucky, other] = [await processes.start(), await processes.start()];
      const pool = unlucky.box.semaphore('24', { capacity: 5 });
      await pool.acquire();
      unlucky.way.stall('answers');
      const acquiring = pool.acquire({ weight: 2 });
      await eventually(
        () => other.box.semaphore('24').usedSlots(),
        (found) => found === 3,
      );
      unlucky.way.drop();
      unlucky.way.goOn();
      const hold = await acquiring;
      expect(await other.box.semaphore('24').usedSlots()).toBe(3);
      await hold.release();
      expect(await other.box.semaphore('24').usedSlots()).toBe(1);
    });

    it('a release that was applied, and whose answer was lost, takes nothing from the next holder', async ({
      onTestFinished,
    }) => {
      const processes = fleet(onTestFinished);
      const [unlucky, next] = [await processes.start(), await processes.start()];
      const hold = await unlucky.box.lock('24-release').acquire();
      unlucky.way.stall('answers');
      const releasing = hold.release();
      const held = await next.box.lock('24-release').acquire();
      unlucky.way.drop();
      unlucky.way.goOn();
      expect(await releasing).toEqual({ kind: 'released' });
      expect((await next.box.lock('24-release').inspect()).holders).toMatchObject([{ token: held.token }]);
    });
  });
});

// These stop etcd itself, or forget its history: each has one of its own.
describe.skipIf(isMissing('etcd'))('on an etcd of their own', { concurrent: true }, () => {
  async function ownEtcd(atEnd: AtEnd): Promise<{ readonly server: EtcdServer; readonly fleet: EtcdFleet }> {
    const server = await startEtcd();
    atEnd(() => server.stop());
    return { server, fleet: new EtcdFleet(server, atEnd) };
  }

  it('23. a subscriber that history was forgotten for is told `resync`, and hears what comes then', async ({
    onTestFinished,
  }) => {
    const { server, fleet } = await ownEtcd(onTestFinished);
    const [cut, writer] = [await fleet.start(), await fleet.start()];
    const heard: SignalboxEvent[] = [];
    await cut.box.on('lock:*', heardOf('23', heard));
    await writer.box.lock('23').run(() => undefined);
    await eventually(
      () => heard.length,
      (found) => found === 2,
    );
    cut.way.cut();
    await writer.box.lock('23').run(() => undefined);
    await forgetHistory(server);
    cut.way.goOn();
    await eventually(
      () => heard.at(-1)?.type,
      (found) => found === 'resync',
    );
    await writer.box.lock('23').run(() => undefined);
    await eventually(
      () => heard.length,
      (found) => found === 5,
    );
    expect(heard.map(({ type }) => type)).toEqual([
      ...['lock:acquired', 'lock:released', 'resync'],
      ...['lock:acquired', 'lock:released'],
    ]);
  });

  it('23. a waiter that history was forgotten for gets what it was granted meanwhile', async ({ onTestFinished }) => {
    const { server, fleet } = await ownEtcd(onTestFinished);
    const [cut, holder] = [await fleet.start(), await fleet.start()];
    const hold = await holder.box.lock('23').acquire();
    const { granted } = await inQueue(cut.box.lock('23'));
    cut.way.cut();
    await hold.release();
    await forgetHistory(server);
    cut.way.goOn();
    expect((await granted).isValid).toBe(true);
  });

  it('24. an acquire that etcd applies after its process has given up takes no lock that nobody will release', async ({
    onTestFinished,
  }) => {
    const { server, fleet } = await ownEtcd(onTestFinished);
    const [quitter, other] = [await fleet.start(), await fleet.start()];
    await quitter.box.lock('24').run(() => undefined);
    await other.box.lock('24').inspect();
    server.pause();
    const quit = new AbortController();
    const given = quitter.box.lock('24').acquire({ signal: quit.signal });
    quit.abort();
    const refused = refusalOf(given);
    server.resume();
    expect(await refused).toMatchObject({ kind: 'aborted' });
    await eventually(
      () => other.box.lock('24').isFree(),
      (found) => found,
    );
    await (await other.box.lock('24').acquire()).release();
  });

  it('an etcd that was killed and started again costs nobody a hold, a place in the queue, or an event', async ({
    onTestFinished,
  }) => {
    const { server, fleet } = await ownEtcd(onTestFinished);
    // On a busy machine it takes a while until etcd is back.
    const patient = { sessionTtlMs: 120_000, requestTimeoutMs: 120_000 };
    const [holder, waiter] = [await fleet.start(patient), await fleet.start(patient)];
    const heard: SignalboxEvent[] = [];
    await waiter.box.on('lock:*', heardOf('restart', heard));
    const hold = await holder.box.lock('restart').acquire();
    const { granted } = await inQueue(waiter.box.lock('restart'));
    await server.restart();
    expect(hold.isValid).toBe(true);
    expect(await hold.release()).toEqual({ kind: 'released' });
    expect((await granted).token).toBeGreaterThan(hold.token);
    await eventually(
      () => heard.length,
      (found) => found >= 4,
    );
    expect(heard.map(({ type }) => type)).toEqual([
      ...['lock:acquired', 'lock:queued', 'lock:released', 'lock:acquired'],
    ]);
  });
});

/** As an operator, or etcd's own auto-compaction, would. */
async function forgetHistory(server: EtcdServer): Promise<void> {
  const store = new GatewayStore(server.port);
  const { revision } = await store.health();
  await store.compact(revision);
  await store.close();
}
