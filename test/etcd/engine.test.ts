/** The engine on a real etcd: what it does beyond what every engine does. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { open } from 'signalbox';
import { openEtcd, openEtcdUrl, type Operation, prefixed, type ReadResult, type Store, Value } from 'signalbox/store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

const put = (key: string, text = 'x', lease?: string): Operation => ({
  do: 'put',
  key,
  value: Value.text(text),
  lease,
});
const apply = (store: Store, ...success: readonly Operation[]): ReturnType<Store['transaction']> =>
  store.transaction({ compare: [], success, failure: [] });

async function keysIn(store: Store, range: { key: string; end: string }): Promise<string[]> {
  const { results } = await apply(store, { do: 'read', ...range });
  return (results[0] as ReadResult).pairs.map(({ key }) => key);
}

describe.skipIf(isMissing('etcd') || isMissing('etcdctl'))('on a real etcd', () => {
  let server: EtcdServer;
  const stores: Store[] = [];

  beforeAll(async () => {
    server = await startEtcd();
  });

  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await server.stop();
  });

  async function opened(path = ''): Promise<Store> {
    const store = await openEtcdUrl(`etcd://127.0.0.1:${server.port}${path}`);
    stores.push(store);
    return store;
  }

  async function etcdctl(...args: readonly string[]): Promise<string> {
    const env = { ...process.env, ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: `127.0.0.1:${server.port}` };
    return (await promisify(execFile)('etcdctl', args, { env })).stdout;
  }

  it('our own keys are under `signalbox/`, and those that begin with a slash are where everybody looks for them', async () => {
    const store = await opened();
    await apply(store, put('r/one', 'mine'), put('//tasks/1/status', 'yours'), put('/𝄞', '☃'));
    expect(await etcdctl('get', '--prefix', 'signalbox/r/')).toBe('signalbox/r/one\nmine\n');
    expect(await etcdctl('get', '/tasks/1/status')).toBe('/tasks/1/status\nyours\n');
    expect(await etcdctl('get', '𝄞')).toBe('𝄞\n☃\n');
    await etcdctl('put', '/tasks/2/status', 'theirs');
    expect(await keysIn(store, prefixed('//tasks/'))).toEqual(['//tasks/1/status', '//tasks/2/status']);
  });

  it('stores with different prefixes do not see each other', async () => {
    const [one, other] = [await opened('/one'), await opened('/other?tasks-prefix=/other')];
    await apply(one, put('r/x'), put('//tasks/mine'));
    expect(await keysIn(other, prefixed('r/'))).toEqual([]);
    expect(await keysIn(other, prefixed('//tasks/'))).toEqual([]);
    await apply(other, put('//tasks/theirs'));
    expect(await etcdctl('get', '--keys-only', '/other/tasks/theirs')).toContain('/other/tasks/theirs');
  });

  it('a watch tells changes in our names, and a lease its keys', async () => {
    const store = await opened();
    const abort = new AbortController();
    const changes = (await store.watch(prefixed('//bus/'), 'now', abort.signal))[Symbol.asyncIterator]();
    const { id } = await store.grantLease(60_000);
    await apply(store, put('q/a', 'x', id), put('//bus/b', 'x', id));
    expect((await changes.next()).value).toMatchObject({
      changes: [{ kind: 'put', pair: { key: '//bus/b', lease: id } }],
    });
    expect((await store.leaseState(id))?.keys).toEqual(['//bus/b', 'q/a']);
    await store.revokeLease(id);
    expect((await changes.next()).value).toMatchObject({ changes: [{ kind: 'delete', key: '//bus/b' }] });
    abort.abort();
  });

  it('a watch that asks for what it may not leaves the watches beside it alone', async () => {
    const store = await opened();
    const abort = new AbortController();
    const good = (await store.watch({ key: 'r/good' }, 'now', abort.signal))[Symbol.asyncIterator]();
    await expect(store.watch(prefixed('/'), 'now', abort.signal)).rejects.toMatchObject({ code: 'invalid' });
    await apply(store, put('r/good'));
    expect((await good.next()).done).toBe(false);
    abort.abort();
  });

  it('what is larger than etcd takes is refused as `invalid`, and what is nearly as large comes back whole', async () => {
    const store = await opened();
    const large = 'ä'.repeat(700_000);
    await apply(store, put('r/large', large));
    const { results } = await apply(store, { do: 'read', key: 'r/large' });
    expect((results[0] as ReadResult).pairs[0]?.value.text).toBe(large);
    for (const length of [1_600_000, 8_000_000])
      await expect(apply(store, put('r/larger', 'x'.repeat(length)))).rejects.toMatchObject({ code: 'invalid' });
  });

  it('by age, of the keys that one transaction made the first by key are kept, however many there are', async () => {
    const store = await opened();
    const names = Array.from({ length: 60 }, (_, i) => `q/age/${String((i * 37) % 60).padStart(2, '0')}`);
    await apply(store, put('q/age/zz'));
    await apply(store, ...names.map((name) => put(name)));
    await apply(store, put('q/age/!'));
    const read = { do: 'read', ...prefixed('q/age/'), order: 'create' } as const;
    const nested = { do: 'transaction', compare: [], success: [{ ...read, limit: 33 }], failure: [] } as const;
    const { results } = await apply(store, read, { ...read, limit: 20 }, { ...read, limit: 61 }, nested);
    const expected = ['q/age/zz', ...[...names].sort(), 'q/age/!'];
    const found = results.map((each) => (each.do === 'transaction' ? each.results[0] : each) as ReadResult);
    expect(found.map(({ pairs }) => pairs.map(({ key }) => key))).toEqual([
      expected,
      expected.slice(0, 20),
      expected.slice(0, 61),
      expected.slice(0, 33),
    ]);
    expect(found.map(({ more, count }) => [more, count])).toEqual([
      [false, 62],
      [true, 20],
      [true, 61],
      [true, 33],
    ]);
  });

  it('where history begins is found, however long it is, and found again after the next compaction', async () => {
    const store = await opened();
    for (let i = 0; i < 300; i++) await apply(store, put('r/counter', String(i)));
    const { revision } = await store.health();
    for (const compacted of [revision - 200, revision - 7, revision]) {
      await store.compact(compacted);
      expect(await store.health()).toEqual({ revision, compacted });
      expect(await (await opened()).health()).toEqual({ revision, compacted });
    }
  });

  it('maintenance leaves the history to those who run etcd, unless it is told otherwise', async () => {
    expect((await opened()).historyIsShared).toBe(true);
    expect((await opened('?compact=yes')).historyIsShared).toBe(false);
  });

  it('a server tells its version and size', async () => {
    const store = await openEtcd({ endpoints: [{ host: '127.0.0.1', port: server.port }] });
    stores.push(store);
    expect(await store.status()).toMatchObject({ version: expect.stringMatching(/^3\./), hasLeader: true, errors: [] });
  });

  it('two who open it hold a lock in turn', async () => {
    const url = `etcd://127.0.0.1:${server.port}/turns`;
    const [one, other] = [await open(url), await open(url)];
    let inside = 0;
    let most = 0;
    const enter = async (box: typeof one): Promise<void> => {
      for (let i = 0; i < 10; i++) {
        await box.lock('door').run(async () => {
          most = Math.max(most, ++inside);
          await Promise.resolve();
          inside -= 1;
        });
      }
    };
    await Promise.all([enter(one), enter(one), enter(other), enter(other)]);
    expect(most).toBe(1);
    await one.close();
    await other.close();
  });
});
