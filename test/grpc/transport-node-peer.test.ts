// Against Node's own HTTP/2: another implementation of the same rules, which notices what two ends by one author would not.

import fc from 'fast-check';
import { once } from 'node:events';
import * as http2 from 'node:http2';
import { type AddressInfo, connect as connectSocket, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { connect } from '../../src/grpc/connect.ts';
import { FrameReader } from '../../src/grpc/http2/frame-reader.ts';
import { HeaderDecoder } from '../../src/grpc/http2/hpack/decoder.ts';
import type { CallFailure, Connection } from '../../src/grpc/transport.ts';
import { block, FLAG, frame, KIND, message, PREFACE, settings } from './scripted-peer.ts';
import { call, failureOf, later, listen } from './transport-contract.ts';

const PATH = '/test.Service/Echo';

let server: http2.Http2Server;
let port: number;
const sessions = new Set<http2.ServerHttp2Session>();
const connections: Connection[] = [];

afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  for (const session of sessions) session.destroy();
  await new Promise((resolve) => server.close(resolve));
});

async function start(
  onStream: (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void,
  options: http2.ServerOptions = {},
): Promise<void> {
  server = http2.createServer(options);
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => undefined);
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    onStream(stream, headers);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
}

async function open(onClose: (failure: CallFailure) => void = () => undefined): Promise<Connection> {
  const connection = await connect(
    { host: '127.0.0.1', port },
    { clock: systemClock, timeoutMs: 60_000, pingMs: 60_000, onClose },
  );
  connections.push(connection);
  return connection;
}

function begin(stream: http2.ServerHttp2Stream): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
}

/** Answers with what it was asked, once it has heard all of it. */
function echo(stream: http2.ServerHttp2Stream): void {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('end', () => {
    begin(stream);
    stream.end(Buffer.concat(chunks));
  });
}

describe("headers that Node's HTTP/2 wrote", () => {
  // Not only what is likely: short codes and long ones, and all of the bytes that a value may have.
  const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
  const any = fc.oneof(
    visible,
    fc.integer({ min: 0x80, max: 0xff }).map((code) => String.fromCharCode(code)),
  );
  const value = fc.oneof(
    { weight: 5, arbitrary: fc.string({ unit: visible, maxLength: 30 }) },
    { weight: 3, arbitrary: fc.string({ unit: any, maxLength: 60 }) },
    { weight: 1, arbitrary: fc.string({ unit: any, minLength: 500, maxLength: 3000 }) },
  );
  const name = fc.oneof(
    fc.constantFrom('server', 'etag', 'vary', 'cache-control', 'grpc-status', 'grpc-message', 'x-again'),
    fc
      .string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789-_'), minLength: 1, maxLength: 20 })
      .map((end) => `x-${end}`),
  );
  const lists = fc.array(fc.dictionary(name, value, { maxKeys: 8, noNullPrototype: true }), {
    minLength: 1,
    maxLength: 8,
  });

  it('are read as they were written, whichever of them it remembers, and however long', async () => {
    let next: Record<string, string>[] = [];
    await start((stream) => {
      stream.respond({ ':status': 200, ...next.shift() }, { endStream: true });
    });
    await fc.assert(
      fc.asyncProperty(lists, fc.constantFrom(undefined, 0, 100, 4096), async (sent, tableSize) => {
        next = structuredClone(sent);
        const heard = await headersOf(sent.length, tableSize);
        expect(heard).toEqual(sent.map((fields) => ({ ':status': '200', ...fields })));
      }),
      { numRuns: 150 },
    );
  });

  /** Asks so many times on one connection, and reads what comes with nothing but what is to be tested. */
  async function headersOf(count: number, tableSize: number | undefined): Promise<Record<string, string>[]> {
    const socket = connectSocket(port, '127.0.0.1');
    const decoder = new HeaderDecoder();
    const lists: Record<string, string>[] = [];
    const { promise: all, resolve } = later<void>();
    let pieces: Buffer[] = [];
    const reader = new FrameReader((kind, flags, _, bytes, at, end) => {
      if (kind !== KIND.headers && kind !== KIND.continuation) return;
      pieces.push(Buffer.from(bytes.subarray(at, end)));
      if ((flags & FLAG.endHeaders) === 0) return;
      const whole = Buffer.concat(pieces);
      pieces = [];
      const fields: Record<string, string> = {};
      decoder.decode(whole, 0, whole.length, { field: (key, text) => (fields[key] = text) });
      delete fields['date'];
      lists.push(fields);
      if (lists.length === count) resolve();
    });
    socket.on('data', (chunk: Buffer) => reader.read(chunk));
    socket.write(PREFACE);
    socket.write(tableSize === undefined ? settings() : settings([1, tableSize]));
    for (let index = 0; index < count; index++) {
      const request = block({ ':method': 'POST', ':scheme': 'http', ':path': PATH, ':authority': 'test' });
      socket.write(frame(KIND.headers, FLAG.endHeaders | FLAG.endStream, 1 + 2 * index, request));
    }
    await all;
    socket.destroy();
    return lists;
  }
});

describe("a server by Node's HTTP/2", () => {
  it.each([0, 4096])('understands the headers of every call, with a table of %s bytes', async (headerTableSize) => {
    const heard: http2.IncomingHttpHeaders[] = [];
    await start(
      (stream, headers) => {
        heard.push(headers);
        echo(stream);
      },
      { settings: { headerTableSize } },
    );
    const connection = await open();
    const headers = { token: 'secret', hasleader: 'true' };
    for (const path of ['/a/A', '/b/B', '/a/A', '/b/B']) {
      await new Promise((resolve, reject) => {
        connection.unary({ path, message: Buffer.from('x'), headers }, resolve, reject);
      });
    }
    expect(heard.map((each) => Object.fromEntries(Object.entries(each)))).toEqual(
      ['/a/A', '/b/B', '/a/A', '/b/B'].map((path) => ({
        ':method': 'POST',
        ':scheme': 'http',
        ':authority': `127.0.0.1:${port}`,
        ':path': path,
        te: 'trailers',
        'content-type': 'application/grpc',
        ...headers,
      })),
    );
    for (const each of heard) expect(Reflect.get(each, http2.sensitiveHeaders)).toContain('token');
  });

  it('with little room gets every byte of a large request, and its answer comes back whole', async () => {
    await start(echo, { settings: { initialWindowSize: 100 }, paddingStrategy: http2.constants.PADDING_STRATEGY_MAX });
    const connection = await open();
    const contents = [1, 2, 3].map((seed) =>
      Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * seed) % 251)),
    );
    const answers = await Promise.all(contents.map((content) => call(connection, PATH, content)));
    answers.forEach((each, index) => expect(Buffer.from(each).equals(contents[index]!)).toBe(true));
  });

  it('may change its mind about the room while a request is on its way', async () => {
    let isFirst = true;
    await start(
      (stream) => {
        if (isFirst) stream.session?.settings({ initialWindowSize: 1 });
        isFirst = false;
        stream.once('data', () => stream.session?.settings({ initialWindowSize: 200_000 }));
        echo(stream);
      },
      { settings: { initialWindowSize: 1000 } },
    );
    const connection = await open();
    const content = Buffer.alloc(300_000, 'x');
    for (let times = 0; times < 3; times++) {
      expect(Buffer.from(await call(connection, PATH, content)).equals(content)).toBe(true);
    }
  });

  it('that takes two calls at once never has more, and answers all', async () => {
    let [open_, most] = [0, 0];
    await start(
      (stream) => {
        most = Math.max(most, ++open_);
        stream.on('close', () => open_--);
        echo(stream);
      },
      { settings: { maxConcurrentStreams: 2 } },
    );
    const connection = await open();
    const words = Array.from({ length: 50 }, (_, index) => `call ${index}`);
    const answers = await Promise.all(words.map((word) => call(connection, PATH, Buffer.from(word))));
    expect(answers.map((each) => Buffer.from(each).toString())).toEqual(words);
    expect(most).toBe(2);
  });

  it('that streams in both directions is heard and hears', async () => {
    await start((stream) => {
      begin(stream);
      stream.pipe(stream);
    });
    const stream = listen(await open(), PATH);
    for (const word of ['one', '', 'three']) stream.send(Buffer.from(word));
    const messages = await stream.received(3);
    expect(messages.map((each) => Buffer.from(each).toString())).toEqual(['one', '', 'three']);
    stream.cancel();
  });

  it.each([
    ['NGHTTP2_REFUSED_STREAM', { status: 14, neverSent: true }],
    ['NGHTTP2_CANCEL', { status: 1, neverSent: false }],
    ['NGHTTP2_INTERNAL_ERROR', { status: 13, neverSent: false }],
  ] as const)('that breaks a call off with %s is understood', async (code, expected) => {
    await start((stream) => stream.close(http2.constants[code]));
    expect(await failureOf(call(await open(), PATH, Buffer.from('x')))).toMatchObject(expected);
  });

  it('that goes away finishes what it has, and gets nothing more', async () => {
    const streams: http2.ServerHttp2Stream[] = [];
    const { promise: both, resolve: haveBoth } = later<void>();
    await start((stream) => {
      streams.push(stream);
      if (streams.length === 2) haveBoth();
    });
    const { promise: closed, resolve: onClose } = later<CallFailure>();
    const connection = await open(onClose);
    const [first, second] = [
      call(connection, PATH, Buffer.from('1')),
      failureOf(call(connection, PATH, Buffer.from('2'))),
    ];
    await both;
    streams[0]!.session!.goaway(0, streams[0]!.id!, Buffer.from('maintenance'));
    expect((await closed).message).toContain('maintenance');
    expect(connection.isOpen).toBe(false);
    expect(await second).toMatchObject({ neverSent: true, status: 14 });
    echo(streams[0]!);
    expect(Buffer.from(await first).toString()).toBe('1');
  });

  it('that asks whether we are there is answered', async () => {
    const { promise, resolve } = later<Buffer>();
    await start(echo);
    server.on('session', (session) => session.ping(Buffer.from('are you?'), (_, __, payload) => resolve(payload)));
    await open();
    expect((await promise).toString()).toBe('are you?');
  });

  it('that dies in the middle of an answer leaves nobody waiting', async () => {
    const sockets: Socket[] = [];
    await start((stream) => {
      begin(stream);
      // The length of a message, and only a part of it.
      stream.write(message(Buffer.alloc(1000)).subarray(0, 500), () => sockets.forEach((socket) => socket.destroy()));
    });
    server.on('connection', (socket: Socket) => sockets.push(socket));
    const { promise: closed, resolve } = later<CallFailure>();
    const connection = await open(resolve);
    expect(await failureOf(call(connection, PATH, Buffer.from('x')))).toMatchObject({ status: 14, neverSent: false });
    expect((await closed).message).toMatch(/closed the connection|broke/);
  });
});
