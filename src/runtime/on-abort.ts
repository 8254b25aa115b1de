/** Listens to a signal of the caller. */
import { setMaxListeners } from 'node:events';

/** Many waits may share one signal. Each stops listening when it ends, so Node need not warn of a leak. */
export function onAbort(signal: AbortSignal, listener: () => void): void {
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
}
