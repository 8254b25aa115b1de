/**
 * Applies a transaction to an engine's keys: makes all comparisons first, then checks that everything can be done, then
 * does it. Everything that can fail comes before the first change, so that no failure leaves half a transaction behind.
 */
import { Failure, shown } from '../failure.ts';
import type {
  Compare,
  KeyRange,
  LeaseId,
  Operation,
  OperationResult,
  Put,
  Read,
  ReadResult,
  Transaction,
} from './contract.ts';

/** What an engine offers to a transaction. Each call sees the changes of the calls before it. */
export interface TransactionKeys {
  holds(compare: Compare): boolean;
  /** Throws `invalid` for a key that no engine can store. */
  checkKey(key: string): void;
  exists(key: string): boolean;
  hasLease(id: LeaseId): boolean;
  put(put: Put): void;
  /** Returns how many keys it deleted. */
  delete(range: KeyRange): number;
  read(read: Read): ReadResult;
}

/** The branches that will be applied, of a transaction and of those nested in it. */
interface Plan {
  readonly succeeded: boolean;
  readonly operations: readonly Operation[];
  /** One plan for each operation that is a transaction, in order. */
  readonly nested: readonly Plan[];
}

export interface Applied {
  readonly succeeded: boolean;
  readonly results: readonly OperationResult[];
}

const NOTHING_NESTED: readonly Plan[] = [];
const PUT_DONE: OperationResult = Object.freeze({ do: 'put' });

// Plain loops: in memory a transaction takes about a microsecond, and iterators would be a good part of it.
export function applyTransaction(keys: TransactionKeys, transaction: Transaction): Applied {
  const plan = planOf(keys, transaction);
  checkPlan(keys, plan);
  return { succeeded: plan.succeeded, results: applyPlan(keys, plan) };
}

function planOf(keys: TransactionKeys, { compare, success, failure }: Transaction): Plan {
  const succeeded = allHold(keys, compare);
  const operations = succeeded ? success : failure;
  let nested = NOTHING_NESTED;
  for (let i = 0; i < operations.length; i++) {
    const operation = operations[i] as Operation;
    if (operation.do === 'transaction') nested = [...nested, planOf(keys, operation)];
  }
  return { succeeded, operations, nested };
}

function allHold(keys: TransactionKeys, compares: readonly Compare[]): boolean {
  for (let i = 0; i < compares.length; i++) if (!keys.holds(compares[i] as Compare)) return false;
  return true;
}

function checkPlan(keys: TransactionKeys, { operations, nested }: Plan): void {
  for (let i = 0; i < operations.length; i++) {
    const operation = operations[i] as Operation;
    if (operation.do === 'put') checkPut(keys, operation);
  }
  for (let i = 0; i < nested.length; i++) checkPlan(keys, nested[i] as Plan);
}

function checkPut(keys: TransactionKeys, { key, lease }: Put): void {
  keys.checkKey(key);
  if (lease === undefined) return;
  if (lease === 'keep') {
    if (!keys.exists(key)) throw new Failure('not-found', `there is no key ${shown(key)} whose lease could be kept`);
  } else if (!keys.hasLease(lease)) {
    throw new Failure('not-found', `there is no lease ${shown(lease)}: it has ended, or never existed`);
  }
}

function applyPlan(keys: TransactionKeys, { operations, nested }: Plan): OperationResult[] {
  const results = new Array<OperationResult>(operations.length);
  let inner = 0;
  for (let i = 0; i < operations.length; i++) {
    const operation = operations[i] as Operation;
    switch (operation.do) {
      case 'put':
        keys.put(operation);
        results[i] = PUT_DONE;
        break;
      case 'delete':
        results[i] = { do: 'delete', deleted: keys.delete(operation) };
        break;
      case 'read':
        results[i] = keys.read(operation);
        break;
      case 'transaction': {
        const plan = nested[inner++] as Plan;
        results[i] = { do: 'transaction', succeeded: plan.succeeded, results: applyPlan(keys, plan) };
      }
    }
  }
  return results;
}
