/** MCP over streamable HTTP, mounted in the HTTP server: requests share no state, so any server may answer the next one. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { type Clock, systemClock } from '../clock.ts';
import { Failure } from '../failure.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { isEventStream, tracked } from '../server/open-streams.ts';
import type { Caller } from '../server/operation.ts';
import { Problem } from '../server/problem.ts';
import { DetachedSeat } from './detached-seat.ts';
import { LIMITS, type McpLimits } from './limits.ts';
import { mcpServer } from './server.ts';
import { listenedIn, Updates } from './updates.ts';

export interface HttpOptions {
  readonly version: string;
  readonly limits?: McpLimits;
  readonly clock?: Clock;
}

/** Answers requests whose caller and body the server has checked. */
export interface McpOverHttp {
  fetch(request: Request, caller: Caller, parsedBody: unknown): Promise<Response>;
  /** Answers the calls that wait, ends the subscriptions, and resolves when all answers are over. */
  close(): Promise<void>;
}

/** The most resources of one subscription. The SDK looks through all of them at each event. */
const MOST_FOLLOWED = 1_000;

export function mcpOverHttp(
  box: Signalbox,
  { version, limits = LIMITS, clock = systemClock }: HttpOptions,
): McpOverHttp {
  const seat = new DetachedSeat(box, limits, clock);
  const updates = new Updates(box, clock);
  const stop = new AbortController();
  const exchanges = new Exchanges();
  /** The resources of the subscription that a request asks for, because the SDK does not pass them to its bus. */
  const followed = new AsyncLocalStorage<readonly string[]>();
  const handler = createMcpHandler(
    (context) => {
      const caller = context.authInfo?.extra?.['caller'] as Caller;
      const gone = context.requestInfo?.signal;
      const desk = { box, caller, clock, limits, seat, gone, stopping: stop.signal };
      // A client of the older generation has no stream for announcements.
      return mcpServer(desk, context, { version, notifiesLegacy: false });
    },
    {
      bus: {
        publish: (event) => updates.publish(event),
        subscribe(listener) {
          const uris = followed.getStore() ?? [];
          return updates.subscribe(listener, () => uris);
        },
      },
    },
  );
  return {
    async fetch(request, caller, parsedBody) {
      const options = {
        // The handler never gets the token itself.
        authInfo: { token: '', clientId: caller.id, scopes: [], extra: { caller } },
        ...(parsedBody !== undefined && { parsedBody }),
      };
      const uris = listenedIn(parsedBody);
      if (uris === undefined) return exchanges.of(request, () => handler.fetch(request, options));
      if (uris.length > MOST_FOLLOWED) {
        const most = `and may name ${MOST_FOLLOWED}; follow signalbox://board instead`;
        throw new Problem('invalid-input', `this subscription names ${uris.length} resources, ${most}`);
      }
      // A client reads the resources after the first answer, and must hear of every change since.
      await updates.ready();
      stop.signal.throwIfAborted();
      return followed.run(uris, () => handler.fetch(request, options));
    },
    async close() {
      stop.abort(new Failure('closed', 'the server stops'));
      // The handler would cut off the answers, and each call that waits would leave its queue.
      await exchanges.over();
      await updates.close();
      await handler.close();
    },
  };
}

/** The requests whose answers are not over, except subscriptions, which last until the server stops. */
class Exchanges {
  #count = 0;
  #isOver: (() => void) | undefined;

  async of(request: Request, fetch: () => Promise<Response>): Promise<Response> {
    this.#count += 1;
    let isOpen = true;
    const leave = (): void => {
      if (!isOpen) return;
      isOpen = false;
      this.#count -= 1;
      if (this.#count === 0) this.#isOver?.();
    };
    try {
      const answer = await fetch();
      if (isEventStream(answer)) return tracked(answer, leave, request.signal);
      leave();
      return answer;
    } catch (error) {
      leave();
      throw error;
    }
  }

  over(): Promise<void> {
    return new Promise((resolve) => {
      this.#isOver = resolve;
      if (this.#count === 0) resolve();
    });
  }
}
