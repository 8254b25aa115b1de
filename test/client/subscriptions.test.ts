// Subscriptions through a server that outlast its trouble and the mistakes of their handlers, and never end without a word.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Failure, open, type Signalbox } from 'signalbox';
import { connect, type RemoteEvents, type RemoteSignalbox } from 'signalbox/client';
import { fakeAdapters, TestClock } from 'signalbox/testing';
import { openRemote } from '../../src/cli/remote/open.ts';
import { remotePipelines } from '../../src/cli/remote/pipelines.ts';
import { LOCAL, TestServer } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, Wire } from '../support/wire.ts';

let clock: TestClock;
let server: TestServer;
let wire: Wire;
let box: RemoteSignalbox;
/** What the server answers in place of a stream. */
let refusal: number | undefined;
let opened: number;
let uncaught: unknown[];
let away: (string | undefined)[];

beforeEach(async () => {
  [refusal, opened, uncaught, away] = [undefined, 0, [], []];
  const later = globalThis.queueMicrotask;
  vi.stubGlobal('queueMicrotask', (call: () => void) =>
    later(() => {
      try {
        call();
      } catch (error) {
        uncaught.push(error);
      }
    }),
  );
  clock = new TestClock();
  server = new TestServer(await open('memory:', { clock, adapters: fakeAdapters() }), { clock });
  wire = new Wire(server);
  const onAway = (trouble?: Failure): void => void away.push(trouble?.code);
  box = connect(URL_OF_TESTS, { token: LOCAL, fetch: refusing, clock, onAway });
});
afterEach(async () => {
  await box.close();
  await server.close();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});

const refusing: typeof fetch = (input, init) => {
  if (!['/v1/events', '/v1/members/watch'].includes(new URL(String(input)).pathname)) return wire.fetch(input, init);
  opened += 1;
  return refusal === undefined
    ? wire.fetch(input, init)
    : Promise.resolve(Response.json({ detail: 'no' }, { status: refusal }));
};

/** The stream is lost, and the server answers this to the next requests for one. */
async function refuse(status: number): Promise<void> {
  refusal = status;
  const before = opened;
  wire.cut.abort(new TypeError('terminated'));
  wire.cut = new AbortController();
  for (let n = 0; n < 100 && opened === before; n++) await clock.advance(20);
}

describe('a subscription of a client', () => {
  it('goes on after a handler has thrown, and the error is an uncaught exception', async () => {
    const heard: string[] = [];
    const mistake = new Error('a mistake of the handler');
    await box.on('lock:acquired', ({ resource }) => {
      heard.push(resource);
      if (heard.length === 1) throw mistake;
    });
    await server.box.lock('a').tryAcquire();
    await server.box.lock('b').tryAcquire();
    await expect.poll(() => heard).toEqual(['lock/a', 'lock/b']);
    expect(uncaught).toEqual([mistake]);
  });

  it.each([500, 504])('outlasts a server that answers %d for a while, and says that it is away', async (status) => {
    const heard: string[] = [];
    await box.on('lock:acquired', ({ resource }) => void heard.push(resource));
    await server.box.lock('before').tryAcquire();
    await expect.poll(() => heard).toEqual(['lock/before']);
    await refuse(status);
    await clock.advance(3_000);
    expect(away).toEqual(['outcome-unknown']);
    await server.box.lock('meanwhile').tryAcquire();
    refusal = undefined;
    for (let n = 0; n < 100 && heard.length < 2; n++) await clock.advance(100);
    expect([heard, away, uncaught]).toEqual([['lock/before', 'lock/meanwhile'], ['outcome-unknown', undefined], []]);
  });

  it('ends with an uncaught exception when a server refuses its token', async () => {
    await box.on('*', () => undefined);
    await refuse(401);
    await expect.poll(() => uncaught).toMatchObject([{ code: 'forbidden', problem: { status: 401 } }]);
  });

  it('that never began is only rejected', async () => {
    refusal = 500;
    await expect(box.on('*', () => undefined)).rejects.toMatchObject({ problem: { status: 500 } });
    expect(uncaught).toEqual([]);
  });

  it('is rejected if the connection is closed before a server begins to send', async () => {
    wire.isSilent = true;
    const begun = box.on('*', () => undefined);
    await box.close();
    await expect(begun).rejects.toMatchObject({ code: 'closed' });
    expect(uncaught).toEqual([]);
  });
});

describe('a program that follows the members', () => {
  const join = (id: string): Promise<unknown> => box.members.join(id);

  it('gets the changes that it has not read yet, then the refusal, when a server refuses its token', async () => {
    const followed = await box.members.follow();
    const [one, other] = [followed.changes(), followed.changes()];
    const waiting = one.next();
    await join('m-1');
    expect(await waiting).toMatchObject({ value: { joined: [{ id: 'm-1' }] } });
    await refuse(401);
    const refused = { code: 'forbidden', problem: { status: 401 } };
    await expect(one.next()).rejects.toMatchObject(refused);
    expect(await other.next()).toMatchObject({ value: { joined: [{ id: 'm-1' }] } });
    await expect(other.next()).rejects.toMatchObject(refused);
    await expect(followed.changes().next()).rejects.toMatchObject(refused);
    expect(() => followed.view()).toThrow('no');
    expect(() => followed.coordinator()).toThrow('no');
  });

  it('that stops by itself gets no error', async () => {
    const followed = await box.members.follow();
    const waiting = followed.changes().next();
    followed.stop();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(followed.view().members).toEqual([]);
  });

  it('is rejected if the connection is closed before a server begins to send', async () => {
    wire.isSilent = true;
    const begun = box.members.follow();
    await box.close();
    await expect(begun).rejects.toMatchObject({ code: 'closed' });
  });
});

describe('a subscription of a command', () => {
  it('that a server refuses makes the command look again, and is no uncaught exception', async () => {
    vi.stubEnv('SIGNALBOX_SERVER_TOKEN', LOCAL);
    vi.stubGlobal('fetch', refusing);
    const command = await openRemote(URL_OF_TESTS);
    const heard: string[] = [];
    await command.on('*', ({ type }) => void heard.push(type));
    refusal = 403;
    wire.cut.abort(new TypeError('terminated'));
    wire.cut = new AbortController();
    await expect.poll(() => heard).toEqual(['resync']);
    expect(uncaught).toEqual([]);
    await command.close();
  });

  it('to a pipeline that a server refuses does not end the command', async () => {
    await server.box.pipelines.start({ name: 'book', phases: [{ name: 'one', run: 'true' }] }, { id: 'p' });
    const subscribed = vi.spyOn(box, 'events');
    const shown = vi.spyOn(box.pipelines, 'show').mockResolvedValue(await box.pipelines.show('p'));
    const pipelines = remotePipelines(box, clock) as Signalbox['pipelines'];
    const waiting = pipelines.cancel('p', { by: 'ann', reason: 'over' });
    await expect.poll(() => (subscribed.mock.results[0]?.value as RemoteEvents | undefined)?.place).toBeDefined();
    await refuse(403);
    shown.mockRestore();
    expect(await settledIn(clock, waiting)).toMatchObject({ state: 'cancelled' });
    expect([opened, uncaught]).toEqual([2, []]);
  });
});
