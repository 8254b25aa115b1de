/** What callers of the lock manager give and get, and what it refuses before it asks GitHub. */
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
import { Failure, shown } from '../failure.ts';
import type { LockCache } from './cache.ts';
import type { GitHubClient } from './client.ts';
import type { GitHubHold } from './hold.ts';
import type { OctokitClientOptions } from './octokit-client.ts';
import type { LockReason } from './reason.ts';

export const ConflictStrategy = {
  /** Waits 1, 2, 4, 8 and 16 s. A stale lock is left alone. */
  RETRY: 'retry',
  FAIL_FAST: 'fail-fast',
  /** As RETRY, but takes a lock that its holder has not renewed in time. */
  STEAL_STALE: 'steal-stale',
  /** Takes it from whoever has it. For administrators, with a reason. */
  FORCE_ACQUIRE: 'force',
} as const satisfies Record<string, Strategy>;
export type ConflictStrategy = Strategy;

export interface LockManagerOptions extends OctokitClientOptions, Partial<Settings> {
  readonly client?: GitHubClient;
  readonly clock?: Clock;
  /** Where lock information is also kept, for display. Never read for a decision. */
  readonly cache?: LockCache;
  readonly onWarning?: (message: string) => void;
  readonly onDebug?: (message: string) => void;
}

export interface AcquireOptions {
  /** Who holds it. Two workers on one account are two holders. */
  readonly workerId: string;
  /** The machine or the runner. */
  readonly nodeId: string;
  /** Public on the issue: put no secrets here. */
  readonly taskInfo?: TaskInfo;
  readonly conflictStrategy?: ConflictStrategy;
  /** Needed for FORCE_ACQUIRE. Public. */
  readonly reason?: string;
  /** Stand in line. Advisory: workers that do not use the queue do not see it. */
  readonly queue?: boolean;
  readonly priority?: PriorityWord | number;
  readonly lockTimeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type LockResult =
  | { readonly success: true; readonly lockId: number; readonly token: number; readonly lock: GitHubHold }
  | { readonly success: false; readonly lockId: number; readonly error: string; readonly reason: LockReason };

export type ManyResult =
  | { readonly success: true; readonly lockIds: readonly number[]; readonly locks: readonly GitHubHold[] }
  | {
      readonly success: false;
      readonly lockIds: readonly number[];
      readonly error: string;
      readonly reason: LockReason;
    };

export type ReleaseResult =
  | { readonly success: true; readonly lockId: number }
  | { readonly success: false; readonly lockId: number; readonly error: string; readonly reason: LockReason };

export interface LockStatus {
  readonly isLocked: boolean;
  /** The account that the lock's record names. */
  readonly assignee: string | null;
  readonly metadata: { readonly lock: LockMetadata } | null;
  readonly token: number;
  /** Not renewed in time: STEAL_STALE may take it. */
  readonly isStale: boolean;
}

export interface LockedIssue extends LockStatus {
  readonly issue: number;
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
  const problem = problemIn(settings);
  if (problem !== undefined) throw new Failure('invalid', problem);
  return settings;
}

export function problemWith(issues: readonly number[], options: AcquireOptions): string | undefined {
  if (issues.length === 0) return 'no issue is named';
  const bad = issues.find((issue) => !Number.isSafeInteger(issue) || issue < 1);
  if (bad !== undefined) return `the issue is ${shown(bad)}; accepted is a whole number from 1`;
  for (const name of ['workerId', 'nodeId'] as const) {
    const value: unknown = options[name];
    if (typeof value !== 'string' || value === '' || value.length > LONGEST_NAME || /\p{Cc}/u.test(value))
      return `${name} is ${shown(value)}; accepted are 1 to ${LONGEST_NAME} printable characters`;
  }
  const { conflictStrategy = ConflictStrategy.RETRY, reason, taskInfo } = options;
  if (!Object.values<string>(ConflictStrategy).includes(conflictStrategy))
    return `conflictStrategy is ${shown(conflictStrategy)}; accepted are ${Object.values(ConflictStrategy).join(', ')}`;
  if (conflictStrategy === ConflictStrategy.FORCE_ACQUIRE && (reason === undefined || reason.trim() === ''))
    return 'FORCE_ACQUIRE needs a reason, which is shown on the issue';
  if (options.priority !== undefined && !isPriority(options.priority))
    return `priority is ${shown(options.priority)}; accepted are high, medium, low, and numbers from -100 to 100`;
  if (reason !== undefined && reason.length > 1_000) return 'the reason is longer than 1,000 characters';
  if (taskInfo !== undefined && JSON.stringify(taskInfo).length > LARGEST_INFO)
    return `taskInfo is larger than ${LARGEST_INFO} characters`;
  return undefined;
}
