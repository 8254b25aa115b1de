/** Agents as the server meets them: the official clients of both generations, and requests by hand, over both transports. */
import { PassThrough } from 'node:stream';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Signalbox } from 'signalbox';
import { type HttpOptions, LIMITS, mcpOverHttp, type McpLimits, serveStreams } from '../../src/mcp/index.ts';
import type { Clock } from '../../src/clock.ts';
import { CLI, type Scratch } from '../support/cli.ts';
import { LOCAL, TestServer } from '../support/server.ts';

export const GENERATIONS = ['2026-07-28', '2025-11-25'] as const;
export type Generation = (typeof GENERATIONS)[number];

export interface Answer {
  readonly status: string;
  readonly message: string;
  readonly next: string;
  readonly isError: boolean;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever comes
  readonly [field: string]: any;
}

export interface Called {
  readonly signal?: AbortSignal;
  readonly onProgress?: (message: string) => void;
}

export class Agent {
  readonly client: ModernClient | LegacyClient;
  calls = 0;

  constructor(client: ModernClient | LegacyClient) {
    this.client = client;
  }

  /** Calls a tool as a client does that checks the answer by the output schema of the tool. */
  call(name: string, args: object = {}, options: Called = {}): Promise<Answer> {
    this.calls += 1;
    const answer = this.#call(name, args, options);
    // A test that ends early leaves calls behind, which its end cuts off.
    answer.catch(() => undefined);
    return answer;
  }

  async #call(name: string, args: object, { signal, onProgress }: Called): Promise<Answer> {
    const options = {
      timeout: 600_000,
      ...(signal !== undefined && { signal }),
      ...(onProgress !== undefined && {
        onprogress: ({ message }: { message?: string | undefined }) => onProgress(message ?? ''),
      }),
    };
    const params = { name, arguments: args as Record<string, unknown> };
    const result = await (this.client instanceof ModernClient
      ? this.client.callTool(params, options)
      : this.client.callTool(params, undefined, options));
    return answerIn(result);
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}

export function answerIn(result: unknown): Answer {
  const { content, structuredContent, isError } = result as {
    readonly content: readonly { readonly text: string }[];
    readonly structuredContent: Answer;
    readonly isError?: boolean;
  };
  const [text] = content;
  if (JSON.stringify(structuredContent) !== text?.text) {
    throw new Error(`the text is not the structured content:\n${text?.text}\n${JSON.stringify(structuredContent)}`);
  }
  return { ...structuredContent, isError: isError === true };
}

async function connected(
  generation: Generation,
  modern: () => unknown,
  legacy: () => unknown,
  tasks = false,
): Promise<Agent> {
  if (generation === '2025-11-25') {
    const client = new LegacyClient({ name: 'old-client', version: '1' });
    await client.connect(legacy() as never);
    await client.listTools();
    return new Agent(client);
  }
  const client = new ModernClient(
    { name: 'new-client', version: '1' },
    {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      ...(tasks && { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }),
    },
  );
  await client.connect(modern() as never);
  await client.listTools();
  return new Agent(client);
}

/** A process of its own, as coding agents start it. `through`: what starts it in turn. */
export function processAgent(
  generation: Generation,
  { dir: cwd, store }: Pick<Scratch, 'dir' | 'store'>,
  through: readonly string[] = [],
): Promise<{ readonly agent: Agent; pid(): number }> {
  const env = { SIGNALBOX_URL: store, HOME: cwd };
  const [command = '', ...args] = [...through, process.execPath, CLI, 'mcp'];
  const settings = { command, args, cwd, env, stderr: 'ignore' as const };
  let transport: ModernStdio | LegacyStdio;
  const made = connected(
    generation,
    () => (transport = new ModernStdio(settings)),
    () => (transport = new LegacyStdio(settings)),
  );
  return made.then((agent) => ({ agent, pid: () => transport.pid as number }));
}

/** Lines over streams, as between a client and its process. */
class Lines {
  onmessage?: (message: unknown) => void;
  onclose?: () => void;
  readonly #input: PassThrough;
  readonly #output: PassThrough;

  constructor(input: PassThrough, output: PassThrough) {
    this.#input = input;
    this.#output = output;
  }

  async start(): Promise<void> {
    let text = '';
    this.#output.setEncoding('utf8').on('data', (data: string) => {
      text += data;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        const line = text.slice(0, end);
        text = text.slice(end + 1);
        this.onmessage?.(JSON.parse(line));
      }
    });
  }

  async send(message: unknown): Promise<void> {
    this.#input.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    this.#input.end();
    this.onclose?.();
  }
}

export interface Place {
  readonly box: Signalbox;
  readonly limits?: Partial<McpLimits>;
  readonly clock?: Clock;
  readonly mostStreams?: number;
}

function optionsOf({ limits, clock }: Place): HttpOptions {
  return { version: '1', limits: { ...LIMITS, ...limits }, ...(clock !== undefined && { clock }) };
}

/** The same in this process. `ended` resolves when its server is gone; the caller closes the signalbox. */
export async function streamAgent(
  generation: Generation,
  place: Place,
): Promise<{ readonly agent: Agent; readonly ended: Promise<void> }> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const ended = serveStreams(place.box, input, output, optionsOf(place));
  const lines = (): Lines => new Lines(input, output);
  return { agent: await connected(generation, lines, lines), ended };
}

export function mcpServerOn(place: Place): TestServer {
  const options = optionsOf(place);
  return new TestServer(place.box, {
    mcp: (box) => Promise.resolve(mcpOverHttp(box, options)),
    ...(place.clock !== undefined && { clock: place.clock }),
    ...(place.mostStreams !== undefined && { mostStreams: place.mostStreams }),
  });
}

export function httpAgent(generation: Generation, server: TestServer, token: string = LOCAL): Promise<Agent> {
  return urlAgent(generation, 'http://127.0.0.1/mcp', token, (url, init) =>
    server.server.fetch(new Request(url, init)),
  );
}

export function urlAgent(
  generation: Generation,
  address: string,
  token: string,
  fetch?: (url: string | URL, init?: RequestInit) => Promise<Response>,
): Promise<Agent> {
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  const settings = { requestInit, ...(fetch !== undefined && { fetch }) };
  return connected(
    generation,
    () => new ModernHttp(new URL(address), settings),
    () => new LegacyHttp(new URL(address), settings),
  );
}

function aboutClient(extensions: object): object {
  return {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'task-client', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { extensions },
  };
}

/** The same over stdio, in this process. */
export function streamWithTasks(place: Place): {
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever comes
  readonly request: (method: string, params: object) => Promise<any>;
  readonly close: () => Promise<void>;
} {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const ended = serveStreams(place.box, input, output, optionsOf(place));
  const lines = new Lines(input, output);
  const waiting = new Map<unknown, (message: unknown) => void>();
  lines.onmessage = (message) => waiting.get((message as { id?: unknown }).id)?.(message);
  void lines.start();
  let id = 0;
  return {
    request: (method, params) => {
      const own = ++id;
      const _meta = aboutClient({ 'io.modelcontextprotocol/tasks': {} });
      void lines.send({ jsonrpc: '2.0', id: own, method, params: { ...params, _meta } });
      return new Promise((resolve) => waiting.set(own, resolve));
    },
    close: async () => {
      await lines.close();
      await ended;
    },
  };
}

/** A request by hand, of a client that takes tasks: the official one does not, yet. */
export async function requestWithTasks(
  server: TestServer,
  method: string,
  params: Readonly<Record<string, unknown>>,
  token: string = LOCAL,
  extensions: object = { 'io.modelcontextprotocol/tasks': {} },
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever comes
): Promise<any> {
  const text = await (await posted(server, method, params, token, extensions)).text();
  const body = text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? text);
  return JSON.parse(body);
}

export function posted(
  server: TestServer,
  method: string,
  params: Readonly<Record<string, unknown>>,
  token: string = LOCAL,
  extensions: object = {},
): Promise<Response> {
  const name = params['name'] ?? params['taskId'];
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: aboutClient(extensions) } };
  const headers = {
    ...{ Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method },
    ...(typeof name === 'string' && { 'Mcp-Name': name }),
  };
  return server.fetch('POST', '/mcp', body, { token, headers });
}
