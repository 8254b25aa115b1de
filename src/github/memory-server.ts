/** Calls tools of a memory service over MCP: starts the service, or connects to its URL. */
import type * as Mcp from '@modelcontextprotocol/client';
import type * as McpStdio from '@modelcontextprotocol/client/stdio';
import { Failure } from '../failure.ts';
import type { CallTool } from './cache.ts';

/** Where the memory service is, and how long a call may take; 5 seconds if not given. */
export type MemoryServer = { readonly timeoutMs?: number } & (
  | /** A program and its arguments, which speaks MCP over its standard input and output. */
    { readonly command: readonly [string, ...string[]]; readonly env?: Readonly<Record<string, string>> }
  /** A service over HTTP, and the headers of each request, such as `authorization`. */
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> }
);

export interface MemoryConnection {
  readonly call: CallTool;
  close(): Promise<void>;
}

/** Short, because the cache is only a hint. */
const CALL_MS = 5_000;

interface Client {
  callTool(
    request: { name: string; arguments: Record<string, unknown> },
    options: { timeout: number },
  ): Promise<unknown>;
  close(): Promise<void>;
}

/** Connects at the first call, and again at the next call after a failure. */
export function memoryConnection(server: MemoryServer): MemoryConnection {
  let connected: Promise<Client> | undefined;
  const hangUp = async (): Promise<void> => {
    const client = await connected?.catch(() => undefined);
    connected = undefined;
    await client?.close().catch(() => undefined);
  };
  return {
    async call(name, args) {
      try {
        const client = await (connected ??= connect(server));
        return await client.callTool({ name, arguments: { ...args } }, { timeout: server.timeoutMs ?? CALL_MS });
      } catch (error) {
        await hangUp();
        throw error;
      }
    },
    close: hangUp,
  };
}

async function connect(server: MemoryServer): Promise<Client> {
  const [{ Client: McpClient, StreamableHTTPClientTransport }, { StdioClientTransport }] = await loaded();
  const client = new McpClient(
    { name: 'signalbox', version: '1' },
    { versionNegotiation: { mode: 'auto' }, capabilities: {} },
  );
  const transport =
    'url' in server
      ? new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: { ...server.headers } } })
      : new StdioClientTransport({
          command: server.command[0],
          args: server.command.slice(1),
          stderr: 'ignore',
          ...(server.env !== undefined && { env: { ...server.env } }),
        });
  await client.connect(transport, { timeout: server.timeoutMs ?? CALL_MS });
  return client;
}

/** Few users need this package, so signalbox does not install it. */
async function loaded(): Promise<[typeof Mcp, typeof McpStdio]> {
  try {
    return await Promise.all([import('@modelcontextprotocol/client'), import('@modelcontextprotocol/client/stdio')]);
  } catch (cause) {
    const why = 'a memory service over MCP needs the package @modelcontextprotocol/client';
    throw new Failure('unavailable', `${why}: npm install @modelcontextprotocol/client`, { cause });
  }
}
