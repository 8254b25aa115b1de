/** What becomes of watches when a server says what a real one rarely says: told by a scripted one, in a time of our own. */
import { getEventListeners } from 'node:events';
import type { Changes, Store, Watch } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { expect, it } from 'vitest';
import { openEtcd } from '../../src/store/etcd/open.ts';
import { newWriter } from '../../src/store/etcd/wire/protobuf.ts';
import { connectTo, ScriptedServer } from '../support/etcd/scripted-servers.ts';

interface Stage {
  readonly clock: TestClock;
  readonly server: ScriptedServer;
  readonly store: Store;
}

function stage(): Stage {
  const clock = new TestClock();
  const server = new ScriptedServer('one');
  server.echo = (_, message) => (isCreation(message) ? [said({ id: idOf(message), created: true })] : []);
  const endpoints = [{ host: 'one', port: 1 }];
  const store = openEtcd({ endpoints, clock, connect: connectTo(server), requestTimeoutMs: 1000, prefix: '' });
  return { clock, server, store };
}

function isCreation(message: Uint8Array): boolean {
  return message[0] === 0x0a;
}

function isQuestion(message: Uint8Array): boolean {
  return message[0] === 0x1a;
}

/** It is the last thing in it, and small. */
function idOf(message: Uint8Array): number {
  return message.at(-1) ?? 0;
}

interface Said {
  readonly id: number;
  readonly revision?: number;
  readonly created?: boolean;
  readonly canceled?: boolean;
  readonly reason?: string;
  /** One put each, of the key `a`. */
  readonly events?: readonly number[];
}

function said({ id, revision = 5, created = false, canceled = false, reason = '', events = [] }: Said): Uint8Array {
  const writer = newWriter().uint32(0x0a).bytes(newWriter().uint32(0x18).int64(revision).finish());
  writer.uint32(0x10).int64(id).uint32(0x18).bool(created).uint32(0x20).bool(canceled).uint32(0x32).string(reason);
  for (const each of events) {
    const pair = newWriter().uint32(0x0a).string('a').uint32(0x18).int64(each).finish();
    writer.uint32(0x5a).bytes(newWriter().uint32(0x12).bytes(pair).finish());
  }
  return writer.finish();
}

async function opened({ clock, store }: Stage, signal = new AbortController().signal): Promise<Watch> {
  const opening = store.watch({ key: 'a' }, 'now', signal);
  await clock.advance(200);
  return opening;
}

function next(watch: Watch): Promise<IteratorResult<Changes, undefined>> {
  return watch[Symbol.asyncIterator]().next() as Promise<IteratorResult<Changes, undefined>>;
}

it('one who follows for ever over connections that break leaves nothing behind for each', async () => {
  const on = stage();
  const abort = new AbortController();
  for (let round = 0; round < 10; round++) {
    const watch = await opened(on, abort.signal);
    on.server.break();
    await expect(next(watch)).rejects.toMatchObject({ code: 'unavailable' });
  }
  await on.clock.advance(200);
  expect(getEventListeners(abort.signal, 'abort').length).toBe(0);
});

it('nor does one who asks for a watch that is never confirmed', async () => {
  const { clock, server, store } = stage();
  server.echo = () => [];
  const abort = new AbortController();
  for (let round = 0; round < 10; round++) {
    const opening = store.watch({ key: 'a' }, 'now', abort.signal).catch((error: unknown) => error);
    await clock.advance(1500);
    expect(await opening).toMatchObject({ code: 'unavailable' });
  }
  expect(getEventListeners(abort.signal, 'abort').length).toBe(0);
});

it('a watch that broke, and is aborted before that was read, ends without an error', async () => {
  const on = stage();
  const abort = new AbortController();
  const watch = await opened(on, abort.signal);
  on.server.break();
  abort.abort();
  expect(await next(watch)).toEqual({ done: true, value: undefined });
});

it('a server that says something twice is heard once', async () => {
  const on = stage();
  on.server.echo = (_, message) => {
    const id = idOf(message);
    return [said({ id, created: true }), said({ id, events: [6, 7] }), said({ id, events: [6, 7, 8] })];
  };
  const watch = await opened(on);
  const revisions: (number | undefined)[] = [];
  for (let i = 0; i < 3; i++) revisions.push((await next(watch)).value?.revision);
  expect(revisions).toEqual([6, 7, 8]);
});

it('the refusal of a watch that is no longer wanted is not taken for that of another one', async () => {
  const { clock, server, store } = stage();
  const gone = new AbortController();
  let sent = 0;
  server.echo = (_, message) => {
    if (!isCreation(message)) return [];
    sent += 1;
    // As etcd refuses since 3.4.22: for a number that is none.
    return sent === 1 ? [said({ id: -1, created: true, canceled: true, reason: 'etcdserver: permission denied' })] : [];
  };
  server.reply = (method) => {
    // Both are on their way, and none is answered.
    if (method === 'Watch') gone.abort();
    return new Uint8Array();
  };
  const unwanted = store.watch({ key: 'a' }, 'now', gone.signal).catch(() => 'aborted');
  const wanted = store.watch({ key: 'b' }, 'now', new AbortController().signal).catch((error: unknown) => error);
  await clock.advance(1500);
  expect(await unwanted).toBe('aborted');
  // Never confirmed; but not forbidden.
  expect(await wanted).toMatchObject({ code: 'unavailable' });
});

it('words of a server that cannot be read break the watch, and not the process', async () => {
  const on = stage();
  on.server.echo = (_, message) => [said({ id: idOf(message), created: true }), Uint8Array.of(0x5a, 0x7f)];
  await expect(next(await opened(on))).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('read'),
  });
});

it('nor do they break anything when they are about a lease: it is renewed again', async () => {
  const { clock, server, store } = stage();
  let renewals = 0;
  const renewed = newWriter().uint32(0x10).int64(7).uint32(0x18).int64(15).finish();
  server.echo = () => [++renewals === 1 ? Uint8Array.of(0x10) : renewed];
  const renewing = store.keepLeaseAlive('7');
  await clock.advance(500);
  expect(await renewing).toEqual({ id: '7', ttlMs: 15_000 });
});

it('a server that answers only some of the questions for a sign of life is not left', async () => {
  const on = stage();
  let questions = 0;
  on.server.echo = (_, message) => {
    if (isCreation(message)) return [said({ id: idOf(message), created: true })];
    // As etcd does while one of the watches catches up.
    return isQuestion(message) && ++questions % 2 === 0 ? [said({ id: -1 })] : [];
  };
  const watch = await opened(on);
  const told = next(watch).catch((error: unknown) => error);
  await on.clock.advance(20_000);
  expect(on.server.connections.length).toBe(1);
  await on.store.close();
  expect(await told).toEqual({ done: true, value: undefined });
});

it('a server that answers none of them is left', async () => {
  const on = stage();
  const watch = await opened(on);
  await Promise.all([expect(next(watch)).rejects.toMatchObject({ code: 'unavailable' }), on.clock.advance(4000)]);
});

it('a watch since a revision that is still to come is left in peace, although newer servers then give no sign', async () => {
  const { clock, server, store } = stage();
  const opening = store.watch({ key: 'a' }, 1000, new AbortController().signal);
  await clock.advance(200);
  const told = next(await opening).catch((error: unknown) => error);
  await clock.advance(20_000);
  expect(server.connections.length).toBe(1);
  await store.close();
  expect(await told).toEqual({ done: true, value: undefined });
});
