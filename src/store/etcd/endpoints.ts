/**
 * Keeps a link to one server of the cluster. There is only one link at a time, so that this process never reads older
 * data than it has read before. When the link breaks or is left, it tries the next server; after trying all, it pauses
 * for a moment.
 */
import type { Clock, Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { PERMISSION_DENIED, UNAUTHENTICATED, UNAVAILABLE } from '../../grpc/status.ts';
import { type Address, CallFailure, type Connect, type Connection, serverOf } from '../../grpc/transport.ts';
import type { Continuity } from './continuity.ts';
import type { Keyspace } from './keyspace.ts';
import { Link } from './link.ts';
import { withRemedy } from './remedies.ts';

export interface EndpointOptions {
  readonly addresses: readonly Address[];
  readonly connect: Connect;
  readonly clock: Clock;
  readonly keyspace: Keyspace;
  readonly continuity: Continuity;
  readonly requestTimeoutMs: number;
  /** Between 0 and 1. */
  readonly random: () => number;
  /** Logs in on a new connection, or throws. */
  readonly logIn: (connection: Connection) => Promise<string | undefined>;
}

export interface EndpointListener {
  /** Whether a request waits for a link; if none does, no link is sought. */
  isWanted(): boolean;
  linked(link: Link): void;
  /** The link takes no new requests; requests that may be repeated should be sent again. */
  unlinked(link: Link, why: CallFailure): void;
  /** Every server refuses us, and a retry would not help. */
  refused(failure: Failure): void;
}

/** etcd treats more frequent pings as an attack. */
const PING_MS = 6000;
const SHORTEST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

export class Endpoints {
  readonly #options: EndpointOptions;
  readonly #listener: EndpointListener;
  readonly #closing = new AbortController();
  #next: number;
  #link: Link | undefined;
  #isSeeking = false;
  /** The connection on which we are logging in. */
  #fresh: Connection | undefined;
  /** Left links: they take no new requests, and close when their timer rings. */
  readonly #left = new Map<Link, Timer>();
  /** Consecutive failures to connect, or links that broke before they answered anything. */
  #failures = 0;
  /** The last failure of each server, since one of them last answered. */
  readonly #troubles = new Map<Address, CallFailure>();

  constructor(options: EndpointOptions, listener: EndpointListener) {
    this.#options = options;
    this.#listener = listener;
    // Random, so that not all processes use the same server.
    this.#next = Math.floor(options.random() * options.addresses.length);
  }

  get link(): Link | undefined {
    return this.#link?.isOpen === true ? this.#link : undefined;
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Why there is no link: the failures of every server that was tried. */
  get trouble(): CallFailure | undefined {
    const troubles = [...this.#troubles.values()];
    const last = troubles.at(-1);
    if (last === undefined || troubles.length === 1) return last;
    return new CallFailure(last.status, troubles.map(({ message }) => message).join('; '), true, { cause: last });
  }

  get hasOthers(): boolean {
    return this.#options.addresses.length > 1;
  }

  /** Called when a request waits for a link. */
  seek(): void {
    if (this.#isSeeking || this.#isClosed || this.#link !== undefined) return;
    this.#isSeeking = true;
    void this.#seek();
  }

  async #seek(): Promise<void> {
    const { addresses, clock } = this.#options;
    const refusals = new Set<Address>();
    while (this.#link === undefined && !this.#isClosed && this.#listener.isWanted()) {
      if (this.#failures >= addresses.length) {
        await this.#pause(clock);
        if (this.#isClosed || !this.#listener.isWanted()) break;
      }
      const address = addresses[this.#next] as Address;
      try {
        const link = await this.#connect(address);
        if (this.#isClosed) link.connection.close();
        else if (link.isOpen) this.#link = link;
      } catch (error) {
        this.#failures += 1;
        this.#next = (this.#next + 1) % addresses.length;
        const failure = asCallFailure(error);
        const trouble = this.#note(address, failure);
        if (isRefusal(failure)) refusals.add(address);
        else refusals.delete(address);
        if (refusals.size === addresses.length) {
          this.#listener.refused(new Failure('forbidden', trouble.message, { cause: error }));
        }
      }
    }
    // Set before the listener is called, which may seek again.
    this.#isSeeking = false;
    if (this.#link !== undefined) this.#listener.linked(this.#link);
  }

  #note(address: Address, failure: CallFailure): CallFailure {
    const where = serverOf(address);
    const told = withRemedy(failure.message.includes(where) ? failure.message : `${where}: ${failure.message}`);
    const trouble = new CallFailure(failure.status, told, true, { cause: failure });
    // Deleted first, so that the newest failure is the last.
    this.#troubles.delete(address);
    this.#troubles.set(address, trouble);
    return trouble;
  }

  async #connect(address: Address): Promise<Link> {
    const { connect, clock, continuity, keyspace, logIn } = this.#options;
    let link: Link | undefined;
    let early: CallFailure | undefined;
    const connection = await connect(address, {
      clock,
      timeoutMs: this.#connectMs(),
      pingMs: PING_MS,
      onClose: (failure) => {
        early = failure;
        if (link !== undefined) this.#lost(link, failure);
      },
      signal: this.#closing.signal,
    });
    this.#fresh = connection;
    try {
      const token = await this.#inTime(logIn(connection), clock);
      if (early !== undefined) throw early;
      link = new Link(address, connection, continuity, keyspace, () => clock.monotonic());
      if (token !== undefined) link.token = token;
      return link;
    } catch (error) {
      connection.close();
      throw error;
    } finally {
      this.#fresh = undefined;
    }
  }

  #inTime<T>(answer: Promise<T>, clock: Clock): Promise<T> {
    return new Promise((resolve, reject) => {
      const silent = new CallFailure(UNAVAILABLE, 'no answer to the login', true);
      const timer = clock.timer(this.#connectMs(), () => reject(silent));
      void answer.finally(() => timer.cancel()).then(resolve, reject);
    });
  }

  /** Short enough to try the other servers before requests time out. It grows with each round, for slow networks. */
  #connectMs(): number {
    const { addresses, requestTimeoutMs } = this.#options;
    const rounds = Math.floor(this.#failures / addresses.length);
    return Math.min((requestTimeoutMs / (addresses.length + 1)) * 2 ** rounds, 4 * requestTimeoutMs);
  }

  async #pause(clock: Clock): Promise<void> {
    const rounds = Math.floor(this.#failures / this.#options.addresses.length);
    const longest = Math.min(SHORTEST_PAUSE_MS * 2 ** rounds, LONGEST_PAUSE_MS);
    // Random, or a whole fleet reconnects at the same moment.
    await new Promise<void>((resolve) => clock.timer(longest * (0.5 + this.#options.random() / 2), resolve));
  }

  /** The link has answered, so earlier failures do not count any more. */
  answered(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#troubles.clear();
  }

  /** Leaves a link that is connected but useless: the server is silent, or has lost its cluster. */
  leave(link: Link, why: CallFailure): void {
    if (this.#link !== link) return;
    // Requests under way keep their full time.
    const timer = this.#options.clock.timer(this.#options.requestTimeoutMs, () => link.connection.close());
    this.#left.set(link, timer);
    this.#lost(link, why);
  }

  #lost(link: Link, why: CallFailure): void {
    if (this.#link === link) {
      this.#link = undefined;
      this.#failures += 1;
      this.#note(link.address, why);
      this.#next = (this.#next + 1) % this.#options.addresses.length;
    } else {
      this.#left.get(link)?.cancel();
      this.#left.delete(link);
    }
    link.leave(why);
    this.#listener.unlinked(link, why);
    if (this.#listener.isWanted()) this.seek();
  }

  close(): void {
    this.#closing.abort();
    const link = this.#link;
    this.#link = undefined;
    link?.connection.close();
    this.#fresh?.close();
    for (const [left, timer] of this.#left) {
      timer.cancel();
      left.connection.close();
    }
    this.#left.clear();
  }
}

function asCallFailure(error: unknown): CallFailure {
  return error instanceof CallFailure ? error : new CallFailure(UNAVAILABLE, String(error), true, { cause: error });
}

/** A wrong certificate or an unknown user: a retry would not help. */
function isRefusal(failure: CallFailure): boolean {
  if (failure.status === UNAUTHENTICATED || failure.status === PERMISSION_DENIED) return true;
  // By the code alone: the message contains the server's name, which may be anything.
  const code = (failure.cause as { readonly code?: unknown } | undefined)?.code;
  return /CERT|ALTNAME|UNABLE_TO_VERIFY|UNKNOWN_CA/.test(String(code));
}
