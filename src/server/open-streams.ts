/**
 * The open streams and waits: limits how many each token has, and ends those of a token that was revoked or has expired. The server
 * follows the tokens in memory, so checking them every few seconds costs nothing.
 */
import type { Clock, Timer } from '../clock.ts';
import { Failure } from '../failure.ts';
import type { Caller } from './operation.ts';
import { Problem } from './problem.ts';

/** What each token has a limit for. */
type Counted = 'stream' | 'guard-wait';

interface OpenStream {
  /** The token, and which of its limits this counts towards; undefined for any other waiting request. */
  readonly counted: { readonly caller: string; readonly as: Counted } | undefined;
  readonly isValid: () => Promise<boolean>;
  readonly end: AbortController;
}

/** A stream or a wait that lasts while its token is valid. The signal ends it; its owner calls `leave` when it is over. */
export interface OpenWait {
  readonly signal: AbortSignal;
  readonly leave: () => void;
}

const LOOK_MS = 2_000;

export class OpenStreams {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #open = new Set<OpenStream>();
  #timer: Timer | undefined;

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Registers a stream, or the wait for a guard. `isValid` tells whether the token is still valid. */
  enter({ id }: Caller, isValid: () => Promise<boolean>, as: Counted = 'stream'): OpenWait {
    const own = [...this.#open].filter(({ counted }) => counted?.caller === id && counted.as === as).length;
    if (own >= this.#most) throw tooMany(as, own, this.#most);
    return this.#opened({ counted: { caller: id, as }, isValid, end: new AbortController() });
  }

  /** Registers any other waiting request. A token may have any number of these: each takes part in the store, and ends. */
  wait(isValid: () => Promise<boolean>): OpenWait {
    return this.#opened({ counted: undefined, isValid, end: new AbortController() });
  }

  #opened(one: OpenStream): OpenWait {
    this.#open.add(one);
    this.#timer ??= this.#clock.timer(LOOK_MS, () => void this.#look());
    return { signal: one.end.signal, leave: () => void this.#open.delete(one) };
  }

  async #look(): Promise<void> {
    await Promise.all(
      [...this.#open].map(async (one) => {
        // A store that does not answer tells us nothing about the token.
        if (await one.isValid().catch(() => true)) return;
        this.#open.delete(one);
        one.end.abort();
      }),
    );
    this.#timer = this.#open.size === 0 ? undefined : this.#clock.timer(LOOK_MS, () => void this.#look());
  }
}

const TOO_MANY = {
  stream: ['too-many-streams', 'streams open', 'close some, or follow several resources in one'],
  'guard-wait': ['too-many-waits', 'guards that it waits for', 'wait for fewer, or join them with all or any'],
} as const;

function tooMany(as: Counted, own: number, most: number): Problem {
  const [code, what, instead] = TOO_MANY[as];
  const told = `this token has ${own} ${what}, and may have ${most}; ${instead}`;
  return new Problem(code, told, { most }, { 'Retry-After': '5' });
}

/** Whether the body of an answer is a stream of events, so that the answer is not over when its headers are sent. */
export function isEventStream({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') === true;
}

/**
 * Wraps an answer to report when its body is over: read to its end, cancelled, broken, or ended by `ends`, as when the client
 * leaves before anything reads the body.
 */
export function tracked(response: Response, over: () => void, ends: AbortSignal): Response {
  if (response.body === null) {
    over();
    return response;
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const end = (): void => {
    over();
    // Cancelling the reader ends a pending read as if the source were over.
    reader.cancel().catch(() => undefined);
  };
  if (ends.aborted) end();
  else ends.addEventListener('abort', end, { once: true });
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          over();
          controller.close();
        } catch (error) {
          over();
          controller.error(error);
        }
      },
      cancel(reason) {
        over();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers: response.headers });
}

/**
 * Wraps a stream whose source sends without looking at its reader. Breaks it off once the reader has left `most` bytes unread,
 * because the server would keep them all. One message may be larger.
 */
export function capped(response: Response, most: number): Response {
  if (response.body === null) return response;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const pump = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      if ((controller.desiredSize ?? 0) <= 0) throw new Failure('closed', 'this client does not read its stream');
      controller.enqueue(value);
    }
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        pump(controller).catch((error: unknown) => {
          // An error drops what is unread.
          controller.error(error);
          reader.cancel(error).catch(() => undefined);
        });
      },
      cancel: (reason) => reader.cancel(reason),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: most }),
  );
  return new Response(body, { status: response.status, headers: response.headers });
}
