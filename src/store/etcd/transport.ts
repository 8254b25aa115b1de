/**
 * gRPC in the narrow form that an etcd client needs: one request and one answer, or a stream of both. A connection goes
 * to one server; which server, and what to do when it is gone, is decided above.
 */
import type { SecureContextOptions } from 'node:tls';

export interface Address {
  readonly host: string;
  readonly port: number;
  /** Over TLS with these; without, in the clear. */
  readonly tls?: TlsOptions | undefined;
}

export interface TlsOptions extends Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'passphrase'> {
  /** The name that the server's certificate must have; by default the host. */
  readonly serverName?: string | undefined;
}

export interface Connection {
  /**
   * Calls back exactly once, with the answer's bytes or a `CallFailure`. Callbacks and no promise, so that a transaction
   * costs no more promises than its caller awaits. Returns what gives the call up: after that nothing is called back.
   */
  unary(call: Call, done: (message: Uint8Array) => void, failed: (failure: CallFailure) => void): () => void;
  /** Messages in order; then `ended`, exactly once, unless it was cancelled from here. */
  stream(call: Omit<Call, 'message'>, listener: StreamListener): OutgoingStream;
  /** Whether new calls may be made on it: not once it broke, or the server said that it goes away. */
  readonly isOpen: boolean;
  /** Ends everything that is still open on it. */
  close(): void;
}

export interface Call {
  /** `/etcdserverpb.KV/Txn` */
  readonly path: string;
  readonly message: Uint8Array;
  /** Further headers, such as the token of a user that has logged in; lower case. */
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

/** A call that came to nothing. */
export class CallFailure extends Error {
  /** gRPC's status code; 14 (unavailable) where the connection broke. */
  readonly status: number;
  /** Nothing of it left this process, or the server said that it did not look at it: it was certainly not applied. */
  readonly neverSent: boolean;

  constructor(status: number, message: string, neverSent: boolean, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'CallFailure';
    this.status = status;
    this.neverSent = neverSent;
  }
}

/** Resolves once the server has answered with its settings; rejects with a `CallFailure` that was never sent. */
export type Connect = (address: Address, options: ConnectOptions) => Promise<Connection>;

export interface ConnectOptions {
  readonly timeoutMs: number;
  /** The server is asked whether it is there when nothing was heard for this long; without an answer it is gone. */
  readonly pingMs: number;
  /** Once, when it is not open any more. */
  readonly onClose: (failure: CallFailure) => void;
  /** Nobody waits for it any more: it need not be tried to the end. Of no concern once there is a connection. */
  readonly signal?: AbortSignal | undefined;
}
