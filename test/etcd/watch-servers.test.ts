/** Watches on servers that do what a real one does only at the wrong moment: told by scripted ones, in a time of our own. */
import { type Changes, Value, type Watch } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { expect, it, vi } from 'vitest';
import { type EtcdOptions, openEtcd } from '../../src/store/etcd/open.ts';
import type { EtcdStore } from '../../src/store/etcd/store.ts';
import { CallFailure } from '../../src/grpc/transport.ts';
import { newWriter } from '../../src/store/etcd/wire/protobuf.ts';
import { connectTo, ScriptedServer } from '../support/etcd/scripted-servers.ts';

interface Said {
  readonly revision?: number;
  readonly id?: number;
  readonly created?: boolean;
  readonly canceled?: boolean;
  readonly reason?: string;
  /** Revisions of puts. */
  readonly puts?: readonly number[];
  readonly isFragment?: boolean;
}

function says({
  revision = 1,
  id = 1,
  created = false,
  canceled = false,
  reason = '',
  puts = [],
  isFragment = false,
}: Said): Uint8Array {
  const writer = newWriter().uint32(0x0a).fork().uint32(0x18).int64(revision).ldelim().uint32(0x10).int64(id);
  if (created) writer.uint32(0x18).bool(true);
  if (canceled) writer.uint32(0x20).bool(true);
  if (reason !== '') writer.uint32(0x32).string(reason);
  if (isFragment) writer.uint32(0x38).bool(true);
  for (const mod of puts) {
    writer.uint32(0x5a).fork().uint32(0x12).fork().uint32(0x0a).string('a').uint32(0x18).int64(mod).ldelim().ldelim();
  }
  return writer.finish();
}

/** What a transaction is answered with: nothing but the revision. */
function answer(revision: number): Uint8Array {
  return newWriter().uint32(0x0a).fork().uint32(0x18).int64(revision).ldelim().finish();
}

const isCreation = (message: Uint8Array): boolean => message[0] === 0x0a;
const isProgress = (message: Uint8Array): boolean => message[0] === 0x1a;
const never = (): AbortSignal => new AbortController().signal;

function stage(options: Partial<EtcdOptions> = {}): {
  readonly clock: TestClock;
  readonly one: ScriptedServer;
  readonly other: ScriptedServer;
  readonly store: EtcdStore;
} {
  const clock = new TestClock();
  const [one, other] = [new ScriptedServer('one'), new ScriptedServer('other')];
  const endpoints = [one, other].map(({ host }) => ({ host, port: 1 }));
  const connect = connectTo(one, other);
  const store = openEtcd({
    endpoints,
    clock,
    connect,
    random: () => 0,
    prefix: '',
    requestTimeoutMs: 4000,
    ...options,
  });
  return { clock, one, other, store };
}

async function read(watch: Watch, count: number): Promise<number[]> {
  const iterator = watch[Symbol.asyncIterator]();
  const revisions: number[] = [];
  for (let i = 0; i < count; i++) revisions.push(((await iterator.next()).value as Changes).revision);
  return revisions;
}

function codeOf(watch: Watch): Promise<string> {
  return watch[Symbol.asyncIterator]()
    .next()
    .then(
      () => 'a change',
      (error: unknown) => (error as { code: string }).code,
    );
}

it('a watch from now on does not begin before what was seen, on a server that lags behind', async () => {
  const { one, store } = stage();
  one.reply = () => answer(50);
  await store.transaction({ compare: [], success: [{ do: 'put', key: 'a', value: Value.text('x') }], failure: [] });
  one.echo = (_, message) =>
    isCreation(message) ? [says({ created: true, revision: 40 }), says({ puts: [45, 50, 51], revision: 51 })] : [];
  const watch = await store.watch({ key: 'a' }, 'now', never());
  expect(watch.since).toBe(50);
  expect(await read(watch, 1)).toEqual([51]);
});

it('what a server sends of the revision that was asked for, to see whether it is still there, is left out', async () => {
  const { one, store } = stage();
  one.echo = () => [says({ created: true }), says({ puts: [7, 8, 8, 9] })];
  expect(await read(await store.watch({ key: 'a' }, 7, never()), 2)).toEqual([8, 9]);
});

it('a watch that a server gives no number is the one that was asked for first', async () => {
  const { one, store } = stage();
  one.echo = () => [says({ created: true, canceled: true, id: -1, reason: 'mvcc: watcher duplicate ID' })];
  const failure = store.watch({ key: 'a' }, 'now', never()).catch((error: unknown) => error);
  one.echo = () => [says({ created: true, canceled: true, id: -1, reason: 'etcdserver: permission denied' })];
  expect(await failure).toMatchObject({ code: 'forbidden' });
});

it('a watch that is forbidden because the token was forgotten is asked for again with a new one', async () => {
  const { clock, one, store } = stage({
    user: 'me',
    password: 'secret',
    endpoints: [{ host: 'one', port: 1 }],
  });
  let logins = 0;
  one.reply = (method) => {
    if (method === 'Authenticate') logins += 1;
    return newWriter().uint32(0x12).string(`token ${logins}`).finish();
  };
  let id = 0;
  one.echo = (_, message) => {
    if (!isCreation(message)) return [says({ id: -1 })];
    id = message.at(-1) ?? 0;
    const isGood = one.tokens.at(-1) === `token ${logins}` && (clock.monotonic() < 60_000 || logins > 1);
    return [says({ id, created: true, canceled: !isGood, reason: isGood ? '' : 'etcdserver: permission denied' })];
  };
  await store.watch({ key: 'a' }, 'now', never());
  await clock.advance(3_600_000);
  const opened = store.watch({ key: 'a' }, 'now', never());
  await clock.advance(100);
  expect((await opened).since).toBe(1);
  expect(logins).toBe(2);
});

it('a silent watch is asked for a sign of life, and stays as long as it gives one', async () => {
  const { clock, one, other, store } = stage();
  let signs = 0;
  one.echo = (_, message) => {
    if (isCreation(message)) return [says({ created: true })];
    signs += isProgress(message) ? 1 : 0;
    return [says({ id: -1 })];
  };
  const over = codeOf(await store.watch({ key: 'a' }, 'now', never()));
  await clock.advance(60_000);
  expect(signs).toBeGreaterThan(5);
  one.echo = () => [];
  await clock.advance(12_000);
  expect(await over).toBe('unavailable');
  other.echo = () => [says({ created: true })];
  await store.watch({ key: 'a' }, 1, never());
  // First it asks whether this is still the etcd that it knows.
  expect(other.asked).toEqual(['Range', 'Watch']);
});

it('a server that has lost its leader ends its watches, and the next one is opened elsewhere', async () => {
  const { clock, one, other, store } = stage();
  one.echo = other.echo = () => [says({ created: true })];
  const over = codeOf(await store.watch({ key: 'a' }, 'now', never()));
  one.reply = () => new CallFailure(14, 'etcdserver: no leader', false);
  const second = store.watch({ key: 'b' }, 'now', never());
  await clock.advance(100);
  await second;
  expect(await over).toBe('unavailable');
  // First it asks whether this is still the etcd that it knows.
  expect(other.asked).toEqual(['Range', 'Watch']);
});

it('a revision that etcd tells in several pieces is one for those who watch', async () => {
  const { one, store } = stage();
  one.echo = (_, message) => (isCreation(message) ? [says({ created: true })] : []);
  const watch = await store.watch({ key: 'a' }, 1, never());
  const heard: string[] = [];
  const reading = (async () => {
    for await (const { revision, changes } of watch) heard.push(`${revision}: ${changes.length}`);
  })();
  one.echo = (_, message) =>
    isCreation(message)
      ? [
          says({ id: 2, created: true }),
          says({ puts: [5, 6], isFragment: true }),
          says({ puts: [6, 6], isFragment: true }),
          says({ puts: [6, 7], isFragment: true }),
          says({ puts: [8] }),
          says({ puts: [9, 9], isFragment: true }),
          says({}),
        ]
      : [];
  const other = await store.watch({ key: 'b' }, 1, never());
  await vi.waitFor(() => expect(heard).toEqual(['5: 1', '6: 4', '7: 1', '8: 1', '9: 2']));
  await store.close();
  await reading;
  void other;
});
