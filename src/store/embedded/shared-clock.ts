/**
 * Tells whether a deadline that another process wrote means the same on this process's clock. Linux has no monotonic
 * clock that cannot be shifted: a time namespace, a preloaded library (faketime) or a reboot each changes it. So a
 * reading is stored with everything that could tell two clocks apart, and a deadline counts only where the clock is
 * known to be shared.
 *
 *     same boot, same time namespace, as long in suspend, not back  ── shared    the deadline counts
 *     another boot of the kernel, and both its clocks went back     ── rebooted  its lease is over
 *     anything else                                                 ── apart     a full lease time from now on counts
 */
import { areOfTwoBoots, FIRST_TIME_SPACE } from '../../host/index.ts';

export interface ClockIdentity {
  /** The boot id; `faked` where a container shows one of its own. */
  readonly boot: string;
  readonly timeSpace: string;
  /**
   * How long the machine slept: the clock that counts suspend, minus the one that does not. Null where the system does
   * not tell.
   */
  readonly suspendedMs: number | null;
}

export interface Reading extends ClockIdentity {
  readonly monotonicMs: number;
}

export type ClockRelation = 'shared' | 'rebooted' | 'apart';

/** The kernel gives one of the clocks in steps of 10 ms, and a process may be held up between reading the two. */
export const SUSPENDED_TOLERANCE_MS = 50;
/** Another process may have been held up between reading its clock and writing. */
export const BACK_TOLERANCE_MS = 10_000;

/** Whether these are the same clock: two readings differ by no more than the time between them. */
export function isSameClock(one: ClockIdentity, other: ClockIdentity): boolean {
  if (one.boot !== other.boot || one.timeSpace !== other.timeSpace) return false;
  if (one.suspendedMs === null || other.suspendedMs === null) return one.suspendedMs === other.suspendedMs;
  return Math.abs(one.suspendedMs - other.suspendedMs) <= SUSPENDED_TOLERANCE_MS;
}

/** `theirs` is the latest reading that the store remembers of a clock, `own` is what this process reads now. */
export function clockRelation(own: Reading, theirs: Reading): ClockRelation {
  const isBack = own.monotonicMs + BACK_TOLERANCE_MS < theirs.monotonicMs;
  if (isSameClock(own, theirs)) return isBack ? 'apart' : 'shared';
  return hasRebootedSince(own, theirs) ? 'rebooted' : 'apart';
}

/**
 * Another boot id alone is no proof of a reboot: a container may show its own (`faked`). The time since boot is no
 * proof either: lxcfs shows each container the time since that container started. The monotonic clock is the kernel's,
 * but a library can shift it (faketime). All three together do not change while a machine runs.
 */
function hasRebootedSince(own: Reading, theirs: Reading): boolean {
  if (!areOfTwoBoots(own.boot, theirs.boot)) return false;
  if (own.timeSpace !== theirs.timeSpace || own.timeSpace !== FIRST_TIME_SPACE) return false;
  if (own.suspendedMs === null || theirs.suspendedMs === null) return false;
  const isMonotonicBack = own.monotonicMs + BACK_TOLERANCE_MS < theirs.monotonicMs;
  const isUptimeBack = own.monotonicMs + own.suspendedMs + BACK_TOLERANCE_MS < theirs.monotonicMs + theirs.suspendedMs;
  return isMonotonicBack && isUptimeBack;
}
