/**
 * The connection to one server that callers use. Calls and long-lived streams share the first HTTP/2 connection. If the
 * server accepts only a few exchanges at once, streams would leave no place for calls; then each stream gets a connection
 * of its own, opened and closed with it.
 */
import { type Call, CallFailure, type Connection, type OutgoingStream, type StreamListener } from './transport.ts';
import type { Http2Connection } from './http2/connection.ts';
import { UNAVAILABLE } from './status.ts';

/** Opens a further connection to the same server. */
export type Another = (signal: AbortSignal) => Promise<Http2Connection>;

/** Places for a few streams and a few calls. If the server offers fewer, streams get connections of their own. */
const ENOUGH = 8;

/** HTTP/2 lets a server accept nothing for a while. The caller tries another server, and this one again later. */
export function takesNothing(server: string): string {
  return `${server} takes no calls: its setting MAX_CONCURRENT_STREAMS is 0`;
}

export class SharedConnection implements Connection {
  readonly #first: Http2Connection;
  readonly #server: string;
  readonly #another: Another;
  readonly #branches = new Set<Branch>();

  constructor(first: Http2Connection, server: string, another: Another) {
    this.#first = first;
    this.#server = server;
    this.#another = another;
  }

  get isOpen(): boolean {
    return this.#first.isOpen;
  }

  unary(call: Call, done: (message: Uint8Array) => void, failed: (failure: CallFailure) => void): () => void {
    if (this.#first.maxConcurrent > 0) return this.#first.unary(call, done, failed);
    let isGivenUp = false;
    process.nextTick(() => isGivenUp || failed(new CallFailure(UNAVAILABLE, takesNothing(this.#server), true)));
    return () => (isGivenUp = true);
  }

  stream(call: Omit<Call, 'message'>, listener: StreamListener): OutgoingStream {
    if (this.#first.maxConcurrent >= ENOUGH || !this.#first.isOpen) return this.#first.stream(call, listener);
    const branch: Branch = new Branch(this.#another, call, listener, () => this.#branches.delete(branch));
    this.#branches.add(branch);
    return branch;
  }

  close(): void {
    this.#first.close();
    this.firstClosed(new CallFailure(UNAVAILABLE, 'the connection was closed', false));
  }

  /** Ends the streams with the first connection, so that the caller moves calls and streams to the next server together. */
  firstClosed(why: CallFailure): void {
    for (const branch of [...this.#branches]) branch.end(why);
  }
}

/** One stream on its own connection. */
class Branch implements OutgoingStream {
  readonly #listener: StreamListener;
  readonly #onOver: () => void;
  readonly #closing = new AbortController();
  #connection: Http2Connection | undefined;
  #stream: OutgoingStream | undefined;
  /** Messages sent before the connection opened. */
  #unsent: Uint8Array[] = [];
  #isOver = false;

  constructor(another: Another, call: Omit<Call, 'message'>, listener: StreamListener, onOver: () => void) {
    this.#listener = listener;
    this.#onOver = onOver;
    another(this.#closing.signal).then(
      (connection) => this.#opened(connection, call),
      (error: unknown) => this.end(error as CallFailure),
    );
  }

  send(message: Uint8Array): void {
    if (this.#stream !== undefined) this.#stream.send(message);
    else if (!this.#isOver) this.#unsent.push(message);
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
    this.#unsent = [];
    this.#stream?.cancel();
    this.#connection?.close();
    this.#closing.abort();
  }

  end(why: CallFailure): void {
    if (this.#isOver) return;
    this.cancel();
    this.#listener.ended(why);
  }

  #opened(connection: Http2Connection, call: Omit<Call, 'message'>): void {
    if (this.#isOver) return connection.close();
    this.#connection = connection;
    this.#stream = connection.stream(call, {
      message: (message) => this.#isOver || this.#listener.message(message),
      ended: (failure) => this.end(failure),
    });
    for (const message of this.#unsent.splice(0)) this.#stream.send(message);
  }
}
