/** Waits that their caller gives up while a request is on its way. */
import { NotAcquired } from '../runtime/refusal.ts';

/**
 * Rejects as soon as the signal aborts. The request goes on: cut off, it might be granted and nobody would know. What it gets
 * in the end goes to `undo`.
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

/** A wait that its caller ended is a refusal like any other. */
export function abortedOr(error: unknown, resource: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted !== true || error instanceof NotAcquired) return error;
  return new NotAcquired(resource, { kind: 'aborted', reason: signal.reason as unknown });
}
