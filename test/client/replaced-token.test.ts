// A request that got no answer, and is sent again: an Idempotency-Key belongs to a token, so under another one it would be done twice.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { open } from 'signalbox';
import { connect, type ConnectOptions, type RemoteSignalbox } from 'signalbox/client';
import { TestClock } from 'signalbox/testing';
import { LOCAL, TestServer } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, Wire } from '../support/wire.ts';

let clock: TestClock;
let server: TestServer;
let wire: Wire;
const opened: RemoteSignalbox[] = [];

beforeEach(async () => {
  clock = new TestClock();
  server = new TestServer(await open('memory:', { clock }), { clock });
  wire = new Wire(server);
});
afterEach(async () => {
  for (const box of opened.splice(0)) await box.close();
  await server.close();
});

function connected(options: ConnectOptions, url: string | readonly string[] = URL_OF_TESTS): RemoteSignalbox {
  const box = connect(url, { fetch: wire.fetch, clock, ...options });
  opened.push(box);
  return box;
}

/** Puts a key, whose version tells how often that was done. Loses the `nth` answer, and then calls `lost`. */
async function putOnce(box: RemoteSignalbox, lost: () => Promise<void> | void, nth = 1): Promise<unknown> {
  let left = nth;
  const isLost = new Promise<void>((resolve) => {
    wire.losesAnswer = () => {
      left -= 1;
      if (left === 0) resolve();
      return left === 0;
    };
  });
  const putting = box.bus.put('counted', 'x');
  putting.catch(() => undefined);
  await isLost;
  await lost();
  return settledIn(clock, putting);
}

async function version(): Promise<number> {
  return (await server.get('/v1/bus/counted')).body.version;
}

async function revoke(secret: string): Promise<void> {
  await server.box.tokens.revoke((await server.get('/v1/token', { token: secret })).body.id);
  await expect.poll(async () => (await server.get('/v1/token', { token: secret })).status).toBe(401);
}

it('is not sent under another token when its own is refused: nobody knows what became of it', async () => {
  const [old, newer] = [await server.token('administrator'), await server.token('administrator')];
  let token = old;
  const box = connected({ token: (_, refused) => (refused === undefined ? old : token) });
  const putting = putOnce(box, async () => {
    token = newer;
    await revoke(old);
  });
  await expect(putting).rejects.toMatchObject({
    ...{ code: 'outcome-unknown', message: expect.stringContaining('may have been done') as string },
  });
  expect(await version()).toBe(1);
});

it('is sent under its own token although the program has a new one by now', async () => {
  let token = await server.token('administrator');
  const box = connected({ token: () => token });
  await putOnce(box, async () => {
    token = await server.token('administrator');
  });
  expect(await version()).toBe(1);
});

it('goes back to the server whose token it carried, where each server has another one', async () => {
  const other = 'http://127.0.0.1:7301';
  const tokens = new Map([
    [URL_OF_TESTS, LOCAL],
    [other, await server.token('administrator')],
  ]);
  const box = connected({ token: (at) => tokens.get(at) as string }, [URL_OF_TESTS, other]);
  await putOnce(box, () => undefined);
  expect(await version()).toBe(1);
});

it('is sent under the new token if the old one was refused before anything was done', async () => {
  const [old, newer] = [await server.token('administrator'), await server.token('administrator')];
  await revoke(old);
  const box = connected({ token: (_, refused) => (refused === undefined ? old : newer) });
  // The first answer is the refusal.
  await putOnce(box, () => undefined, 2);
  expect(await version()).toBe(1);
});

it.each(['refuses connections', 'has too much to do'])('is of unknown outcome if its server then %s', async (how) => {
  let isAway = false;
  const answers = (): Promise<Response> => {
    if (how === 'has too much to do') return Promise.resolve(new Response('{}', { status: 503 }));
    const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    return Promise.reject(new TypeError('fetch failed', { cause }));
  };
  const asking: typeof fetch = (...asked) => (isAway ? answers() : wire.fetch(...asked));
  const box = connected({ token: LOCAL, fetch: asking, retryMs: 2_000 });
  const putting = putOnce(box, () => void (isAway = true));
  await expect(putting).rejects.toMatchObject({ code: 'outcome-unknown' });
  await expect(settledIn(clock, box.bus.put('other', 'x'))).rejects.toMatchObject({ code: 'unavailable' });
  isAway = false;
  expect(await version()).toBe(1);
});

it('ends a claim no further when its own token is refused, although the claim goes on under the next one', async () => {
  const [old, newer] = [await server.token('administrator'), await server.token('administrator')];
  let token = old;
  const box = connected({ token: (_, refused) => (refused === undefined ? old : token) });
  await box.tasks.publish('t', {});
  const claim = await box.tasks.claim('t');
  const isLost = new Promise<void>((resolve) => {
    wire.losesAnswer = (path) => path.endsWith('/complete') && (resolve(), true);
  });
  const ending = claim.complete();
  ending.catch(() => undefined);
  await isLost;
  token = newer;
  await revoke(old);
  await expect(settledIn(clock, ending)).rejects.toMatchObject({ code: 'outcome-unknown' });
});
