/**
 * A store that counts what is asked of the one behind it.
 *
 *     writes      transactions that would have written something if all was as their sender thought
 *     otherwise   of these, the ones for which it was not: the other branch was applied
 *     inVain      of these, the ones that wrote nothing at all then, and had to be made again
 */
export function countedStore(store) {
  const counts = { transactions: 0, writes: 0, otherwise: 0, inVain: 0, renewals: 0, grants: 0 };
  const counted = Object.create(store, {
    transaction: {
      async value(transaction, signal) {
        const result = await store.transaction(transaction, signal);
        counts.transactions += 1;
        if (transaction.success.some(writes)) {
          counts.writes += 1;
          if (!result.succeeded) {
            counts.otherwise += 1;
            if (!haveWritten(transaction.failure, result.results)) counts.inVain += 1;
          }
        }
        return result;
      },
    },
    keepLeaseAlive: counting('renewals'),
    grantLease: counting('grants'),
    ...forwarded('watch', 'revokeLease', 'leaseState', 'compact', 'health', 'close'),
  });
  return { store: counted, counts };

  function counting(what) {
    const method = { renewals: 'keepLeaseAlive', grants: 'grantLease' }[what];
    return {
      value(...args) {
        counts[what] += 1;
        return store[method](...args);
      },
    };
  }

  /** Called on the store itself, which may have what is private to it. */
  function forwarded(...names) {
    return Object.fromEntries(names.map((name) => [name, { value: (...args) => store[name](...args) }]));
  }
}

function writes(operation) {
  if (operation.do === 'transaction') return [...operation.success, ...operation.failure].some(writes);
  return operation.do !== 'read';
}

function haveWritten(operations, results) {
  return operations.some((operation, i) => {
    const result = results[i];
    if (operation.do === 'read') return false;
    if (operation.do === 'delete') return result.deleted > 0;
    if (operation.do === 'put') return true;
    return haveWritten(result.succeeded ? operation.success : operation.failure, result.results);
  });
}
