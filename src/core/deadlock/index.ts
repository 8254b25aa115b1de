export { type Deadlock, findDeadlocks, needsLook } from './find.ts';
export type { Resource } from './pool.ts';
