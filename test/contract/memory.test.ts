import { type MemoryOptions, openMemory, openSharedMemory, type Store } from 'signalbox/store';
import { type ContractSubject, faultyStore, ScriptedFaults, storeContract, TestClock } from 'signalbox/testing';
import { describe, it } from 'vitest';
import { forwarding, throughNow } from './forwarding.ts';

let names = 0;

function alone(seen: (store: Store) => Store, options: MemoryOptions = {}): () => Promise<ContractSubject> {
  return async () => {
    const clock = new TestClock();
    const store = openMemory({ clock, ...options });
    return { store: seen(store), advance: (ms) => clock.advance(ms), minTtlMs: 10, close: () => store.close() };
  };
}

function shared(seen: (store: Store) => Store): () => Promise<ContractSubject> {
  return async () => {
    const clock = new TestClock();
    const name = `contract-${names++}`;
    const store = openSharedMemory(name, { clock });
    return {
      store: seen(store),
      reopen: async () => seen(openSharedMemory(name)),
      advance: (ms) => clock.advance(ms),
      minTtlMs: 10,
      close: () => store.close(),
    };
  };
}

const runner = { describe, it };
storeContract('memory', alone(forwarding), runner);
storeContract('memory that answers at once', alone(throughNow), runner);
storeContract('shared memory', shared(forwarding), runner);
storeContract('shared memory that answers at once', shared(throughNow), runner);
storeContract(
  'a faulty store without faults',
  shared((store) => faultyStore(store, new ScriptedFaults())),
  runner,
);
