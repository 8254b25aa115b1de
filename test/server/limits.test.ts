// What one client can make a server keep: streams, answers, tickets; and what ends them.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type ClientRequest, createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure, open } from 'signalbox';
import { type Call, fakeAdapters, faultyStore, ScriptedFaults, TestClock } from 'signalbox/testing';
import { localTokenFile, readLocalToken } from '../../src/runtime/location/local-token.ts';
import { openMemory } from '../../src/store/index.ts';
import { NodeAsked } from '../../src/server/asked.ts';
import { type Asked, eventsOf, LOCAL, type Told, TestServer } from '../support/server.ts';
import { settledIn } from '../support/wire.ts';

let clock: TestClock;
let server: TestServer;

beforeEach(async () => {
  clock = new TestClock();
  server = new TestServer(await open('memory:', { clock, adapters: fakeAdapters() }), { clock, mostStreams: 3 });
});
afterEach(() => server.close());

/** Resolves when the stream has ended. */
async function ended(response: Response): Promise<string> {
  for await (const _ of eventsOf(response)) continue;
  return 'ended';
}

describe('a stream', () => {
  it.each(['revoked', 'expired'])('ends when its token is %s', async (how) => {
    const token = await server.token('viewer', how === 'expired' ? { ttlMs: 60_000 } : {});
    const response = await server.fetch('GET', '/v1/events', undefined, { token });
    const end = ended(response);
    await clock.advance(10_000);
    expect(server.server.readers).toBe(1);
    if (how === 'expired') await clock.advance(60_000);
    else await server.box.tokens.revoke((await server.box.tokens.list())[0]?.id ?? '');
    await clock.advance(5_000);
    expect(await end).toBe('ended');
    expect(server.server.readers).toBe(0);
  });

  it('is refused if the token has as many as it may, and has room again when one is left', async () => {
    const token = await server.token('viewer');
    const some = await Promise.all([1, 2, 3].map(() => server.fetch('GET', '/v1/events', undefined, { token })));
    const { status, body, headers } = await server.get('/v1/events', { token });
    expect([status, body.code, headers.get('retry-after')]).toEqual([429, 'too-many-streams', '5']);
    expect((await server.fetch('GET', '/v1/events')).status).toBe(200);
    await some[0]?.body?.cancel();
    expect((await server.fetch('GET', '/v1/events', undefined, { token })).status).toBe(200);
  });

  it('is not kept open for HEAD, which nobody reads', async () => {
    for (let n = 0; n < 10; n++) {
      const response = await server.fetch('HEAD', '/v1/events');
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    }
    expect(server.server.readers).toBe(0);
  });
});

describe('a mounted stream that its client does not read', () => {
  const headers = { 'Content-Type': 'text/event-stream' };
  const megabyte = new Uint8Array(1024 * 1024);
  let source: ReadableStreamDefaultController<Uint8Array>;
  const cancelled = vi.fn();
  const mounted = (): TestServer => {
    const body = new ReadableStream<Uint8Array>({ start: (made) => void (source = made), cancel: cancelled });
    const fetch = (): Promise<Response> => Promise.resolve(new Response(body, { headers }));
    return new TestServer(server.box, { clock, mcp: async () => ({ fetch, close: async () => undefined }) });
  };

  it('is ended once too much is unread, and what it has kept is dropped', async () => {
    const response = await mounted().fetch('POST', '/mcp', {});
    for (let n = 0; n < 3; n++) source.enqueue(megabyte);
    await expect.poll(() => cancelled.mock.calls.length).toBe(1);
    await expect(response.arrayBuffer()).rejects.toThrow('does not read');
  });

  it('has one message of any size', async () => {
    const response = await mounted().fetch('POST', '/mcp', {});
    source.enqueue(new Uint8Array(10));
    source.enqueue(new Uint8Array(5 * megabyte.length));
    source.close();
    expect((await response.arrayBuffer()).byteLength).toBe(10 + 5 * megabyte.length);
  });
});

describe('a wait for a guard', () => {
  const looksAt = (condition: object, token: string, more: object = {}): Promise<Told> =>
    server.post('/v1/guards/check', { condition, waitMs: 45_000, ...more }, { token });

  it('is refused if the token has as many as it may, and has room again when one is over', async () => {
    const hold = await server.box.lock('held').acquire();
    const [token, other] = [await server.token('viewer'), await server.token('viewer')];
    const waits = vi.spyOn(server.box.guards, 'wait');
    const some = [1, 2, 3].map(() => looksAt({ lockFree: 'held' }, token));
    await expect.poll(() => waits.mock.calls.length).toBe(3);
    const { status, body, headers } = await settledIn(clock, looksAt({ lockFree: 'held' }, token), 100);
    expect([status, body.code, body.most, headers.get('retry-after')]).toEqual([429, 'too-many-waits', 3, '5']);
    // Streams have a number of their own, and so has every other token; a look that waits for nothing does not count.
    expect((await server.fetch('GET', '/v1/events', undefined, { token })).status).toBe(200);
    expect((await looksAt({ lockFree: 'held' }, token, { waitMs: 0 })).status).toBe(200);
    const others = looksAt({ lockFree: 'held' }, other);
    await hold.release();
    for (const one of [...some, others]) expect((await one).body.passed).toBe(true);
    expect((await looksAt({ lockFree: 'held' }, token)).body.passed).toBe(true);
  });

  it('looks at the machine of the server once a second at most', async () => {
    const looks: number[] = [];
    await server.box.on('guard:evaluating', ({ at }) => void looks.push(at));
    const waiting = looksAt({ fileExists: 'absent' }, LOCAL, { pollMs: 100, waitMs: 5_000 });
    await settledIn(clock, waiting, 100);
    expect(looks.length).toBeGreaterThan(1);
    for (const [n, at] of looks.slice(1).entries()) expect(at - (looks[n] as number)).toBeGreaterThanOrEqual(1_000);
  });
});

describe('a client that left before it was answered', () => {
  it('is noticed, and keeps no stream', async () => {
    const gone = await new Promise<NodeAsked>((resolve) => {
      const http = createServer((incoming, outgoing) => {
        outgoing.once('close', () => {
          http.close();
          resolve(new NodeAsked(incoming, outgoing));
        });
        asking.destroy();
      });
      let asking: ClientRequest;
      http.listen(0, '127.0.0.1', () => {
        const { port } = http.address() as AddressInfo;
        const headers = { Authorization: `Bearer ${LOCAL}` };
        asking = get({ host: '127.0.0.1', port, path: '/v1/events', headers }).on('error', () => undefined);
      });
    });
    expect(gone.signal.aborted).toBe(true);
    for (let n = 0; n < 10; n++) expect(await server.server.answer(gone)).toMatchObject({ status: 200 });
    expect(server.server.readers).toBe(0);
  });
});

describe('a request', () => {
  it.each([
    ['GET', '/v1/who', undefined, 503],
    ['GET', '/v1/witness/verify', undefined, 503],
    ['GET', '/v1/board', undefined, 503],
    ['POST', '/v1/witness/checkpoints', {}, 504],
    ['POST', '/v1/tasks', { id: 'slow' }, 504],
  ] as const)('that takes too long is answered all the same: %s %s', async (method, path, body, status) => {
    const { box } = server;
    const never = (): Promise<never> => new Promise(() => undefined);
    vi.spyOn(box, 'health').mockImplementation(never);
    vi.spyOn(box, 'survey').mockImplementation(never);
    vi.spyOn(box.witness, 'isOn').mockImplementation(never);
    vi.spyOn(box.witness, 'verify').mockImplementation(never);
    vi.spyOn(box.tasks, 'publish').mockImplementation(never);
    const answer = server.ask(method, path, body);
    await clock.advance(61_000);
    await clock.advance(10_000);
    expect([(await answer).status, path]).toEqual([status, path]);
    vi.restoreAllMocks();
  });

  it.each(['takes too long', 'outlives its server', 'outlives its client'])(
    'that stops as it is asked to, because it %s, is no bug',
    async (why) => {
      const left = new AbortController();
      let begin = (): void => undefined;
      const begun = new Promise<void>((resolve) => (begin = resolve));
      vi.spyOn(server.box, 'eventsSince').mockImplementation(async (_pattern, _after, _listener, signal) => {
        const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
        begin();
        await stopped;
      });
      const request = new Request('http://127.0.0.1/v1/history', {
        headers: { Authorization: `Bearer ${LOCAL}` },
        signal: left.signal,
      });
      const answer = server.server.fetch(request);
      await begun;
      if (why === 'takes too long') await clock.advance(61_000);
      else if (why === 'outlives its server') server.server.stop();
      else left.abort();
      expect((await answer).status).toBe(503);
      vi.restoreAllMocks();
    },
  );

  it.each(['revoked', 'expired'])('that waits ends when its token is %s, and leaves nothing behind', async (how) => {
    const token = await server.token('worker', how === 'expired' ? { ttlMs: 20_000 } : {});
    await server.post('/v1/locks/main/acquire', { holder: 'a', ttlMs: 3_600_000 });
    const waiting = server.post('/v1/locks/main/acquire', { holder: 'b', waitMs: 45_000 }, { token });
    await expect.poll(async () => (await server.get('/v1/locks/main')).body.waiting).toHaveLength(1);
    if (how === 'expired') await clock.advance(20_000);
    else await server.box.tokens.revoke((await server.box.tokens.list())[0]?.id ?? '');
    await clock.advance(5_000);
    expect(await waiting).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
    await clock.advance(70_000);
    expect((await server.get('/v1/locks/main')).body.waiting).toEqual([]);
  });
});

describe('an Idempotency-Key', () => {
  const headers = { 'Idempotency-Key': 'once' };

  it('gives the same hold while that lasts, and a new one after its time', async () => {
    const ask = () => server.post('/v1/locks/main/acquire', { holder: 'a', ttlMs: 30_000 }, { headers });
    const [first, again] = [await ask(), await ask()];
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.body).toEqual(first.body);
    await clock.advance(60_000);
    const later = await ask();
    expect(later.headers.get('idempotent-replayed')).toBeNull();
    expect(later.body.token).toBeGreaterThan(first.body.token);
  });

  it('of a break counts for a day, so that its repeat ends no later hold', async () => {
    const ask = () => server.post('/v1/locks/main/break', { reason: 'stuck' }, { headers });
    await server.post('/v1/locks/main/acquire', { holder: 'a' });
    const first = await ask();
    await server.post('/v1/locks/main/acquire', { holder: 'b', ttlMs: 3_600_000 });
    await clock.advance(600_000);
    const again = await ask();
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect((await server.get('/v1/locks/main')).body.holds).toMatchObject([{ holder: 'b' }]);
  });

  it('of what takes a hold away, or names none, counts for a day as well', async () => {
    const force = { holder: 'b', strategy: 'force', reason: 'stuck', ttlMs: 1000 };
    const keyed = (key: string) => ({ headers: { 'Idempotency-Key': key } });
    const take = () => server.post('/v1/locks/main/acquire', force, keyed('take'));
    const leave = () => server.post('/v1/locks/other/release', { holder: 'c' }, keyed('leave'));
    await server.post('/v1/locks/other/acquire', { holder: 'c' });
    expect([(await take()).status, (await leave()).status]).toEqual([200, 200]);
    await clock.advance(600_000);
    for (const name of ['main', 'other']) {
      await server.post(`/v1/locks/${name}/acquire`, { holder: 'c', ttlMs: 3_600_000 });
    }
    for (const again of [await take(), await leave()]) expect(again.headers.get('idempotent-replayed')).toBe('true');
    for (const name of ['main', 'other']) {
      expect((await server.get(`/v1/locks/${name}`)).body.holds).toMatchObject([{ holder: 'c' }]);
    }
  });

  it('of a change that was done is not free again because the store was away afterwards', async () => {
    const one = server.box.semaphore('gpu');
    vi.spyOn(one, 'inspect').mockRejectedValueOnce(new Failure('unavailable', 'the store is away'));
    vi.spyOn(server.box, 'semaphore').mockReturnValueOnce(one);
    const ask = () => server.ask('PUT', '/v1/semaphores/gpu/settings', { capacity: 2, fromCapacity: 0 }, { headers });
    const first = await ask();
    vi.restoreAllMocks();
    expect(first).toMatchObject({ status: 504, body: { code: 'outcome-unknown' } });
    expect((await ask()).body).toEqual(first.body);
    expect((await server.get('/v1/semaphores/gpu')).body.capacity).toBe(2);
  });

  it.each([
    ['PUT', '/v1/locks/main/settings', { ttlMs: 1000 }],
    ['PUT', '/v1/semaphores/gpu/settings', { capacity: 3, ttlMs: 1000 }],
    ['POST', '/v1/semaphores/gpu/drain', { reason: 'moved' }],
    ['POST', '/v1/tasks', { id: 't' }],
  ])('is kept for 24 hours, as the description says, for %s %s', async (method, path, body) => {
    const ask = () => server.ask(method, path, body, { headers });
    await ask();
    await clock.advance(23 * 3_600_000);
    expect((await ask()).headers.get('idempotent-replayed')).toBe('true');
    await clock.advance(2 * 3_600_000);
    expect((await ask()).headers.get('idempotent-replayed')).toBeNull();
  });

  it('says of every operation how long it counts', async () => {
    const { paths } = (await server.get('/openapi.json')).body as {
      paths: Record<
        string,
        Record<string, { operationId: string; parameters?: { name: string; description: string }[] }>
      >;
    };
    const texts = Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ operationId, parameters = [] }) =>
        parameters
          .filter(({ name }) => name === 'Idempotency-Key')
          .map(({ description }) => [operationId, description] as const),
      );
    const short = texts.filter(([, text]) => text.endsWith('as the lease that it gave, or else for two minutes.'));
    expect(
      short
        .filter(([, text]) => text.includes('24 hours'))
        .map(([id]) => id)
        .sort(),
    ).toEqual(['lock.acquire', 'lock.release', 'semaphore.acquire', 'semaphore.release']);
    const ofHolds = ['acquire', 'renew', 'release', 'withdraw'];
    expect(short.map(([id]) => id).sort()).toEqual(
      [
        ...['lock', 'semaphore'].flatMap((kind) => ofHolds.map((what) => `${kind}.${what}`)),
        ...['lock.upgrade', 'lock.downgrade', 'task.claim', 'task.claim-next', 'task.renew'],
        ...['member.renew', 'member.leave'],
      ].sort(),
    );
    for (const [id, text] of texts) if (!short.some(([known]) => known === id)) expect(text).toContain('24 hours');
  });

  it('of a change of what a member owns counts for a day, so that its repeat brings nothing back', async () => {
    const { incarnation } = (await server.post('/v1/members', { id: 'a', ttlMs: 3_600_000 })).body;
    const change = (how: object, more?: Asked): Promise<Told> =>
      server.post('/v1/members/a/assets', { incarnation, assets: ['gpu'], ...how }, more);
    const first = await change({ change: 'add' }, { headers });
    await change({ change: 'remove' });
    await clock.advance(600_000);
    const again = await change({ change: 'add' }, { headers });
    expect([again.headers.get('idempotent-replayed'), again.body]).toEqual(['true', first.body]);
    expect((await server.get('/v1/members')).body.members).toMatchObject([{ id: 'a', assets: [] }]);
  });

  it('of a join whose outcome nobody knows is not refused because of the member that it may have made', async () => {
    const lost = { isLost: true };
    const faults = Object.assign(new ScriptedFaults(), {
      after: (call: Call) =>
        lost.isLost && call.kind === 'transaction' && JSON.stringify(call.transaction.success).includes('member/a')
          ? 'drop'
          : 'pass',
    });
    const own = new TestServer(await open(faultyStore(openMemory({ clock }), faults), { clock }), { clock });
    try {
      const ask = (): Promise<Told> => own.post('/v1/members', { id: 'a' }, { headers });
      const first = await settledIn(clock, ask(), 1_000);
      lost.isLost = false;
      expect(first).toMatchObject({ status: 504, body: { code: 'outcome-unknown' } });
      const again = await ask();
      expect([again.status, again.body]).toEqual([504, first.body]);
    } finally {
      await own.close();
    }
  });

  it('of a request whose outcome nobody knows carries nothing out again, and says so', async () => {
    const lost = { isLost: false };
    const faults = Object.assign(new ScriptedFaults(), {
      after: (call: Call) =>
        lost.isLost && call.kind === 'transaction' && JSON.stringify(call.transaction.success).includes('counted')
          ? 'drop'
          : 'pass',
    });
    const own = new TestServer(await open(faultyStore(openMemory({ clock }), faults), { clock }), { clock });
    try {
      const body = { compare: [], success: [{ do: 'put', key: 'counted', value: 'x' }] };
      const ask = () => own.post('/v1/bus', body, { headers });
      lost.isLost = true;
      const first = await ask();
      lost.isLost = false;
      expect(first).toMatchObject({ status: 504, body: { code: 'outcome-unknown' } });
      await clock.advance(600_000);
      const again = await ask();
      expect([again.status, again.body]).toEqual([504, first.body]);
      expect((await own.get('/v1/bus/counted')).body.version).toBe(1);
    } finally {
      await own.close();
    }
  });

  it.each([
    ['unavailable', 503, 'tasks', { id: 't' }, 201],
    ['outcome-unknown', 504, 'locks/main/acquire', { holder: 'a' }, 200],
  ] as const)('after %s may be used again where that does no harm', async (code, status, path, body, after) => {
    const fails = (): never => {
      throw new Failure(code, 'the store did not answer');
    };
    vi.spyOn(server.box.tasks, 'publish').mockImplementationOnce(fails);
    vi.spyOn(server.box, 'lock').mockImplementationOnce(fails);
    const ask = () => server.post(`/v1/${path}`, body, { headers });
    expect((await ask()).status).toBe(status);
    expect((await ask()).status).toBe(after);
    vi.restoreAllMocks();
  });

  it('of a request that a store which was away kept from being done is free when the store is back', async () => {
    const away = { isAway: false };
    const faults = Object.assign(new ScriptedFaults(), {
      before: (call: Call) => (away.isAway && call.kind === 'transaction' ? 'fail' : 'pass'),
    });
    const own = new TestServer(await open(faultyStore(openMemory({ clock }), faults), { clock }), { clock });
    try {
      vi.spyOn(own.box.tasks, 'publish').mockImplementationOnce(() => {
        away.isAway = true;
        throw new Failure('unavailable', 'the store is away');
      });
      const ask = () => own.post('/v1/tasks', { id: 't' }, { headers });
      expect((await ask()).status).toBe(503);
      // Longer than any request takes.
      await clock.advance(600_000);
      away.isAway = false;
      await clock.advance(60_000);
      expect((await ask()).status).toBe(201);
    } finally {
      vi.restoreAllMocks();
      await own.close();
    }
  });

  it('whose entry was made without an answer is known again, and its request carried out', async () => {
    const lost = { times: 0 };
    const faults = Object.assign(new ScriptedFaults(), {
      after: (call: Call) =>
        call.kind === 'transaction' && JSON.stringify(call.transaction.success).includes('k/once/') && lost.times-- > 0
          ? 'drop'
          : 'pass',
    });
    const own = new TestServer(await open(faultyStore(openMemory({ clock }), faults), { clock }), { clock });
    try {
      lost.times = 1;
      const ask = () => own.post('/v1/tasks', { id: 't' }, { headers });
      expect((await ask()).status).toBe(201);
      expect((await ask()).headers.get('idempotent-replayed')).toBe('true');
    } finally {
      await own.close();
    }
  });

  it('of a server that is gone leaves its request unknown, where a repeat could do harm', async () => {
    const { once } = server.box;
    expect((await once.begin('harmless', 'x', 90_000)).kind).toBe('first');
    expect((await once.begin('harmful', 'x', 90_000, 3_600_000)).kind).toBe('first');
    expect((await once.begin('harmful', 'x', 90_000, 3_600_000)).kind).toBe('running');
    await clock.advance(120_000);
    expect((await once.begin('harmless', 'x', 90_000)).kind).toBe('first');
    expect((await once.begin('harmful', 'x', 90_000, 3_600_000)).kind).toBe('unknown');
    expect((await once.begin('harmful', 'y', 90_000, 3_600_000)).kind).toBe('other-content');
  });

  it('keeps no large answer, and still carries nothing out twice', async () => {
    await server.box.bus.put('large', 'x'.repeat(600_000));
    const body = {
      compare: [],
      success: [
        { do: 'get', key: 'large' },
        { do: 'put', key: 'counted', value: 'x' },
      ],
    };
    const first = await server.post('/v1/bus', body, { headers });
    expect(first.status).toBe(200);
    const again = await server.post('/v1/bus', body, { headers });
    expect([again.status, again.body.code]).toEqual([409, 'answer-not-kept']);
    const { body: counted } = await server.get('/v1/bus/counted');
    expect(counted.version).toBe(1);
    const many = { compare: [], success: Array.from({ length: 11 }, () => ({ do: 'get', key: 'large' })) };
    expect((await server.post('/v1/bus', many)).status).toBe(400);
  });

  it('whose kept answer has a status that cannot be sent is reported as corrupt', async () => {
    const begun = await server.box.once.begin('key', 'content', 60_000);
    if (begun.kind !== 'first') throw new Error(begun.kind);
    await begun.done({ status: 7, body: null }, 60_000);
    await expect(server.box.once.begin('key', 'content', 60_000)).rejects.toMatchObject({ code: 'corrupt' });
  });
});

describe('a ticket that nobody asks for', () => {
  it('leaves the queue after 60 s, however long its hold would last', async () => {
    const held = await server.post('/v1/locks/main/acquire', { holder: 'a', ttlMs: 3_600_000 });
    expect(held.body.ttlMs).toBe(3_600_000);
    const waits = { holder: 'b', ttlMs: 3_600_000, waitMs: 0 };
    expect((await server.post('/v1/locks/main/acquire', waits)).status).toBe(202);
    await clock.advance(50_000);
    expect((await server.get('/v1/locks/main')).body.waiting).toHaveLength(1);
    await clock.advance(20_000);
    expect((await server.get('/v1/locks/main')).body.waiting).toEqual([]);
  });

  it('gives its grant back after 60 s; one that is asked for gets its full time', async () => {
    const held = await server.post('/v1/locks/main/acquire', { holder: 'a' });
    const waits = { holder: 'b', ttlMs: 600_000, waitMs: 0 };
    const { body } = await server.post('/v1/locks/main/acquire', waits);
    await server.post('/v1/locks/main/release', { holder: 'a', token: held.body.token });
    const collected = await server.post('/v1/locks/main/acquire', { ...waits, ticket: body.ticket });
    expect([collected.status, collected.body.ttlMs]).toEqual([200, 600_000]);
    await clock.advance(300_000);
    expect((await server.get('/v1/locks/main')).body.holds).toMatchObject([{ holder: 'b', isStale: false }]);
    const next = await server.post('/v1/locks/main/acquire', { ...waits, holder: 'c' });
    expect(next.status).toBe(202);
    await server.post('/v1/locks/main/release', { holder: 'b', token: collected.body.token });
    await clock.advance(90_000);
    const last = await server.post('/v1/locks/main/acquire', { holder: 'd', wait: false });
    expect(last.status).toBe(200);
  });
});

describe('the file of the local token', () => {
  it('is refused at once if it is a pipe that nobody writes', () => {
    const dir = mkdtempSync(join(tmpdir(), 'signalbox-token-'));
    try {
      const url = `file:${join(dir, 'store')}`;
      execFileSync('mkfifo', ['-m', '600', localTokenFile(url)]);
      expect(() => readLocalToken(url)).toThrow(/is no file/);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
