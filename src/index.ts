/** signalbox keeps workers, CI jobs and coding agents from stepping on each other. */

export {
  type Adapters,
  type AddOutcome,
  type CommandResult,
  type Commands,
  type Files,
  type Git,
  githubIssues,
  type GitHubIssuesOptions,
  type IssueChanges,
  type Issues,
  localAdapters,
  type LocalAdaptersOptions,
  type NewIssue,
  openTracker,
  type Sessions,
  type TrackedIssue,
  type Tracker,
  type UpdateOutcome,
} from './adapters/index.ts';
export { type Clock, type Timer } from './clock.ts';
export {
  all,
  any,
  branchClean,
  branchExists,
  branchMerged,
  branchNotExists,
  command,
  type Condition,
  type Explanation,
  fileContains,
  fileExists,
  fileNotExists,
  type Guard,
  type GuardOutcome,
  type Inputs,
  issuesComplete,
  issueStatus,
  lockFree,
  lockHeld,
  memberAlive,
  noBlockedIssues,
  not,
  type OnFailure,
  type Outlook,
  parseCondition,
  pipelineComplete,
  pipelineInPhase,
  renderExplanation,
  semaphoreAvailable,
  sessionAlive,
  taskDone,
  worktreeClean,
  type Verdict,
  type Asset,
  type AssetTaken,
  type Member,
  type Topology,
  type TopologyMember,
  type View,
  type ViewChange,
  type ViewMember,
  agentHolder,
  jobHolder,
  pipelineHolder,
  userHolder,
  workerHolder,
  type Blocker,
  type ClaimName,
  type ClaimRefusal,
  type Cycle,
  type Json,
  type Limits,
  type LockMode,
  type LossReason,
  type OnStale,
  type Role,
  type Settings,
  type Slots,
  type TaskStatus,
  type Token,
  type TokenEntry,
} from './core/index.ts';
export { Failure, type FailureCode } from './failure.ts';
export type { WaitOptions, WaitStatus } from './runtime/holds/wait-limits.ts';
export type {
  Bus,
  BusCompare,
  BusHealth,
  BusOperation,
  BusPair,
  BusResult,
  BusTransactionResult,
} from './runtime/bus/bus.ts';
export { connect, type ConnectOptions } from './runtime/bus/connect.ts';
export type { BusEvent, BusHandler } from './runtime/bus/watcher.ts';
export type { KeptAnswer, OnceKeys, OnceOutcome } from './runtime/access/once.ts';
export type { AccessTokens, TokenTerms, TokenView } from './runtime/access/tokens.ts';
export type { EventLog, EventLogListener } from './runtime/observe/event-log.ts';
export type { EventSource } from './runtime/observe/events.ts';
export type { Log, LogFields } from './runtime/log.ts';
export type { Denials } from './runtime/observe/denials.ts';
export type { Durations, LockMetrics, Metrics, ResourceMetrics } from './runtime/observe/metrics.ts';
export type { Measured, Occurrence, StepFields, StepName, Trace, Tracer } from './runtime/tracer.ts';
export type {
  DeadlockEvent,
  EventFields,
  EventHandler,
  EventOf,
  EventPattern,
  EventType,
  GuardEvent,
  LockAcquiredEvent,
  LockDeniedEvent,
  LockForcedEvent,
  LockHoldEvent,
  CoordinatorEvent,
  MemberEvent,
  TopologyEvent,
  WitnessDamagedEvent,
  WitnessFillingEvent,
  WitnessFailedEvent,
  WitnessTrimmedEvent,
  PipelineBlockedEvent,
  PipelineEndedEvent,
  PipelinePhaseEvent,
  PipelineResumedEvent,
  PipelineStartedEvent,
  QueuedEvent,
  DrainedEvent,
  ResizedEvent,
  UndrainedEvent,
  ResyncEvent,
  SemaphoreAcquiredEvent,
  SemaphoreDeniedEvent,
  SemaphoreForcedEvent,
  SemaphoreHoldEvent,
  SignalboxEvent,
  TaskEvent,
  TaskPublishedEvent,
} from './runtime/observe/event-types.ts';
export type { Collected, CollectOptions, TicketAnswer, TicketClaim, Waiting } from './runtime/holds/tickets.ts';
export type { Strategy } from './core/strategy.ts';
export type { Subscription } from './runtime/subscription.ts';
export type { CheckOptions, GuardExecutor, WatchOptions } from './runtime/guards/executor.ts';
export type { GuardHandler, Guards } from './runtime/guards/guards.ts';
export type { RegisteredGuard } from './runtime/guards/registered.ts';
export type { GuardLook, GuardWaitOptions } from './runtime/guards/wait.ts';
export type { GuardWatch } from './runtime/guards/watch.ts';
export type { ReleaseOutcome, Hold } from './runtime/holds/hold.ts';
export type { LockAttempt, Lock, LockOptions, LockView, LockHold } from './runtime/holds/lock.ts';
export type {
  SemaphoreAttempt,
  Draining,
  DrainResult,
  ResizeResult,
  Resizing,
  Semaphore,
  SemaphoreOptions,
  SemaphoreView,
  Undraining,
  UndrainResult,
  SemaphoreHold,
} from './runtime/holds/semaphore.ts';
export type { NamedResource } from './runtime/holds/resource.ts';
export { storeUrl } from './runtime/location/location.ts';
export type { Swept, SweptHold } from './runtime/upkeep/sweep.ts';
export type { FollowedMembers, HandOver } from './runtime/members/followed-members.ts';
export type { LeadOptions, Term } from './runtime/members/lead.ts';
export type {
  DetachedJoinOptions,
  DetachedJoinOutcome,
  DetachedMember,
  LeaveOutcome,
} from './runtime/members/detached.ts';
export type { JoinOptions, JoinOutcome, JoinTerms, NotJoined } from './runtime/members/joining.ts';
export type { Members } from './runtime/members/members.ts';
export type { MembershipView } from './runtime/members/membership-view.ts';
export type { AssetOptions, Membership } from './runtime/members/membership.ts';
export type { MoveOutcome, RegisterOutcome } from './runtime/members/registering.ts';
export type { BroadcastOptions, TopologyBroadcast } from './runtime/members/topology-broadcast.ts';
export { open, type OpenOptions } from './runtime/open.ts';
export {
  type DefinedRunbook,
  defineRunbook,
  type GuardDefinition,
  type HoldsDefinition,
  type OnFailureDefinition,
  type PhaseDefinition,
  type RunbookDefinition,
  type SlotsDefinition,
  type VariablesDefinition,
} from './runtime/pipelines/define.ts';
export type { PhaseContext, PhaseFunction } from './runtime/pipelines/functions.ts';
export type { PhaseLog } from './runtime/pipelines/log.ts';
export type { Pipelines } from './runtime/pipelines/pipelines.ts';
export type {
  DriveOptions,
  DriveOutcome,
  DriveAllOptions,
  PipelineView,
  ResumeOptions,
  RunOptions as PipelineRunOptions,
  StartOutcome,
} from './runtime/pipelines/terms.ts';
export type { Probe } from './runtime/upkeep/probe.ts';
export { type HeldBy, HoldLost, NotAcquired, type Refusal, type Refused } from './runtime/refusal.ts';
export type {
  ClaimReleaseOutcome,
  DetachedHold,
  DetachedOptions,
  Breaking,
  HoldClaim,
  HolderView,
  ModeOutcome,
  RenewOutcome,
  RequestOptions,
  SettingsView,
} from './runtime/holds/terms.ts';
export type { Signalbox } from './runtime/signalbox.ts';
export type { Conflict, LoadOutcome } from './runtime/upkeep/state/load.ts';
export type {
  SavedHold,
  SavedLock,
  SavedLockHold,
  SavedSemaphore,
  SavedSemaphoreHold,
  SavedPipeline,
  SavedState,
  SavedTask,
} from './runtime/upkeep/state/document.ts';
export type { ListOptions, Malformed } from './runtime/stored.ts';
export type {
  Freshness,
  HoldHealth,
  Survey,
  SurveyedHold,
  SurveyedLock,
  SurveyedLockHold,
  SurveyedSemaphore,
  SurveyedSemaphoreHold,
  SurveyedSession,
  SurveyedWaiter,
  SurveyOptions,
} from './runtime/observe/survey/index.ts';
export type { ForgetOutcome, RequeueOutcome } from './runtime/tasks/unclaimed.ts';
export type { ListOptions as TaskListOptions } from './runtime/tasks/listing.ts';
export type { Retention } from './runtime/tasks/retention.ts';
export type { CompleteOutcome, FailOutcome, TaskClaim, TaskReleaseOutcome } from './runtime/tasks/claim.ts';
export type { DetachedClaim } from './runtime/tasks/dispatch.ts';
export type { TaskHandler, TaskNotice } from './runtime/tasks/notifier.ts';
export type { PublishOptions, PublishOutcome } from './runtime/tasks/publishing.ts';
export type { TaskView } from './runtime/tasks/reading.ts';
export type { TaskWaitOptions } from './runtime/tasks/task-waiters.ts';
export type {
  ClaimAttempt,
  ClaimOptions,
  DetachedClaimOptions,
  ForceOptions,
  ForceOutcome,
  NextAttempt,
  RequeueOptions,
  Tasks,
} from './runtime/tasks/tasks.ts';
export type { HoldSet } from './runtime/holds/hold-set.ts';
export type { TogetherAttempt, TogetherOptions } from './runtime/holds/together-write.ts';
export type { Want } from './runtime/holds/wants.ts';
