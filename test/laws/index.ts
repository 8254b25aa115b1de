/** Laws that locks and semaphores obey, and how to put a machine on trial: for tests, simulators and planted bugs. */
export { Chance } from './chance.ts';
export { lockLaws, lockRules } from './lock.ts';
export { type Command, type Law, type Laws, type Past, type Seen } from './law.ts';
export { type Moves, play } from './moves.ts';
export { nextOf } from './order.ts';
export { settingsBugs } from './planted-settings.ts';
export { lawBrokenIn, sharedBugs } from './planted-shared.ts';
export { semaphoreLaws, semaphoreRules } from './semaphore.ts';
export { ANSWERED, BrokenLaw, CAN_BE_WRITTEN, COMES_TO_AN_END, NO_TRACE, type Suspect, Trial } from './trial.ts';
