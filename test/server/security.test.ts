// What a server refuses: nothing leaks, nothing hangs.

import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TestClock } from 'signalbox/testing';
import { open } from 'signalbox';
import { listen, type Listening, OPERATIONS, type Server } from '../../src/server/index.ts';
import { LOCAL, TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.on('memory:', { perSecond: 1e6 });
});
afterAll(() => server.close());

const filled = (path: string): string => path.replace(/\{\w+\}/g, '0123456789abcdef');

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

  it('that is bound to holders acts for no other', async () => {
    const token = await server.token('worker', { holders: ['agent:1', 'team-a:*'] });
    const mine = await server.post('/v1/locks/theirs/acquire', { holder: 'agent:2' });
    const foreign = { status: 403, body: { code: 'foreign-holder' } };
    const claim = { holder: 'agent:2', token: mine.body.token };
    for (const [path, body] of [
      ['locks/theirs/acquire', { holder: 'agent:2' }],
      ['locks/theirs/renew', claim],
      ['locks/theirs/release', claim],
      ['locks/theirs/upgrade', claim],
      ['locks/theirs/downgrade', claim],
      ['locks/theirs/withdraw', { holder: 'agent:2', ticket: 'x.1' }],
      ['semaphores/theirs/acquire', { holder: 'agent:2' }],
      ['tasks/claim', { holder: 'agent:2' }],
      ['tasks/t/claim', { holder: 'agent:2' }],
      ['tasks/t/complete', { token: 7 }],
      ['tasks/t/release', { holder: 'agent:2' }],
      ['tasks', { id: 'forged', by: 'agent:2' }],
      ['tasks', { id: 'forged' }],
      ['tasks/t/requeue', { by: 'agent:2' }],
    ] as const) {
      expect(await server.post(`/v1/${path}`, body, { token }), path).toMatchObject(foreign);
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
    const secret = await server.token('worker');
    const random = secret.slice('sbx_0123456789abcdef_'.length);
    await server.post('/v1/locks/x/acquire', { holder: 'x' }, { token: secret });
    const everything = await Promise.all(
      ['/v1/status', '/v1/who', '/v1/tokens', '/v1/token'].map((path) => server.get(path)),
    );
    expect(JSON.stringify(everything.map(({ body }) => body))).not.toContain(random);
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
    '',
    'a b',
  ])('reaches nothing by the name %j that was made to lead here', async (host) => {
    const told = await server.get('/v1/who', { headers: { Host: host } });
    expect(told).toMatchObject({ status: 421, body: { code: 'wrong-host' } });
    expect((await server.get('/healthz', { headers: { Host: host } })).status).toBe(421);
  });

  it.each(['localhost', 'LOCALHOST:7300', '127.0.0.1:7300', '[::1]:7300', '10.1.2.3'])('may use %s', async (host) => {
    expect((await server.get('/v1/who', { headers: { Host: host } })).status).toBe(200);
  });

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

describe('on a port', () => {
  let listening: Listening | undefined;
  const to = async (options: object = {}): Promise<URL> => {
    listening = await listen(new TestServer(server.box).server, { port: 0, host: '127.0.0.1', ...options });
    return new URL(listening.url);
  };
  afterEach(async () => {
    await listening?.close();
    listening = undefined;
  });

  it('a body of 100 MB is refused before it is read', async () => {
    const url = await to();
    const chunk = Buffer.alloc(1024 * 1024);
    let sent = 0;
    const answer = await new Promise<{ status: number | undefined; body: string }>((resolve) => {
      const headers = {
        Authorization: `Bearer ${LOCAL}`,
        'Content-Type': 'application/json',
        'Transfer-Encoding': 'chunked',
      };
      const sending = request(new URL('/v1/bus', url), { method: 'POST', headers }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.on('end', () => resolve({ status: response.statusCode, body })).on('error', () => undefined);
      });
      // The server closes while we still send, and then its answer may be lost on the way.
      sending.on('error', () => undefined).on('close', () => resolve({ status: undefined, body: '' }));
      const more = (): void => {
        while (sent < 100 && !sending.destroyed) {
          sent += 1;
          if (!sending.write(chunk)) return void sending.once('drain', more);
        }
        sending.end();
      };
      more();
    });
    if (answer.status !== undefined) {
      expect(answer.status).toBe(413);
      expect(JSON.parse(answer.body)).toMatchObject({ code: 'body-too-large' });
    }
    expect(sent).toBeLessThan(100);
  });

  it.each(['/v1/events', '/metrics', '/v1/who', '/docs', '/nothing'])(
    '%s has the rules of every answer',
    async (path) => {
      const url = await to();
      const headers = { Authorization: `Bearer ${LOCAL}` };
      const told = await fetch(new URL(path, url), { headers });
      await told.body?.cancel();
      expect(told.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(told.headers.get('x-content-type-options')).toBe('nosniff');
    },
  );

  it('an answer that cannot be sent ends its connection, and not the server', async () => {
    const failures: Error[] = [];
    const broken = {
      ...server.server,
      answer: () => Promise.resolve({ status: 7, body: null }),
      stop: () => undefined,
    };
    listening = await listen(broken as Server, {
      ...{ port: 0, host: '127.0.0.1', onFailed: (error: Error) => failures.push(error) },
    });
    for (let n = 0; n < 2; n++) await expect(fetch(new URL('/v1/who', listening.url))).rejects.toThrow('fetch failed');
    expect(new Set(failures.map(({ name }) => name))).toEqual(new Set(['RangeError']));
  });

  it('headers that are too large are refused', async () => {
    const url = await to();
    const told = await raw(url, `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`);
    expect(told).toMatch(/^HTTP\/1.1 431/);
  });

  it('a client that sends its headers or its body letter by letter is cut off', async () => {
    const url = await to({ headersMs: 1000, requestMs: 1500 });
    const head = raw(url, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
    const start = `POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${LOCAL}\r\nContent-Type: application/json\r\n`;
    const body = raw(url, `${start}Content-Length: 1000\r\n\r\n{`);
    expect(await head).toMatch(/^HTTP\/1.1 408/);
    expect(await body).toMatch(/^(HTTP\/1.1 408|$)/);
    expect((await fetch(new URL('/healthz', url))).status).toBe(200);
  });

  it('more connections than the limit are closed at once, and it serves the others', async () => {
    const url = await to({ mostConnections: 20 });
    const sockets = await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          new Promise<ReturnType<typeof connect>>((resolve) => {
            const socket = connect(Number(url.port), url.hostname, () => resolve(socket));
          }),
      ),
    );
    expect(await raw(url, '')).toBe('');
    const first = sockets[0] as ReturnType<typeof connect>;
    const answer = new Promise<string>((resolve) => first.once('data', (data) => resolve(String(data))));
    first.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(await answer).toMatch(/^HTTP\/1.1 200/);
    for (const socket of sockets) socket.destroy();
  });

  it('a request that is smuggled behind another is refused', async () => {
    const url = await to();
    const told = await raw(
      url,
      'POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    );
    expect(told).toMatch(/^HTTP\/1.1 400/);
  });

  it('stopping it answers a request that waits with its ticket, and ends streams', async () => {
    const url = await to();
    const headers = { Authorization: `Bearer ${LOCAL}`, 'Content-Type': 'application/json' };
    await server.post('/v1/locks/stop/acquire', { holder: 'a' });
    const stream = await fetch(new URL('/v1/events', url), { headers });
    const body = JSON.stringify({ holder: 'b', waitMs: 45_000 });
    const waiting = fetch(new URL('/v1/locks/stop/acquire', url), { method: 'POST', headers, body });
    await expect.poll(async () => (await server.get('/v1/locks/stop')).body.waiting.length).toBe(1);
    const closed = listening?.close();
    const told = await waiting;
    expect(told.status).toBe(202);
    const { ticket } = (await told.json()) as { ticket: string };
    await stream.text();
    await closed;
    await server.post('/v1/locks/stop/release', { holder: 'a' });
    expect((await server.post('/v1/locks/stop/acquire', { holder: 'b', ticket })).status).toBe(200);
  });
});

/** Everything that the server answers to these bytes, until it closes the connection. */
function raw(url: URL, text: string): Promise<string> {
  return new Promise((resolve) => {
    let told = '';
    const socket = connect(Number(url.port), url.hostname, () => void (text !== '' && socket.write(text)));
    socket.on('data', (data) => (told += String(data)));
    socket.on('error', () => undefined).on('close', () => resolve(told));
  });
}
