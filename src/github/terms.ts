/** Types of the lock manager's options and answers, and the checks of options before it asks GitHub. */
import type { Clock } from '../clock.ts';
import {
  isPriority,
  type LockMetadata,
  type PriorityWord,
  problemIn,
  type Settings,
  type Strategy,
  type TaskInfo,
} from '../core/github/index.ts';
import { refuseInvalid, shown } from '../failure.ts';
import type { LockCache } from './cache.ts';
import type { GitHubClient } from './client.ts';
import type { GitHubHold } from './hold.ts';
import type { OctokitClientOptions } from './octokit-client.ts';
import type { LockReason } from './reason.ts';

/** What to do if another worker has the issue. */
export const ConflictStrategy = {
  /** Tries again after 1, 2, 4, 8 and 16 s. Leaves a stale lock alone. */
  RETRY: 'retry',
  FAIL_FAST: 'fail-fast',
  /** Like RETRY, but takes a lock that its holder did not renew in time. */
  STEAL_STALE: 'steal-stale',
  /** Takes it from its holder. For administrators, with a reason. */
  FORCE_ACQUIRE: 'force',
} as const satisfies Record<string, Strategy>;
/** What to do if another worker has the issue. */
export type ConflictStrategy = Strategy;

/** How a lock manager works. */
export interface LockManagerOptions extends OctokitClientOptions, Partial<Settings> {
  /** How to reach GitHub; by default through its REST and GraphQL APIs. */
  readonly client?: GitHubClient;
  /** The clock; by default the system's. */
  readonly clock?: Clock;
  /** A cache of lock information for display. The manager never reads it for a decision. */
  readonly cache?: LockCache;
  /** Called with messages that a person should read. */
  readonly onWarning?: (message: string) => void;
  /** Called with messages that only help to find a mistake. */
  readonly onDebug?: (message: string) => void;
}

/** Who locks an issue, and how. */
export interface AcquireOptions {
  /** Who holds it. Two workers on one account are two holders. */
  readonly workerId: string;
  /** The machine or the runner. */
  readonly nodeId: string;
  /** Public on the issue: put no secrets here. */
  readonly taskInfo?: TaskInfo;
  /** What to do if another worker has it; RETRY if not given. */
  readonly conflictStrategy?: ConflictStrategy;
  /** Needed for FORCE_ACQUIRE. Public. */
  readonly reason?: string;
  /** Waits in the queue. Advisory: workers that do not use the queue ignore it. */
  readonly queue?: boolean;
  /** The place in the queue; higher goes first. */
  readonly priority?: PriorityWord | number;
  /** The lock is stale after this time without a renewal; 5 min if not given. */
  readonly lockTimeoutMs?: number;
  /** Ends the wait when it aborts. */
  readonly signal?: AbortSignal;
}

/** Why it did not succeed. */
export interface Refused {
  readonly success: false;
  readonly error: string;
  readonly reason: LockReason;
}

/** The answer of `acquireLock`. */
export type LockResult = { readonly lockId: number } & (
  | { readonly success: true; readonly token: number; readonly lock: GitHubHold }
  | Refused
);

/** The answer of `acquireMany`. */
export type ManyResult = { readonly lockIds: readonly number[] } & (
  | { readonly success: true; readonly locks: readonly GitHubHold[] }
  | Refused
);

/** The answer of `releaseLock`. */
export type ReleaseResult = { readonly lockId: number } & ({ readonly success: true } | Refused);

/** Whether an issue is locked, and by whom. */
export interface LockStatus {
  /** Whether a worker has it. */
  readonly isLocked: boolean;
  /** The account in the lock's record. */
  readonly assignee: string | null;
  /** What the holder said about itself and its task. */
  readonly metadata: { readonly lock: LockMetadata } | null;
  /** The fencing token of the last holder. */
  readonly token: number;
  /** Whether its holder did not renew it in time, so that STEAL_STALE may take it. */
  readonly isStale: boolean;
}

/** A locked issue. */
export interface LockedIssue extends LockStatus {
  /** Its number. */
  readonly issue: number;
  /** Its title, if it is known. */
  readonly title: string | null;
}

const DEFAULTS: Settings = {
  ...{ maxRetries: 5, initialBackoffMs: 1_000, maxBackoffMs: 16_000 },
  ...{ heartbeatIntervalMs: 30_000, lockTimeoutMs: 300_000 },
};
const LONGEST_NAME = 200;
const LARGEST_INFO = 8 * 1024;

export function settingsOf(options: LockManagerOptions): Settings {
  const given = Object.fromEntries(
    Object.keys(DEFAULTS).flatMap((key) => {
      const value = options[key as keyof Settings];
      return value === undefined ? [] : [[key, value]];
    }),
  );
  const settings = { ...DEFAULTS, ...given };
  refuseInvalid(problemIn(settings));
  return settings;
}

export function problemWith(issues: readonly number[], options: AcquireOptions): string | undefined {
  if (issues.length === 0) return 'no issue is named';
  const bad = issues.find((issue) => !Number.isSafeInteger(issue) || issue < 1);
  if (bad !== undefined) return `the issue is ${shown(bad)}; expected a whole number from 1`;
  for (const name of ['workerId', 'nodeId'] as const) {
    const value: unknown = options[name];
    if (typeof value !== 'string' || value === '' || value.length > LONGEST_NAME || /\p{Cc}/u.test(value))
      return `${name} is ${shown(value)}; expected 1 to ${LONGEST_NAME} printable characters`;
  }
  const { conflictStrategy = ConflictStrategy.RETRY, reason, taskInfo } = options;
  if (!Object.values<string>(ConflictStrategy).includes(conflictStrategy))
    return `conflictStrategy is ${shown(conflictStrategy)}; expected ${Object.values(ConflictStrategy).join(', ')}`;
  if (conflictStrategy === ConflictStrategy.FORCE_ACQUIRE && (reason === undefined || reason.trim() === ''))
    return 'FORCE_ACQUIRE needs a reason, which is shown on the issue';
  if (options.priority !== undefined && !isPriority(options.priority))
    return `priority is ${shown(options.priority)}; expected high, medium, low, and numbers from -100 to 100`;
  if (reason !== undefined && reason.length > 1_000) return 'the reason is longer than 1,000 characters';
  if (taskInfo !== undefined && JSON.stringify(taskInfo).length > LARGEST_INFO)
    return `taskInfo is larger than ${LARGEST_INFO} characters`;
  return undefined;
}
