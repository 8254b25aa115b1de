import { setMaxListeners } from 'node:events';
import { Failure } from '../failure.ts';

/**
 * Gives some work one time limit: its signal aborts when time is over or when `signal` aborts, and everything the work
 * waits for ends then. It also aborts when the work has ended, to end anything that the work left running.
 */
export async function within<T>(
  ms: number,
  what: string,
  signal: AbortSignal | undefined,
  work: (over: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const over = new AbortController();
  // Everything that the work waits for listens to this signal.
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
