/** The stores on which the command line is tried: for `describe.each`. */
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { type EtcdServer, startEtcd } from './etcd/server.ts';
import { isMissing } from './programs.ts';

export type StoreKind = 'file' | 'etcd';

const FILE = { on: 'a file', kind: 'file' } as const;
const ETCD = { on: 'etcd', kind: 'etcd' } as const;

export const stores: readonly { readonly on: string; readonly kind: StoreKind }[] = isMissing('etcd')
  ? [FILE]
  : [FILE, ETCD];

/** The URL of a store that nobody has used yet; `directory` is the test's own. */
export type NewStore = (directory: string) => string;

export const inFile: NewStore = (directory) => `file:${join(directory, 'store')}`;

/** To be called in a `describe`: its tests share one etcd, in which each store has a prefix of its own. */
export function newStoreOf(kind: StoreKind): NewStore {
  if (kind === 'file') return inFile;
  let server: EtcdServer | undefined;
  let made = 0;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server?.stop());
  return () => `etcd://127.0.0.1:${server?.port}/store-${++made}`;
}
