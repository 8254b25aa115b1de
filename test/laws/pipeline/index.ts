/** Laws that pipelines obey, and how to put a machine on trial: for tests and planted bugs. */
export type { Law, Laws, Seen, Transition } from './law.ts';
export { driverLaws } from './drivers.ts';
export { phaseLaws } from './phases.ts';
export { recordLaws } from './records.ts';
export { type Fate, type Luck, type Move, NOTHING_THROWS, Trial } from './trial.ts';
