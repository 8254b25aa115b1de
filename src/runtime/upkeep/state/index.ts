export {
  type SavedHold,
  type SavedLock,
  type SavedLockHold,
  type SavedPipeline,
  type SavedSemaphore,
  type SavedSemaphoreHold,
  type SavedState,
  type SavedTask,
  STATE_FILES,
  stateOf,
} from './document.ts';
export { readState, writeState } from './files.ts';
export { type Conflict, loadInto, type LoadOutcome } from './load.ts';
export { restOf } from './rest.ts';
