/** Opens a store on etcd by its addresses. */
import { type Clock, systemClock } from '../../clock.ts';
import { Failure, shown } from '../../failure.ts';
import { connect as connectOverHttp2 } from '../../grpc/connect.ts';
import type { Connect, TlsOptions } from '../../grpc/transport.ts';
import { Calls } from './calls.ts';
import { Continuity } from './continuity.ts';
import { keyspace } from './keyspace.ts';
import { Login } from './login.ts';
import { EtcdStore } from './store.ts';
import { withoutPassword } from './url.ts';
import { Watchdog } from './watchdog.ts';

/** A server of an etcd. */
export interface Endpoint {
  /** Its name or address. */
  readonly host: string;
  /** Its port. */
  readonly port: number;
}

/** How to reach an etcd. */
export interface EtcdOptions {
  /** The servers of one cluster. One of them is used, and if it fails, another. */
  readonly endpoints: readonly Endpoint[];
  /** Put in front of signalbox's own keys; `signalbox/` by default. With '' every key is taken as it is. */
  readonly prefix?: string | undefined;
  /** Put in front of the keys that are meant for all programs (tasks and events); none by default. */
  readonly plainPrefix?: string | undefined;
  /** Use TLS, with these settings; without them, connections are in the clear. */
  readonly tls?: TlsOptions | undefined;
  /** The user, if etcd asks for one. */
  readonly user?: string | undefined;
  /** The password of the user. */
  readonly password?: string | undefined;
  /**
   * How long a call may take, including connecting and retries; 4 s by default. That is less than `open` allows, so
   * that the engine reports the error: it knows what went wrong.
   */
  readonly requestTimeoutMs?: number | undefined;
  /** Whether signalbox may compact the history of the whole etcd, which other programs may need; not by default. */
  readonly compacts?: boolean | undefined;
  /** Where time comes from; the system, if not given. */
  readonly clock?: Clock | undefined;
  /** The transport; our own HTTP/2 by default. */
  readonly connect?: Connect | undefined;
  /** Between 0 and 1: decides which server is used first, and spreads pauses. */
  readonly random?: (() => number) | undefined;
}

export const DEFAULT_PREFIX = 'signalbox/';

/** Connects at the first request. */
export function openEtcd(options: EtcdOptions): EtcdStore {
  const { endpoints, prefix = DEFAULT_PREFIX, plainPrefix = '', tls, user, password = '' } = options;
  const { requestTimeoutMs = 4000, clock = systemClock, connect = connectOverHttp2, random = Math.random } = options;
  checkEndpoints(endpoints);
  if (!(Number.isFinite(requestTimeoutMs) && requestTimeoutMs > 0)) {
    const told = `requestTimeoutMs is ${shown(requestTimeoutMs)}; expected a number of milliseconds above zero`;
    throw new Failure('invalid', told);
  }
  const keys = keyspace(prefix, plainPrefix);
  const login = new Login(user === undefined ? undefined : { user, password });
  const continuity = new Continuity();
  const calls = new Calls(
    {
      addresses: endpoints.map(({ host, port }) => ({ host, port, tls })),
      connect,
      clock,
      keyspace: keys,
      continuity,
      requestTimeoutMs,
      random,
      logIn: (connection) => login.token(connection),
    },
    (link) => login.renew(link),
  );
  const watchdog = new Watchdog(calls.endpoints, clock, requestTimeoutMs);
  return new EtcdStore(calls, keys, continuity, watchdog, options.compacts !== true);
}

function checkEndpoints(endpoints: readonly unknown[]): void {
  if (!Array.isArray(endpoints) || endpoints.length === 0)
    throw new Failure('invalid', `the endpoints are ${named(endpoints)}; expected a list of { host, port }, not empty`);
  for (const endpoint of endpoints) {
    const { host, port } = (endpoint ?? {}) as Partial<Record<keyof Endpoint, unknown>>;
    if (typeof host === 'string' && host !== '' && isPort(port)) continue;
    const told = `an endpoint is ${named(endpoint)}; expected { host, port } with a port from 1 to 65535`;
    throw new Failure('invalid', `${told} (for a URL, use openEtcdUrl)`);
  }
}

/** Hides the password, if the value is a URL. */
function named(given: unknown): string {
  return shown(typeof given === 'string' ? withoutPassword(given) : given);
}

function isPort(port: unknown): boolean {
  return Number.isInteger(port) && (port as number) > 0 && (port as number) < 65_536;
}
