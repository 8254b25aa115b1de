/** Events over HTTP: a stream that resumes at any server where it was cut off, without a gap or a repeat. */
import type { EventOf, EventPattern } from '../runtime/observe/event-types.ts';
import { Failure } from '../failure.ts';
import { backoffMs } from '../runtime/write/backoff.ts';
import { absenceOf } from './absence.ts';
import { instant, sinceMs } from './clock.ts';
import { ServerRefusal } from './problem.ts';
import type { Requests } from './requests.ts';

/** Which events, and from where on. */
export interface RemoteEventOptions {
  /** Only events of these resources, such as `lock/main`. */
  readonly resources?: readonly string[];
  /** Begins after this revision of the store, or after the place of an earlier stream; from now on if not given. */
  readonly since?: number | string;
  /** Ends the stream when it aborts. */
  readonly signal?: AbortSignal;
  /** Called whenever a server begins to send: from then on the stream misses no event. */
  readonly onOpen?: () => void;
}

/** The server sends at least a comment every few seconds. */
const SILENT_MS = 45_000;

/** The events of the store, in order. The event `resync` says that some were missed: read the state. */
export class RemoteEvents<Pattern extends EventPattern = '*'> implements AsyncIterable<EventOf<Pattern>> {
  readonly #requests: Requests;
  readonly #path: string;
  readonly #signal: AbortSignal;
  #place: string | undefined;
  readonly #onOpen: () => void;

  /** @internal `path` is that of the stream, with its filters. */
  constructor(requests: Requests, path: string, options: RemoteEventOptions) {
    const { since, signal, onOpen = (): void => undefined } = options;
    this.#requests = requests;
    this.#path = path;
    this.#onOpen = onOpen;
    this.#place = since === undefined ? undefined : String(since);
    this.#signal = signal ?? requests.closed.signal;
  }

  /** The place after the last event that was delivered; pass it to the next stream as `since`. Undefined before the first answer. */
  get place(): string | undefined {
    return this.#place;
  }

  /**
   * Yields the events one by one. Leaving the loop ends the stream. Throws if no server answers at first; later it reconnects by
   * itself.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<EventOf<Pattern>, void, undefined> {
    const headers = (): Readonly<Record<string, string>> =>
      this.#place === undefined ? {} : { 'Last-Event-ID': this.#place };
    for await (const { id, event, data } of streamed(this.#requests, this.#path, headers, this.#signal)) {
      if (id !== '') this.#place = id;
      if (event === 'open') this.#onOpen();
      else yield JSON.parse(data) as EventOf<Pattern>;
    }
  }
}

/**
 * The messages of a stream, which is opened again whenever it is lost, at the next server. Throws if no server answers at first,
 * or if one refuses it, at first or later.
 */
export async function* streamed(
  requests: Requests,
  path: string,
  headers: () => Readonly<Record<string, string>>,
  signal: AbortSignal,
): AsyncGenerator<Message, void, undefined> {
  const over = AbortSignal.any([signal, requests.closed.signal]);
  const { clock, retryMs } = requests;
  const begun = instant(clock);
  let hasOpened = false;
  const absence = absenceOf(requests);
  let trouble: unknown;
  try {
    for (let failures = 0; !over.aborted;) {
      const cut = new AbortController();
      try {
        const heard = watched(requests, cut);
        const response = await requests.stream(path, headers(), AbortSignal.any([over, cut.signal]));
        for await (const message of messagesOf(response, heard)) {
          failures = 0;
          hasOpened = true;
          absence.heard();
          yield message;
        }
        trouble = new Failure('unavailable', 'the server ended the stream');
      } catch (error) {
        if (over.aborted) return;
        if (isFinal(error, hasOpened)) throw error;
        trouble = error;
      } finally {
        cut.abort();
      }
      requests.nextServer();
      const pauseMs = backoffMs(failures++);
      if (!hasOpened && sinceMs(clock, begun) + pauseMs > retryMs) throw trouble;
      if (hasOpened) absence.lost(trouble);
      await requests.pause(pauseMs, over);
    }
  } finally {
    absence.end();
  }
}

/** A stream only reads, so one that was open is opened again whatever trouble the server has; a refusal stays a refusal. */
function isFinal(error: unknown, hasOpened: boolean): boolean {
  if (!(error instanceof Failure) || ['unavailable', 'closed'].includes(error.code)) return false;
  return !(hasOpened && error instanceof ServerRefusal && error.problem.status >= 500);
}

/** Ends a silent connection: otherwise the reader would wait for ever on one that died without closing. */
function watched({ clock }: Requests, cut: AbortController): () => void {
  const silent = (): void => cut.abort(new Error('it is silent'));
  let timer = clock.timer(SILENT_MS, silent);
  cut.signal.addEventListener('abort', () => timer.cancel());
  return () => {
    timer.cancel();
    timer = clock.timer(SILENT_MS, silent);
  };
}

interface Message {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Parses the messages of a `text/event-stream`; calls `heard` for everything that arrives. */
async function* messagesOf(response: Response, heard: () => void): AsyncGenerator<Message, void, undefined> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = blocks.pop() as string;
      for (const block of blocks) {
        const lines = block.split('\n');
        const field = (name: string): string =>
          lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
        if (field('data') !== '') yield { id: field('id'), event: field('event'), data: field('data') };
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
