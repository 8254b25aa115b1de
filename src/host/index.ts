export { end, isGone, isGoneWithin, type Patience } from './ending.ts';
export { type Ended, exitCodeOf, GatedChild, type GateOptions, NotStarted } from './gated-child.ts';
export { KeptOutput } from './kept-output.ts';
export { MARK, type Offspring, offspringOf, type Remains, remainsOf, signalRemains } from './offspring.ts';
export {
  areOfTwoBoots,
  type Host,
  identify,
  isInSight,
  isProvenGone,
  type ProcessIdentity,
  readStat,
  thisHost,
  thisProcess,
} from './process.ts';
export { randomHex } from './random.ts';
export { Vigil } from './vigil.ts';
