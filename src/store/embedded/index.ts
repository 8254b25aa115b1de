export { networkFileSystem } from './network-file-system.ts';
export { type Durability, type EmbeddedOptions, openEmbedded, storeFile } from './open.ts';
export { isReadOnly, openToRead } from './read-only.ts';
export { type Reach, reachOf } from './reach.ts';
export { APPLICATION_ID, FORMAT } from './schema.ts';
export type { Share } from './share.ts';
