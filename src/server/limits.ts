/** Limits per caller: requests per second, and the size of a body. */
import type { Clock } from '../clock.ts';
import { Problem } from './problem.ts';

/** One token bucket per caller: it fills at `perSecond`, and holds twice that for bursts. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #buckets = new Map<string, { left: number; at: number }>();

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Throws if this caller's bucket is empty. */
  take(caller: string): void {
    const now = this.#clock.monotonic();
    const most = 2 * this.#perSecond;
    const bucket = this.#buckets.get(caller) ?? { left: most, at: now };
    bucket.left = Math.min(most, bucket.left + ((now - bucket.at) / 1000) * this.#perSecond);
    bucket.at = now;
    this.#buckets.delete(caller);
    this.#buckets.set(caller, bucket);
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > MOST_CALLERS && oldest !== undefined) this.#buckets.delete(oldest);
    if (bucket.left < 1) {
      const seconds = Math.max(1, Math.ceil((1 - bucket.left) / this.#perSecond));
      const what = `this token may send ${this.#perSecond} requests per second`;
      const headers = { 'Retry-After': String(seconds) };
      throw new Problem('too-many-requests', what, { perSecond: this.#perSecond }, headers);
    }
    bucket.left -= 1;
  }
}

const MOST_CALLERS = 10_000;

type Chunks = AsyncIterable<Uint8Array> | ReadableStream<Uint8Array> | readonly Uint8Array[];
const decoder = new TextDecoder('utf-8', { fatal: true });

/** Reads a body, at most `most` bytes of it. `announced` is the length that its sender gave. */
export async function readChunks(body: Chunks, announced: string | null, most: number): Promise<string> {
  if (Number(announced ?? 0) > most) throw tooLarge(most);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > most) throw tooLarge(most);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof Problem) throw error;
    // The client disconnected, or its encoding of the body is broken.
    throw new Problem('invalid-input', 'the body ended before all of it had arrived');
  }
  try {
    return decoder.decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  } catch {
    throw new Problem('invalid-input', 'the body is not UTF-8; expected JSON in UTF-8');
  }
}

function tooLarge(most: number): Problem {
  const what = `the body is too large; at most ${most} bytes are accepted`;
  return new Problem('body-too-large', what, { most }, { Connection: 'close' });
}
