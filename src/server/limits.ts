/** How much one caller may ask of the server: requests per second, and the size of a body. */
import type { Clock } from '../clock.ts';
import { Problem } from './problem.ts';

/** A bucket for each caller: it fills at `perSecond`, and holds twice as much for bursts. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #buckets = new Map<string, { left: number; at: number }>();

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Throws if the bucket of this caller is empty. */
  take(caller: string): void {
    const now = this.#clock.monotonic();
    const most = 2 * this.#perSecond;
    const bucket = this.#buckets.get(caller) ?? { left: most, at: now };
    bucket.left = Math.min(most, bucket.left + ((now - bucket.at) / 1000) * this.#perSecond);
    bucket.at = now;
    this.#buckets.delete(caller);
    this.#buckets.set(caller, bucket);
    this.#forgetOldest();
    if (bucket.left < 1) {
      const seconds = Math.max(1, Math.ceil((1 - bucket.left) / this.#perSecond));
      throw new Problem(
        'too-many-requests',
        `this token may send ${this.#perSecond} requests per second`,
        { perSecond: this.#perSecond },
        { 'Retry-After': String(seconds) },
      );
    }
    bucket.left -= 1;
  }

  #forgetOldest(): void {
    if (this.#buckets.size <= MOST_CALLERS) return;
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}

const MOST_CALLERS = 10_000;

/** Reads a body, and no more of it than `most` bytes. */
export async function readBody(request: Request, most: number): Promise<string> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > most) throw tooLarge(most);
  if (request.body === null) return '';
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > most) throw tooLarge(most);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new Problem('invalid-input', 'the body is not UTF-8; expected JSON in UTF-8');
  }
}

function tooLarge(most: number): Problem {
  return new Problem(
    'body-too-large',
    `the body is too large; at most ${most} bytes are accepted`,
    { most },
    { Connection: 'close' },
  );
}
