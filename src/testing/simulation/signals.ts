/** Frees the combined signals of a run: the end of a real process frees them, but a simulated crash does not. */
import { getEventListeners } from 'node:events';

/**
 * Node keeps every signal of `AbortSignal.any` that has listeners until it aborts, and those of crashed processes never do. Each
 * would keep its whole world alive, about a megabyte, for as long as Node runs. Like `noticeUnhandled`, this also
 * affects other code in the same Node; a run has Node to itself.
 */
export function noteSignals(): { free(): void } {
  const { any } = AbortSignal;
  const combined: AbortSignal[] = [];
  AbortSignal.any = (signals) => {
    const signal = any.call(AbortSignal, signals);
    combined.push(signal);
    return signal;
  };
  return {
    free: () => {
      AbortSignal.any = any;
      for (const signal of combined) {
        // Aborting would do as well, but then the listeners would run, in processes that no longer exist.
        for (const listener of getEventListeners(signal, 'abort'))
          signal.removeEventListener('abort', listener as () => void);
      }
    },
  };
}
