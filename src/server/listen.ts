/** Serves on a port: limits connections, headers and time, and serves TLS from certificate files. */
import { getRequestListener } from '@hono/node-server';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
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
  /** The most connections at one time; the server closes any further one immediately. */
  readonly mostConnections?: number | undefined;
  /** How long a client may take to send the headers. */
  readonly headersMs?: number | undefined;
  /** How long a client may take to send a whole request. */
  readonly requestMs?: number | undefined;
  /** How long a connection may be idle between two requests. */
  readonly idleMs?: number | undefined;
  /** How long a client may leave the rest of an answer unread. */
  readonly unreadMs?: number | undefined;
  /** For how long, and up to how many bytes, the server discards the rest of a request that it has already answered. */
  readonly lingerMs?: number | undefined;
  readonly lingerBytes?: number | undefined;
  /** Called with the reason if new certificate files cannot be used; the server keeps the last good ones. */
  readonly onTrouble?: ((message: string) => void) | undefined;
  /** Called if a bug kept the server from sending an answer; it closes that connection. */
  readonly onFailed?: ((error: Error) => void) | undefined;
}

export interface Listening {
  /** The address that it listens on, such as `http://127.0.0.1:7300`. */
  readonly url: string;
  /** Stops accepting connections, ends streams and waiting requests, then closes the connections. */
  close(): Promise<void>;
}

export const MOST_CONNECTIONS = 2_000;
const MOST_HEADER_BYTES = 16 * 1024;
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
export const IDLE_MS = 65_000;
export const UNREAD_MS = 120_000;
export const LINGER_MS = 5_000;
export const LINGER_BYTES = 16 * 1024 * 1024;
/** How long running requests may take to end when the server stops. */
const LEAVING_MS = 3_000;
const LOOK_FOR_IDLE_MS = 20;
const LOOK_AT_FILES_MS = 1_000;

/** Keeps the adapter from replacing Node's own `Request` and `Response`. */
const PLAIN = { overrideGlobalObjects: false };

export async function listen(server: Server, options: ListenOptions): Promise<Listening> {
  const { headersMs = HEADERS_MS, requestMs = REQUEST_MS, idleMs = IDLE_MS, tls } = options;
  const { lingerMs: ms = LINGER_MS, lingerBytes: bytes = LINGER_BYTES } = options;
  const limits = {
    ...{ maxHeaderSize: MOST_HEADER_BYTES, headersTimeout: headersMs, requestTimeout: requestMs },
    ...{ keepAliveTimeout: idleMs, connectionsCheckingInterval: Math.min(1_000, headersMs) },
  };
  const listener = getRequestListener((request) => server.fetch(request), PLAIN);
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    outgoing.on('timeout', closeIfUnread);
    void answered(server, listener, incoming, outgoing, { ms, bytes }).catch((error: unknown) => {
      // A failed request must not stop the server, and the part of the answer that was sent cannot be recalled.
      outgoing.destroy();
      options.onFailed?.(error instanceof Error ? error : new Error(String(error)));
    });
  };
  const http =
    tls === undefined
      ? createServer(limits, answer)
      : createTlsServer({ ...limits, handshakeTimeout: headersMs, ...readFiles(tls) }, answer);
  http.setTimeout(options.unreadMs ?? UNREAD_MS);
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
      // A connection becomes idle once its last answer is sent.
      const idle = setInterval(() => http.closeIdleConnections(), LOOK_FOR_IDLE_MS);
      const limit = setTimeout(() => http.closeAllConnections(), LEAVING_MS);
      await closed;
      clearInterval(idle);
      clearTimeout(limit);
    },
  };
}

/** Closes a silent connection only if its client does not read: a request that waits is silent too. */
function closeIfUnread(socket: Socket): void {
  if (socket.writableLength > 0) socket.destroy();
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

/** Answers operations without making a `Request` and a `Response`, which would cost more than most operations. */
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
 * Answers a request while its client is still sending. Closing at once would reset the connection, and the client would lose the
 * answer: many clients read it only after they have sent everything. So the server discards the rest, up to a limit.
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

/** Polls the files instead of watching their directory, because a renewal may replace a link that leads to them. */
function reloading(http: HttpsServer, tls: TlsFiles, onTrouble: ListenOptions['onTrouble']): () => void {
  const reload = (): void => {
    try {
      http.setSecureContext(readFiles(tls));
    } catch (error) {
      // The two files change one after the other; the second change calls this again.
      onTrouble?.((error as Error).message);
    }
  };
  const files = [tls.cert, tls.key];
  for (const file of files) watchFile(file, { interval: LOOK_AT_FILES_MS, persistent: false }, reload);
  return () => {
    for (const file of files) unwatchFile(file, reload);
  };
}
