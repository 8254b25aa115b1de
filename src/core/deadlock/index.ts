export { type Deadlock, deadlockSearch, findDeadlocks, needsLook } from './find.ts';
export type { Resource } from './pool.ts';
