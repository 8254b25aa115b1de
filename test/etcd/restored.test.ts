/** An etcd that goes back: restored from a backup, or replaced by another one, while processes use it. */
import { rm } from 'node:fs/promises';
import { open, type Signalbox } from 'signalbox';
import { openEtcdUrl, type Store, Value } from 'signalbox/store';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { start } from '../support/cli.ts';
import { Backup, startAlone } from '../support/etcd/backups.ts';
import { inQueue } from '../support/etcd/fleet.ts';
import type { Member } from '../support/etcd/member.ts';
import { errorOf, lossOf } from '../support/outcome.ts';
import { freePorts } from '../support/ports.ts';
import { isMissing } from '../support/programs.ts';
import { until } from '../support/until.ts';

/** So long that no lease ends during a test: whoever loses its hold has noticed the restore itself. */
const TTL_MS = 600_000;

describe.skipIf(isMissing('etcd') || isMissing('etcdctl'))('an etcd that is restored while processes use it', () => {
  let member: Member;
  let backup: Backup;
  const boxes: Signalbox[] = [];
  const stores: Store[] = [];

  beforeEach(async () => {
    member = await startAlone();
  });
  afterEach(async () => {
    await Promise.all(boxes.splice(0).map((box) => box.close().catch(() => undefined)));
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await member.stop();
    await backup?.remove();
  });

  const url = (): string => `etcd://127.0.0.1:${member.port}`;
  const opened = async (): Promise<Signalbox> => {
    const box = await open(url(), { maintains: false, sessionTtlMs: TTL_MS });
    boxes.push(box);
    return box;
  };
  const openedStore = async (): Promise<Store> => {
    const store = await openEtcdUrl(url());
    stores.push(store);
    return store;
  };
  /** What is written after the backup, and lost by going back to it. */
  const writeOn = async (): Promise<void> => {
    const store = await openedStore();
    for (let i = 0; i < 100; i++) await store.transaction(putting('k', String(i)));
  };

  const ways: readonly (readonly [string, () => Promise<void>])[] = [
    ['by etcdctl, which keeps the id of a cluster with the same name', () => backup.restoreSnapshot()],
    ['by etcdctl, as another cluster', () => backup.restoreSnapshot('--initial-cluster-token', 'another')],
    ['by a copy of its files', () => backup.restoreFiles()],
    ['by nothing: it is empty', () => rm(member.directory, { recursive: true })],
  ];

  it.each(ways)('%s: holds are lost, and the error says what happened', async (_, restore) => {
    const box = await opened();
    // Its session, with its lease, is in the backup; its hold is not.
    await (await box.lock('before').acquire()).release();
    backup = await Backup.take(member);
    const hold = await box.lock('deploy').acquire();
    await writeOn();
    const lost = new Promise<void>((resolve) => hold.signal.addEventListener('abort', () => resolve()));
    const next = await inQueue(box.lock('deploy'), { holder: 'next' });
    const waited = errorOf(next.granted);
    await member.kill();
    await restore();
    await member.start();
    await lost;
    expect(lossOf(hold.signal)?.why).toBe('disconnected');
    expect(await waited).toMatchObject({ code: 'not-acquired' });
    const refused = await errorOf(box.lock('deploy').acquire());
    expect(refused).toMatchObject({ code: 'closed', message: expect.stringMatching(/restored .*open it again/) });
    const after = await (await opened()).lock('deploy').acquire();
    expect(after.isValid).toBe(true);
    expect(hold.isValid).toBe(false);
  });

  it.each(ways)('%s: watches fail, and so does every call', async (_, restore) => {
    const store = await openedStore();
    backup = await Backup.take(member);
    await writeOn();
    await store.health();
    await member.kill();
    await restore();
    await member.start();
    // It asks for what comes after a revision that the restored etcd has not reached: etcd would stay silent.
    const { id } = await (await openedStore()).grantLease(TTL_MS);
    const failed = async (): Promise<unknown> => {
      try {
        for await (const _changes of await store.watch({ key: 'k' }, 100, new AbortController().signal));
      } catch (error) {
        return error;
      }
      return undefined;
    };
    expect(await failed()).toMatchObject({ code: 'closed' });
    for (const call of [
      () => store.transaction(putting('k', 'x')),
      () => store.health(),
      () => store.keepLeaseAlive(id),
      () => store.grantLease(TTL_MS),
      () => store.watch({ key: 'k' }, 'now', new AbortController().signal),
    ])
      expect(await errorOf(call())).toMatchObject({ code: 'closed', message: expect.stringMatching(/restored/) });
    await store.close();
  });

  it('ends commands that wait for something in it, and servers, with 69 and the reason', async () => {
    const env = { SIGNALBOX_URL: url() };
    const [port = 0] = await freePorts(1, '127.0.0.1');
    const server = start(['serve', '--port', String(port)], { env });
    const tails = [start(['events', 'tail'], { env }), start(['events', 'tail', '--since', '1h'], { env })];
    onTestFinished(() => [server, ...tails].forEach(({ child }) => child.kill('SIGKILL')));
    await server.printed('signalbox serves');
    backup = await Backup.take(member);
    await writeOn();
    // All of them see that the etcd goes on.
    const isHeard = Promise.all(tails.map((tail) => tail.printed('lock:released'))).then(() => true);
    const box = await opened();
    await until(async () => {
      await (await box.lock('a').acquire()).release();
      return Promise.race([isHeard, Promise.resolve(false)]);
    });
    const health = (): Promise<Response> => fetch(`http://127.0.0.1:${port}/healthz`);
    await until(async () => (await health()).ok);
    await member.kill();
    await backup.restoreSnapshot();
    await member.start();
    // It notices with the next request.
    await until(async () => (await health().catch(() => undefined))?.ok !== true);
    for (const { ended } of [...tails, server]) {
      const told = expect.stringMatching(/etcd was restored .*open it again/);
      expect(await ended).toMatchObject({ code: 69, stderr: told });
    }
  });

  it('is the same etcd after a restart, and after --force-new-cluster: all is kept', async () => {
    const box = await opened();
    const hold = await box.lock('deploy').acquire();
    for (const flags of [[], ['--force-new-cluster']]) {
      await member.kill();
      await member.start(...flags);
      await (await box.lock('other').acquire()).release();
      expect(hold.isValid).toBe(true);
    }
  });
});

function putting(key: string, value: string) {
  return { compare: [], success: [{ do: 'put', key, value: Value.text(value) } as const], failure: [] };
}
