export { groupShown, isTrustedOwner, ownUser, userShown } from './accounts.ts';
export { identityFrom, offspringFrom } from './claims.ts';
export { sha256 } from './digest.ts';
export { end, isGone, isGoneWithin, type Patience } from './ending.ts';
export { type Ended, exitCodeOf, GatedChild, type GateOptions, NotStarted } from './gated-child.ts';
export { isTooLarge, tooLargeTold } from './exec-size.ts';
export { beginningOfFile, readRegularFile } from './foreign-file.ts';
export { gitEnvironment, QUIET } from './git-environment.ts';
export { ifPossible } from './if-possible.ts';
export { KeptOutput } from './kept-output.ts';
export { MARK } from './mark.ts';
export { type Offspring, offspringOf, type Remains, remainsOf, signalRemains } from './offspring.ts';
export { type Bar, barTo, type Sight } from './permission.ts';
export {
  areOfTwoBoots,
  FIRST_TIME_SPACE,
  type Host,
  identify,
  isInSight,
  isProvenGone,
  isSameProcess,
  type ProcessIdentity,
  readFromKernel,
  readStat,
  thisHost,
  thisProcess,
} from './process.ts';
export { PrintedText } from './printed-text.ts';
export { BytesLost, originalArguments, originalVariables, type Text } from './original-bytes.ts';
export { randomHex } from './random.ts';
export { newKey, type NewKey, publicKeyIn, type Signature, signatureCheck, signerWith } from './signing.ts';
export { type Tie, tieTo } from './tie.ts';
export { Vigil } from './vigil.ts';
export { ownTemporaryDirectory } from './own-temporary-directory.ts';
export { WorkingDirectory } from './working-directory.ts';
