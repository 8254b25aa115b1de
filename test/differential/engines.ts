/** Our own engines, each ready to be compared; a new one is a line here. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded, openMemory, type Store } from 'signalbox/store';
import { forwarding } from '../contract/forwarding.ts';
import type { Engine } from './compare-engines.ts';

export const ownEngines: readonly Engine[] = [
  { name: 'memory', open: async () => openMemory() },
  { name: 'embedded', open: () => embedded((directory) => openEmbedded(directory)) },
  { name: 'embedded, by three handles', open: () => embedded(severalHandles) },
];

/** In a directory of its own, which goes when it is closed. */
async function embedded(open: (directory: string) => Promise<Store>): Promise<Store> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-differential-'));
  const store = await open(directory);
  return {
    ...forwarding(store),
    async close() {
      await store.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** Two write in turn, as two processes would; what they wrote is watched by a third. */
async function severalHandles(directory: string): Promise<Store> {
  const [one, other, watching] = [
    await openEmbedded(directory),
    await openEmbedded(directory),
    await openEmbedded(directory),
  ];
  let turn = 0;
  const writing = (): Store => (turn++ % 2 === 0 ? one : other);
  return {
    transaction: (transaction, signal) => writing().transaction(transaction, signal),
    watch: (range, since, signal) => watching.watch(range, since, signal),
    grantLease: (ttlMs, signal) => writing().grantLease(ttlMs, signal),
    keepLeaseAlive: (id, signal) => writing().keepLeaseAlive(id, signal),
    revokeLease: (id, signal) => writing().revokeLease(id, signal),
    leaseState: (id, signal) => writing().leaseState(id, signal),
    compact: (revision, signal) => writing().compact(revision, signal),
    health: (signal) => writing().health(signal),
    async close() {
      for (const handle of [one, other, watching]) await handle.close();
    },
  };
}
