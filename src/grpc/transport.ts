/**
 * The gRPC client's interface: unary calls and streams over a connection to one server. The caller chooses the server,
 * and decides what to do when it is gone.
 */
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '../clock.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
  /** Connects over TLS with these options; without them, in the clear. */
  readonly tls?: TlsOptions | undefined;
}

/** `127.0.0.1:2379`, for people. */
export function serverOf({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** How to use TLS. */
export interface TlsOptions extends Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'passphrase'> {
  /** The name that the server's certificate must carry; the host by default. */
  readonly serverName?: string | undefined;
}

export interface Connection {
  /**
   * Calls back exactly once, with the answer's bytes or a `CallFailure`. It takes callbacks and makes no promise, so that
   * a transaction costs no more promises than its caller awaits. Returns a function that cancels the call: after that
   * neither callback is called.
   */
  unary(call: Call, done: (message: Uint8Array) => void, failed: (failure: CallFailure) => void): () => void;
  /** Delivers messages in order, then calls `ended` exactly once, unless the caller cancelled the stream. */
  stream(call: Omit<Call, 'message'>, listener: StreamListener): OutgoingStream;
  /** Whether it takes new calls. It does not once it broke, or once the server announced that it is going away. */
  readonly isOpen: boolean;
  /** Fails every call and stream that is still open. */
  close(): void;
}

export interface Call {
  /** `/package.Service/Method` */
  readonly path: string;
  readonly message: Uint8Array;
  /** Further headers in lower case, such as the token of a logged-in user. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface StreamListener {
  message(message: Uint8Array): void;
  ended(failure: CallFailure): void;
}

export interface OutgoingStream {
  send(message: Uint8Array): void;
  cancel(): void;
}

/** Thrown, or called back, when a call failed. */
export class CallFailure extends Error {
  /** gRPC's status code (see status.ts); UNAVAILABLE where the connection broke. */
  readonly status: number;
  /** The server certainly did not apply the call: no byte of it left this process, or the server said that it ignored it. */
  readonly neverSent: boolean;

  constructor(status: number, message: string, neverSent: boolean, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'CallFailure';
    this.status = status;
    this.neverSent = neverSent;
  }
}

/** Resolves once the server has sent its settings; rejects with a `CallFailure` whose `neverSent` is true. */
export type Connect = (address: Address, options: ConnectOptions) => Promise<Connection>;

export interface ConnectOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Pings the server after this much silence. A server that does not answer for as long again counts as gone. */
  readonly pingMs: number;
  /** Called once, when the connection stops being open. */
  readonly onClose: (failure: CallFailure) => void;
  /** Gives up connecting. It has no effect once the connection is open. */
  readonly signal?: AbortSignal | undefined;
}
