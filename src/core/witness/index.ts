/** The witness: a chain of hashes for each resource, which shows every change and every removal of an entry. */

export { canonical, plain } from './canonical.ts';
export { ChainCheck, type FindingKind, type Link, type LinkFinding } from './chain-check.ts';
export {
  type Checkpoint,
  checkpointAnchor,
  checkpointProblem,
  type CheckpointSignature,
  checkpointText,
  coveredHead,
  type CoveredHead,
  headsRoot,
  nextCheckpoint,
  type Signer,
} from './checkpoint.ts';
export type { VerifySignature } from './checkpoint-check.ts';
export {
  type ChainHead,
  type Digest,
  emptyChain,
  entered,
  enteredText,
  entryHash,
  entryProblem,
  entryText,
  type HashedValue,
  headProblem,
  isHash,
  LARGEST_VALUE_BYTES,
  nextEntry,
  type NextEntry,
  NO_ENTRY,
  type Witnessed,
  type WitnessedCommand,
  type WitnessEntry,
} from './entry.ts';
export { checkpointLine, endLine, entryLine, type ExportEnd, type ExportHeader, headerLine } from './lines.ts';
export { merklePath, merkleRoot, rootByPath } from './merkle.ts';
export { type InclusionProof, proofOf, proofProblem, type Proving } from './proof.ts';
export type { Verification, VerifiedCounts } from './record-end.ts';
export { type Finding, Verifier, type VerifierOptions } from './verifier.ts';
