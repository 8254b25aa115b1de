/** Turns an async iterator into server-sent events. Asks the iterator for an item only when the reader is ready for it. */

const HEARTBEAT_MS = 15_000;
const encoder = new TextEncoder();

export function entryStream(begin: (over: AbortSignal) => AsyncIterable<unknown>, signal: AbortSignal): Response {
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
        controller.enqueue(encoder.encode('retry: 1000\nevent: open\ndata: {}\n\n'));
        heartbeat = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': alive\n\n'));
        }, HEARTBEAT_MS);
      },
      async pull(controller) {
        try {
          const { done, value } = await items.next();
          if (done !== true)
            return controller.enqueue(encoder.encode(`event: entry\ndata: ${JSON.stringify(value)}\n\n`));
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
