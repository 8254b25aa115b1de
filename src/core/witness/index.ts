/** The witness: a chain of hashes for each resource, from which nothing can be taken, and in which nothing changed, unseen. */

export { bytesIn, canonical, plain } from './canonical.ts';
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
