/** Who may use an etcd, and how it is shown: users with passwords, TLS, and certificates of clients. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Operation, openEtcdUrl, type Store, Value } from 'signalbox/store';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Certificates, makeCertificates } from '../support/etcd/certificates.ts';
import { Member, onFreePorts, peerUrl, type Ports } from '../support/etcd/member.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

const put = (key: string): Operation => ({ do: 'put', key, value: Value.text('x') });
const apply = (store: Store, ...success: readonly Operation[]): ReturnType<Store['transaction']> =>
  store.transaction({ compare: [], success, failure: [] });

const stores: Store[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

async function opened(url: string, requestTimeoutMs = 60_000): Promise<Store> {
  const store = await openEtcdUrl(url, { requestTimeoutMs });
  stores.push(store);
  return store;
}

async function etcdctl(port: number, ...args: readonly string[]): Promise<void> {
  const env = { ...process.env, ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: `127.0.0.1:${port}` };
  await promisify(execFile)('etcdctl', args, { env });
}

describe.skipIf(isMissing('etcd') || isMissing('etcdctl'))('an etcd with users', () => {
  let server: EtcdServer;

  beforeAll(async () => {
    // Cheap passwords: what they cost is etcd's own matter.
    server = await startEtcd({ flags: ['--bcrypt-cost', '4'] });
    const { port } = server;
    await etcdctl(port, 'user', 'add', 'root:top');
    await etcdctl(port, 'user', 'grant-role', 'root', 'root');
    await etcdctl(port, 'role', 'add', 'team');
    await etcdctl(port, 'role', 'grant-permission', 'team', '--prefix=true', 'readwrite', 'signalbox/');
    await etcdctl(port, 'user', 'add', 'mary:s@cret');
    await etcdctl(port, 'user', 'grant-role', 'mary', 'team');
    await etcdctl(port, 'auth', 'enable');
  });

  afterAll(() => server.stop());

  const as = (who: string): Promise<Store> => opened(`etcd://${who}127.0.0.1:${server.port}`);

  it('lets in who knows the password, for all that signalbox needs', async () => {
    const store = await as('mary:s%40cret@');
    const abort = new AbortController();
    const changes = (await store.watch({ key: 'r/a' }, 'now', abort.signal))[Symbol.asyncIterator]();
    const { id } = await store.grantLease(60_000);
    await apply(store, put('r/a'));
    expect((await changes.next()).done).toBe(false);
    expect(await store.keepLeaseAlive(id)).not.toBeNull();
    await store.revokeLease(id);
    expect((await store.health()).revision).toBeGreaterThan(0);
    abort.abort();
  });

  it.each(['mary:guessed@', 'nobody:s%40cret@'])(
    'turns %s away at once, without repeating the password',
    async (who) => {
      const begun = performance.now();
      const failure = await apply(await as(who), put('r/a')).catch((error: unknown) => error as Error);
      expect(failure).toMatchObject({ code: 'forbidden', message: expect.stringContaining('authentication failed') });
      expect(String(failure)).not.toMatch(/guessed|cret/);
      expect(performance.now() - begun).toBeLessThan(60_000);
    },
  );

  it('tells who names no user that one is needed', async () => {
    await expect(apply(await as(''), put('r/a'))).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('requires a user'),
    });
  });

  it('keeps everybody to the keys that are theirs', async () => {
    const store = await as('mary:s%40cret@');
    await expect(apply(store, put('//tasks/1/owner'))).rejects.toMatchObject({ code: 'forbidden' });
    await expect(store.watch({ key: '//tasks/1' }, 'now', new AbortController().signal)).rejects.toMatchObject({
      code: 'forbidden',
    });
    expect((await apply(store, put('r/b'))).succeeded).toBe(true);
  });

  it('forgets its tokens when it is started anew, and nobody notices', async () => {
    const store = await as('mary:s%40cret@');
    await apply(store, put('r/a'));
    await server.restart();
    expect((await apply(store, { do: 'read', key: 'r/a' })).results).toMatchObject([{ count: 1 }]);
    expect(await store.grantLease(60_000)).toMatchObject({ ttlMs: 60_000 });
  });
});

describe.skipIf(isMissing('etcd') || isMissing('openssl'))('an etcd over TLS', () => {
  let certificates: Certificates;
  let server: Member;
  let securePort: number;

  beforeAll(async () => {
    certificates = makeCertificates();
    certificates.issue('server', 'etcd.example', 'DNS:etcd.example,IP:127.0.0.1');
    certificates.issue('elsewhere', 'elsewhere.example', 'DNS:elsewhere.example');
    certificates.issue('client', 'worker', 'DNS:worker.example');
    const { file } = certificates;
    server = await onFreePorts(2, async ([plain, secure]) => {
      const ports = plain as Ports;
      securePort = (secure as Ports).client;
      const member = await Member.prepare('default', ports, [
        ...['--initial-cluster', `default=${peerUrl(ports.peer)}`, '--heartbeat-interval', '20'],
        ...['--election-timeout', '200', '--client-cert-auth', '--trusted-ca-file', file('ca.pem')],
        ...['--cert-file', file('server.pem'), '--key-file', file('server.key')],
        // In the clear too, so that it can be asked whether it is ready.
        ...['--listen-client-urls', `http://127.0.0.1:${ports.client},https://127.0.0.1:${securePort}`],
      ]);
      await member.start();
      return member;
    });
  });

  afterAll(async () => {
    await server.stop();
    certificates.remove();
  });

  const url = (...settings: readonly string[]): string => `etcds://127.0.0.1:${securePort}?${settings.join('&')}`;
  const ca = (): string => `ca=${certificates.file('ca.pem')}`;
  const client = (): string[] => [`cert=${certificates.file('client.pem')}`, `key=${certificates.file('client.key')}`];

  it('is used by who trusts it and has a certificate that it trusts', async () => {
    const store = await opened(url(ca(), ...client()));
    expect((await apply(store, put('r/a'))).succeeded).toBe(true);
    const named = await opened(url(ca(), ...client(), 'server-name=etcd.example'));
    expect((await apply(named, { do: 'read', key: 'r/a' })).results).toMatchObject([{ count: 1 }]);
  });

  it('is not trusted if nobody says so', async () => {
    const failure = apply(await opened(url(...client())), put('r/a'));
    await expect(failure).rejects.toMatchObject({ code: 'forbidden', message: expect.stringMatching(/certificate/) });
  });

  it('is not trusted under another name', async () => {
    const failure = apply(await opened(url(ca(), ...client(), 'server-name=other.example')), put('r/a'));
    await expect(failure).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('other.example'),
    });
  });

  it('turns away who shows no certificate', async () => {
    const failure = apply(await opened(url(ca())), put('r/a'));
    await expect(failure).rejects.toMatchObject({ code: 'forbidden', message: expect.stringMatching(/certificate/) });
  });

  it('is not spoken to in the clear', async () => {
    const failure = apply(await opened(`etcd://127.0.0.1:${securePort}`, 2000), put('r/a'));
    await expect(failure).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('says which file of the URL cannot be read', async () => {
    await expect(opened(url('ca=/no/such/file'))).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('/no/such/file'),
    });
  });
});
