/** What became of a promise, without waiting for it longer than it takes everything in motion to come to rest. */
import { HoldLost, NotAcquired, type Refusal } from 'signalbox';

/** Everything that was set in motion has run until it waits. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let pending = true;
  const over = (): void => void (pending = false);
  promise.then(over, over);
  await settled();
  return pending;
}

export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => Promise.reject(new TypeError(`it was not refused, but answered with ${String(value)}`)),
    (error: unknown) => error,
  );
}

/** Why a waiting form ended without a hold. */
export async function refusalOf(promise: Promise<unknown>): Promise<Refusal> {
  const error = await errorOf(promise);
  if (error instanceof NotAcquired) return error.refusal;
  throw error;
}

export function lossOf(signal: AbortSignal): HoldLost | undefined {
  if (!signal.aborted) return undefined;
  if (signal.reason instanceof HoldLost) return signal.reason;
  throw new TypeError(`the signal's reason is ${String(signal.reason)}, not a HoldLost`);
}
