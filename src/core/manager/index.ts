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
} from './command.ts';
export {
  describeLock,
  describeSemaphore,
  type HoldView,
  type LockView,
  type SemaphoreView,
  type WaitView,
} from './describe.ts';
export { ensureLock, ensureSemaphore } from './ensure.ts';
export { buildInputs, type BuiltInputs, registerGuard, unregisterGuard, wokenBy } from './guards.ts';
export { handle } from './handle.ts';
export { HEARTBEAT_EVERY_MS, type Lease, STALE_AFTER_MS } from './lease.ts';
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
} from './manager.ts';
export { maintain, reclaimStale, tick } from './sweep.ts';
