/** Turns an async iterator into server-sent events. Asks the iterator for an item only when the reader is ready for it. */

const HEARTBEAT_MS = 15_000;
const encoder = new TextEncoder();

/** What is sent, and the place from which a reader who has it can go on. */
export interface SentEntry {
  readonly id: string;
  readonly data: unknown;
}

/** `id`: the place of a reader who has nothing yet. */
export function entryStream(
  id: string,
  begin: (over: AbortSignal) => AsyncIterable<SentEntry>,
  signal: AbortSignal,
): Response {
  const left = new AbortController();
  const items = begin(AbortSignal.any([signal, left.signal]))[Symbol.asyncIterator]();
  let heartbeat: NodeJS.Timeout | undefined;
  const over = (): void => {
    clearInterval(heartbeat);
    left.abort();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(encoder.encode(`retry: 1000\nid: ${id}\nevent: open\ndata: {}\n\n`));
        heartbeat = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': alive\n\n'));
        }, HEARTBEAT_MS);
      },
      async pull(controller) {
        try {
          const { done, value } = await items.next();
          if (done !== true)
            return controller.enqueue(
              encoder.encode(`id: ${value.id}\nevent: entry\ndata: ${JSON.stringify(value.data)}\n\n`),
            );
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
