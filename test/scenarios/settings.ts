/** Where stories are told: on the bare machines, and, as far as programs can tell them, on stores. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded, openEtcdUrl, openMemory, type Store } from 'signalbox/store';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { onLock, onSemaphore } from './machines.ts';
import { type Place, RuntimeWorld } from './runtimes.ts';
import type { Setting } from './story.ts';

/** A busy machine may keep an etcd waiting for seconds. */
const PATIENT = { requestTimeoutMs: 20_000 };

export const aLock: Setting = { onMachine: onLock, inPrograms: (place) => new RuntimeWorld(place) };

export const aSemaphore = (capacity: number): Setting => ({
  onMachine: () => onSemaphore(capacity),
  inPrograms: (place) => new RuntimeWorld(place, capacity),
});

let etcd: Promise<EtcdServer> | undefined;
let told = 0;

/**
 * For `afterAll` of every file that tells stories on stores. Test files share this module, so a hook registered here would
 * run for the first of them alone.
 */
export async function stopServer(): Promise<void> {
  const server = await etcd;
  etcd = undefined;
  await server?.stop();
}

export const stores: readonly {
  readonly name: string;
  readonly open: () => Promise<Place & { close(): Promise<void> }>;
}[] = [
  { name: 'in memory', open: inMemory },
  { name: 'in a file', open: inFile },
  ...(isMissing('etcd') ? [] : [{ name: 'on etcd', open: onEtcd }]),
];

async function inMemory(): Promise<Place & { close(): Promise<void> }> {
  const store = openMemory();
  return { handle: async () => store, close: () => store.close() };
}

async function inFile(): Promise<Place & { close(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-story-'));
  const { handle, close } = severalHandles(() => openEmbedded(directory));
  return {
    handle,
    async close() {
      await close();
      await rm(directory, { recursive: true });
    },
  };
}

/** One server for all stories, under a prefix for each; everybody has a connection of their own. */
async function onEtcd(): Promise<Place & { close(): Promise<void> }> {
  const { port } = await (etcd ??= startEtcd());
  const url = `etcd://127.0.0.1:${port}/story-${++told}`;
  return severalHandles(() => openEtcdUrl(url, PATIENT));
}

function severalHandles(open: () => Promise<Store>): Place & { close(): Promise<void> } {
  const handles: Store[] = [];
  return {
    async handle() {
      const handle = await open();
      handles.push(handle);
      return handle;
    },
    async close() {
      await Promise.all(handles.map((handle) => handle.close()));
    },
  };
}
