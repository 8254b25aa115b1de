/** `signalbox/client`: a store behind `signalbox serve`, for Node and browsers. Needs nothing but `fetch`. */
export { type ConnectOptions } from './requests.ts';
export {
  connect,
  type OwnToken,
  type RemoteCheckOptions,
  type RemoteHistory,
  type RemoteHistoryOptions,
  RemoteSignalbox,
} from './connect.ts';
export { RemoteBus } from './bus.ts';
export { type RemoteEventOptions, RemoteEvents } from './events.ts';
export { RemoteHold, RemoteLockHold, RemoteSemaphoreHold } from './hold.ts';
export { type DetachedLockHold, RemoteLock, type RemoteLockAttempt, type RemoteLockOptions } from './lock.ts';
export {
  RemoteFollowedMembers,
  type RemoteJoinOptions,
  type RemoteJoinOutcome,
  RemoteMembers,
  RemoteMembership,
  type RemoteMoveOptions,
} from './members.ts';
export { type PipelineAnswer, RemotePipelines } from './pipelines.ts';
export { type ProblemDetails, ServerRefusal } from './problem.ts';
export { type RemoteOptions, RemoteResource } from './resource.ts';
export {
  type DetachedSemaphoreHold,
  RemoteSemaphore,
  type RemoteSemaphoreAttempt,
  type RemoteSemaphoreOptions,
} from './semaphore.ts';
export { RemoteClaim } from './task-claim.ts';
export { type RemoteClaimAttempt, type RemoteClaimOptions, RemoteTasks } from './tasks.ts';
export { RemoteTokens } from './tokens.ts';
export { RemoteWitness } from './witness.ts';
export { HoldSet } from '../runtime/holds/hold-set.ts';
export { HoldLost, NotAcquired, type Refusal } from '../runtime/refusal.ts';
export { Failure, type FailureCode } from '../failure.ts';
