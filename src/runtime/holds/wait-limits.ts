/** The caller's limits of a wait: `waitMs` and `signal`, which also cover what comes before the request, such as a session. */
import type { Hold } from '../../core/index.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Session } from '../session/session.ts';
import { setMaxListeners } from 'node:events';

/** How a request waits. */
export interface WaitStatus {
  /** The position in the queue, if it is known. */
  readonly position?: number;
  /** Who holds it. */
  readonly holders?: readonly Hold[];
}

/** How long to wait. */
export interface WaitOptions {
  /** The longest time to wait; without it, there is no limit. */
  readonly waitMs?: number;
  /** Ends the wait when it aborts. */
  readonly signal?: AbortSignal;
  /** Called once, when the request has to wait. */
  readonly onWaiting?: (waiting: WaitStatus) => void;
}

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

/** The request has waited long enough: without an answer in this time, its refusal says what is known already. */
const LOOK_MS = 2000;

/** Calls `tell` once: with the holds in the record, or with `known` if the store does not answer in time. */
export function tellHolders(
  runtime: Runtime,
  resource: string,
  known: readonly Hold[],
  tell: (holds: readonly Hold[]) => void,
): void {
  let isTold = false;
  const once = (holds: readonly Hold[]): void => {
    if (isTold) return;
    isTold = true;
    limit.cancel();
    tell(holds);
  };
  const limit = runtime.later(LOOK_MS, () => once(known));
  runtime.writerFor(resource).cached.look(
    ({ state }) => once(state.record.holds as readonly Hold[]),
    () => once(known),
  );
}

/** Many waits may share one signal. Each stops listening when it ends, so Node need not warn of a leak. */
export function onAbort(signal: AbortSignal, listener: () => void): void {
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
}
