import { setMaxListeners } from 'node:events';
import { Failure } from '../failure.ts';

/**
 * One time limit for some work: its signal aborts when time is over, or when `signal` does, and what the work was waiting
 * for then is not waited for any more. It also aborts when the work has ended, for what may be left of it.
 */
export async function within<T>(
  ms: number,
  what: string,
  signal: AbortSignal | undefined,
  work: (over: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const over = new AbortController();
  // Everything that the work waits for listens to it.
  setMaxListeners(0, over.signal);
  const aborted = (): void => over.abort(signal?.reason);
  const timer = setTimeout(() => over.abort(new Failure('unavailable', `${what} took longer than ${ms} ms`)), ms);
  signal?.addEventListener('abort', aborted, { once: true });
  const never = new Promise<never>((_, reject) => {
    over.signal.addEventListener('abort', () => reject(over.signal.reason as Error), { once: true });
  });
  try {
    return await Promise.race([work(over.signal), never]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', aborted);
    over.abort();
  }
}
