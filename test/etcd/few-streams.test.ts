/** A server that takes few streams at once: watches and renewals, which stay open, leave room for calls. */
import { once } from 'node:events';
import { createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { open } from 'signalbox';
import { openEtcdUrl, type Operation, type Store, Value } from 'signalbox/store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

const put = (key: string): Operation => ({ do: 'put', key, value: Value.text('x') });
const apply = (store: Store, ...success: readonly Operation[]): ReturnType<Store['transaction']> =>
  store.transaction({ compare: [], success, failure: [] });

describe.skipIf(isMissing('etcd'))('an etcd with --max-concurrent-streams 1', () => {
  let server: EtcdServer;

  beforeAll(async () => {
    server = await startEtcd({ flags: ['--max-concurrent-streams', '1'] });
  });
  afterAll(() => server.stop());

  it('answers calls while a watch and renewals are open, and the watch hears of what they write', async () => {
    const store = await openEtcdUrl(`etcd://127.0.0.1:${server.port}`, { requestTimeoutMs: 20_000 });
    const over = new AbortController();
    const watch = await store.watch({ key: 'a', end: 'b' }, 'now', over.signal);
    const lease = await store.grantLease(60_000);
    expect(await store.keepLeaseAlive(lease.id)).toMatchObject({ id: lease.id });
    const keys = Array.from({ length: 20 }, (_, index) => `a${String(index).padStart(2, '0')}`);
    await Promise.all(keys.map((key) => apply(store, put(key))));
    const heard: string[] = [];
    for await (const { changes } of watch) {
      for (const change of changes) if (change.kind === 'put') heard.push(change.pair.key);
      if (heard.length === keys.length) break;
    }
    expect(heard.sort()).toEqual(keys);
    expect(await store.keepLeaseAlive(lease.id)).toMatchObject({ id: lease.id });
    await store.close();
  });

  it('hands a lock from one process to another', async () => {
    const [one, other] = await Promise.all([1, 2].map(() => open(`etcd://127.0.0.1:${server.port}/lock`)));
    const first = await one!.lock('x').acquire();
    const second = other!.lock('x').acquire({ waitMs: 60_000 });
    await first.release();
    await (await second).release();
    await Promise.all([one!.close(), other!.close()]);
  });
});

describe('a server that takes no calls at all', () => {
  let server: Http2Server | undefined;

  afterAll(() => server?.close());

  it('is unavailable, and the error names its setting', async () => {
    server = createServer({ settings: { maxConcurrentStreams: 0 } }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const store = await openEtcdUrl(`etcd://127.0.0.1:${port}`, { requestTimeoutMs: 200 });
    const words = new RegExp(`127.0.0.1:${port} takes no calls: its setting MAX_CONCURRENT_STREAMS is 0`);
    const watching = store.watch({ key: 'a' }, 'now', new AbortController().signal);
    const asked = [apply(store, put('a')), store.grantLease(5000), watching];
    for (const outcome of await Promise.allSettled(asked)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
      expect(String((outcome as PromiseRejectedResult).reason)).toMatch(words);
    }
    await store.close();
  });
});
