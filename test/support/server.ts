/** A server without a port, and what tests ask it. */
import { open, type Role, type Signalbox } from 'signalbox';
import { type Server, serverOf, type ServerOptions } from '../../src/server/index.ts';

export interface Asked {
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Told {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever comes
  readonly body: any;
  readonly headers: Headers;
}

export const LOCAL = 'sbx_local_of-the-tests';

export class TestServer {
  readonly box: Signalbox;
  readonly server: Server;

  constructor(box: Signalbox, options: ServerOptions = {}) {
    this.box = box;
    this.server = serverOf(box, { localToken: LOCAL, ...options });
  }

  static async on(url = 'memory:', options: ServerOptions = {}): Promise<TestServer> {
    return new TestServer(await open(url), options);
  }

  fetch(method: string, path: string, body?: unknown, { token = LOCAL, headers = {} }: Asked = {}): Promise<Response> {
    const init: RequestInit = {
      method,
      headers: {
        ...(token !== '' && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    };
    return this.server.fetch(new Request(`http://127.0.0.1${path}`, init));
  }

  async ask(method: string, path: string, body?: unknown, asked?: Asked): Promise<Told> {
    const response = await this.fetch(method, path, body, asked);
    const text = await response.text();
    const isJson = /json(?:;|$)/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers };
  }

  async get(path: string, asked?: Asked): Promise<Told> {
    return this.ask('GET', path, undefined, asked);
  }

  async post(path: string, body: unknown, asked?: Asked): Promise<Told> {
    return this.ask('POST', path, body, asked);
  }

  async token(role: Role, more: { holders?: readonly string[]; ttlMs?: number } = {}): Promise<string> {
    return (await this.box.tokens.create({ name: `a ${role}`, role, ...more })).secret;
  }

  async close(): Promise<void> {
    this.server.stop();
    await this.box.close();
  }
}

export interface Sent {
  readonly id: string;
  readonly event: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever comes
  readonly data: any;
}

/** Reads server-sent events until `isEnough`, and then leaves. */
export async function readEvents(response: Response, isEnough: (all: readonly Sent[]) => boolean): Promise<Sent[]> {
  const found: Sent[] = [];
  for await (const event of eventsOf(response)) {
    found.push(event);
    if (isEnough(found)) break;
  }
  return found;
}

export async function* eventsOf(response: Response): AsyncGenerator<Sent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const lines = text.slice(0, end).split('\n');
      text = text.slice(end + 2);
      const field = (name: string): string =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
      if (field('event') !== '') yield { id: field('id'), event: field('event'), data: JSON.parse(field('data')) };
    }
  }
}
