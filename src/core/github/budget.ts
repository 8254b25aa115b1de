/**
 * How many locks one token carries. A renewal is two requests (a commit, and the move of the refs), however many locks
 * a process has. GitHub allows 5,000 requests an hour; renewals take at most 3,600 of them (72 %), edits of comments
 * 240, and what is left to 80 % is for acquiring and releasing.
 *
 *     processes with locks     heartbeat     requests/h     a dead holder is noticed after
 *     1 to 15                  30 s          up to 3,600    timeout + 5 s
 *     16 to 50                 32 to 100 s   3,600          timeout + 5 s
 *     51 and more              refused
 */
import { isStale, type LockRecord } from './record.ts';

const HOUR_MS = 3_600_000;
const RENEWALS_PER_HOUR = 1_800;
const EDITS_PER_HOUR = 240;
/** Above this there is nothing left for edits. */
const MOST_WITH_EDITS = 25;
export const COMMENT_EVERY_MS = 120_000;

interface Pace {
  readonly heartbeatIntervalMs: number;
  readonly lockTimeoutMs: number;
}

export interface LiveLock {
  readonly issue: number;
  readonly tip: string;
  readonly record: LockRecord;
}

/** The longest pause between two heartbeats: two of them may get lost. */
export function maxHeartbeatMs(timeoutMs: number): number {
  return timeoutMs / 3;
}

/** How many processes with this timeout may hold locks at once. */
export function capacityOf(timeoutMs: number): number {
  return Math.max(1, Math.floor((RENEWALS_PER_HOUR * maxHeartbeatMs(timeoutMs)) / HOUR_MS));
}

/** Renewals in an hour at this pause, or at the longest that each timeout allows. */
function renewals(timeoutsMs: readonly number[], everyMs: number): number {
  return timeoutsMs.reduce((sum, timeoutMs) => sum + HOUR_MS / Math.min(everyMs, maxHeartbeatMs(timeoutMs)), 0);
}

/** Whether the token carries processes with these timeouts, if all of them stretch their heartbeats. A single one always fits. */
export function fits(timeoutsMs: readonly number[]): boolean {
  return timeoutsMs.length <= 1 || renewals(timeoutsMs, Number.POSITIVE_INFINITY) <= RENEWALS_PER_HOUR;
}

/** `timeoutsMs`: of every process that renews locks with this token. */
export function heartbeatEveryMs(pace: Pace, timeoutsMs: readonly number[]): number {
  const longestMs = maxHeartbeatMs(pace.lockTimeoutMs);
  let low = Math.min(pace.heartbeatIntervalMs, longestMs);
  if (renewals(timeoutsMs, low) <= RENEWALS_PER_HOUR) return low;
  let high = longestMs;
  if (renewals(timeoutsMs, high) > RENEWALS_PER_HOUR) return high;
  while (high - low > 1) {
    const middle = (low + high) / 2;
    if (renewals(timeoutsMs, middle) <= RENEWALS_PER_HOUR) high = middle;
    else low = middle;
  }
  return Math.ceil(high);
}

/** The pause between two edits of a comment; undefined: no edits at all. */
export function commentEveryMs(locks: number): number | undefined {
  if (locks > MOST_WITH_EDITS) return undefined;
  return Math.max(COMMENT_EVERY_MS, Math.ceil((locks * HOUR_MS) / EDITS_PER_HOUR));
}

export function liveLocks(
  locks: readonly (LiveLock & { readonly dateMs: number })[],
  serverMs: number,
): readonly LiveLock[] {
  return locks.filter(({ record, dateMs }) => record.state === 'held' && !isStale(record, dateMs, serverMs));
}

/** The timeout of each process. Locks of one process share their tip, and so their renewals. */
export function timeoutsOf(locks: readonly LiveLock[]): readonly number[] {
  const byTip = new Map<string, number>();
  for (const { tip, record } of locks) byTip.set(tip, Math.min(byTip.get(tip) ?? record.timeout_ms, record.timeout_ms));
  return [...byTip.values()];
}

/**
 * Whether the process of `issue` is among the first that the budget carries. All processes see the same order, so if too many
 * come at once, only the last ones leave.
 */
export function mayStay(locks: readonly LiveLock[], issue: number): boolean {
  const own = locks.find((one) => one.issue === issue);
  if (own === undefined || fits(timeoutsOf(locks))) return true;
  const inOrder = [...locks].sort((one, other) => {
    const [first, second] = [one.record.lock.claimed_at, other.record.lock.claimed_at];
    return first === second ? one.issue - other.issue : first < second ? -1 : 1;
  });
  const upToOwn = inOrder.slice(0, inOrder.findIndex(({ tip }) => tip === own.tip) + 1);
  return fits(timeoutsOf(upToOwn));
}
