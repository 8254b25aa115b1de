/** Which answers show that an etcd was restored or replaced, and which ones only come from a server that lags behind. */
import { Value, type Store } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { expect, it } from 'vitest';
import { CallFailure } from '../../src/grpc/transport.ts';
import { openEtcd } from '../../src/store/etcd/open.ts';
import { newWriter } from '../../src/store/etcd/wire/protobuf.ts';
import { connectTo, ScriptedServer } from '../support/etcd/scripted-servers.ts';
import { errorOf } from '../support/outcome.ts';

const RESTORED = { code: 'closed', message: expect.stringMatching(/^etcd was restored .*open it again$/) };

interface Stage {
  readonly clock: TestClock;
  readonly one: ScriptedServer;
  readonly other: ScriptedServer;
  readonly store: Store;
}

/** Two servers, of which the first is asked first and has answered once, at revision 50. */
async function stage(): Promise<Stage> {
  const clock = new TestClock();
  const [one, other] = [new ScriptedServer('one'), new ScriptedServer('other')];
  const endpoints = [one, other].map(({ host }) => ({ host, port: 1 }));
  const store = openEtcd({ endpoints, clock, connect: connectTo(one, other), random: () => 0, prefix: '' });
  one.reply = () => written(50);
  await write(store);
  return { clock, one, other, store };
}

/** What an answer begins with. */
function header(revision: number, cluster = 7) {
  const writer = newWriter().uint32(0x0a).fork();
  return writer.uint32(0x08).uint64(cluster).uint32(0x10).uint64(1).uint32(0x18).int64(revision).ldelim();
}

function answer(revision: number, cluster?: number): Uint8Array {
  return header(revision, cluster).finish();
}

/** Of a transaction with one put. */
function written(revision: number, cluster?: number): Uint8Array {
  const answered = header(revision, cluster).uint32(0x10).bool(true).uint32(0x1a).fork();
  return answered.uint32(0x12).fork().ldelim().ldelim().finish();
}

function watching(revision: number): Uint8Array {
  return header(revision).uint32(0x10).int64(1).uint32(0x18).bool(true).finish();
}

function renewed(revision: number): Uint8Array {
  return header(revision).uint32(0x10).int64(9).uint32(0x18).int64(60).finish();
}

function write(store: Store): Promise<unknown> {
  const put = { do: 'put', key: 'a', value: Value.text('x') } as const;
  return store.transaction({ compare: [], success: [put], failure: [] });
}

function never(): AbortSignal {
  return new AbortController().signal;
}

it('an answer that is overtaken by a later one is not taken for one of a restored etcd', async () => {
  const { one, store } = await stage();
  const revisions = [53, 51, 52];
  one.reply = () => written(revisions.shift() ?? 53);
  await Promise.all([write(store), write(store), write(store)]);
  await write(store);
});

it('a server that lags behind may answer what needs no newest revision', async () => {
  const { clock, one, other, store } = await stage();
  one.break();
  other.reply = (method) => (method === 'Txn' ? written(51) : answer(method === 'Range' ? 50 : 40));
  other.echo = (method) => [method === 'Watch' ? watching(40) : renewed(40)];
  await store.watch({ key: 'a' }, 50, never());
  await store.keepLeaseAlive('9');
  await store.leaseState('9');
  await clock.advance(5000);
  await write(store);
  await store.keepLeaseAlive('9');
});

it('a transaction that only compares asks for something too, since any server answers one without operations', async () => {
  const { one, store } = await stage();
  const sent: Uint8Array[] = [];
  one.reply = (_, message = new Uint8Array()) => {
    sent.push(message);
    // A read without keys, of the branch that was taken.
    return header(51).uint32(0x10).bool(true).uint32(0x1a).fork().uint32(0x0a).fork().ldelim().ldelim().finish();
  };
  const compared = await store.transaction({ compare: [], success: [], failure: [] });
  expect(compared).toMatchObject({ succeeded: true, revision: 51, results: [] });
  // One operation in each of the branches, which are the fields 2 and 3.
  expect([...(sent[0] ?? [])].filter((byte) => byte === 0x12 || byte === 0x1a)).toHaveLength(2);
});

it('a write that an etcd answers with a revision from before is refused, and so are all calls after it', async () => {
  const { one, store } = await stage();
  one.reply = () => written(30);
  expect(await errorOf(write(store))).toMatchObject(RESTORED);
  expect(await errorOf(store.health())).toMatchObject(RESTORED);
  await store.close();
});

it('a process that only watches asks every new server, and its watch fails if that went back', async () => {
  const { one, other, store } = await stage();
  one.echo = () => [watching(50)];
  const first = await store.watch({ key: 'a' }, 50, never());
  one.break();
  expect(await errorOf(first[Symbol.asyncIterator]().next())).toMatchObject({ code: 'unavailable' });
  other.reply = () => answer(30);
  other.echo = () => [watching(30)];
  const next = async (): Promise<unknown> => {
    const watch = await store.watch({ key: 'a' }, 50, never());
    return watch[Symbol.asyncIterator]().next();
  };
  expect(await errorOf(next())).toMatchObject(RESTORED);
});

it('if the question to a new server is not answered, the next renewal asks it again', async () => {
  const { clock, one, other, store } = await stage();
  one.break();
  other.reply = (method) =>
    method === 'Range' ? new CallFailure(14, 'etcdserver: request timed out', false) : answer(50);
  other.echo = () => [renewed(60)];
  await store.keepLeaseAlive('9');
  await clock.advance(10_000);
  other.reply = () => answer(40);
  await store.keepLeaseAlive('9');
  await clock.advance(1000);
  expect(await errorOf(store.health())).toMatchObject(RESTORED);
});

it('behind a proxy, whose connection outlives the etcd, a renewal shows that it went back', async () => {
  const { clock, one, store } = await stage();
  one.echo = () => [renewed(30)];
  one.reply = () => answer(30);
  await store.keepLeaseAlive('9');
  await clock.advance(1000);
  expect(await errorOf(store.keepLeaseAlive('9'))).toMatchObject(RESTORED);
});

it('another cluster is not taken for this one, however far it is, and the error names its server', async () => {
  const { one, other, store } = await stage();
  one.break();
  other.reply = () => answer(5000, 8);
  other.echo = () => [watching(5000)];
  const refused = { ...RESTORED, message: expect.stringContaining('other:1 belongs to another cluster now') };
  expect(await errorOf(store.health())).toMatchObject(refused);
});

it('a proxy that leaves out the header, or its cluster, is believed', async () => {
  const { one, store } = await stage();
  one.reply = () => written(51, 0);
  await write(store);
  one.reply = () =>
    newWriter().uint32(0x10).bool(true).uint32(0x1a).fork().uint32(0x12).fork().ldelim().ldelim().finish();
  await write(store);
});
