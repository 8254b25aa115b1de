/** Logs in to etcd: exchanges user and password for a token, which goes with every call. */
import { UNAUTHENTICATED, UNAVAILABLE } from '../../grpc/status.ts';
import { CallFailure, type Connection } from '../../grpc/transport.ts';
import type { Link } from './link.ts';
import { authenticateMessage, tokenOf } from './wire/server.ts';

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

export class Login {
  readonly #credentials: Credentials | undefined;
  readonly #renewals = new WeakMap<Link, Promise<void>>();

  constructor(credentials: Credentials | undefined) {
    this.#credentials = credentials;
  }

  /** A token; undefined if the server needs none. */
  token(connection: Connection): Promise<string | undefined> {
    const credentials = this.#credentials;
    if (credentials === undefined) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const message = authenticateMessage(credentials.user, credentials.password);
      connection.unary(
        { path: '/etcdserverpb.Auth/Authenticate', message },
        (answer) => resolve(tokenOf(answer)),
        (failure) => {
          if (/authentication is not enabled/.test(failure.message)) resolve(undefined);
          else reject(asRefusal(failure));
        },
      );
    });
  }

  /** Logs in again once for all calls that find the token expired at the same time. */
  renew(link: Link): Promise<void> {
    let renewal = this.#renewals.get(link);
    if (renewal === undefined) {
      renewal = this.#renew(link).finally(() => this.#renewals.delete(link));
      this.#renewals.set(link, renewal);
    }
    return renewal;
  }

  async #renew(link: Link): Promise<void> {
    if (this.#credentials === undefined)
      throw new CallFailure(
        UNAUTHENTICATED,
        'this etcd requires a user and a password, or a certificate: set them in the URL of the store',
        false,
      );
    const token = await this.token(link.connection);
    if (token !== undefined) link.token = token;
    // The streams were opened with the old token.
    link.endStreams(new CallFailure(UNAVAILABLE, 'opened again with a new token', false));
  }
}

/** etcd calls a wrong password an invalid argument. */
function asRefusal(failure: CallFailure): CallFailure {
  if (!/authentication failed|user name|password/.test(failure.message)) return failure;
  return new CallFailure(
    UNAUTHENTICATED,
    `${failure.message} (check the user in the store's URL, and its password)`,
    false,
    {
      cause: failure,
    },
  );
}
