/** MCP over streamable HTTP, mounted in the HTTP server: requests share no state, so any server may answer the next one. */
import { createMcpHandler } from '@modelcontextprotocol/server';
import { type Clock, systemClock } from '../clock.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Caller } from '../server/operation.ts';
import { DetachedSeat } from './detached-seat.ts';
import { LIMITS, type McpLimits } from './limits.ts';
import { mcpServer } from './server.ts';
import { Updates } from './updates.ts';

export interface HttpOptions {
  readonly version: string;
  readonly limits?: McpLimits;
  readonly clock?: Clock;
}

/** Answers requests whose caller and body the server has checked. */
export interface McpOverHttp {
  fetch(request: Request, caller: Caller, parsedBody: unknown): Promise<Response>;
  close(): Promise<void>;
}

export function mcpOverHttp(
  box: Signalbox,
  { version, limits = LIMITS, clock = systemClock }: HttpOptions,
): McpOverHttp {
  const seat = new DetachedSeat(box, limits, clock);
  const updates = new Updates(box);
  const handler = createMcpHandler(
    (context) => {
      const caller = context.authInfo?.extra?.['caller'] as Caller;
      // A client of the older generation has no stream for announcements.
      const gone = context.requestInfo?.signal;
      return mcpServer({ box, caller, clock, limits, seat, gone }, context, { version, notifiesLegacy: false });
    },
    { bus: updates },
  );
  return {
    fetch: (request, caller, parsedBody) =>
      handler.fetch(request, {
        // The handler never gets the token itself.
        authInfo: { token: '', clientId: caller.id, scopes: [], extra: { caller } },
        ...(parsedBody !== undefined && { parsedBody }),
      }),
    async close() {
      await updates.close();
      await handler.close();
    },
  };
}
