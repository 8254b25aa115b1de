/** Lets a caller give up a wait while its request is under way. */
import { NotAcquired } from '../runtime/refusal.ts';

/**
 * Rejects as soon as the signal aborts. The request goes on, because the server might grant one that was cut off, and nobody
 * would know. `undo` gets what it is granted in the end.
 */
export function unlessAborted<T>(
  asking: Promise<T>,
  signal: AbortSignal | undefined,
  undo: (late: T) => Promise<void>,
): Promise<T> {
  if (signal === undefined) return asking;
  return new Promise<T>((resolve, reject) => {
    const leave = (): void => {
      reject(signal.reason as Error);
      asking.then(undo).catch(() => undefined);
    };
    if (signal.aborted) return leave();
    signal.addEventListener('abort', leave, { once: true });
    asking.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** Turns a wait that its caller ended into a refusal like any other. */
export function abortedOr(error: unknown, resource: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted !== true || error instanceof NotAcquired) return error;
  return new NotAcquired(resource, { kind: 'aborted', reason: signal.reason as unknown });
}
