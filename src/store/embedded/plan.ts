/** A transaction on rows: all comparisons, then whether all of it can be done, then all of it. */
import { Failure, shown } from '../../failure.ts';
import { checkWellFormed } from '../check.ts';
import type { Change, Compare, Operation, OperationResult, Put, Revision, Transaction } from '../contract.ts';
import type { Keyspace } from './keyspace.ts';
import type { Leases } from './leases.ts';

/** Which branch of a transaction, and of those in it, is to be applied: decided as a whole before any of it is. */
interface Plan {
  readonly succeeded: boolean;
  readonly operations: readonly Operation[];
  /** One for each operation that is a transaction, in order. */
  readonly nested: readonly Plan[];
}

export interface Applied {
  readonly succeeded: boolean;
  readonly results: readonly OperationResult[];
  readonly changes: readonly Change[];
}

/** `revision` is the one that the changes will have. */
export function apply(keys: Keyspace, leases: Leases, transaction: Transaction, revision: Revision): Applied {
  const plan = planOf(keys, transaction);
  checkPlan(keys, leases, plan);
  const changes: Change[] = [];
  const results = applyPlan(keys, plan, revision, changes);
  return { succeeded: plan.succeeded, results, changes };
}

function planOf(keys: Keyspace, { compare, success, failure }: Transaction): Plan {
  const succeeded = compare.every((each: Compare) => keys.holds(each));
  const operations = succeeded ? success : failure;
  const nested = operations.flatMap((operation) => (operation.do === 'transaction' ? [planOf(keys, operation)] : []));
  return { succeeded, operations, nested };
}

function checkPlan(keys: Keyspace, leases: Leases, { operations, nested }: Plan): void {
  for (const operation of operations) if (operation.do === 'put') checkPut(keys, leases, operation);
  for (const plan of nested) checkPlan(keys, leases, plan);
}

function checkPut(keys: Keyspace, leases: Leases, { key, lease }: Put): void {
  checkWellFormed(key);
  if (lease === undefined) return;
  if (lease === 'keep') {
    if (keys.get(key) === undefined) throw new Failure('not-found', `no key ${shown(key)} whose lease could be kept`);
  } else if (leases.get(Number(lease)) === undefined) {
    throw new Failure('not-found', `no lease ${shown(lease)}: it has ended or never was`);
  }
}

function applyPlan(keys: Keyspace, plan: Plan, revision: Revision, changes: Change[]): OperationResult[] {
  let inner = 0;
  return plan.operations.map((operation): OperationResult => {
    switch (operation.do) {
      case 'put':
        changes.push(keys.put(operation, revision));
        return { do: 'put' };
      case 'delete': {
        const deleted = keys.delete(operation, revision);
        for (const change of deleted) changes.push(change);
        return { do: 'delete', deleted: deleted.length };
      }
      case 'read':
        return keys.read(operation);
      case 'transaction': {
        const nested = plan.nested[inner++] as Plan;
        const results = applyPlan(keys, nested, revision, changes);
        return { do: 'transaction', succeeded: nested.succeeded, results };
      }
    }
  });
}
