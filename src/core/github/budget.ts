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

export function maxHeartbeatMs({ lockTimeoutMs }: Pick<Pace, 'lockTimeoutMs'>): number {
  return lockTimeoutMs / 3;
}

/** How many processes may hold locks at once. */
export function capacityOf(pace: Pick<Pace, 'lockTimeoutMs'>): number {
  return Math.max(1, Math.floor((RENEWALS_PER_HOUR * maxHeartbeatMs(pace)) / HOUR_MS));
}

/** `renewals`: how many processes renew locks with this token. */
export function heartbeatEveryMs(pace: Pace, renewals: number): number {
  const needed = Math.ceil((renewals * HOUR_MS) / RENEWALS_PER_HOUR);
  return Math.min(maxHeartbeatMs(pace), Math.max(pace.heartbeatIntervalMs, needed));
}

/** Undefined: not at all. */
export function commentEveryMs(locks: number): number | undefined {
  if (locks > MOST_WITH_EDITS) return undefined;
  return Math.max(COMMENT_EVERY_MS, Math.ceil((locks * HOUR_MS) / EDITS_PER_HOUR));
}

export interface LiveLock {
  readonly issue: number;
  readonly tip: string;
  readonly record: LockRecord;
}

export function liveLocks(
  locks: readonly (LiveLock & { readonly dateMs: number })[],
  serverMs: number,
): readonly LiveLock[] {
  return locks.filter(({ record, dateMs }) => record.state === 'held' && !isStale(record, dateMs, serverMs));
}

/** Locks of one process share their tip, and so their renewals. */
export function renewalsOf(locks: readonly LiveLock[]): number {
  return new Set(locks.map(({ tip }) => tip)).size;
}

/**
 * Whether the process of `issue` is among the first that the budget carries. All who look see the same order, so that of
 * many who came at once just the last ones leave.
 */
export function mayStay(locks: readonly LiveLock[], issue: number, capacity: number): boolean {
  if (renewalsOf(locks) <= capacity) return true;
  const own = locks.find((one) => one.issue === issue);
  const inOrder = [...locks].sort((one, other) => {
    const [first, second] = [one.record.lock.claimed_at, other.record.lock.claimed_at];
    return first === second ? one.issue - other.issue : first < second ? -1 : 1;
  });
  const first = new Set<string>();
  for (const { tip } of inOrder) if (first.size < capacity) first.add(tip);
  return own === undefined || first.has(own.tip);
}
