/** Laws that locks and semaphores obey, and how to put a machine on trial: for tests, simulators and planted bugs. */
export { lockLaws, lockRules } from './lock.ts';
export { type Law, type Laws, type Past, type Seen } from './law.ts';
export { nextOf } from './order.ts';
export { semaphoreLaws, semaphoreRules } from './semaphore.ts';
export { BrokenLaw, type Suspect, Trial } from './trial.ts';
