import { pause as pauseOf } from '../clock.ts';

/** Throws the reason of the signal if it aborts. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await pauseOf(ms, signal);
  signal?.throwIfAborted();
}
