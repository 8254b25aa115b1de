/**
 * MCP over stdin and stdout: one process for one client. The session of the process keeps its holds; the end of stdin or of the
 * process releases everything.
 */
import type { Readable, Writable } from 'node:stream';
import type { McpServer } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { type Clock, systemClock } from '../clock.ts';
import { open } from '../runtime/open.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { serverLog } from '../server/log.ts';
import { AttachedSeat } from './attached-seat.ts';
import { LIMITS, type McpLimits } from './limits.ts';
import { mcpServer } from './server.ts';
import type { Desk } from './tool.ts';
import { listenedIn, Updates } from './updates.ts';

export interface StdioOptions {
  readonly version: string;
  /** The store; by default the one that belongs to this directory. */
  readonly store?: string | undefined;
  /** Stops serving, as the end of stdin does. */
  readonly signal?: AbortSignal;
  readonly onTrouble?: (message: string) => void;
}

/** Serves the client at the other end of stdin and stdout until it disconnects. */
export async function serveOverStdio({ store, ...options }: StdioOptions): Promise<void> {
  const box = await open(store, { component: 'mcp', log: serverLog('signalbox-mcp') });
  try {
    const { over } = box;
    const signals = [options.signal, over].filter((signal) => signal !== undefined);
    await serveStreams(box, process.stdin, process.stdout, { ...options, signal: AbortSignal.any(signals) });
    // No call would work any more. The client starts another process.
    if (options.signal?.aborted !== true) over?.throwIfAborted();
  } finally {
    await box.close();
  }
}

export interface StreamOptions extends Omit<StdioOptions, 'store'> {
  readonly limits?: McpLimits;
  readonly clock?: Clock;
}

/** Resolves when the client disconnects. The caller then closes the signalbox, which releases the client's holds. */
export async function serveStreams(
  box: Signalbox,
  input: Readable,
  output: Writable,
  { version, signal, onTrouble, limits = LIMITS, clock = systemClock }: StreamOptions,
): Promise<void> {
  // The process belongs to the user who started the client and who may do everything that the command line may.
  const caller = { id: 'stdio', name: 'stdio', role: 'administrator' } as const;
  const desk: Desk = { box, caller, clock, limits, seat: new AttachedSeat(box, limits, clock) };
  const updates = new Updates(box, clock);
  const transport = new StdioServerTransport(input, output);
  let served: McpServer | undefined;
  const handle = serveStdio(
    (context) => {
      const server = mcpServer(desk, context, { version, notifiesLegacy: true });
      if (context.era === 'legacy') addSubscriptions(server, updates);
      else served = server;
      return server;
    },
    { transport, onerror: (error) => onTrouble?.(error.message) },
  );
  const followed = new Set<string>();
  onListen(transport, (uris) => {
    const isFirst = followed.size === 0;
    for (const uri of uris) followed.add(uri);
    if (!isFirst || followed.size === 0) return;
    // The SDK forwards announcements to those subscriptions that want them, and none to a subscription that is over.
    updates.subscribe(
      (event) => {
        if (event.kind !== 'resource_updated') return;
        void served?.server.sendResourceUpdated({ uri: event.uri }).catch(() => undefined);
      },
      () => followed,
    );
  });
  await new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) input.once(event, () => resolve());
    for (const event of ['close', 'error']) output.once(event, () => resolve());
    signal?.addEventListener('abort', () => resolve(), { once: true });
    if (signal?.aborted === true || input.readableEnded || input.destroyed) resolve();
  });
  await updates.close();
  await handle.close();
}

/** Watches the incoming messages for `subscriptions/listen`, because the SDK answers it without calling a handler. */
function onListen(transport: StdioServerTransport, call: (uris: readonly string[]) => void): void {
  const pass = transport.onmessage;
  transport.onmessage = (message) => {
    const uris = listenedIn(message);
    // Passed on first: the SDK has to know the subscription before an announcement for it arrives.
    pass?.(message);
    if (uris !== undefined) call(uris);
  };
}

/** Clients of the older generation subscribe to one resource at a time. */
function addSubscriptions({ server }: McpServer, updates: Updates): void {
  const wanted = new Set<string>();
  let isListening = false;
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
    // A client reads the resource after this answer, and must hear of every change since.
    await updates.ready();
    wanted.add(uri);
    if (!isListening) {
      isListening = true;
      updates.subscribe(
        (event) => {
          if (event.kind !== 'resource_updated' || !wanted.has(event.uri)) return;
          void server.sendResourceUpdated({ uri: event.uri }).catch(() => undefined);
        },
        () => wanted,
      );
    }
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
    wanted.delete(uri);
    return {};
  });
}
