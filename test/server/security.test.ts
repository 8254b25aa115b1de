// What a server refuses: nothing leaks, nothing hangs.

import { z } from 'zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestClock } from 'signalbox/testing';
import { open } from 'signalbox';
import { hashOf } from '../../src/runtime/access/tokens.ts';
import { openMemory, readRange } from '../../src/store/index.ts';
import { OPERATIONS } from '../../src/server/index.ts';
import { LOCAL, TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.on('memory:', { perSecond: 1e6 });
});
afterAll(() => server.close());

const filled = (path: string): string => path.replace(/\{\w+\}/g, '0123456789abcdef');

/** Where the body of a request says for whom it is. */
const NAMES = ['holder', 'by', 'actor', 'within'];
/** What some of these requests need besides. */
const REST = { token: 7, ticket: 'x.1', reason: 'x', id: 'forged', component: 'x', event: 'x:y' };

const fieldsOf = (schema: (typeof OPERATIONS)[number]['body']): readonly string[] =>
  schema === undefined
    ? []
    : Object.keys((z.toJSONSchema(schema, { unrepresentable: 'any' }) as { properties?: object }).properties ?? {});

/** Everything that a worker does for somebody. */
const NAMING = OPERATIONS.filter(
  ({ role, body }) => role === 'worker' && fieldsOf(body).some((field) => NAMES.includes(field)),
);

describe('without a valid token', () => {
  it.each(OPERATIONS)('$id answers nothing but that one is missing', async ({ method, path, body }) => {
    // Refusals have a rate of their own, which must not hide what is tested here.
    const own = new TestServer(server.box);
    const sent = body === undefined ? undefined : {};
    for (const token of ['', 'x', `${LOCAL}x`, 'sbx_0123456789abcdef_' + 'A'.repeat(43)]) {
      const told = await own.ask(method.toUpperCase(), filled(path), sent, { token });
      expect(told).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
      expect(told.headers.get('www-authenticate')).toBe('Bearer');
      if (token !== '' && token !== 'x') expect(JSON.stringify(told.body)).not.toContain(token);
    }
  });

  it('only health, the description and its page are to be had', async () => {
    for (const path of ['/healthz', '/openapi.json', '/docs', '/docs.css']) {
      expect((await server.fetch('GET', path, undefined, { token: '' })).status).toBe(200);
    }
    const { body } = await server.get('/healthz', { token: '' });
    expect(Object.keys(body)).toEqual(['status', 'revision']);
  });

  it('guessing is slowed down', async () => {
    const own = new TestServer(server.box, { clock: new TestClock() });
    const statuses = [];
    for (let n = 0; n < 120; n++) statuses.push((await own.get('/v1/who', { token: `guess-${n}` })).status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(100);
    expect(statuses.at(-1)).toBe(429);
    expect((await own.get('/v1/who')).status).toBe(200);
  });
});

describe('a token', () => {
  it.each(OPERATIONS.filter(({ role }) => role !== 'viewer'))(
    'of a lower role cannot $id',
    async ({ method, path, role, body }) => {
      const lower = role === 'administrator' ? 'worker' : 'viewer';
      const token = await server.token(lower);
      const told = await server.ask(method.toUpperCase(), filled(path), body === undefined ? undefined : {}, { token });
      expect(told).toMatchObject({ status: 403, body: { code: 'wrong-role', needed: role, role: lower } });
    },
  );

  it.each(NAMING)('that is bound to holders cannot $id for another, nor for nobody', async ({ id, method, path }) => {
    const token = await server.token('worker', { holders: ['agent:1', 'team-a:*'] });
    const { body: schema } = OPERATIONS.find((one) => one.id === id) as (typeof OPERATIONS)[number];
    const whom = NAMES.filter((name) => fieldsOf(schema).includes(name));
    expect(whom.length).toBeGreaterThan(0);
    for (const field of whom) {
      // Its own name in every other place does not help it.
      const own = Object.fromEntries(whom.map((one) => [one, one === 'within' ? ['agent:1'] : 'agent:1']));
      for (const other of ['agent:2', 'agent:11', 'team-a', '*', 'agent:1 ']) {
        const body = { ...REST, ...own, [field]: field === 'within' ? ['agent:1', other] : other };
        const sent = Object.fromEntries(Object.entries(body).filter(([name]) => fieldsOf(schema).includes(name)));
        expect(await server.ask(method.toUpperCase(), filled(path), sent, { token }), other).toMatchObject({
          ...{ status: 403, body: { code: 'foreign-holder' } },
        });
        const { [field]: _, ...without } = sent;
        if (field === 'within') continue;
        const unnamed = await server.ask(method.toUpperCase(), filled(path), without, { token });
        expect([400, 403], JSON.stringify(unnamed.body)).toContain(unnamed.status);
      }
    }
  });

  it('that is bound to holders leaves the holds of another alone', async () => {
    const token = await server.token('worker', { holders: ['agent:1', 'team-a:*'] });
    const mine = await server.post('/v1/locks/theirs/acquire', { holder: 'agent:2' });
    const claim = { holder: 'agent:2', token: mine.body.token };
    for (const what of ['renew', 'release', 'upgrade', 'downgrade']) {
      expect((await server.post(`/v1/locks/theirs/${what}`, claim, { token })).status, what).toBe(403);
    }
    expect((await server.get('/v1/locks/theirs')).body.holds).toMatchObject([{ holder: 'agent:2' }]);
    // Its own name does not help it to the hold of another, either.
    expect(
      await server.post('/v1/locks/theirs/release', { holder: 'agent:1', token: mine.body.token }, { token }),
    ).toMatchObject({ status: 409 });
    expect((await server.post('/v1/locks/own/acquire', { holder: 'team-a:x' }, { token })).status).toBe(200);
    expect(
      await server.post('/v1/locks/theirs/acquire', { holder: 'agent:1', strategy: 'force', reason: 'x' }, { token }),
    ).toMatchObject({ status: 403 });
    const owner = `/v1/bus/${encodeURIComponent('/tasks/t/owner')}`;
    expect(await server.ask('PUT', owner, { value: 'agent:1' }, { token })).toMatchObject({ status: 403 });
    const through = { compare: [], success: [{ do: 'delete', key: '/tasks/t/owner' }] };
    expect(await server.post('/v1/bus', through, { token })).toMatchObject({ status: 403 });
  });

  it('that is expired or revoked is refused, by every server and at once', async () => {
    const clock = new TestClock();
    const url = `memory:revoked-${Math.random()}`;
    const [one, two] = [new TestServer(await open(url, { clock })), new TestServer(await open(url, { clock }))];
    const short = await one.token('viewer', { ttlMs: 60_000 });
    const long = await one.token('viewer');
    expect([
      (await one.get('/v1/who', { token: short })).status,
      (await two.get('/v1/who', { token: long })).status,
    ]).toEqual([200, 200]);
    await clock.advance(60_000);
    expect((await one.get('/v1/who', { token: short })).status).toBe(401);
    const { tokens } = (await one.get('/v1/tokens')).body;
    // Both were made in the same millisecond.
    const { id } = tokens.find(({ expiresAt }: { expiresAt: string | null }) => expiresAt === null);
    expect(JSON.stringify(tokens)).not.toContain('hash');
    expect((await one.ask('DELETE', `/v1/tokens/${id}`)).status).toBe(200);
    await expect.poll(async () => (await two.get('/v1/who', { token: long })).status).toBe(401);
    expect((await one.ask('DELETE', `/v1/tokens/${id}`)).status).toBe(404);
    await Promise.all([one.close(), two.close()]);
  });

  it('is nowhere in the store but as a hash', async () => {
    const store = openMemory();
    const own = new TestServer(await open(store, { witness: true }));
    const key = { 'Idempotency-Key': 'once' };
    const made = await own.post('/v1/tokens', { name: 'a worker', role: 'worker' }, { headers: key });
    const { secret } = made.body;
    const [random, hash] = [secret.slice('sbx_0123456789abcdef_'.length), hashOf(secret)];
    for (const token of [secret, LOCAL]) {
      await own.post('/v1/locks/x/acquire', { holder: 'x' }, { token, headers: { 'Idempotency-Key': 'once more' } });
      await own.post('/v1/tasks', { id: 't' }, { token });
    }
    const { pairs } = await readRange(store, { key: '!', end: '~' });
    const written = pairs.map(({ key: at, value }) => `${at} ${value.text}`);
    expect(written.filter((text) => text.includes(hash))).toHaveLength(1);
    expect(written.filter((text) => text.includes(random) || text.includes(LOCAL))).toEqual([]);
    const shown = await Promise.all(
      ['/v1/status', '/v1/who', '/v1/tokens', '/v1/token', '/v1/board', '/v1/witness/entries'].map((path) =>
        own.get(path),
      ),
    );
    expect(shown.map(({ status }) => status)).toEqual(shown.map(() => 200));
    expect(JSON.stringify(shown.map(({ body }) => body))).not.toContain(random);
    await own.close();
  });

  it('may send so many requests per second', async () => {
    const clock = new TestClock();
    const own = new TestServer(server.box, { perSecond: 5, clock });
    const statuses = [];
    for (let n = 0; n < 11; n++) statuses.push((await own.get('/v1/token')).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    expect((await own.get('/v1/token')).headers.get('retry-after')).toBe('1');
    await clock.advance(1000);
    expect((await own.get('/v1/token')).status).toBe(200);
  });

  it('shows what it allows', async () => {
    const token = await server.token('worker', { holders: ['a:*'] });
    expect((await server.get('/v1/token', { token })).body).toMatchObject({ role: 'worker', holders: ['a:*'] });
  });
});

describe('a browser that was tricked', () => {
  it.each([
    'evil.example',
    'evil.example:80',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'localhost:80:80',
    'localhost:65536',
    '[::1]:99999',
    '',
    'a b',
  ])('reaches nothing by the name %j that was made to lead here', async (host) => {
    const told = await server.get('/v1/who', { headers: { Host: host } });
    expect(told).toMatchObject({ status: 421, body: { code: 'wrong-host' } });
    expect((await server.get('/healthz', { headers: { Host: host } })).status).toBe(421);
  });

  it.each(['localhost', 'LOCALHOST:7300', '127.0.0.1:7300', '[::1]:7300', '10.1.2.3:65535'])(
    'may use %s',
    async (host) => {
      expect((await server.get('/v1/who', { headers: { Host: host } })).status).toBe(200);
    },
  );

  it('may use a name that the server was told', async () => {
    const own = new TestServer(server.box, { hosts: ['Box.example.org'] });
    expect((await own.get('/v1/who', { headers: { Host: 'box.example.org:7300' } })).status).toBe(200);
  });

  it.each([
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { Origin: 'http://127.0.0.1:1' },
  ])('cannot send a request from another site: %j', async (headers) => {
    const told = await server.post(
      '/v1/locks/csrf/acquire',
      { holder: 'x' },
      { headers: { ...headers, Host: '127.0.0.1' } as never },
    );
    expect(told).toMatchObject({ status: 403, body: { code: 'foreign-origin' } });
    expect(told.headers.get('access-control-allow-origin')).toBeNull();
    expect((await server.get('/v1/locks/csrf')).body.isFree).toBe(true);
  });

  it('opens the page by a link on another site, and nothing else', async () => {
    const link = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };
    const statusOf = async (method: string, path: string, headers: Record<string, string>): Promise<number> =>
      (await server.fetch(method, path, undefined, { headers })).status;
    // Without a build there is no page, and then the link leads to what the address itself leads to.
    for (const method of ['GET', 'HEAD']) {
      expect(await statusOf(method, '/', link)).toBe(await statusOf(method, '/', {}));
    }
    for (const [method, path, more] of [
      ['POST', '/', {}],
      ['GET', '/', { 'Sec-Fetch-Dest': 'iframe' }],
      ['GET', '/', { 'Sec-Fetch-Mode': 'no-cors' }],
      ['GET', '/', { Origin: 'https://evil.example' }],
      ['GET', '/v1/who', {}],
      ['GET', '/v1/events', {}],
      ['GET', '/metrics', {}],
      ['GET', '/docs', {}],
      ['GET', '/healthz', {}],
    ] as const) {
      expect(await statusOf(method, path, { ...link, ...more }), `${method} ${path} ${JSON.stringify(more)}`).toBe(403);
    }
  });

  it('cannot send a form', async () => {
    const response = await server.fetch('POST', '/v1/locks/csrf/acquire', '{"holder":"x"}', {
      headers: { 'Content-Type': 'text/plain' },
    });
    expect(response.status).toBe(415);
  });

  it('keeps the rules that every answer has', async () => {
    for (const path of ['/docs', '/v1/who', '/nothing', '/healthz']) {
      const { headers } = await server.fetch('GET', path);
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
    }
  });
});

describe('a path', () => {
  it.each([
    '/v1/locks/..%2F..%2Fetc%2Fpasswd',
    '/v1/../v1/who/..',
    '//v1/who',
    '/v1/who/',
    '/v1/locks/%00',
    '/v1/locks/%E0%A4%A',
    '/v1/locks/a%0Ab',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/v1/WHO',
    '/.git/config',
    '/v1/locks//acquire',
  ])('that is a trick leads nowhere: %s', async (path) => {
    const { status, body } = await server.get(path);
    if (path.includes('passwd') && path.startsWith('/v1/locks'))
      expect([status, body.name]).toEqual([200, '../../etc/passwd']);
    else expect([400, 404]).toContain(status);
  });

  it('with another method says which it accepts', async () => {
    const told = await server.ask('PATCH', '/v1/locks/x');
    expect(told).toMatchObject({ status: 405, body: { code: 'wrong-method' } });
    expect(told.headers.get('allow')).toBe('GET');
  });

  it('that is also the path of an operation leads to the task with that name', async () => {
    await server.post('/v1/tasks', { id: 'claim' });
    expect(await server.get('/v1/tasks/claim')).toMatchObject({ status: 200, body: { task: 'claim' } });
    expect((await server.fetch('HEAD', '/v1/tasks/claim')).status).toBe(200);
    const refused = await server.ask('PATCH', '/v1/tasks/claim');
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST, GET, DELETE']);
    expect((await server.ask('DELETE', '/v1/tasks/claim')).status).toBe(200);
    expect((await server.get('/v1/tasks/claim')).status).toBe(404);
  });
});
