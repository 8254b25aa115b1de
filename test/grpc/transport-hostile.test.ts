// A peer that is no etcd, or means harm: the connection ends with words that say why, and nothing hangs, grows or crashes.

import fc from 'fast-check';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { connect } from '../../src/grpc/connect.ts';
import type { Address, CallFailure } from '../../src/grpc/transport.ts';
import { type Certificates, makeCertificates } from '../etcd/certificates.ts';
import {
  answer,
  BEGIN,
  FLAG,
  frame,
  headers,
  KIND,
  message,
  numbers,
  ScriptedPeer,
  settings,
} from './scripted-peer.ts';
import { call, failureOf, listen } from './transport-contract.ts';

const PATH = '/test.Service/Method';

describe('a peer that breaks the rules', () => {
  it.each<[string, Buffer[], number, RegExp]>([
    ['a frame that is too long', [frame(KIND.data, 0, 1, Buffer.alloc(16_385))], 6, /16385 bytes/],
    ['data on no stream', [frame(KIND.data, 0, 0)], 1, /stream 0/],
    ['data on a stream that was never begun', [frame(KIND.data, 0, 99)], 1, /stream 99/],
    ['headers on a stream of its own', [headers(2, BEGIN)], 1, /stream 2/],
    ['a reset of a stream that was never begun', [frame(KIND.reset, 0, 7, Buffer.alloc(4))], 1, /stream 7/],
    ['a reset of the wrong size', [frame(KIND.reset, 0, 1, Buffer.alloc(5))], 6, /RST_STREAM/],
    ['more padding than data', [frame(KIND.data, FLAG.padded, 1, [3, 1, 2])], 1, /padding/],
    ['padding without its length', [frame(KIND.data, FLAG.padded, 1)], 1, /padding/],
    ['more padding than headers', [frame(KIND.headers, FLAG.padded | 4, 1, [9, 0])], 1, /padding/],
    ['headers without their priority', [frame(KIND.headers, FLAG.priority | 4, 1, [0, 0])], 6, /shorter/],
    [
      'something between the pieces of headers',
      [frame(KIND.headers, 0, 1), frame(KIND.ping, 0, 0, Buffer.alloc(8))],
      1,
      /middle of a header block/,
    ],
    [
      'headers of two streams mixed',
      [frame(KIND.headers, 0, 1), frame(KIND.continuation, 4, 3)],
      1,
      /middle of a header block/,
    ],
    ['headers in pieces on no stream', [frame(KIND.headers, 0, 0)], 1, /stream 0/],
    ['a continuation of nothing', [frame(KIND.continuation, 4, 1)], 1, /continuation of nothing/],
    [
      'headers in endless pieces',
      [frame(KIND.headers, 0, 1), ...Array<Buffer>(100).fill(frame(KIND.continuation, 0, 1))],
      11,
      /64 pieces/,
    ],
    [
      'headers of endless length',
      [frame(KIND.headers, 0, 1), ...Array<Buffer>(10).fill(frame(KIND.continuation, 0, 1, Buffer.alloc(16_000)))],
      11,
      /65536 bytes/,
    ],
    ['headers that cannot be read', [frame(KIND.headers, 4, 1, [0x80])], 9, /number 0/],
    [
      'unreadable headers for nobody',
      [headers(1, BEGIN), frame(KIND.reset, 0, 1, numbers([8, 4])), frame(KIND.headers, 4, 1, [0x80])],
      9,
      /number 0/,
    ],
    ['a push', [frame(KIND.push, 4, 1, Buffer.alloc(4))], 1, /push/],
    ['settings of a stream', [frame(KIND.settings, 0, 1)], 1, /settings of a single stream/],
    ['settings of the wrong size', [frame(KIND.settings, 0, 0, Buffer.alloc(7))], 6, /SETTINGS/],
    ['an answer to settings with something in it', [frame(KIND.settings, 1, 0, Buffer.alloc(6))], 6, /SETTINGS/],
    ['a setting that allows pushes', [settings([2, 1])], 1, /only clients/],
    ['a window beyond bounds by settings', [settings([4, 2 ** 31])], 3, /2147483648/],
    ['a frame size that is too small', [settings([5, 100])], 1, /100 bytes/],
    ['a frame size that is too large', [settings([5, 2 ** 24])], 1, /16777216 bytes/],
    ['endless settings at once', [frame(KIND.settings, 0, 0, Buffer.alloc(6 * 65))], 11, /64 settings/],
    ['settings again and again', Array<Buffer>(101).fill(settings([4, 65_535])), 11, /100 times a second/],
    ['a ping of a stream', [frame(KIND.ping, 0, 1, Buffer.alloc(8))], 1, /ping of a single/],
    ['a ping of the wrong size', [frame(KIND.ping, 0, 0, Buffer.alloc(7))], 6, /PING/],
    ['a farewell of a stream', [frame(KIND.goAway, 0, 1, Buffer.alloc(8))], 1, /farewell/],
    ['a farewell of the wrong size', [frame(KIND.goAway, 0, 0, Buffer.alloc(7))], 6, /GOAWAY/],
    ['a window update of the wrong size', [frame(KIND.window, 0, 0, Buffer.alloc(3))], 6, /WINDOW_UPDATE/],
    ['a window that is widened by nothing', [frame(KIND.window, 0, 0, Buffer.alloc(4))], 1, /by nothing/],
    ['a window beyond bounds', [frame(KIND.window, 0, 0, numbers([2 ** 31 - 1, 4]))], 3, /beyond all bounds/],
    [
      'a window of a stream beyond bounds',
      [frame(KIND.window, 0, 1, numbers([2 ** 31 - 1, 4]))],
      3,
      /beyond all bounds/,
    ],
    [
      'settings that bring a window beyond bounds',
      [frame(KIND.window, 0, 1, numbers([2 ** 31 - 70_000, 4])), settings([4, 200_000])],
      3,
      /beyond all bounds/,
    ],
  ])('by %s is told which rule, and everything on the connection fails', async (_, said, code, words) => {
    const peer = ScriptedPeer.open();
    const asked = failureOf(call(peer.connection, PATH, Buffer.from('question')));
    const stream = listen(peer.connection, PATH);
    await peer.heard();
    // In one chunk with what is right, of which nothing may be heard after the wrong.
    peer.says(...said, answer(3, 'too late'));
    expect(stream.messages).toEqual([]);
    const failure = await Promise.race([asked, stream.ended]);
    expect(failure.neverSent).toBe(false);
    expect(peer.connection.isOpen).toBe(false);
    expect(peer.closed).toHaveLength(1);
    expect(peer.closed[0]!.message).toMatch(words);
    expect(peer.closed[0]!.message).toContain('etcd.test:2379 does not keep to HTTP/2');
    await stream.ended;
    const goodbye = (await peer.heard()).at(-1)!;
    expect(goodbye.kind).toBe(KIND.goAway);
    expect(goodbye.payload.readUInt32BE(4)).toBe(code);
    expect(peer.socket.destroyed).toBe(true);
  });

  it('by asking without reading the answers is hung up on before they fill the memory', () => {
    const peer = ScriptedPeer.open();
    peer.socket.isStuck = true;
    const pings = Buffer.concat(Array<Buffer>(1000).fill(frame(KIND.ping, 0, 0, Buffer.alloc(8))));
    for (let times = 0; times < 100 && peer.closed.length === 0; times++) peer.says(pings);
    expect(peer.closed[0]!.message).toContain('more questions than it reads answers');
    expect(peer.socket.writableLength).toBeLessThan(4_000_000);
  });

  it('by claiming lengths does not make us reserve the memory for them', () => {
    const peer = ScriptedPeer.open();
    const streams = Array.from({ length: 1000 }, () => listen(peer.connection, PATH));
    const before = process.memoryUsage().arrayBuffers;
    streams.forEach((_, index) => {
      const id = 1 + 2 * index;
      peer.says(headers(id, BEGIN), frame(KIND.data, 0, id, numbers([0, 1], [16_000_000, 4], [0, 3])));
    });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000);
    expect(peer.closed).toEqual([]);
    peer.connection.close();
  });

  it.each([
    ['an answer', 1, 128],
    ['a message on a stream', 3, 16],
  ])('by beginning %s that is too long loses that one alone, and the limit is told', async (_, id, limit) => {
    const peer = ScriptedPeer.open();
    const asked = call(peer.connection, PATH, Buffer.from('question')).then(String, (error: CallFailure) => error);
    const stream = listen(peer.connection, PATH);
    const begun = (length: number): Buffer => frame(KIND.data, 0, id, numbers([0, 1], [length, 4], [0, 1]));
    peer.says(headers(id, BEGIN), begun(limit * 1024 * 1024 + 1));
    const failure = id === 1 ? await asked : await stream.ended;
    expect(failure).toMatchObject({ status: 8, neverSent: false });
    expect((failure as CallFailure).message).toContain(`(${limit} MiB) are read`);
    expect(peer.closed).toEqual([]);
    peer.says(headers(4 - id, BEGIN), frame(KIND.data, 0, 4 - id, numbers([0, 1], [limit, 4], [0, 1])));
    expect(peer.closed).toEqual([]);
    peer.connection.close();
  });

  it('by sending anything whatever never makes a call be answered twice, or not at all', async () => {
    const right = Buffer.concat([headers(1, BEGIN), frame(KIND.data, 0, 1, message('x')), answer(3, 'y')]);
    const wrong = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      // What is nearly right goes deeper than what is all wrong.
      fc.array(fc.tuple(fc.nat(right.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }).map((changes) => {
        const bytes = Buffer.from(right);
        for (const [at, value] of changes) bytes[at] = value;
        return bytes;
      }),
      fc
        .array(fc.tuple(fc.nat(10), fc.nat(255), fc.constantFrom(0, 1, 3, 5), fc.uint8Array({ maxLength: 20 })), {
          maxLength: 10,
        })
        .map((frames) => Buffer.concat(frames.map(([kind, flags, id, payload]) => frame(kind, flags, id, payload)))),
    );
    await fc.assert(
      fc.asyncProperty(wrong, async (bytes) => {
        const peer = ScriptedPeer.open();
        const outcomes = [0, 0, 0];
        for (const index of [0, 1]) {
          const over = (): void => void outcomes[index]!++;
          peer.connection.unary({ path: PATH, message: Buffer.from('question') }, over, over);
        }
        const ended = (): void => void outcomes[2]!++;
        peer.connection.stream({ path: PATH }, { message: () => undefined, ended });
        peer.says(bytes);
        await peer.heard();
        peer.socket.push(null);
        peer.socket.emit('end');
        await peer.heard();
        expect(outcomes).toEqual([1, 1, 1]);
        expect(peer.closed).toHaveLength(1);
        expect(peer.socket.isReferenced).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a server that is no etcd', () => {
  let certificates: Certificates;
  let server: Server | undefined;

  beforeAll(async () => {
    certificates = await makeCertificates();
  });
  afterEach(async () => {
    if (server !== undefined) await new Promise((resolve) => server!.close(resolve));
    server = undefined;
  });

  async function started(one: Server): Promise<number> {
    server = one.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  function refusal(port: number, tls?: Address['tls']): Promise<CallFailure> {
    const options = {
      clock: systemClock,
      timeoutMs: 60_000,
      pingMs: 60_000,
      onClose: () => expect.unreachable('it was never open'),
    };
    return failureOf(connect({ host: '127.0.0.1', port, tls }, options));
  }

  const saying = (bytes: string) => createServer((socket) => say(socket, bytes));

  it('but one of HTTP/1 is called that', async () => {
    const port = await started(createHttpServer());
    const failure = await refusal(port);
    expect(failure).toMatchObject({ status: 14, neverSent: true });
    expect(failure.message).toMatch(/^127\.0\.0\.1:\d+ answered in HTTP\/1/);
  });

  it('but greets in words of its own is quoted', async () => {
    const port = await started(saying('SSH-2.0-OpenSSH_9.2\r\n'));
    expect((await refusal(port)).message).toMatch(/does not speak HTTP\/2: it began with "SSH-2.0-O"/);
  });

  it('but hangs up at once may want TLS', async () => {
    const port = await started(saying(''));
    expect((await refusal(port)).message).toMatch(/closed the connection without a word.*perhaps it wants TLS/);
  });

  it('in the clear, because it wants TLS, is called that', async () => {
    const { key, cert } = certificates.server;
    const tls = createTlsServer({ key, cert, ALPNProtocols: ['h2'] });
    tls.on('tlsClientError', () => undefined);
    const port = await started(tls);
    expect((await refusal(port)).message).toMatch(/wants TLS/);
  });

  it('over TLS, because it has none, is called that', async () => {
    // An etcd in the clear would answer so too, or hang up.
    const port = await started(createHttpServer());
    const failure = await refusal(port, { ca: certificates.client.ca });
    expect(failure.neverSent).toBe(true);
    expect(failure.message).toMatch(/does not speak TLS/);
  });

  it('over TLS, because it speaks only HTTP/1 there, is called that', async () => {
    const { key, cert } = certificates.server;
    const answering = createTlsServer({ key, cert }, (socket) => say(socket, 'HTTP/1.1 400 Bad\r\n\r\n'));
    const port = await started(answering);
    expect((await refusal(port, { ca: certificates.client.ca })).message).toMatch(/answered in HTTP\/1/);
  });

  it('over TLS, because it wants to know who we are, is called that', async () => {
    const { key, cert, ca } = certificates.server;
    const tls = createTlsServer({ key, cert, ca, requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2'] });
    tls.on('tlsClientError', () => undefined);
    const port = await started(tls);
    expect((await refusal(port, { ca })).message).toMatch(/certificate required/i);
  });

  it('over TLS, because it agrees on no protocol, is called that', async () => {
    const { key, cert } = certificates.server;
    const tls = createTlsServer({ key, cert, ALPNProtocols: ['http/1.1'] });
    tls.on('tlsClientError', () => undefined);
    const port = await started(tls);
    expect((await refusal(port, { ca: certificates.client.ca })).message).toMatch(/no application protocol/i);
  });

  it('is not even looked for with a key that is none, or at a port that cannot be', async () => {
    expect(await refusal(1, { key: 'no key', cert: 'no certificate' })).toMatchObject({ status: 14, neverSent: true });
    expect(await refusal(70_000)).toMatchObject({ status: 14, neverSent: true });
  });

  it('is told apart from one that accepts and says nothing, in the clear and over TLS', async () => {
    const sockets: Socket[] = [];
    const port = await started(createServer((socket) => void sockets.push(socket)));
    const silent = (tls?: Address['tls']): Promise<CallFailure> =>
      failureOf(
        connect(
          { host: '127.0.0.1', port, tls },
          { clock: systemClock, timeoutMs: 1000, pingMs: 1000, onClose: () => undefined },
        ),
      );
    expect((await silent()).message).toMatch(/accepted the connection, but did not answer in HTTP\/2 within 1000 ms/);
    expect((await silent({})).message).toMatch(/accepted the connection, but did not answer in TLS within 1000 ms/);
    for (const socket of sockets) socket.destroy();
  });
});

/** And hangs up; what the other says is read, so as to notice that it hung up too. */
function say(socket: Socket, bytes: string): void {
  socket.on('error', () => undefined);
  socket.resume();
  socket.end(bytes);
}
