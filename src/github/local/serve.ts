/** The local GitHub on a socket: TCP on the loopback, or a unix socket, which `gh` can use too. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pause } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { type Fault, LocalGitHub, type LocalGitHubOptions } from './local-github.ts';

export interface ServeOptions extends LocalGitHubOptions {
  /** 0 takes any free port. */
  readonly port?: number;
  /** The path of a unix socket, instead of a port. */
  readonly socket?: string;
  /** A delay for each request. */
  readonly delayMs?: number;
}

export interface LocalServer extends AsyncDisposable {
  readonly github: LocalGitHub;
  readonly url: string;
  close(): Promise<void>;
}

const LARGEST_BODY = 1024 * 1024;

export async function serveLocalGitHub(options: ServeOptions = {}): Promise<LocalServer> {
  const github = new LocalGitHub(options);
  const server = createServer((request, response) => {
    answer(github, request, response, options.delayMs ?? 0).catch(() => response.destroy());
  });
  if (options.socket === undefined) server.listen(options.port ?? 0, '127.0.0.1');
  else server.listen(options.socket);
  try {
    await once(server, 'listening');
  } catch (cause) {
    throw new Failure('unavailable', `the local GitHub cannot listen: ${(cause as Error).message}`, { cause });
  }
  const address = server.address();
  if (options.socket === undefined) github.url = `http://127.0.0.1:${(address as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return { github, url: github.url, close, [Symbol.asyncDispose]: close };
}

async function answer(
  github: LocalGitHub,
  request: IncomingMessage,
  response: ServerResponse,
  delayMs: number,
): Promise<void> {
  const text = await textOf(request);
  if (delayMs > 0) await pause(delayMs);
  const { method = 'GET', url = '/' } = request;
  if (method === 'POST' && url === '/_local/faults') {
    github.fault(JSON.parse(text) as Fault);
    return void response.writeHead(204).end();
  }
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  const body = text === '' ? {} : { body: JSON.parse(text) as unknown };
  const reply = github.handle({ method, path: url, headers, ...body });
  if (reply === undefined) return void request.socket.destroy();
  response.sendDate = false;
  response.writeHead(reply.status, reply.headers);
  response.end(reply.body === undefined ? undefined : JSON.stringify(reply.body));
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  request.setEncoding('utf8');
  for await (const chunk of request) {
    text += chunk as string;
    if (text.length > LARGEST_BODY) throw new Failure('invalid', 'the request is too long');
  }
  return text;
}
