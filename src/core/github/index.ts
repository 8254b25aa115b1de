export {
  acquire,
  type Acquired,
  type AcquireRequest,
  type AcquireSettings,
  type Held,
  type Line,
  type Refusal,
} from './acquire.ts';
export type { Strategy } from '../strategy.ts';
export { completionComment, markOf, metadataComment, takenOverComment } from './projection.ts';
export {
  type Answer,
  type AnswerTo,
  type Ask,
  ask,
  askAll,
  type CommentSeen,
  type CommitSeen,
  type Instant,
  isPast,
  type IssueSeen,
  later,
  type Procedure,
  type Question,
  type QuestionOf,
  type RefMove,
  type RefSeen,
  type Reply,
} from './question.ts';
export {
  GRACE_MS,
  isStale,
  issueOfRef,
  type LockMetadata,
  LOCKS,
  lockRef,
  type LockRecord,
  marginMs,
  messageOf,
  recordIn,
  type TaskInfo,
} from './record.ts';
export { type BranchMove, branchProblem, publish, type Published } from './publish.ts';
export { release, type Released } from './release.ts';
export { type Lost, renew, type Renewed, type RenewSettings } from './renew.ts';
export { type Swap, swap, type Swapped } from './swap.ts';
export {
  capacityOf,
  COMMENT_EVERY_MS,
  commentEveryMs,
  fits,
  heartbeatEveryMs,
  type LiveLock,
  liveLocks,
  mayStay,
  timeoutsOf,
} from './budget.ts';
export { problemIn, type Settings } from './settings.ts';
export { inQueue, isPriority, priorityOf, type PriorityWord, type QueueEntry, queueOf, type Ticket } from './queue.ts';
