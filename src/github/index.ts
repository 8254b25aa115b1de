export type { BudgetView } from './budget.ts';
export {
  CACHE_NAMESPACE,
  type CachedLock,
  type CallTool,
  type LockCache,
  memoryCache,
  type MemoryCacheOptions,
  storeCache,
} from './cache.ts';
export type { AssignedIssue, GitHubClient, Tip } from './client.ts';
export { GitHubHold, LockLost, type LossReason, type PublishOutcome, type ReleaseOutcome } from './hold.ts';
export { LockManager } from './lock-manager.ts';
export type { MemoryServer } from './memory-server.ts';
export type { LockMetrics } from './metrics.ts';
export { OctokitClient, type OctokitClientOptions } from './octokit-client.ts';
export type { LockReason } from './reason.ts';
export {
  type AcquireOptions,
  ConflictStrategy,
  type LockedIssue,
  type LockManagerOptions,
  type LockResult,
  type LockStatus,
  type ManyResult,
  type ReleaseResult,
} from './terms.ts';
export type {
  BranchMove,
  CommentSeen,
  CommitSeen,
  IssueSeen,
  LockMetadata,
  PriorityWord,
  QueueEntry,
  RefMove,
  RefSeen,
  Reply,
  TaskInfo,
} from '../core/github/index.ts';
