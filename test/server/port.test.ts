// What a server on a port refuses: connections, headers and bodies that are too many, too large or too slow.

import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { listen, type Listening, type RequestNote, type Server } from '../../src/server/index.ts';
import { IDLE_MS, LINGER_BYTES, LINGER_MS, MOST_CONNECTIONS, UNREAD_MS } from '../../src/server/listen.ts';
import { root } from '../house/sources.ts';
import { LOCAL, TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.on('memory:', { perSecond: 1e6 });
});
afterAll(() => server.close());

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

  const megabyte = Buffer.alloc(1024 * 1024);
  const headed = (length: number): string =>
    `POST /v1/bus HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${LOCAL}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  it('a body of 100 MB is refused before it is read, and its sender reads why while it still sends', async () => {
    const url = await to({ lingerMs: 600_000 });
    let sent = 0;
    const told = await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      const headers = {
        Authorization: `Bearer ${LOCAL}`,
        'Content-Type': 'application/json',
        'Transfer-Encoding': 'chunked',
      };
      let isAnswered = false;
      const sending = request(new URL('/v1/bus', url), { method: 'POST', headers }, (response) => {
        isAnswered = true;
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.on('error', reject).on('end', () => {
          resolve({ status: response.statusCode, body });
          sending.destroy();
        });
      });
      sending.on('error', reject);
      const more = (): void => {
        if (isAnswered) return;
        sent += 1;
        if (sent <= 100) sending.write(megabyte, () => setImmediate(more));
      };
      more();
    });
    expect(told.status).toBe(413);
    expect(JSON.parse(told.body)).toMatchObject({ code: 'body-too-large' });
    expect(sent).toBeLessThan(100);
  });

  it('a client that reads only after it has sent everything reads why its body was refused', async () => {
    const url = await to({ lingerMs: 600_000 });
    const socket = connect(Number(url.port), url.hostname);
    socket.pause();
    // More than the systems of both sides keep of what nobody reads.
    socket.write(headed(12 * megabyte.length));
    for (let n = 0; n < 12; n++) {
      await new Promise<void>((resolve, reject) =>
        socket.write(megabyte, (error) => (error instanceof Error ? reject(error) : resolve())),
      );
    }
    let text = '';
    for await (const part of socket) text += String(part);
    expect(text).toMatch(/^HTTP\/1.1 413 /);
    expect(text).toMatch(/connection: close/i);
    expect(text).toContain('body-too-large');
  });

  it.each([
    ['for longer', { lingerMs: 30 }],
    ['more', { lingerBytes: 4 * megabyte.length }],
  ])('a client that goes on sending %s than the server reads of a refused body is cut off', async (_, limits) => {
    const url = await to({ lingerMs: 600_000, ...limits });
    const socket = connect(Number(url.port), url.hostname).on('error', () => undefined);
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.resume().write(headed(2 ** 40));
    if (!('lingerMs' in limits)) {
      const more = (): void => void (socket.destroyed || socket.write(megabyte, () => setImmediate(more)));
      more();
    }
    await closed;
    expect((await fetch(new URL('/healthz', url))).status).toBe(200);
  });

  it.each([
    ['that has said nothing', '', { headersMs: 50 }],
    ['after an answer', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', { idleMs: 50 }],
  ])('an idle connection %s is closed after its time', async (_, sends, limits) => {
    const url = await to(limits);
    const told = await raw(url, sends);
    expect(told).toMatch(sends === '' ? /^(HTTP\/1.1 408 |$)/ : /^HTTP\/1.1 200 /);
  });

  it('a client that does not read its answers is cut off, and others have room again', async () => {
    // More than the systems of both sides keep of what nobody reads.
    const large = { status: 200, body: 'a'.repeat(32 * megabyte.length) };
    const lavish: Server = {
      ...{ readers: 0, stop: () => undefined, fetch: (asked) => server.server.fetch(asked) },
      answer: ({ path }) => (path === '/large' ? Promise.resolve(large) : undefined),
    };
    listening = await listen(lavish, { port: 0, host: '127.0.0.1', unreadMs: 50, mostConnections: 1 });
    const url = new URL(listening.url);
    const socket = connect(Number(url.port), url.hostname).on('error', () => undefined);
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    socket.pause().write('GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const asked = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    await expect.poll(() => raw(url, asked), { timeout: 10_000 }).toMatch(/^HTTP\/1.1 200 /);
    socket.destroy();
  });

  it('a request that waits is answered, however long the connection was silent', async () => {
    const url = await to({ unreadMs: 1000 });
    const headers = { Authorization: `Bearer ${LOCAL}`, 'Content-Type': 'application/json' };
    await server.post('/v1/locks/silent/acquire', { holder: 'a' });
    const body = JSON.stringify({ holder: 'b', waitMs: 2000 });
    const told = await fetch(new URL('/v1/locks/silent/acquire', url), { method: 'POST', headers, body });
    expect(told.status).toBe(202);
  });

  it('the limits of connections are those that docs/server.md states', () => {
    const text = readFileSync(join(root, 'docs/server.md'), 'utf8').replaceAll(/\s+/g, ' ');
    expect(text).toContain(`${MOST_CONNECTIONS} connections (\`--connections\`; it closes any further one at once)`);
    expect(text).toContain(`${IDLE_MS / 1000} s for an idle connection`);
    expect(text).toContain(`${UNREAD_MS / 1000} s for a client that leaves its answer unread`);
    expect(text).toContain(`${LINGER_MS / 1000} s or ${LINGER_BYTES / 1024 / 1024} MiB`);
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

  it('a client that leaves in the middle of its body is no bug of the server', async () => {
    const notes: RequestNote[] = [];
    const noted = new TestServer(server.box, { onRequest: (note) => notes.push(note) });
    listening = await listen(noted.server, { port: 0, host: '127.0.0.1' });
    const url = new URL(listening.url);
    const socket = connect(Number(url.port), url.hostname);
    socket.write(`${headed(100)}{`, () => socket.destroy());
    await expect.poll(() => notes).toHaveLength(1);
    expect(notes[0]).toMatchObject({ status: 400, problem: 'invalid-input' });
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
