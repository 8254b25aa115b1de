/** The engine when the way to a real etcd, or etcd itself, is disturbed. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { type Changes, type KeyRange, type Operation, prefixed, type Store, Value } from 'signalbox/store';
import { afterEach, beforeAll, afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { follow } from '../../src/store/follow.ts';
import { connect } from '../../src/grpc/connect.ts';
import { connectWithNode } from '../support/etcd/node-http2.ts';
import { openEtcd } from '../../src/store/etcd/open.ts';
import type { Connect } from '../../src/grpc/transport.ts';
import { Proxy } from '../support/etcd/proxy.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { freePort } from '../support/ports.ts';
import { isMissing } from '../support/programs.ts';

const put = (key: string, text = 'x', lease?: string): Operation => ({
  do: 'put',
  key,
  value: Value.text(text),
  lease,
});
const apply = (store: Store, ...success: readonly Operation[]): ReturnType<Store['transaction']> =>
  store.transaction({ compare: [], success, failure: [] });

/** After so long, one that says nothing counts as away; one that answers does so sooner, also where the machine is busy. */
const SILENT_MS = 2500;

const transports: readonly (readonly [string, Connect])[] = [
  ['our own HTTP/2', connect],
  ["Node's HTTP/2", connectWithNode],
];

describe.skipIf(isMissing('etcd')).each(transports)('a store on etcd, over %s', (_, transport) => {
  let server: EtcdServer;
  const cleanUp: (() => unknown)[] = [];

  beforeAll(async () => {
    server = await startEtcd();
  });

  afterAll(() => server.stop());

  afterEach(async () => {
    for (const each of cleanUp.splice(0).reverse()) await each();
  });

  function opened(ports: readonly number[], requestTimeoutMs = 6000): Store {
    // The first one first.
    const endpoints = ports.map((port) => ({ host: '127.0.0.1', port }));
    const store = openEtcd({ endpoints, requestTimeoutMs, prefix: '', random: () => 0, connect: transport });
    cleanUp.push(() => store.close());
    return store;
  }

  async function proxy(): Promise<Proxy> {
    const between = await Proxy.start(server.port);
    cleanUp.push(() => between.stop());
    return between;
  }

  async function listener(accept: (socket: Socket) => void): Promise<Server> {
    const listening = createServer(accept).listen(0, '127.0.0.1');
    await once(listening, 'listening');
    return listening;
  }

  /** Accepts everybody and says nothing. */
  async function mutePort(): Promise<number> {
    const sockets: Socket[] = [];
    const listening = await listener((socket) => sockets.push(socket.on('error', () => undefined).resume()));
    cleanUp.push(() => {
      for (const socket of sockets) socket.destroy();
      listening.close();
    });
    return (listening.address() as { port: number }).port;
  }

  /** Everything that happens in a range, for as long as it is wanted; `until` waits for one that says so. */
  async function following(
    store: Store,
    range: KeyRange,
  ): Promise<{ readonly seen: string[]; until(text: string): Promise<void>; readonly resyncs: () => number }> {
    const abort = new AbortController();
    cleanUp.push(() => abort.abort());
    const seen: string[] = [];
    const waiting: { text: string; resolve: () => void }[] = [];
    let resyncs = 0;
    const changes = ({ changes: all }: Changes): void => {
      for (const change of all) seen.push(change.kind === 'put' ? change.pair.value.text : `-${change.key}`);
      for (const each of [...waiting]) if (seen.includes(each.text)) each.resolve();
    };
    const resync = async (): Promise<number> => {
      resyncs += 1;
      return (await store.health()).revision;
    };
    await follow(store, systemClock, range, { changes, resync }, abort.signal);
    return {
      seen,
      resyncs: () => resyncs,
      until: (text) => new Promise((resolve) => (seen.includes(text) ? resolve() : waiting.push({ text, resolve }))),
    };
  }

  it('is used by way of the server that answers, whichever others are named', async () => {
    const store = opened([await freePort(), await mutePort(), server.port]);
    expect((await apply(store, put('a'))).succeeded).toBe(true);
  });

  it('that nobody answers at is `unavailable` in time, and says where it was looked for', async () => {
    const [dead, mute] = [await freePort(), await mutePort()];
    const store = opened([dead, mute], SILENT_MS);
    const failure = await apply(store, put('a')).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'unavailable', message: expect.stringContaining(`127.0.0.1:${dead}`) });
    expect(failure).toMatchObject({ message: expect.stringContaining(`127.0.0.1:${mute}`) });
    expect(failure).toMatchObject({ message: expect.stringContaining('ECONNREFUSED') });
  });

  it('that is closed while it is still being connected to hangs up at once, and keeps no process', async () => {
    const listening = await listener((socket) => socket.on('error', () => undefined).resume());
    cleanUp.push(() => listening.close());
    const accepted = once(listening, 'connection') as Promise<[Socket]>;
    // Far longer than this test may take.
    const store = opened([(listening.address() as { port: number }).port], 600_000);
    const writing = apply(store, put('a')).catch((error: unknown) => error);
    const [socket] = await accepted;
    const hungUp = once(socket, 'close');
    await store.close();
    await hungUp;
    expect(await writing).toMatchObject({ code: 'closed' });
  });

  it('a write whose answer does not come is `outcome-unknown`, and was applied once', async () => {
    const way = await proxy();
    const [store, direct] = [opened([way.port], SILENT_MS), opened([server.port])];
    await apply(store, put('count', '0'));
    way.stall('answers');
    await expect(apply(store, put('count', '1'))).rejects.toMatchObject({ code: 'outcome-unknown' });
    const { results } = await apply(direct, { do: 'read', key: 'count' });
    expect(results[0]).toMatchObject({ pairs: [{ version: 2 }] });
  });

  it('a read that does not come back is answered by another server before its time is up', async () => {
    const way = await proxy();
    const store = opened([way.port, server.port]);
    await apply(store, put('a', 'there'));
    way.stall();
    const { results } = await apply(store, { do: 'read', key: 'a' });
    expect(results[0]).toMatchObject({ count: 1 });
  });

  it('after a silence is used again, over a new connection if need be', async () => {
    const way = await proxy();
    const store = opened([way.port], SILENT_MS);
    await apply(store, put('a'));
    way.freeze();
    await expect(apply(store, put('a'))).rejects.toMatchObject({ code: 'outcome-unknown' });
    expect((await apply(store, put('a'))).succeeded).toBe(true);
  });

  it('broken connections cost those who follow it nothing: every change is seen once, in order', async () => {
    const way = await proxy();
    const [store, direct] = [opened([way.port]), opened([server.port])];
    const { seen, until } = await following(store, prefixed('k/'));
    for (let i = 0; i < 40; i++) {
      await apply(direct, put(`k/${i % 3}`, `n${i}`));
      if (i % 8 === 7) {
        await until(`n${i - 4}`);
        way.drop();
      }
    }
    await until('n39');
    expect(seen).toEqual(Array.from({ length: 40 }, (_, i) => `n${i}`));
  });

  it('a watch over a connection that has fallen silent is opened again elsewhere, and misses nothing', async () => {
    const way = await proxy();
    const [store, direct] = [opened([way.port, server.port], SILENT_MS), opened([server.port])];
    const { seen, until } = await following(store, prefixed('s/'));
    await apply(direct, put('s/a', 'before'));
    await until('before');
    way.freeze();
    await apply(direct, put('s/a', 'meanwhile'));
    await until('meanwhile');
    await apply(direct, put('s/a', 'after'));
    await until('after');
    expect(seen).toEqual(['before', 'meanwhile', 'after']);
  });

  it('a server that is killed and comes back is followed on, and its leases are kept', async () => {
    const store = opened([server.port], 5000);
    const { id } = await store.grantLease(10_000);
    await apply(store, put('life', 'x', id));
    const { seen, until } = await following(store, prefixed('k/'));
    await apply(store, put('k/a', 'before the end'));
    await until('before the end');
    await server.restart();
    expect(await store.keepLeaseAlive(id)).toEqual({ id, ttlMs: 10_000 });
    await apply(store, put('k/a', 'after it'));
    await until('after it');
    expect(seen).toEqual(['before the end', 'after it']);
    expect((await store.leaseState(id))?.keys).toEqual(['life']);
    await store.revokeLease(id);
  });

  it('who was away while history was forgotten is told so, and goes on from a new list', async () => {
    const way = await proxy();
    const [store, direct] = [opened([way.port]), opened([server.port])];
    const { seen, until, resyncs } = await following(store, prefixed('h/'));
    await apply(direct, put('h/a', 'seen'));
    await until('seen');
    way.cut();
    for (let i = 0; i < 5; i++) await apply(direct, put('h/a', `missed ${i}`));
    const { revision } = await direct.health();
    await direct.compact(revision);
    way.goOn();
    // Of what it may miss nothing comes later: only once the list is new does it follow again.
    await expect.poll(resyncs).toBe(1);
    await apply(direct, put('h/a', 'again'));
    await until('again');
    expect(seen).toEqual(['seen', 'again']);
  });

  it('renewals are answered each for itself, in whatever number and order, over broken connections too', async () => {
    const way = await proxy();
    const store = opened([way.port], 5000);
    const leases = await Promise.all(Array.from({ length: 20 }, (_, i) => store.grantLease(1000 * (60 + i))));
    const renewals = [...leases, ...leases, ...[...leases].reverse()].map(({ id }) => store.keepLeaseAlive(id));
    way.drop();
    expect(await Promise.all(renewals)).toEqual([...leases, ...leases, ...[...leases].reverse()]);
    await Promise.all(leases.map(({ id }) => store.revokeLease(id)));
    expect(await Promise.all(leases.map(({ id }) => store.keepLeaseAlive(id)))).toEqual(leases.map(() => null));
  });

  it('a server that stands still is `outcome-unknown` to writers, and goes on where it was', async () => {
    const store = opened([server.port], SILENT_MS);
    await apply(store, put('still', '1'));
    server.pause();
    try {
      await expect(apply(store, put('still', '2'))).rejects.toMatchObject({ code: 'outcome-unknown' });
      await expect(apply(store, { do: 'read', key: 'still' })).rejects.toMatchObject({ code: 'unavailable' });
    } finally {
      server.resume();
    }
    await expect
      .poll(() => apply(store, { do: 'read', key: 'still' }).catch(() => 'not yet'))
      .toMatchObject({
        results: [{ count: 1 }],
      });
  });

  it('a reader that falls far behind is told so instead of filling the memory, and can go on from there', async () => {
    const store = opened([server.port], 5000);
    const abort = new AbortController();
    cleanUp.push(() => abort.abort());
    const watch = await store.watch(prefixed('big/'), 'now', abort.signal);
    const lazy = watch[Symbol.asyncIterator]();
    const text = 'x'.repeat(1_000_000);
    let last = watch.since;
    let [written, read] = [0, 0];
    // On a busy machine etcd may send changes more slowly than they are written; then the reader keeps up, and more are written.
    const fallBehind = async (): Promise<void> => {
      while (written < 450) {
        for (let i = 0; i < 45; i++) await apply(store, put(`big/${i % 2}`, text));
        written += 45;
        for (; read < written; read++) last = ((await lazy.next()).value as Changes).revision;
      }
    };
    const failure = await fallBehind().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'unavailable', message: expect.stringContaining('behind') });
    expect(read).toBeLessThan(written);
    const rest = await store.watch(prefixed('big/'), last, abort.signal);
    for await (const { changes } of rest) {
      read += changes.length;
      if (read === written) break;
    }
    expect(read).toBe(written);
  });
});
