/** Opens a connection to one server, in the clear or over TLS. Its failure says how far it got and what was wrong. */
import { connect as connectSocket, isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls, type PeerCertificate } from 'node:tls';
import {
  type Address,
  CallFailure,
  type Connect,
  type ConnectOptions,
  serverOf,
  type TlsOptions,
} from './transport.ts';
import { Http2Connection } from './http2/connection.ts';
import { UNAVAILABLE } from './status.ts';
import { takesNothing, SharedConnection } from './shared-connection.ts';

export const connect: Connect = async (address, options) => {
  let shared: SharedConnection | undefined;
  const onClose = (failure: CallFailure): void => {
    shared?.firstClosed(failure);
    options.onClose(failure);
  };
  const first = await open(address, { ...options, onClose });
  shared = new SharedConnection(first, serverOf(address), (signal) =>
    open(address, { ...options, onClose: () => undefined, signal }),
  );
  return shared;
};

const open = (
  address: Address,
  { clock, timeoutMs, pingMs, onClose, signal }: ConnectOptions,
): Promise<Http2Connection> =>
  new Promise((resolve, reject) => {
    const server = serverOf(address);
    const socket = openSocket(address, server);
    let progress = 'could not be reached';
    socket.once('connect', () => {
      const protocol = address.tls === undefined ? 'HTTP/2' : 'TLS';
      progress = `accepted the connection, but did not answer in ${protocol}`;
    });
    socket.once('secureConnect', () => (progress = 'accepted the connection, but did not answer in HTTP/2'));

    const giveUp = (): void => connection.abandon(`the connection to ${server} was given up`);
    const settled = (): void => {
      deadline.cancel();
      signal?.removeEventListener('abort', giveUp);
    };
    let isOpen = false;
    const connection = new Http2Connection(socket, {
      server,
      clock,
      isSecure: address.tls !== undefined,
      pingMs,
      onOpen: () => {
        if (connection.maxConcurrent === 0) return connection.abandon(takesNothing(server));
        isOpen = true;
        settled();
        resolve(connection);
      },
      onClose: (failure) => {
        settled();
        if (isOpen) onClose(failure);
        else reject(failure);
      },
    });
    const deadline = clock.timer(timeoutMs, () => connection.abandon(`${server} ${progress} within ${timeoutMs} ms`));
    signal?.addEventListener('abort', giveUp);
  });

/** Throws where an attempt is pointless: an unreadable key, an impossible port. */
function openSocket({ host, port, tls }: Address, server: string): Socket {
  try {
    if (tls === undefined) return connectSocket({ host, port, noDelay: true });
    return connectTls({ host, port, ...tlsOptions(host, tls) }).setNoDelay(true);
  } catch (error) {
    throw new CallFailure(UNAVAILABLE, `cannot connect to ${server}: ${(error as Error).message}`, true, {
      cause: error,
    });
  }
}

function tlsOptions(host: string, { serverName = host, ...keys }: TlsOptions) {
  return {
    ...keys,
    ALPNProtocols: ['h2'],
    // A server with several certificates chooses by this name. TLS does not allow an address here.
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(serverName, certificate),
  };
}
