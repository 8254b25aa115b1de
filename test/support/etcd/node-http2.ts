/** A connection by Node's own HTTP/2: the simple one, which the faster one is measured and tested against. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { isIP } from 'node:net';
import {
  type Address,
  type Call,
  CallFailure,
  type Connect,
  type Connection,
  type ConnectOptions,
  type OutgoingStream,
  type StreamListener,
} from '../../../src/grpc/transport.ts';
import { framed, Messages, statusFailure } from './grpc-messages.ts';

/** How long the answer to a ping may take. */
const LONGEST_PING_MS = 3000;
/** So that large answers do not stop every 64 kB to ask whether they may go on. */
const WINDOW_BYTES = 4 * 1024 * 1024;

export const connectWithNode: Connect = (address, options) =>
  new Promise((resolve, reject) => {
    const { host, port, tls } = address;
    const authority = `${tls === undefined ? 'http' : 'https'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
    const serverName = tls?.serverName;
    const session = connect(authority, {
      ...tls,
      ...(serverName === undefined ? {} : { servername: serverName }),
      settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
    });
    const giveUp = (cause: Error): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', abandon);
      session.destroy();
      reject(new CallFailure(14, cause.message || String(cause), true, { cause }));
    };
    const timer = setTimeout(() => giveUp(new Error(`no answer in ${options.timeoutMs} ms`)), options.timeoutMs);
    timer.unref();
    const abandon = (): void => giveUp(new Error('the connection was given up'));
    options.signal?.addEventListener('abort', abandon);
    session.once('error', giveUp);
    // A server that wants a certificate says so after the handshake, and then Node tells only the socket.
    session.socket.once('error', giveUp);
    session.once('close', () => giveUp(new Error('the connection was closed')));
    session.once('remoteSettings', () => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', abandon);
      session.off('error', giveUp);
      session.socket.off('error', giveUp);
      session.removeAllListeners('close');
      session.setLocalWindowSize(4 * WINDOW_BYTES);
      resolve(new NodeConnection(session, address, options));
    });
    session.unref();
  });

class NodeConnection implements Connection {
  readonly #session: ClientHttp2Session;
  readonly #address: Address;
  readonly #options: ConnectOptions;
  #isOpen = true;
  #isHeard = true;
  #calls = 0;
  #pinging: NodeJS.Timeout;

  constructor(session: ClientHttp2Session, address: Address, options: ConnectOptions) {
    this.#session = session;
    this.#address = address;
    this.#options = options;
    session.on('error', (cause: Error) => this.#over(cause.message, cause));
    session.on('close', () => this.#over('the connection was closed'));
    session.on('goaway', () => this.#over('the server goes away', undefined, false));
    this.#pinging = setInterval(() => this.#ping(), options.pingMs).unref();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  unary(call: Call, done: (message: Uint8Array) => void, failed: (failure: CallFailure) => void): () => void {
    let answer: Uint8Array | undefined;
    const listener: StreamListener = {
      message: (message) => (answer = message),
      ended: (failure) => {
        if (failure.status !== 0) failed(failure);
        else if (answer === undefined) failed(new CallFailure(13, 'an answer without a message', false));
        else done(answer);
      },
    };
    const stream = this.#open(call, listener);
    stream?.end(framed(call.message));
    return () => this.#cancel(stream);
  }

  stream(call: Omit<Call, 'message'>, listener: StreamListener): OutgoingStream {
    const stream = this.#open(call, listener);
    return {
      send: (message) => void stream?.write(framed(message)),
      cancel: () => this.#cancel(stream),
    };
  }

  close(): void {
    this.#over('closed from here');
    this.#session.destroy();
  }

  #open(call: Omit<Call, 'message'>, listener: StreamListener): ClientHttp2Stream | undefined {
    let stream: ClientHttp2Stream;
    try {
      stream = this.#session.request({
        ':method': 'POST',
        ':path': call.path,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...call.headers,
      });
    } catch (cause) {
      const failure = new CallFailure(14, (cause as Error).message, true, { cause });
      queueMicrotask(() => listener.ended(failure));
      return undefined;
    }
    this.#calls += 1;
    new Answer(stream, listener, () => (this.#isHeard = true)).onEnd(() => (this.#calls -= 1));
    return stream;
  }

  #cancel(stream: ClientHttp2Stream | undefined): void {
    if (stream === undefined) return;
    stream.emit('signalbox:cancelled');
    stream.close(constants.NGHTTP2_CANCEL);
  }

  /** Only while something is asked, and rarely: etcd takes other pings for an attack and hangs up. */
  #ping(): void {
    const isQuiet = !this.#isHeard;
    this.#isHeard = false;
    if (!isQuiet || this.#calls === 0 || this.#session.destroyed) return;
    const limitMs = Math.min(LONGEST_PING_MS, this.#options.pingMs);
    const timer = setTimeout(() => this.#session.destroy(new Error('the server answers no ping')), limitMs).unref();
    this.#session.ping(() => {
      clearTimeout(timer);
      this.#isHeard = true;
    });
  }

  #over(why: string, cause?: Error, isBroken = true): void {
    if (isBroken) clearInterval(this.#pinging);
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const where = `${this.#address.host}:${this.#address.port}`;
    this.#options.onClose(new CallFailure(14, `${where}: ${why}`, false, { cause }));
  }
}

/** Listens to one call: turns what comes into messages, and whatever ends it into one end. */
class Answer {
  readonly #stream: ClientHttp2Stream;
  readonly #listener: StreamListener;
  #status: CallFailure | undefined;
  #cause: Error | undefined;
  #isOver = false;
  #ended: (() => void) | undefined;

  constructor(stream: ClientHttp2Stream, listener: StreamListener, heard: () => void) {
    this.#stream = stream;
    this.#listener = listener;
    const messages = new Messages((message) => {
      if (!this.#isOver) listener.message(message);
    });
    stream.on('response', (headers) => {
      heard();
      this.#status = statusFailure(headers);
    });
    stream.on('data', (chunk: Uint8Array) => {
      heard();
      messages.take(chunk);
    });
    stream.on('trailers', (trailers) => (this.#status = statusFailure(trailers) ?? this.#status));
    stream.on('error', (cause: Error) => (this.#cause = cause));
    stream.on('signalbox:cancelled', () => (this.#isOver = true));
    stream.on('close', () => this.#close());
  }

  onEnd(ended: () => void): void {
    this.#ended = ended;
  }

  #close(): void {
    this.#ended?.();
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listener.ended(this.#status ?? this.#broken());
  }

  #broken(): CallFailure {
    const isRefused = this.#stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
    // It has no id before it was sent.
    const neverSent = isRefused || this.#stream.id === undefined;
    const told = this.#cause?.message ?? 'the connection broke before there was an answer';
    return new CallFailure(14, told, neverSent, { cause: this.#cause });
  }
}
