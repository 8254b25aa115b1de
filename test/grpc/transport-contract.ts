/** What every transport does, on a real etcd, and with gRPC's own client as the judge of what the server said. */
import { type Client, credentials, Client as GrpcClient, type ServiceError } from '@grpc/grpc-js';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, connect as connectSocket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { CallFailure, type Connect, type Connection, type TlsOptions } from '../../src/grpc/transport.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { type Certificates, makeCertificates } from '../etcd/certificates.ts';
import { PUT, putRequest, RANGE, rangeRequest, TXN, txnRequest, WATCH, watchRequest } from '../etcd/messages.ts';

const TIMES = { clock: systemClock, timeoutMs: 60_000, pingMs: 60_000 };

export function transportContract(name: string, connect: Connect): void {
  describe.skipIf(isMissing('etcd'))(`a connection to etcd by ${name}`, () => {
    let etcd: EtcdServer;
    let reference: Client;
    const opened: Connection[] = [];

    beforeAll(async () => {
      etcd = await startEtcd();
      reference = new GrpcClient(`127.0.0.1:${etcd.port}`, credentials.createInsecure(), {
        'grpc.max_receive_message_length': -1,
      });
    });
    afterEach(() => {
      for (const connection of opened.splice(0)) connection.close();
    });
    afterAll(async () => {
      reference.close();
      await etcd.stop();
    });

    async function open(port = etcd.port, onClose: (failure: CallFailure) => void = () => undefined, tls?: TlsOptions) {
      const connection = await connect({ host: '127.0.0.1', port, tls }, { ...TIMES, onClose });
      opened.push(connection);
      return connection;
    }

    it('gets the same bytes for an answer as another client does', async () => {
      const connection = await open();
      await call(connection, PUT, putRequest('same', 'value'));
      const ours = await call(connection, RANGE, rangeRequest('same'));
      expect(hex(ours)).toBe(hex(await referenceCall(reference, RANGE, rangeRequest('same'))));
      expect(text(ours)).toContain('value');
    });

    it('commits a transaction, which the other client then sees', async () => {
      await call(await open(), TXN, txnRequest('committed', 'by ours'));
      expect(text(await referenceCall(reference, RANGE, rangeRequest('committed')))).toContain('by ours');
    });

    it.each([
      ['a method that there is not', '/etcdserverpb.KV/Steal', Buffer.alloc(0)],
      ['a service that there is not', '/etcdserverpb.Bank/Rob', Buffer.alloc(0)],
      ['a request without a key', RANGE, Buffer.alloc(0)],
      ['a revision of the future', RANGE, rangeRequest('a', undefined, 1_000_000)],
      ['a message that is none', PUT, Buffer.from([0xff, 0xff])],
    ])('tells of %s what the server told, with its status', async (_, path, message) => {
      const ours = await failureOf(call(await open(), path, message));
      const theirs = (await referenceCall(reference, path, message).catch((error: unknown) => error)) as ServiceError;
      expect({ status: ours.status, message: ours.message }).toEqual({ status: theirs.code, message: theirs.details });
      expect(ours.neverSent).toBe(false);
    });

    it('hears of every change that it watches, as another client does, and in order', async () => {
      const connection = await open();
      const theirs = referenceStream(reference, WATCH);
      const ours = listen(connection, WATCH);
      for (const stream of [ours, theirs]) stream.send(watchRequest('watched'));
      await Promise.all([ours.received(1), theirs.received(1)]);
      for (const value of ['one', 'two', 'three']) await call(connection, PUT, putRequest('watched', value));
      const [heard, judged] = await Promise.all([ours.received(4), theirs.received(4)]);
      expect(heard.map(hex)).toEqual(judged.map(hex));
      expect(heard.slice(1).map((message) => /one|two|three/.exec(text(message))?.[0])).toEqual([
        'one',
        'two',
        'three',
      ]);
      ours.cancel();
      theirs.cancel();
    });

    it('opens a second watch over the same stream', async () => {
      const connection = await open();
      const stream = listen(connection, WATCH);
      stream.send(watchRequest('first'));
      stream.send(watchRequest('second'));
      await stream.received(2);
      await call(connection, PUT, putRequest('second', 'seen'));
      await call(connection, PUT, putRequest('first', 'seen'));
      const messages = await stream.received(4);
      expect(messages.slice(2).map((message) => /first|second/.exec(text(message))?.[0])).toEqual(['second', 'first']);
    });

    it('sends requests as large as etcd takes, and gets answers that are larger still', async () => {
      const connection = await open();
      const values = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(1_400_000));
      await Promise.all(values.map((value, index) => call(connection, PUT, putRequest(`large/${index}`, value))));
      const answer = await call(connection, RANGE, rangeRequest('large/', 'large0'));
      expect(answer.length).toBeGreaterThan(5_600_000);
      for (const value of values) expect(Buffer.from(answer).includes(value)).toBe(true);
      expect(hex(answer)).toBe(hex(await referenceCall(reference, RANGE, rangeRequest('large/', 'large0'))));
    });

    it('tells each of a thousand callers its own answer', async () => {
      const connection = await open();
      const keys = Array.from({ length: 1000 }, (_, index) => `caller/${index}/`);
      await Promise.all(keys.map((key) => call(connection, PUT, putRequest(key, `for ${key}`))));
      const answers = await Promise.all(keys.map((key) => call(connection, RANGE, rangeRequest(key))));
      answers.forEach((answer, index) => expect(text(answer)).toContain(`for ${keys[index]}`));
    });

    it('never calls back who gave a call up, and goes on for the others', async () => {
      const connection = await open();
      const calledBack: string[] = [];
      const giveUp = connection.unary(
        { path: PUT, message: putRequest('given-up', 'value') },
        () => calledBack.push('done'),
        () => calledBack.push('failed'),
      );
      giveUp();
      giveUp();
      await call(connection, PUT, putRequest('other', 'value'));
      await call(connection, RANGE, rangeRequest('other'));
      expect(calledBack).toEqual([]);
    });

    it('never calls back who cancelled a stream', async () => {
      const connection = await open();
      const stream = listen(connection, WATCH);
      stream.send(watchRequest('cancelled'));
      await stream.received(1);
      stream.cancel();
      stream.send(watchRequest('cancelled'));
      await call(connection, PUT, putRequest('cancelled', 'value'));
      await call(connection, RANGE, rangeRequest('cancelled'));
      expect(stream.messages).toHaveLength(1);
      expect(stream.failures).toEqual([]);
    });

    it('once closed takes no more calls, ends its streams, and says so once', async () => {
      const closed: CallFailure[] = [];
      const connection = await open(etcd.port, (failure) => closed.push(failure));
      expect(connection.isOpen).toBe(true);
      const stream = listen(connection, WATCH);
      stream.send(watchRequest('closed'));
      await stream.received(1);
      connection.close();
      connection.close();
      expect(connection.isOpen).toBe(false);
      const failure = await failureOf(call(connection, RANGE, rangeRequest('a')));
      expect(failure.status).toBe(14);
      expect(failure.neverSent).toBe(true);
      await stream.ended;
      expect(closed).toHaveLength(1);
    });

    it('fails what is under way when the server dies in the middle, and does not claim that it was never sent', async () => {
      const link = await cuttable(etcd.port);
      const { promise: closed, resolve } = later<CallFailure>();
      const connection = await open(link.port, resolve);
      await call(connection, PUT, putRequest('alive', 'value'));
      const stream = listen(connection, WATCH);
      stream.send(watchRequest('alive'));
      await stream.received(1);
      // It reaches etcd, but no answer comes back.
      link.holdBack();
      const pending = failureOf(call(connection, PUT, putRequest('alive', 'again')));
      await link.passedOn();
      link.cut();
      expect(await pending).toMatchObject({ status: 14, neverSent: false });
      expect(await stream.ended).toMatchObject({ status: 14 });
      expect(await closed).toBeInstanceOf(CallFailure);
      expect(connection.isOpen).toBe(false);
      expect(await failureOf(call(connection, RANGE, rangeRequest('a')))).toMatchObject({ neverSent: true });
      await link.close();
    });

    it('is refused where nobody listens, and then certainly nothing was sent', async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      server.close();
      await once(server, 'close');
      expect(await failureOf(open(port))).toMatchObject({ status: 14, neverSent: true });
    });

    it('gives up on a server that accepts and then says nothing', async () => {
      const server = createServer(() => undefined).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const connecting = connect(
        { host: '127.0.0.1', port },
        { clock: systemClock, timeoutMs: 50, pingMs: 1000, onClose: () => undefined },
      );
      expect(await failureOf(connecting)).toMatchObject({ status: 14, neverSent: true });
      server.close();
    });

    describe('over TLS', () => {
      let certificates: Certificates;
      let front: Server;
      let port: number;

      beforeAll(async () => {
        certificates = await makeCertificates();
        const { key, cert, ca } = certificates.server;
        front = createTlsServer(
          { key, cert, ca, requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2'] },
          (socket) => {
            const inner = connectSocket(etcd.port, '127.0.0.1');
            socket.pipe(inner).pipe(socket);
            socket.on('error', () => inner.destroy());
            inner.on('error', () => socket.destroy());
          },
        );
        front.on('tlsClientError', () => undefined);
        front.listen(0, '127.0.0.1');
        await once(front, 'listening');
        port = (front.address() as AddressInfo).port;
      });
      afterAll(() => front.close());

      it('talks to a server that it can trust, and that can trust it', async () => {
        const connection = await open(port, undefined, certificates.client);
        await call(connection, PUT, putRequest('secret', 'value'));
        expect(text(await call(connection, RANGE, rangeRequest('secret')))).toContain('value');
        const large = Array.from({ length: 1_400_000 }, (_, at) => String.fromCharCode(97 + (at % 23))).join('');
        await Promise.all(['1', '2'].map((end) => call(connection, PUT, putRequest(`secret/${end}`, large))));
        const both = await call(connection, RANGE, rangeRequest('secret/', 'secret0'));
        expect(text(both).split(large)).toHaveLength(3);
      });

      it('sends nothing to a server whose certificate it does not know', async () => {
        const { ca: _, ...stranger } = certificates.client;
        const failure = await failureOf(open(port, undefined, stranger));
        expect(failure).toMatchObject({ status: 14, neverSent: true });
        expect(failure.message).toMatch(/certificate/i);
      });

      it('sends nothing to a server whose certificate is for another name', async () => {
        const failure = await failureOf(
          open(port, undefined, { ...certificates.client, serverName: 'elsewhere.test' }),
        );
        expect(failure).toMatchObject({ status: 14, neverSent: true });
        expect(failure.message).toMatch(/elsewhere\.test/);
      });

      it('asks for a name other than the address, where the certificate has that name', async () => {
        const connection = await open(port, undefined, { ...certificates.client, serverName: 'etcd.test' });
        expect(connection.isOpen).toBe(true);
      });

      it('fails if the server wants a certificate and gets none', async () => {
        // Some notice only that no answer comes, so not for long.
        const options = { clock: systemClock, timeoutMs: 1000, pingMs: 1000, onClose: () => undefined };
        const connecting = connect({ host: '127.0.0.1', port, tls: { ca: certificates.client.ca } }, options);
        expect(await failureOf(connecting)).toMatchObject({ status: 14, neverSent: true });
      });
    });
  });
}

export function call(connection: Connection, path: string, message: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => void connection.unary({ path, message }, resolve, reject));
}

/** Fails if it did not fail, or not with a failure of a call. */
export async function failureOf(work: Promise<unknown>): Promise<CallFailure> {
  const outcome: unknown = await work.then(
    () => 'it succeeded',
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(CallFailure);
  return outcome as CallFailure;
}

interface Listening {
  readonly messages: Uint8Array[];
  /** The first so many, once they are here. */
  received(count: number): Promise<Uint8Array[]>;
  send(message: Uint8Array): void;
  cancel(): void;
}

function collected(): {
  readonly messages: Uint8Array[];
  take(message: Uint8Array): void;
  received: Listening['received'];
} {
  const messages: Uint8Array[] = [];
  const waiting = new Set<() => void>();
  return {
    messages,
    take(message) {
      messages.push(message);
      for (const look of waiting) look();
    },
    received: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (messages.length < count) return;
          waiting.delete(look);
          resolve(messages.slice(0, count));
        };
        waiting.add(look);
        look();
      }),
  };
}

export function listen(
  connection: Connection,
  path: string,
): Listening & { readonly failures: CallFailure[]; readonly ended: Promise<CallFailure> } {
  const { messages, take, received } = collected();
  const failures: CallFailure[] = [];
  const { promise: ended, resolve } = later<CallFailure>();
  const stream = connection.stream(
    { path },
    {
      message: take,
      ended(failure) {
        failures.push(failure);
        resolve(failure);
      },
    },
  );
  return {
    messages,
    received,
    failures,
    ended,
    send: (message) => stream.send(message),
    cancel: () => stream.cancel(),
  };
}

const asIs = (bytes: Buffer): Buffer => bytes;

function referenceCall(client: Client, path: string, message: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, asIs, asIs, message, (error, answer) =>
      error === null && answer !== undefined ? resolve(answer) : reject(error as ServiceError),
    );
  });
}

function referenceStream(client: Client, path: string): Listening {
  const { messages, take, received } = collected();
  const stream = client.makeBidiStreamRequest(path, asIs, asIs);
  stream.on('data', take);
  stream.on('error', () => undefined);
  return { messages, received, send: (message) => stream.write(Buffer.from(message)), cancel: () => stream.cancel() };
}

/** A way to the server that can be cut. */
async function cuttable(to: number) {
  let isHeldBack = false;
  let passedOn = (): void => undefined;
  const passed = new Promise<void>((resolve) => (passedOn = resolve));
  const sockets: { destroy(): void }[] = [];
  const server = createServer((outer) => {
    const inner = connectSocket(to, '127.0.0.1');
    sockets.push(outer, inner);
    outer.on('data', (chunk) => inner.write(chunk, () => isHeldBack && passedOn()));
    inner.on('data', (chunk) => isHeldBack || outer.write(chunk));
    for (const socket of [outer, inner]) socket.on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    holdBack: () => void (isHeldBack = true),
    passedOn: () => passed,
    cut: () => sockets.forEach((socket) => socket.destroy()),
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

export function later<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}

/** Shorter to compare, and to show, than megabytes of it. */
function hex(bytes: Uint8Array): string {
  return bytes.length < 4096 ? Buffer.from(bytes).toString('hex') : createHash('sha256').update(bytes).digest('hex');
}
