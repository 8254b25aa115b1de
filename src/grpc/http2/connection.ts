/**
 * A connection to one server over a socket: the part of HTTP/2 that a gRPC client needs.
 *
 *   greeting ──settings──▶ open ──farewell, ids used up──▶ retired ──last call over──▶ closed
 *       └────────────────────┴── socket broke, peer broke the rules, close() ────────────▲
 *
 * A retired connection takes no new calls and lets the calls under way finish.
 *
 * A call under way keeps the process alive. An idle connection, or one with streams only, does not.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import { type Call, CallFailure, type Connection, type OutgoingStream, type StreamListener } from '../transport.ts';
import { Conversation } from './conversation.ts';
import { type Exchange, StreamExchange, UnaryExchange } from './exchange.ts';
import { Exchanges } from './exchanges.ts';
import { FrameReader, FrameTooLong } from './frame-reader.ts';
import { GOAWAY, NO_FLAGS, PING, ProtocolError, writeUint32 } from './frames.ts';
import { UNAVAILABLE } from '../status.ts';
import { HeaderEncoder } from './hpack/encoder.ts';
import { Incoming } from './incoming.ts';
import { KeepAlive } from './keep-alive.ts';
import { Outbox } from './outbox.ts';
import { FlowControl } from './flow-control.ts';
import { spokenInstead, whyNoConnection } from '../no-connection.ts';

export interface ConnectionOptions {
  /** `127.0.0.1:2379` */
  readonly server: string;
  readonly clock: Clock;
  readonly isSecure: boolean;
  readonly pingMs: number;
  /** Called once, when the server's settings have arrived. */
  readonly onOpen: () => void;
  /** Called once, when the connection stops being open, or will never open. */
  readonly onClose: (failure: CallFailure) => void;
  /** The id of the first stream. Ids are odd and stay below 2³¹. */
  readonly firstId?: number | undefined;
}

export class Http2Connection implements Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #outbox: Outbox;
  readonly #exchanges: Exchanges;
  readonly #reader: FrameReader;
  readonly #keepAlive: KeepAlive;
  #state: 'greeting' | 'open' | 'retired' | 'closed' = 'greeting';
  #reason = '';
  /** The highest stream id that the server will answer, by its last GOAWAY. */
  #lastId = Infinity;
  #cause: unknown;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    const { server } = options;
    this.#outbox = new Outbox(socket);
    const flow = new FlowControl(this.#outbox);
    const encoder = new HeaderEncoder(options.isSecure ? 'https' : 'http', server);
    this.#exchanges = new Exchanges(
      {
        awaited: (isAny) => (isAny ? socket.ref() : socket.unref()),
        usedUp: () => this.#retire(`the connection to ${server} has no stream ids left`),
        idle: () => this.#state === 'retired' && this.#hangUp(),
      },
      ...([this.#outbox, flow, encoder, options.firstId ?? 1] as const),
    );
    const conversation = new Conversation(socket, this.#outbox, flow, encoder, this.#exchanges, options.clock, {
      greeted: () => this.#greeted(),
      goesAway: (lastId, why) => this.#goesAway(lastId, `${server} goes away (${why})`),
    });
    const incoming = new Incoming(conversation);
    this.#reader = new FrameReader((kind, flags, id, bytes, at, end) =>
      incoming.frame(kind, flags, id, bytes, at, end),
    );
    this.#keepAlive = new KeepAlive(options.clock, options.pingMs, {
      isAwaited: () => this.#exchanges.size > 0,
      ask: () => this.#outbox.frame(PING, NO_FLAGS, 0, Buffer.alloc(8)),
      isGone: () => this.abandon(`${server} has not answered for ${2 * options.pingMs} ms`),
    });
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.abandon(this.#broken(error), error));
    socket.on('end', () => this.abandon(this.#hungUpOn()));
    socket.on('close', () => this.abandon(this.#hungUpOn()));
    conversation.begin();
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** How many calls and streams the server accepts at once. */
  get maxConcurrent(): number {
    return this.#exchanges.maxConcurrent;
  }

  unary(call: Call, done: (message: Uint8Array) => void, failed: (failure: CallFailure) => void): () => void {
    const exchange = new UnaryExchange(call, done, failed);
    this.#start(exchange);
    return () => this.#exchanges.cancel(exchange);
  }

  stream(call: Omit<Call, 'message'>, listener: StreamListener): OutgoingStream {
    const exchange = new StreamExchange(call, listener);
    this.#start(exchange);
    return {
      send: (message) => this.#exchanges.send(exchange, message),
      cancel: () => this.#exchanges.cancel(exchange),
    };
  }

  close(): void {
    this.abandon(`the connection to ${this.#options.server} was closed`);
  }

  /** Fails every call and stream with this reason, and closes the socket. */
  abandon(reason: string, cause?: unknown): void {
    if (this.#state === 'closed') return;
    const wasKnown = this.#state === 'retired';
    this.#state = 'closed';
    this.#reason = reason;
    this.#cause = cause;
    this.#reader.stop();
    this.#keepAlive.stop();
    this.#outbox.close();
    this.#socket.destroy();
    if (!wasKnown) this.#options.onClose(this.#failure(true));
    const all = [...this.#exchanges.takeWaiting(), ...this.#exchanges.underWay()];
    for (const exchange of all) this.#exchanges.finish(exchange, this.#failureOf(exchange));
  }

  #start(exchange: Exchange): void {
    this.#exchanges.expect(exchange);
    if (this.#state === 'open') return this.#exchanges.start(exchange);
    // Later, so that the caller first receives the function that cancels the call.
    process.nextTick(() => this.#exchanges.finish(exchange, this.#failure(true)));
  }

  #greeted(): void {
    if (this.#state !== 'greeting') return;
    this.#state = 'open';
    this.#keepAlive.start();
    this.#socket.unref();
    this.#options.onOpen();
  }

  #receive(chunk: Buffer): void {
    this.#keepAlive.heard();
    try {
      this.#reader.read(chunk);
    } catch (error) {
      if (error instanceof ProtocolError) return this.#objectTo(error);
      // A bug here or in a listener. The rest of the chunk is lost, and HPACK's shared table with it: nothing after it can be read.
      this.abandon(`the connection to ${this.#options.server} was given up: ${String(error)}`, error);
      throw error;
    }
  }

  #objectTo(error: ProtocolError): void {
    const { server } = this.#options;
    const other = this.#state === 'greeting' && error instanceof FrameTooLong ? spokenInstead(error.head) : undefined;
    this.#sayGoodbye(error.code, error.message);
    this.abandon(`${server} ${other ?? `does not keep to HTTP/2: it sent ${error.message}`}`, error);
  }

  /** The server answers the calls up to this id. It has not looked at those above. */
  #goesAway(lastId: number, reason: string): void {
    this.#retire(reason);
    // A GOAWAY that repeats itself costs nothing, however often the server sends it.
    if (lastId >= this.#lastId) return;
    this.#lastId = lastId;
    for (const exchange of [...this.#exchanges.underWay()]) {
      if (exchange.id > lastId) this.#exchanges.finish(exchange, new CallFailure(UNAVAILABLE, reason, true));
    }
  }

  #retire(reason: string): void {
    if (this.#state !== 'open') return;
    this.#state = 'retired';
    this.#reason = reason;
    this.#options.onClose(this.#failure(true));
    for (const exchange of this.#exchanges.takeWaiting()) this.#exchanges.finish(exchange, this.#failure(true));
    for (const exchange of [...this.#exchanges.underWay()]) {
      // A stream that only listens would never end by itself.
      if (!exchange.isAwaited) this.#exchanges.giveUp(exchange, this.#failureOf(exchange));
    }
    if (this.#exchanges.size === 0) this.#hangUp();
  }

  #hangUp(): void {
    this.#sayGoodbye(0, '');
    this.abandon(this.#reason);
  }

  /** Sends GOAWAY as far as the system takes it at once; does not wait for it to arrive. */
  #sayGoodbye(code: number, text: string): void {
    const payload = Buffer.alloc(8 + text.length);
    writeUint32(payload, 4, code);
    payload.write(text, 8, 'latin1');
    this.#outbox.frame(GOAWAY, NO_FLAGS, 0, payload);
    this.#outbox.flush();
  }

  #broken(error: Error): string {
    const { server } = this.#options;
    if (this.#state !== 'greeting') return `the connection to ${server} broke: ${error.message}`;
    return `cannot connect to ${server}: ${whyNoConnection(error)}`;
  }

  #hungUpOn(): string {
    const { server, isSecure } = this.#options;
    if (this.#state !== 'greeting') return `${server} closed the connection`;
    return `${server} closed the connection without a word of HTTP/2${isSecure ? '' : '; perhaps it wants TLS'}`;
  }

  #failureOf(exchange: Exchange): CallFailure {
    return this.#failure(exchange.id === 0 || !this.#outbox.hasLeft(exchange.position));
  }

  #failure(neverSent: boolean): CallFailure {
    return new CallFailure(UNAVAILABLE, this.#reason, neverSent, { cause: this.#cause });
  }
}
