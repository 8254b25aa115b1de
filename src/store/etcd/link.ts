/** One connection in use, with the headers of every call and its two long-lived streams. */
import { type Address, type CallFailure, type Connection, serverOf } from '../../grpc/transport.ts';
import type { Continuity } from './continuity.ts';
import type { Keyspace } from './keyspace.ts';
import { RenewalStream } from './renewal-stream.ts';
import { WatchStream } from './watch-stream.ts';

/** With this header, a server that has lost its cluster refuses at once, and ends its streams, instead of letting us wait. */
const WITH_LEADER: Readonly<Record<string, string>> = { hasleader: 'true' };

const TRUSTED_TOKEN_MS = 60_000;

/** Calls that one server answers, or the leader through it, with that server's revision. All other answers have the newest. */
const MAY_LAG: ReadonlySet<string> = new Set([
  '/etcdserverpb.Lease/LeaseTimeToLive',
  '/etcdserverpb.Maintenance/Status',
]);

export class Link {
  readonly address: Address;
  readonly connection: Connection;
  readonly continuity: Continuity;
  readonly #keyspace: Keyspace;
  readonly #monotonic: () => number;
  headers = WITH_LEADER;
  /** When the server last answered anything. */
  heardAt: number;
  #tokenAt: number | undefined;
  #isLeft = false;
  #renewals: RenewalStream | undefined;
  #watches: WatchStream | undefined;

  constructor(
    address: Address,
    connection: Connection,
    continuity: Continuity,
    keyspace: Keyspace,
    monotonic: () => number,
  ) {
    this.address = address;
    this.connection = connection;
    this.continuity = continuity;
    this.#keyspace = keyspace;
    this.#monotonic = monotonic;
    this.heardAt = monotonic();
  }

  get isOpen(): boolean {
    return !this.#isLeft && this.connection.isOpen;
  }

  get where(): string {
    return serverOf(this.address);
  }

  set token(token: string) {
    this.headers = { ...WITH_LEADER, token };
    this.#tokenAt = this.#monotonic();
  }

  /** etcd forgets tokens that it has not seen for minutes, and then answers "permission denied" to a watch of their user. */
  get mayBeForgotten(): boolean {
    return this.#tokenAt !== undefined && this.#monotonic() - this.#tokenAt > TRUSTED_TOKEN_MS;
  }

  heard(): void {
    this.heardAt = this.#monotonic();
  }

  unary(
    path: string,
    message: Uint8Array,
    done: (message: Uint8Array) => void,
    failed: (failure: CallFailure) => void,
  ): () => void {
    const atLeast = MAY_LAG.has(path) ? 0 : this.continuity.newest;
    return this.connection.unary(
      { path, message, headers: this.headers },
      (answer) => {
        if (this.continuity.admits(answer, atLeast, this)) done(answer);
      },
      failed,
    );
  }

  get renewals(): RenewalStream {
    if (this.#renewals === undefined || this.#renewals.isOver) this.#renewals = new RenewalStream(this);
    return this.#renewals;
  }

  get watches(): WatchStream {
    if (this.#watches === undefined || this.#watches.isOver) this.#watches = new WatchStream(this, this.#keyspace);
    return this.#watches;
  }

  /** The open watch stream, for the watchdog. */
  get openWatches(): WatchStream | undefined {
    return this.#watches === undefined || this.#watches.isOver ? undefined : this.#watches;
  }

  /** Takes no new requests. Streams end at once, to be opened elsewhere; unary calls may still be answered. */
  leave(why: CallFailure): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.endStreams(why);
  }

  /** Ends the streams, which must be opened again: elsewhere, or with another token. */
  endStreams(why: CallFailure): void {
    this.#renewals?.end(why);
    this.#watches?.end(why);
  }
}
