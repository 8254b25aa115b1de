import type { Store, Transaction } from 'signalbox/store';

/** The same store as a plain object, to be taken apart: without `transactionNow`. */
export function forwarding(inner: Store): Store {
  return {
    transaction: (transaction, signal) => inner.transaction(transaction, signal),
    watch: (range, since, signal) => inner.watch(range, since, signal),
    grantLease: (ttlMs, signal) => inner.grantLease(ttlMs, signal),
    keepLeaseAlive: (id, signal) => inner.keepLeaseAlive(id, signal),
    revokeLease: (id, signal) => inner.revokeLease(id, signal),
    leaseState: (id, signal) => inner.leaseState(id, signal),
    compact: (revision, signal) => inner.compact(revision, signal),
    health: (signal) => inner.health(signal),
    close: () => inner.close(),
  };
}

/** The same store, every transaction of which goes through the form that answers at once. */
export function throughNow(inner: Store): Store {
  const now = (transaction: Transaction) => {
    if (inner.transactionNow === undefined) throw new Error('this store has no transactionNow');
    return inner.transactionNow(transaction);
  };
  return {
    ...forwarding(inner),
    transactionNow: now,
    async transaction(transaction, signal) {
      signal?.throwIfAborted();
      return now(transaction);
    },
  };
}
