export { MARK, type Offspring, offspringOf, type Remains, remainsOf, signalRemains } from './offspring.ts';
export { type Host, identify, isProvenGone, type ProcessIdentity, readStat, thisHost, thisProcess } from './process.ts';
export { randomHex } from './random.ts';
