/** The pure machines: everything that is decided is decided here, and nothing here touches a clock, a store or chance. */

export {
  allows,
  isExpired,
  LONGEST_TOKEN_NAME,
  mayActFor,
  type Role,
  ROLES,
  type TokenEntry,
  tokenHolder,
  tokenProblem,
} from './access/access.ts';
export { type Deadlock, deadlockSearch, findDeadlocks } from './deadlock/find.ts';
export type { Resource } from './deadlock/pool.ts';
export { eventNames, patternProblem } from './event-names.ts';
export { DURATIONS, durationMs, LONGEST_MS, spoken } from './duration.ts';
export {
  all,
  any,
  branchClean,
  branchExists,
  branchMerged,
  branchNotExists,
  command,
  fileContains,
  fileExists,
  fileNotExists,
  issuesComplete,
  issueStatus,
  lockFree,
  lockHeld,
  memberAlive,
  noBlockedIssues,
  not,
  pipelineComplete,
  pipelineInPhase,
  semaphoreAvailable,
  sessionAlive,
  taskDone,
  worktreeClean,
} from './guard/constructors.ts';
export { checkGuard, type Guard, type GuardOutcome, type OnFailure, wakesOn } from './guard/guard.ts';
export {
  type CommandLine,
  type Condition,
  type IssueFields,
  type IssueFilter,
  type IssueId,
  type IssueSearch,
  issueStatuses,
  type IssueStatus,
} from './guard/condition.ts';
export { evaluate, type Missing, type Verdict } from './guard/evaluate.ts';
export { explain, type Explanation, renderExplanation } from './guard/explain.ts';
export type {
  Gathered,
  Input,
  InputKey,
  InputKind,
  Inputs,
  InputValues,
  WorktreeOperation,
  WorktreeState,
} from './guard/inputs.ts';
export { conditionProblem, guardProblem } from './guard/guard-problem.ts';
export { isOwn, type Own, type ToldEvent } from './guard/wakes.ts';
export { matches, polledInputs, wakePatterns, type Waking, wakingOf } from './guard/wake.ts';
export { needsCommands } from './guard/commands-last.ts';
export type { Outlook } from './guard/findings.ts';
export { parseCondition, type ParsedCondition } from './guard/parse.ts';
export { type RegexSearch, regexSearches } from './guard/regex-searches.ts';
export { requiredInputs } from './guard/required-inputs.ts';
export { DETACHED_TTL_MS, isAbout, renewWithinMs, TICKET_MS, wasCollected } from './detached.ts';
export { type Limits, type Settings, settingsProblem } from './settings.ts';
export { type Claim, type Hold, isStale, type OnStale } from './hold.ts';
export type { Loss, LossReason } from './loss.ts';
export {
  agentHolder,
  type HolderKind,
  holderOf,
  jobHolder,
  pipelineHolder,
  userHolder,
  workerHolder,
} from './holder.ts';
export {
  freeLock,
  isFree,
  isHeldBy,
  type Lock,
  type LockCommand,
  type LockHold,
  type LockMode,
  type LockOutcome,
  type LockRecord,
  type LockRequest,
  type LockStep,
  lockTransition,
  staleHolds,
} from './lock.ts';
export {
  type AsJson,
  type Answer,
  type Event,
  joined,
  type Json,
  type Moment,
  NONE,
  type Origin,
  type Request,
  type Step,
  type Token,
  withMost,
} from './machine.ts';
export type {
  AcquireTogether,
  Asking,
  Extend,
  LockAsk,
  ManagerCommand,
  Renew,
  ResourceCommand,
  SemaphoreAsk,
  TogetherPart,
} from './manager/command.ts';
export { buildInputs, type BuiltInputs, registerGuard, unregisterGuard, wokenBy } from './manager/guards.ts';
export {
  describeLock,
  describeSemaphore,
  type HoldView,
  type LockView,
  type SemaphoreView,
  type WaitView,
} from './manager/describe.ts';
export {
  emptyManager,
  getGuard,
  getLock,
  getSemaphore,
  type Handled,
  type HoldOf,
  type Manager,
  type ManagerAnswer,
  type ManagerClock,
  type ManagerEvent,
  type ManagerLoss,
  type ManagerOutcome,
  momentOf,
  names,
  type OutcomeOf,
  type ResourceName,
} from './manager/manager.ts';
export { ensureLock, ensureSemaphore } from './manager/ensure.ts';
export { handle } from './manager/handle.ts';
export { HEARTBEAT_EVERY_MS, type Lease, STALE_AFTER_MS } from './manager/lease.ts';
export { maintain, reclaimStale, tick } from './manager/sweep.ts';
export { LARGEST_OUTPUTS_BYTES, outputNameProblem, parseOutputs, type ParsedOutputs } from './pipeline/outputs.ts';
export { parseGuard, type ParsedGuard } from './pipeline/parse-guard.ts';
export { parseRunbook, type ParsedRunbook } from './pipeline/parse.ts';
export { type Choice, CHOICES, openQuestion, type VoidAnswer, whyVoid } from './pipeline/question.ts';
export {
  type DriverCommand,
  type Effect,
  effectOf,
  type PhaseResult,
  type PipelineCommand,
  type PipelineOutcome,
  type PipelineTransition,
} from './pipeline/command.ts';
export { pipelineTransition } from './pipeline/pipeline.ts';
export {
  type Blocked,
  type BlockingGuard,
  currentPhase,
  type Driver,
  canBeDriven,
  type ExpectedPipeline,
  hasEnded,
  isAsExpected,
  type PhaseRecord,
  PIPELINE_STATES,
  type PipelineRecord,
  type PipelineStep,
  readRecord,
  type ReadRecord,
  type StoredRecord,
} from './pipeline/record.ts';
export { reopenProblem } from './pipeline/reopen.ts';
export { DEFAULT_BACKOFF_MS, type Phase, type PhaseHold, type PhaseWork, type Runbook } from './pipeline/runbook.ts';
export {
  conditionWithVariables,
  type Filled,
  runbookVariables,
  type Variable,
  withVariables,
} from './pipeline/variables.ts';
export { waitsForItsTurn } from './pipeline/own-turn.ts';
export {
  type Asset,
  changeBetween,
  coordinatorOf,
  isNothing,
  type Member,
  type MemberUpdate,
  NO_VIEW,
  updated,
  type View,
  type ViewChange,
  type ViewMember,
  viewOf,
} from './members/view.ts';
export {
  type AssetChange,
  type AssetTaken,
  decideAssets,
  decideMove,
  ownersOf,
  type RecordedAsset,
} from './members/assets.ts';
export {
  type Broadcasts,
  type BroadcastStep,
  newBroadcasts,
  sameTopology,
  sendingFailed,
  timeIsUp,
  type Topology,
  topologyChanged,
  type TopologyMember,
  topologyOf,
} from './members/topology.ts';
export { ownerOf } from './members/placement.ts';
export { LONGEST_NAME, nameProblem } from './name.ts';
export { type Wish, faultOf, grantFault, isDrain, recordProblem, ticketCheck } from './fault.ts';
export { type Cycle, formsOf, nextInLine, type Passed, passing, type Waiting, type WaitsFor } from './queue.ts';
export { type Drain, type DrainOutcome, drainTold, withDrain } from './drain.ts';
export { LARGEST_RECORD_BYTES, saidBytes, type TooLarge } from './record-size.ts';
export {
  type Asked,
  documentProblem,
  HIGHEST_PRIORITY,
  LARGEST_METADATA_BYTES,
  LOWEST_PRIORITY,
  requestProblem,
} from './request.ts';
export {
  availableSlots,
  canAcquire,
  newSemaphore,
  type Semaphore,
  type SemaphoreCommand,
  type SemaphoreHold,
  type SemaphoreOutcome,
  type SemaphoreRecord,
  type SemaphoreRequest,
  type SemaphoreStep,
  semaphoreTransition,
  staleHolders,
  usedSlots,
  unusedSemaphore,
} from './semaphore.ts';
export { isSlots, slotNumbers, type Slots, slotsOf } from './slots.ts';
export { runAtOnce, type Steps } from './steps.ts';
export { isCount, isRecord, isTime, type Path, type Problem, shapeProblem } from './shape.ts';
export { shown } from './shown.ts';
export {
  type Blocker,
  blockersOf,
  BACKOFF_OWNER,
  blockerTold,
  claimEntryOf,
  isBackingOff,
  isFinished,
  isOrphaned,
  isOwned,
  NO_BOOKKEEPING,
  statusOf,
  type Task,
  type TaskBookkeeping,
  type TaskClaimEntry,
  type TaskData,
  type TaskEnd,
  type TaskOwner,
  type TaskStatus,
  unpublished,
  unreadableIn,
} from './task/task.ts';
export {
  backoffAfter,
  DEFAULT_LOSS_LIMIT,
  hasTerms,
  lacking,
  LARGEST_DATA_BYTES,
  NO_TERMS,
  type Terms,
  termsOf,
  withTerms,
} from './task/terms.ts';
export {
  type ClaimName,
  type ClaimRefusal,
  type ClaimRequest,
  claimUntouched,
  decideClaim,
  decideEnd,
  decideForget,
  decideRepair,
  decideRequeue,
  type Ending,
  type ForgetRefusal,
  type NotOwner,
  notOwner,
  type LostTooOften,
  type RequeueRefusal,
  type TaskWrite,
} from './task/decide.ts';
export {
  acquireTogether,
  type Grant,
  type LockAcquire,
  type NamedStep,
  type Part,
  type Refusal,
  type SemaphoreAcquire,
  type Together,
} from './together.ts';
export { plainName, type Wanted, type WantedLock, wantedLock, type WantedSlots, wantedSlots } from './wanted.ts';
export {
  type ChainHead,
  type Checkpoint,
  checkpointAnchor,
  checkpointLine,
  checkpointProblem,
  type CheckpointSignature,
  coveredHead,
  type CoveredHead,
  type Digest,
  emptyChain,
  endLine,
  entered,
  enteredText,
  entryHash,
  entryLine,
  entryProblem,
  entryText,
  type ExportEnd,
  type ExportHeader,
  type Finding,
  type FindingKind,
  headerLine,
  type HashedValue,
  type InclusionProof,
  LARGEST_VALUE_BYTES,
  nextCheckpoint,
  nextEntry,
  type NextEntry,
  proofOf,
  proofProblem,
  type Proving,
  type Signer,
  type Verification,
  type VerifiedCounts,
  Verifier,
  type VerifierOptions,
  type VerifySignature,
  type Witnessed,
  type WitnessedCommand,
  type WitnessEntry,
} from './witness/index.ts';
