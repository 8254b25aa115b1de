/** The server on a port: limits of connections, headers and time, and TLS by certificate files. */
import { getRequestListener } from '@hono/node-server';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createSecureContext } from 'node:tls';
import { Failure } from '../failure.ts';
import type { Server } from './app.ts';
import { NodeAsked } from './asked.ts';

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

export interface ListenOptions {
  readonly port: number;
  readonly host: string;
  readonly tls?: TlsFiles | undefined;
  /** The most connections at once; more are closed at once. */
  readonly mostConnections?: number | undefined;
  /** How long a client may take to send the headers. */
  readonly headersMs?: number | undefined;
  /** How long a client may take to send a whole request. */
  readonly requestMs?: number | undefined;
  /** How long a connection may be idle between two requests. */
  readonly idleMs?: number | undefined;
  /** How long, and up to how many bytes, the server reads and discards the rest of a request that it has answered already. */
  readonly lingerMs?: number | undefined;
  readonly lingerBytes?: number | undefined;
  /** Certificate files that cannot be used are reported, and the last good ones stay in use. */
  readonly onTrouble?: ((message: string) => void) | undefined;
  /** A request whose answer could not be sent, because of a bug; its connection is closed. */
  readonly onFailed?: ((error: Error) => void) | undefined;
}

export interface Listening {
  /** Where it listens, such as `http://127.0.0.1:7300`. */
  readonly url: string;
  /** Accepts no more connections, ends streams and waits, and then the connections. */
  close(): Promise<void>;
}

export const MOST_CONNECTIONS = 2_000;
const MOST_HEADER_BYTES = 16 * 1024;
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
export const IDLE_MS = 65_000;
export const LINGER_MS = 5_000;
export const LINGER_BYTES = 16 * 1024 * 1024;
/** How long requests that are under way have to end when the server stops. */
const LEAVING_MS = 3_000;
const LOOK_FOR_IDLE_MS = 20;
const LOOK_AT_FILES_MS = 1_000;

/** The `Request` and `Response` of Node stay as they are. */
const PLAIN = { overrideGlobalObjects: false };

export async function listen(server: Server, options: ListenOptions): Promise<Listening> {
  const { headersMs = HEADERS_MS, requestMs = REQUEST_MS, idleMs = IDLE_MS, tls } = options;
  const { lingerMs: ms = LINGER_MS, lingerBytes: bytes = LINGER_BYTES } = options;
  const limits = {
    ...{ maxHeaderSize: MOST_HEADER_BYTES, headersTimeout: headersMs, requestTimeout: requestMs },
    ...{ keepAliveTimeout: idleMs, connectionsCheckingInterval: Math.min(1_000, headersMs) },
  };
  const listener = getRequestListener((request) => server.fetch(request), PLAIN);
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void =>
    void answered(server, listener, incoming, outgoing, { ms, bytes }).catch((error: unknown) => {
      // One request must not end the server; what was sent of its answer cannot be taken back.
      outgoing.destroy();
      options.onFailed?.(error instanceof Error ? error : new Error(String(error)));
    });
  const http =
    tls === undefined
      ? createServer(limits, answer)
      : createTlsServer({ ...limits, handshakeTimeout: headersMs, ...readFiles(tls) }, answer);
  http.maxConnections = options.mostConnections ?? MOST_CONNECTIONS;
  await listening(http, options);
  const unwatch = tls === undefined ? undefined : reloading(http as HttpsServer, tls, options.onTrouble);
  const { address, family, port } = http.address() as AddressInfo;
  const host = family === 'IPv6' ? `[${address}]` : address;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${host}:${port}`,
    async close() {
      unwatch?.();
      server.stop();
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      // A connection is idle once its last answer is sent.
      const idle = setInterval(() => http.closeIdleConnections(), LOOK_FOR_IDLE_MS);
      const limit = setTimeout(() => http.closeAllConnections(), LEAVING_MS);
      await closed;
      clearInterval(idle);
      clearTimeout(limit);
    },
  };
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

/** Operations are answered without a `Request` and a `Response`, which would cost more than most of them. */
async function answered(
  server: Server,
  otherwise: Listener,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  most: Linger,
): Promise<void> {
  const answer = await server.answer(new NodeAsked(incoming, outgoing));
  if (answer === undefined) return otherwise(incoming, outgoing);
  if (answer instanceof Response) return getRequestListener(() => answer, PLAIN)(incoming, outgoing);
  const text = JSON.stringify(answer.body);
  outgoing.writeHead(answer.status, { ...answer.headers, 'Content-Length': Buffer.byteLength(text) });
  if (incoming.complete) outgoing.end(text);
  else linger(incoming, outgoing, text, most);
}

interface Linger {
  readonly ms: number;
  readonly bytes: number;
}

/**
 * Answers a request that its client still sends. To close at once would reset the connection, and the client would lose the
 * answer: many read it only after they have sent everything. So the server reads and discards the rest, up to a limit.
 */
function linger(incoming: IncomingMessage, outgoing: ServerResponse, text: string, most: Linger): void {
  outgoing.write(text);
  let left = most.bytes;
  const limit = setTimeout(() => incoming.socket.destroy(), most.ms);
  incoming.on('data', (chunk: Uint8Array) => {
    left -= chunk.length;
    if (left < 0) incoming.socket.destroy();
  });
  incoming.once('end', () => outgoing.end());
  incoming.once('error', () => undefined);
  incoming.once('close', () => clearTimeout(limit));
}

function listening(http: HttpServer | HttpsServer, { port, host }: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      const next = error.code === 'EADDRINUSE' ? '; choose another one with --port, or 0 for any' : '';
      reject(
        new Failure('unavailable', `cannot listen on ${host}, port ${port}: ${error.message}${next}`, { cause: error }),
      );
    });
    http.listen(port, host, () => resolve());
  });
}

function readFiles({ cert, key }: TlsFiles): { readonly cert: Buffer; readonly key: Buffer } {
  try {
    const files = { cert: readFileSync(cert), key: readFileSync(key) };
    createSecureContext(files);
    return files;
  } catch (error) {
    throw new Failure('invalid', `the certificate cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

/** Looks at the files themselves, and not at their directory: renewals replace them, or a link to them. */
function reloading(http: HttpsServer, tls: TlsFiles, onTrouble: ListenOptions['onTrouble']): () => void {
  const reload = (): void => {
    try {
      http.setSecureContext(readFiles(tls));
    } catch (error) {
      // The two files change one after the other; the second change comes here too.
      onTrouble?.((error as Error).message);
    }
  };
  const files = [tls.cert, tls.key];
  for (const file of files) watchFile(file, { interval: LOOK_AT_FILES_MS, persistent: false }, reload);
  return () => {
    for (const file of files) unwatchFile(file, reload);
  };
}
