import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded, type Store, storeFile } from 'signalbox/store';
import { type ContractSubject, storeContract, TestClock } from 'signalbox/testing';
import { describe, it } from 'vitest';

async function embedded(): Promise<ContractSubject> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-'));
  const clock = new TestClock();
  const handles: Store[] = [];
  const reopen = async (): Promise<Store> => {
    const store = await openEmbedded(directory, { clock });
    handles.push(store);
    return store;
  };
  return {
    store: await reopen(),
    reopen,
    replace: () => rm(storeFile(directory)),
    advance: (ms) => clock.advance(ms),
    minTtlMs: 10,
    close: async () => {
      for (const store of handles) await store.close();
      await rm(directory, { recursive: true });
    },
  };
}

storeContract('the embedded engine', embedded, { describe, it });
