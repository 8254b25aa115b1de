/** Turns an async iterator into a stream. Asks the iterator for an item only when the reader is ready for it. */

const HEARTBEAT_MS = 15_000;
const encoder = new TextEncoder();

/** What is sent, and, where a reader can go on, the place from which one who has it does. */
export interface SentEntry {
  readonly id?: string;
  /** What it is called, if not as all items are. */
  readonly event?: string;
  readonly data: unknown;
}

/** `id`: the place of a reader who has nothing yet; `event`: what each item is called. */
export function entryStream(
  { id, event }: { readonly id?: string; readonly event: string },
  begin: (over: AbortSignal) => AsyncIterable<SentEntry>,
  signal: AbortSignal,
): Response {
  const left = new AbortController();
  const items = begin(AbortSignal.any([signal, left.signal]))[Symbol.asyncIterator]();
  let heartbeat: NodeJS.Timeout | undefined;
  const over = (): void => {
    clearInterval(heartbeat);
    left.abort();
    // An iterator that nobody asks for its next item does not notice the abort.
    items.return?.().catch(() => undefined);
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(encoder.encode('retry: 1000\n'));
        controller.enqueue(message(id, 'open', {}));
        heartbeat = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': alive\n\n'));
        }, HEARTBEAT_MS);
      },
      async pull(controller) {
        try {
          const { done, value } = await items.next();
          if (done !== true) return controller.enqueue(message(value.id, value.event ?? event, value.data));
          over();
          controller.close();
        } catch (error) {
          over();
          controller.error(error);
        }
      },
      cancel: over,
    },
    { highWaterMark: 2 },
  );
  return new Response(body, {
    headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' },
  });
}

function message(id: string | undefined, event: string, data: unknown): Uint8Array {
  const place = id === undefined ? '' : `id: ${id}\n`;
  return encoder.encode(`${place}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

const LARGEST_CHUNK = 64 * 1024;

/** Text, line by line. If the iterator throws, the connection breaks, so that nobody takes a part for the whole. */
export function lineStream(lines: AsyncGenerator<string, void>, signal: AbortSignal): Response {
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let text = '';
        while (text.length < LARGEST_CHUNK) {
          signal.throwIfAborted();
          const { done, value } = await lines.next();
          if (done === true) break;
          text += `${value}\n`;
        }
        if (text !== '') controller.enqueue(encoder.encode(text));
        if (text.length < LARGEST_CHUNK) controller.close();
      },
      cancel: async () => void (await lines.return()),
    },
    { highWaterMark: 1 },
  );
  return new Response(body, { headers: { 'Content-Type': 'application/jsonl', 'Cache-Control': 'no-store' } });
}
