import { afterEach, expect, it, vi } from 'vitest';
import { followRecord } from './record.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function entry(seq: number): string {
  return `event: entry\ndata: ${JSON.stringify({ resource: 'lock/main', seq, time: 1, hash: 'ab' })}\n\n`;
}

it('asks for the record once, shows each entry as it is written, and begins again after a rest when the stream ends', async () => {
  vi.useFakeTimers();
  vi.stubGlobal('sessionStorage', { getItem: () => 'sbx_token' });
  const asked: string[] = [];
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path);
    return Promise.resolve(new Response(new ReadableStream<Uint8Array>({ start: (one) => void (stream = one) })));
  });
  const send = async (text: string, after: number): Promise<void> => {
    await vi.advanceTimersByTimeAsync(after);
    stream?.enqueue(new TextEncoder().encode(text));
    await vi.advanceTimersByTimeAsync(1);
  };
  const over = new AbortController();
  let shown: readonly number[] = [];
  const done = followRecord(2, over.signal, (rows) => (shown = rows.map(({ seq }) => seq)));
  await send('event: open\ndata: {}\n\n', 0);
  await send(entry(1) + entry(2), 3_000);
  await send(entry(3), 600_000);
  expect([shown, asked]).toEqual([[3, 2], ['/v1/witness/watch?last=2']]);
  stream?.close();
  await vi.advanceTimersByTimeAsync(29_000);
  expect([shown, asked.length]).toEqual([[3, 2], 1]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(asked.length).toBe(2);
  await send(entry(3) + entry(4), 0);
  expect(shown).toEqual([4, 3]);
  over.abort();
  stream?.close();
  await done;
});
