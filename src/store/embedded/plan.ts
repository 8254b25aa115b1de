/** Applies a transaction to the rows, and returns the changes it made. */
import { checkWellFormed } from '../check.ts';
import type { Change, Transaction, Revision } from '../contract.ts';
import { type Applied, applyTransaction } from '../plan.ts';
import type { Keyspace } from './keyspace.ts';
import type { Leases } from './leases.ts';

export interface AppliedToRows extends Applied {
  readonly changes: readonly Change[];
}

/** `revision` is the one that the changes will have. */
export function apply(keys: Keyspace, leases: Leases, transaction: Transaction, revision: Revision): AppliedToRows {
  const changes: Change[] = [];
  const applied = applyTransaction(
    {
      holds: (compare) => keys.holds(compare),
      checkKey: checkWellFormed,
      exists: (key) => keys.get(key) !== undefined,
      hasLease: (id) => leases.get(Number(id)) !== undefined,
      put: (put) => void changes.push(keys.put(put, revision)),
      delete: (range) => {
        const deleted = keys.delete(range, revision);
        for (const change of deleted) changes.push(change);
        return deleted.length;
      },
      read: (read) => keys.read(read),
    },
    transaction,
  );
  return { ...applied, changes };
}
