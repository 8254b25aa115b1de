import { uptime } from 'node:os';

/** The source of all time. Nothing else in signalbox asks the system for the time or for a timer. */
export interface Clock {
  /** Wall time in milliseconds since 1970: for people, and to notice a suspended machine. */
  now(): number;
  /** Milliseconds that only ever grow, the same for all processes of one machine; may stand still in suspend. */
  monotonic(): number;
  /**
   * Milliseconds since the machine started, suspend included, in steps of 10: used when the other two disagree, to tell
   * a suspended machine from a wall clock that was set. Undefined where the system has no such clock.
   */
  uptime?(): number | undefined;
  /** Runs `call` once, after at least `delayMs`. A timer never keeps a process alive by itself. */
  timer(delayMs: number, call: () => void): Timer;
  /**
   * Runs `call` once, after everything else that is ready on the event loop, and keeps the process alive until then. A
   * timer without delay would not do: Node runs due timers one after the other, before it looks at the network.
   */
  afterOthers?(call: () => void): void;
  /** Keeps the process alive until it is cancelled: a process that waits must not end. */
  keepAlive?(): Timer;
}

/** A call that is due later. */
export interface Timer {
  /** Prevents the call. */
  cancel(): void;
}

/** 24.8 days. Longer delays overflow Node's timers, which would then fire at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

// Looked up once: a handoff reads this clock some twenty times, and the global `process` is a getter.
const system = process;

export const systemClock: Clock = {
  now: () => Date.now(),
  // Not `performance.now()`, which starts at zero in every process.
  monotonic() {
    const time = system.hrtime();
    // By index: taking an array apart calls its iterator.
    return time[0] * 1e3 + time[1] / 1e6;
  },
  // Other systems compute it from the wall clock.
  uptime: () => (process.platform === 'linux' ? uptime() * 1e3 : undefined),
  timer(delayMs, call) {
    let handle: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      const isLast = leftMs <= LONGEST_DELAY_MS;
      handle = setTimeout(isLast ? call : () => wait(leftMs - LONGEST_DELAY_MS), Math.min(leftMs, LONGEST_DELAY_MS));
      handle.unref();
    };
    wait(Math.max(0, delayMs));
    // Node drops a cancelled timer at once only if it keeps the process alive; any other would still wake the process in vain.
    return { cancel: () => clearTimeout(handle.ref()) };
  },
  afterOthers: (call) => void setImmediate(call),
  keepAlive() {
    const handle = setInterval(() => undefined, LONGEST_DELAY_MS);
    return { cancel: () => clearInterval(handle) };
  },
};

/** Resolves after `ms`, or as soon as the signal aborts. Until then it keeps the process alive. */
export function pause(ms: number, signal?: AbortSignal, clock: Clock = systemClock): Promise<void> {
  return new Promise((resolve) => {
    const alive = clock.keepAlive?.();
    const over = (): void => {
      timer.cancel();
      alive?.cancel();
      signal?.removeEventListener('abort', over);
      resolve();
    };
    const timer = clock.timer(ms, over);
    signal?.addEventListener('abort', over);
    if (signal?.aborted === true) over();
  });
}

/** Resolves when the signal has aborted. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Aborts after `ms`. Unlike `AbortSignal.timeout`, which fires at once if the delay is too long, it takes any delay. */
export function timeLimit(ms: number, clock: Clock = systemClock): { readonly signal: AbortSignal } & Timer {
  const over = new AbortController();
  const timer = clock.timer(ms, () => over.abort());
  return { signal: over.signal, cancel: () => timer.cancel() };
}
