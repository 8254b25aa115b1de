/**
 * A real etcd keeps the contract, by its own gateway: so it is one that an etcd can keep, and the judge of our own
 * engines judges well. And our engine on etcd keeps it.
 */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Store, Value } from 'signalbox/store';
import { type ContractSubject, storeContract } from 'signalbox/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { openEtcd } from '../../src/store/etcd/open.ts';
import { emptied } from '../support/etcd/from-the-beginning.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

describe.skipIf(isMissing('etcd'))('a real etcd', () => {
  // Its leases run out in real time. Several promises are tried at once, so that they wait together; each needs an etcd
  // to itself.
  const all: EtcdServer[] = [];
  const free: EtcdServer[] = [];
  const borrow = async (): Promise<EtcdServer> => {
    const idle = free.pop();
    if (idle !== undefined) return idle;
    const started = await startEtcd();
    all.push(started);
    return started;
  };
  afterAll(async () => {
    await Promise.all(all.map((server) => server.stop()));
  });

  const openWith = (engine?: (port: number) => Store) => async (): Promise<ContractSubject> => {
    const server = await borrow();
    const handle = await emptied(server, engine);
    const store = handle();
    return {
      store,
      reopen: async () => handle(),
      // The judge has one connection for each request, and knows nothing of what was before.
      ...(engine !== undefined && { replace: () => server.startAnew() }),
      advance: (ms) => sleep(ms),
      // It grants no shorter ones.
      minTtlMs: 2000,
      async close() {
        await store.close();
        free.push(server);
      },
    };
  };
  const runner = {
    describe,
    it: (name: string, run: () => Promise<void>) => it.concurrent(name, run),
  };
  storeContract('etcd', openWith(), runner);
  storeContract(
    'the engine on etcd',
    openWith((port) => openEtcd({ endpoints: [{ host: '127.0.0.1', port }], prefix: '' })),
    runner,
  );

  it.skipIf(isMissing('etcdctl'))('has what the gateway wrote, as its own client sees it', async () => {
    const server = await borrow();
    const store = (await emptied(server))();
    const put = { do: 'put', key: 'é/𝄞', value: Value.text('☃') } as const;
    await store.transaction({ compare: [], success: [put], failure: [] });
    const { stdout } = await promisify(execFile)('etcdctl', ['get', 'é/𝄞'], {
      env: { ...process.env, ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: `127.0.0.1:${server.port}` },
    });
    expect(stdout).toBe('é/𝄞\n☃\n');
    await store.close();
  });
});
