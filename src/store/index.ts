export { MOST_OPERATIONS } from './check.ts';
export type {
  Change,
  Changes,
  Compare,
  Delete,
  Health,
  KeyRange,
  KeyValue,
  Lease,
  LeaseId,
  LeaseState,
  Nested,
  Operation,
  OperationResult,
  Put,
  Read,
  ReadResult,
  Revision,
  Store,
  Transaction,
  TransactionResult,
  Watch,
  WatchHint,
} from './contract.ts';
export { afterPrefix, prefixed } from './contract.ts';
export {
  type Durability,
  type EmbeddedOptions,
  networkFileSystem,
  openEmbedded,
  type Share,
  storeFile,
} from './embedded/index.ts';
export {
  type Endpoint,
  type EtcdOptions,
  type EtcdPlace,
  type EtcdStore,
  isEtcdUrl,
  openEtcd,
  openEtcdUrl,
  parseEtcdUrl,
  type ServerStatus,
  type TlsOptions,
  withoutPassword,
  withWholePaths,
} from './etcd/index.ts';
export { type MemoryOptions, openMemory, openSharedMemory } from './memory/index.ts';
export {
  always,
  type NestedResult,
  Operations,
  pairIn,
  type Place,
  readPages,
  readRange,
  type ReadRange,
} from './operations.ts';
export { readsOnly } from './reads-only.ts';
export { Value } from './value.ts';
