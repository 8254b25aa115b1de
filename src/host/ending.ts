/** Ends what is left of a child: TERM, a grace period, KILL. It signals only processes that are certainly the child's. */
import { pause, systemClock } from '../clock.ts';
import { type Offspring, type Remains, remainsOf, signalRemains } from './offspring.ts';

const FIRST_LOOK_MS = 5;
const SLOWEST_LOOK_MS = 100;
const KILL_AGAIN_MS = 200;

export interface Patience {
  /** The time between TERM and KILL. */
  readonly graceMs: number;
  /** Whether it is a child of this process. */
  readonly isOwn: boolean;
  /** See `Sight`. */
  readonly isShared?: boolean;
  /** When it aborts, KILL follows at once. */
  readonly hurrying?: AbortSignal;
  /** When it aborts, `end` returns without waiting. */
  readonly cut?: AbortSignal;
  /** Gives up this long after the first KILL: a process that waits for a broken disk cannot be killed. */
  readonly giveUpMs?: number;
}

/** Returns whether nothing is left of the child. */
export async function end(child: Offspring, patience: Patience): Promise<boolean> {
  const { isOwn, isShared = false, graceMs, hurrying, cut, giveUpMs = Number.POSITIVE_INFINITY } = patience;
  const tell = (signal: NodeJS.Signals): boolean =>
    signalRemains(child, remainsOf(child, isOwn), signal, { isOwn, isShared });
  if (graceMs > 0 && hurrying?.aborted !== true) {
    tell('SIGTERM');
    // A stopped process would not receive the signal.
    tell('SIGCONT');
    if (await isGoneWithin(child, isOwn, graceMs, hurrying, cut)) return true;
  }
  const until = systemClock.monotonic() + giveUpMs;
  while (cut?.aborted !== true && systemClock.monotonic() < until) {
    tell('SIGKILL');
    // Repeated, because some processes may have started others while they were counted.
    if (await isGoneWithin(child, isOwn, KILL_AGAIN_MS, cut)) return true;
  }
  return isGone(remainsOf(child, isOwn));
}

/** Polls until nothing is left of the child, the time is over, or one of the signals aborts. */
export async function isGoneWithin(
  child: Offspring,
  isOwn: boolean,
  withinMs: number,
  ...cuts: readonly (AbortSignal | undefined)[]
): Promise<boolean> {
  const until = systemClock.monotonic() + withinMs;
  for (let delayMs = FIRST_LOOK_MS; ; delayMs = Math.min(2 * delayMs, SLOWEST_LOOK_MS)) {
    if (isGone(remainsOf(child, isOwn))) return true;
    const leftMs = until - systemClock.monotonic();
    if (leftMs <= 0 || cuts.some((cut) => cut?.aborted === true)) return false;
    await pause(Math.min(delayMs, leftMs), AbortSignal.any(cuts.filter((cut) => cut !== undefined)));
  }
}

export function isGone(remains: Remains): boolean {
  return remains.kind === 'none';
}
