/** A clock for runtimes without Node's: browsers and others with `fetch`. */
import type { Clock, Timer } from '../clock.ts';

/** 24.8 days. A timer with a longer delay would fire at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

export const webClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(delayMs, call) {
    const handle: unknown = setTimeout(call, Math.min(Math.max(0, delayMs), LONGEST_DELAY_MS));
    // In Node, a hold that is never released must not keep the process alive.
    (handle as { unref?(): void }).unref?.();
    return { cancel: () => clearTimeout(handle as never) };
  },
  keepAlive() {
    const handle: unknown = setInterval(() => undefined, LONGEST_DELAY_MS);
    return { cancel: () => clearInterval(handle as never) };
  },
};

/** A moment by two clocks: the monotonic one stands still while a laptop sleeps, and the wall clock can be set. */
export interface Instant {
  readonly wall: number;
  readonly monotonic: number;
}

export function instant(clock: Clock): Instant {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

/** The longer of the two times: a lease must never seem to last longer than it does. */
export function sinceMs(clock: Clock, then: Instant): number {
  return Math.max(clock.now() - then.wall, clock.monotonic() - then.monotonic);
}

export type { Clock, Timer };
