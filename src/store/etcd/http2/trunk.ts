/**
 * A connection to one server as its users see it. Calls go over the first one. The two long-lived streams (watches, and
 * renewals of leases) do too, unless the server takes so few at once that they would leave no place for calls: then each
 * stream has a connection of its own, opened when it is asked for and closed with it.
 */
import { type Call, CallFailure, type Connection, type OutgoingStream, type StreamListener } from '../transport.ts';
import type { Http2Connection } from './connection.ts';
import { UNAVAILABLE } from './grpc-status.ts';

/** Opens a further connection to the same server. */
export type Another = (signal: AbortSignal) => Promise<Http2Connection>;

/** Two for the streams, and a few for calls. With fewer, streams go elsewhere. */
const ENOUGH = 8;

/** HTTP/2 allows it for a moment. Another server may do better, and this one is asked again. */
export function takesNothing(server: string): string {
  return `${server} takes no calls: its setting MAX_CONCURRENT_STREAMS is 0`;
}

export class Trunk implements Connection {
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

  /** Streams go with the calls: both are then asked of the next server. */
  firstClosed(why: CallFailure): void {
    for (const branch of [...this.#branches]) branch.end(why);
  }
}

/** One stream, and the connection that it has to itself. */
class Branch implements OutgoingStream {
  readonly #listener: StreamListener;
  readonly #onOver: () => void;
  readonly #closing = new AbortController();
  #connection: Http2Connection | undefined;
  #stream: OutgoingStream | undefined;
  /** What was said before there was a connection. */
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
