/** A store that is still being opened: every call waits until it is. */
import type { Store } from 'signalbox/store';

export function deferredStore(opened: Promise<Store>): Store {
  return {
    transaction: async (transaction, signal) => (await opened).transaction(transaction, signal),
    watch: async (range, since, signal) => (await opened).watch(range, since, signal),
    grantLease: async (ttlMs, signal) => (await opened).grantLease(ttlMs, signal),
    keepLeaseAlive: async (id, signal) => (await opened).keepLeaseAlive(id, signal),
    revokeLease: async (id, signal) => (await opened).revokeLease(id, signal),
    leaseState: async (id, signal) => (await opened).leaseState(id, signal),
    compact: async (revision, signal) => (await opened).compact(revision, signal),
    health: async (signal) => (await opened).health(signal),
    close: async () => (await opened).close(),
  };
}
