/** Waits for a session within the caller's time limit: `waitMs` and `signal` also cover what comes before the request. */
import type { Hold } from '../../core/index.ts';
import type { WaitOptions } from './acquisition.ts';
import { tellHolders } from './holders-now.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import { onAbort } from '../on-abort.ts';

/** The session, and the options with the rest of the time. `isOne`: `resource` names a single lock or semaphore. */
export async function sessionWithin<Options extends WaitOptions | undefined>(
  runtime: Runtime,
  resource: string,
  options: Options,
  isOne = true,
): Promise<{ readonly session: Session; readonly options: Options }> {
  const { signal, waitMs } = options ?? {};
  if (signal === undefined && waitMs === undefined) return { session: await runtime.ready(), options };
  const since = runtime.clock.monotonic();
  const timedOut = (waitedMs: number): Promise<never> =>
    new Promise((_, reject) => {
      const tell = (holders: readonly Hold[]): void =>
        reject(new NotAcquired(resource, { kind: 'timed-out', waitedMs, holders }));
      if (isOne) tellHolders(runtime, resource, [], tell);
      else tell([]);
    });
  const session = await new Promise<Session>((resolve, reject) => {
    const aborted = (): void =>
      reject(new NotAcquired(resource, { kind: 'aborted', reason: signal?.reason as unknown }));
    if (signal?.aborted === true) return aborted();
    if (signal !== undefined) onAbort(signal, aborted);
    const timer =
      waitMs === undefined || waitMs === 0
        ? undefined
        : runtime.clock.timer(waitMs, () => void timedOut(waitMs).catch(reject));
    runtime
      .ready()
      .then(resolve, reject)
      .finally(() => {
        timer?.cancel();
        signal?.removeEventListener('abort', aborted);
      });
  });
  if (waitMs === undefined) return { session, options };
  if (waitMs === 0) return { session, options };
  const left = waitMs - (runtime.clock.monotonic() - since);
  // No time is left. Passed on as 0, it would mean a request that was never to wait.
  if (left <= 0) return timedOut(waitMs);
  return { session, options: { ...options, waitMs: left } };
}
