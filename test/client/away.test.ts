// Waits of the command line through a server that goes away, and comes back or does not.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Condition, type Failure, open, type Signalbox } from 'signalbox';
import { connect, type RemoteSignalbox } from 'signalbox/client';
import { fakeAdapters, TestClock } from 'signalbox/testing';
import { remoteGuards } from '../../src/cli/remote/guards.ts';
import { eventsSince } from '../../src/cli/remote/past-events.ts';
import { remotePipelines } from '../../src/cli/remote/pipelines.ts';
import { LOCAL, TestServer } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, Wire } from '../support/wire.ts';

let clock: TestClock;
let server: TestServer;
let wire: Wire;
let client: RemoteSignalbox;

beforeEach(async () => {
  clock = new TestClock();
  server = new TestServer(await open('memory:', { clock, adapters: fakeAdapters() }), { clock });
  wire = new Wire(server);
  client = connect(URL_OF_TESTS, { token: LOCAL, fetch: wire.fetch, clock, retryMs: 1_000 });
});
afterEach(async () => {
  wire.isCut = false;
  await client.close();
  await server.close();
});

const guards = (): Signalbox['guards'] =>
  remoteGuards(
    client,
    (one, condition, { signal, waits }) => one.judged(condition, { ...waits, ...(signal && { signal }) }),
    clock,
  ) as Signalbox['guards'];
const pipelines = (): Signalbox['pipelines'] => remotePipelines(client, clock) as Signalbox['pipelines'];

describe('a server that is away from the start', () => {
  it('ends every wait with a clear error', async () => {
    wire.isCut = true;
    const away = { code: 'unavailable', message: expect.stringContaining('cannot be reached') as string };
    await expect(
      settledIn(
        clock,
        client.on('*', () => undefined),
      ),
    ).rejects.toMatchObject(away);
    await expect(settledIn(clock, guards().wait({ lockFree: 'main' }))).rejects.toMatchObject(away);
    const reading = (async () => {
      for await (const event of client.events()) expect(event).toBeUndefined();
    })();
    await expect(settledIn(clock, reading)).rejects.toMatchObject(away);
  });
});

describe('a stream that loses its server', () => {
  it('says so once, and once that it is back, but nothing of an interruption that nobody notices', async () => {
    const told: (string | undefined)[] = [];
    const onAway = (trouble?: Failure): void => void told.push(trouble?.message);
    const looks = (): number => wire.sent.filter(({ path }) => path === '/v1/events').length;
    const over = new AbortController();
    await client.close();
    client = connect(URL_OF_TESTS, { token: LOCAL, fetch: wire.fetch, clock, onAway });
    let opened = 0;
    const reading = (async () => {
      const events = client.events('*', { signal: over.signal, onOpen: () => void (opened += 1) });
      for await (const event of events) expect(event).toBeUndefined();
    })();
    await expect.poll(() => opened).toBe(1);
    wire.cut.abort(new TypeError('terminated'));
    wire.cut = new AbortController();
    while (opened < 2) await clock.advance(20);
    await clock.advance(5_000);
    expect(told).toEqual([]);
    wire.isCut = true;
    wire.cut.abort(new TypeError('terminated'));
    wire.cut = new AbortController();
    const before = looks();
    while (looks() < before + 5) await clock.advance(500);
    expect(told).toEqual([`${URL_OF_TESTS} cannot be reached: fetch failed`]);
    wire.isCut = false;
    while (opened < 3) await clock.advance(500);
    expect(told).toEqual([expect.any(String), undefined]);
    over.abort();
    await reading;
  });
});

describe('a wait that loses its server', () => {
  it('says so once, and once that it is back', async () => {
    const told: (string | undefined)[] = [];
    const onAway = (trouble?: Failure): void => void told.push(trouble?.message);
    await client.close();
    client = connect(URL_OF_TESTS, { token: LOCAL, fetch: wire.fetch, clock, onAway });
    const asked = (): number => wire.sent.filter(({ path }) => path.endsWith('/acquire')).length;
    const hold = await server.box.lock('main').acquire();
    let isWaiting = false;
    const waiting = client.lock('main').acquire({ onWaiting: () => void (isWaiting = true) });
    await expect.poll(() => isWaiting && asked() > 1).toBe(true);
    wire.isCut = true;
    wire.cut.abort(new TypeError('terminated'));
    wire.cut = new AbortController();
    while (told.length === 0) await clock.advance(500);
    const before = asked();
    while (asked() < before + 3) await clock.advance(500);
    expect(told).toEqual([`${URL_OF_TESTS} cannot be reached: fetch failed`]);
    wire.isCut = false;
    await hold.release();
    await (await settledIn(clock, waiting)).release();
    expect(told).toEqual([expect.any(String), undefined]);
  });

  it('has nothing to say if it gives up', async () => {
    const told: (string | undefined)[] = [];
    await client.close();
    const onAway = (trouble?: Failure): void => void told.push(trouble?.message);
    client = connect(URL_OF_TESTS, { token: LOCAL, fetch: wire.fetch, clock, onAway });
    await server.box.lock('main').acquire();
    const leaving = new AbortController();
    let isWaiting = false;
    const onWaiting = (): void => void (isWaiting = true);
    const waiting = client.lock('main').acquire({ onWaiting, signal: leaving.signal });
    waiting.catch(() => undefined);
    await expect.poll(() => isWaiting).toBe(true);
    wire.isCut = true;
    wire.cut.abort(new TypeError('terminated'));
    leaving.abort();
    await expect(settledIn(clock, waiting)).rejects.toMatchObject({ refusal: { kind: 'aborted' } });
    await clock.advance(5_000);
    expect(told).toEqual([]);
  });
});

describe('a server that goes away meanwhile', () => {
  it('finds a guard waiting when it is back', async () => {
    const hold = await server.box.lock('main').acquire();
    let looks = 0;
    const waiting = guards().wait({ lockFree: 'main' }, { pollMs: 10, onVerdict: () => void (looks += 1) });
    await expect.poll(() => looks).toBeGreaterThan(0);
    wire.isCut = true;
    wire.cut.abort(new TypeError('terminated'));
    const sent = wire.sent.length;
    // It asks, gets no answer, and gives up that look: after another one it has survived that.
    while (wire.sent.filter(({ path }, at) => at >= sent && path.endsWith('/check')).length < 8)
      await clock.advance(200);
    await hold.release();
    wire.cut = new AbortController();
    wire.isCut = false;
    expect(await settledIn(clock, waiting)).toMatchObject({ kind: 'passed' });
  });

  it('ends the wait for a guard when its time is over, and says why', async () => {
    await server.box.lock('main').acquire();
    let looks = 0;
    const cut = (): void => {
      looks += 1;
      wire.isCut = true;
      wire.cut.abort(new TypeError('terminated'));
    };
    const waiting = guards().wait({ lockFree: 'main' }, { pollMs: 10, timeoutMs: 10_000, onVerdict: cut });
    waiting.catch(() => undefined);
    await expect.poll(() => looks).toBe(1);
    await expect(settledIn(clock, waiting)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('given up after 10 s') as string,
    });
  });

  it('keeps pipeline cancel waiting for a while, and not for ever', async () => {
    for (const id of ['p-1', 'p-2'])
      await server.box.pipelines.start({ name: 'book', phases: [{ name: 'one', run: 'true' }] }, { id });
    wire.losesAnswer = (path) => {
      if (path.endsWith('/cancel')) wire.isCut = true;
      return false;
    };
    const looks = (id: string): number => wire.sent.filter(({ path }) => path.endsWith(`/${id}`)).length;
    const one = pipelines().cancel('p-1', { by: 'ann', reason: 'over' });
    await expect.poll(() => looks('p-1')).toBeGreaterThan(0);
    wire.isCut = false;
    expect(await settledIn(clock, one)).toMatchObject({ state: 'cancelled' });
    const other = pipelines().cancel('p-2', { by: 'ann', reason: 'over' });
    await expect(settledIn(clock, other, 500)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('see: signalbox pipeline status p-2') as string,
    });
  });
});

describe('a wait for a guard', () => {
  const absent = { fileExists: 'absent' };
  it.each([5_000, 70_000])('looks at what sends no events every %d ms', async (pollMs) => {
    const looks: number[] = [];
    wire.answers = (text) => {
      looks.push(clock.now());
      return text;
    };
    const over = new AbortController();
    const waiting = guards().wait(absent, { pollMs, signal: over.signal });
    waiting.catch(() => undefined);
    for (let n = 0; n < 500 && looks.length < 4; n++) await clock.advance(1_000);
    expect(looks).toHaveLength(4);
    over.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    for (const [n, at] of looks.slice(1).entries()) expect(at - (looks[n] as number)).toBeGreaterThanOrEqual(pollMs);
  });

  it('answers with its last look when its time is over, and begins no other', async () => {
    const waiting = guards().wait(absent, { pollMs: 5_000, timeoutMs: 12_000 });
    await clock.advance(11_000);
    wire.isSilent = true;
    const looks = wire.sent.length;
    expect(await settledIn(clock, waiting)).toMatchObject({ kind: 'failed' });
    expect(wire.sent.length).toBe(looks);
  });

  it('is woken by an event at once, however seldom it looks at the rest', async () => {
    const hold = await server.box.lock('main').acquire();
    const begun = clock.now();
    const condition = { all: [{ lockFree: 'main' }, { not: absent }] };
    const waiting = guards().wait(condition, { pollMs: 3_600_000 });
    const asked = (): number => wire.sent.filter(({ path }) => path.endsWith('/check')).length;
    for (let n = 0; n < 500 && asked() < 3; n++) await clock.advance(1_000);
    await hold.release();
    expect(await settledIn(clock, waiting, 1)).toMatchObject({ kind: 'passed' });
    expect(clock.now() - begun).toBeLessThan(3_600_000);
  });

  it.each<{ what: string; condition: Condition }>([
    { what: 'what sends no events', condition: absent },
    { what: 'a lock and a file', condition: { any: [{ lockFree: 'main' }, absent] } },
  ])('looks again after the retry of its guard, at $what', async ({ condition }) => {
    await server.box.lock('main').acquire();
    const [begun, over] = [clock.now(), new AbortController()];
    const asked = (): number => wire.sent.filter(({ path }) => path.endsWith('/check')).length;
    const guard = { id: 'g', condition, onFailure: { retry: 5_000 } };
    const waiting = guards().wait(guard, { pollMs: 3_600_000, signal: over.signal });
    waiting.catch(() => undefined);
    for (let n = 0; n < 500 && asked() < 5; n++) await clock.advance(100);
    expect(asked()).toBe(5);
    // The first wait at the server begins with a look of its own.
    expect(clock.now() - begun).toBeGreaterThanOrEqual(3 * 5_000);
    expect(clock.now() - begun).toBeLessThan(5 * 5_000);
    over.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('that a server never answers ends when its time is over, as one that cannot be reached', async () => {
    wire.isSilent = true;
    await expect(settledIn(clock, guards().wait({ lockFree: 'main' }, { timeoutMs: 1_000 }))).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('given up after 1 s') as string,
    });
  });
});

describe('what happened since a time', () => {
  it('is complete before it is said to be, however slow the server is, and what follows comes once', async () => {
    for (let n = 0; n < 3; n++) await server.box.lock(`n-${n}`).tryAcquire();
    await server.box.tasks.publish('t-1', {});
    const order: string[] = [];
    const over = new AbortController();
    const listener = {
      told: ({ type, resource }: { type: string; resource: string }) => void order.push(`${type} ${resource}`),
      forgotten: () => void order.push('forgotten'),
      caughtUp: () => void order.push('caught up'),
    };
    const reading = eventsSince(client, '*', 0, listener, over.signal);
    await expect.poll(() => order).toContain('caught up');
    expect(order.slice(0, -1).sort()).toEqual([
      ...['lock:acquired lock/n-0', 'lock:acquired lock/n-1', 'lock:acquired lock/n-2', 'task:published task/t-1'],
    ]);
    await server.box.lock('after').tryAcquire();
    await server.box.tasks.publish('t-2', {});
    await expect.poll(() => order.length).toBe(7);
    expect(order.slice(5).sort()).toEqual(['lock:acquired lock/after', 'task:published task/t-2']);
    over.abort();
    await reading;
  });
});
