/**
 * Decides what makes a request `invalid`, on every engine alike and before anything is applied. etcd would refuse most
 * of these requests by itself. Where it would not (a put in one nested transaction and its deletion in the next, or a
 * put beside a deletion without end), the engines would do different things, so such a request is refused here.
 */
import { Failure, shown } from '../failure.ts';
import type { Compare, KeyRange, Operation, Revision, Transaction } from './contract.ts';
import { isBackwards, isInRange } from './key-order.ts';

/** etcd's limit for the comparisons and for each branch; a nested transaction may use what those around it left over. */
export const MOST_OPERATIONS = 128;

// A process that makes few writes runs this before it is compiled. Then each call costs more than what it does, so a list
// is checked in one loop.
export function checkTransaction(transaction: Transaction): void {
  checkShape(transaction, MOST_OPERATIONS);
}

function checkShape({ compare, success, failure }: Transaction, most: number): void {
  const longest = Math.max(compare.length, success.length, failure.length);
  if (longest > most)
    throw invalid(`a transaction of ${longest} comparisons or operations`, `at most ${most} in each list`);
  checkComparisons(compare);
  checkBranch(success, most - longest);
  checkBranch(failure, most - longest);
}

function checkComparisons(comparisons: readonly Compare[]): void {
  for (let i = 0; i < comparisons.length; i++) {
    const compare = comparisons[i] as Compare;
    const { key, end, target, is } = compare;
    if (typeof key !== 'string' || key === '' || end === '') throw invalidRange(compare);
    switch (target) {
      case 'version':
      case 'create':
      case 'mod':
        break;
      case 'value':
      case 'lease':
        if (is !== '=' && is !== '!=') throw invalid(`comparing a ${target} with ${shown(is)}`, '= or !=');
        break;
      default:
        throw invalid(`comparing ${shown(target)}`, 'version, create, mod, value or lease');
    }
  }
}

/** `most`: for the lists of a nested transaction. */
function checkBranch(operations: readonly Operation[], most: number): void {
  let changing = 0;
  for (let i = 0; i < operations.length; i++) {
    const operation = operations[i] as Operation;
    switch (operation.do) {
      case 'transaction':
        checkShape(operation, most);
        changing += 1;
        continue;
      case 'put':
        if (typeof operation.value !== 'object') throw invalid(`the value ${shown(operation.value)}`, 'a Value');
        changing += 1;
        break;
      case 'delete':
        changing += 1;
        break;
      case 'read': {
        const { limit } = operation;
        if (limit !== undefined && !(limit > 0 && Number.isSafeInteger(limit)))
          throw invalid(`the limit ${shown(limit)}`, 'a whole number from 1');
        break;
      }
      default:
        throw invalid(`the operation ${shown(operation)}`, 'put, delete, read or transaction');
    }
    const { key, end }: KeyRange = operation;
    if (typeof key !== 'string' || key === '' || end === '') throw invalidRange(operation);
  }
  if (changing > 1) checkOverlaps(operations);
}

function checkRange(range: KeyRange): void {
  const { key, end } = range;
  if (typeof key !== 'string' || key === '' || end === '') throw invalidRange(range);
}

function invalidRange({ key }: KeyRange): Failure {
  if (typeof key !== 'string' || key === '') return invalid(`the key ${shown(key)}`, 'a string that is not empty');
  return invalid('the empty string as the end of a range', "a key, '\\0' for no end, or none for a single key");
}

/** Half a surrogate pair has no UTF-8 form: a store that writes bytes would silently store another key. */
export function checkWellFormed(key: string): void {
  if (/\p{Surrogate}/u.test(key)) throw invalid(`the key ${shown(key)}`, 'well-formed Unicode');
}

export function checkWatch(range: KeyRange, since: Revision | 'now'): void {
  checkRange(range);
  if (isBackwards(range))
    throw invalid(`watching from ${shown(range.key)} to ${shown(range.end)}`, 'an end after the key');
  if (since !== 'now' && !(Number.isSafeInteger(since) && since >= 0))
    throw invalid(`watching since ${shown(since)}`, "a revision or 'now'");
}

export function checkTtl(ttlMs: number): void {
  if (!(Number.isFinite(ttlMs) && ttlMs > 0)) throw invalid(`a lease of ${shown(ttlMs)} ms`, 'a finite number above 0');
}

export function checkCompaction(revision: Revision, current: Revision): void {
  if (!(Number.isSafeInteger(revision) && revision > 0)) throw invalid(`compacting ${shown(revision)}`, 'a revision');
  if (revision > current) throw invalid(`compacting ${revision}`, `at most the current revision, ${current}`);
}

export function checkHistoryLimit(limit: number): void {
  if (!(Number.isSafeInteger(limit) && limit > 0))
    throw invalid(`a history of ${shown(limit)} revisions`, 'a whole number from 1');
}

/** Up to here, comparing every pair is cheaper than making a set. */
const FEW = 8;

/** No key may be put twice, or put and deleted, by operations that could be applied together. */
function checkOverlaps(operations: readonly Operation[]): void {
  if (operations.length > FEW) return checkManyOverlaps(operations);
  for (let i = 1; i < operations.length; i++) {
    const operation = operations[i] as Operation;
    if (operation.do === 'read') continue;
    for (let j = 0; j < i; j++) {
      const other = operations[j] as Operation;
      if (other.do !== 'read') refuseClash(operation, other);
    }
  }
}

function checkManyOverlaps(operations: readonly Operation[]): void {
  const puts = new Set<string>();
  operations.forEach((operation, i) => {
    if (operation.do === 'put') {
      if (puts.has(operation.key)) throw changedTwice(operation.key);
      puts.add(operation.key);
    } else if (operation.do !== 'read') {
      operations.forEach((other, j) => i !== j && refuseClash(operation, other));
    }
  });
}

function refuseClash(a: Operation, b: Operation): void {
  if (a.do === 'transaction') {
    // Either branch may be applied.
    for (const operation of a.success) refuseClash(operation, b);
    for (const operation of a.failure) refuseClash(operation, b);
  } else if (b.do === 'transaction' || (a.do === 'delete' && b.do === 'put')) {
    refuseClash(b, a);
  } else if (a.do === 'put') {
    if (b.do === 'put' ? a.key === b.key : b.do === 'delete' && isInRange(a.key, b)) throw changedTwice(a.key);
  }
}

function changedTwice(key: string): Failure {
  return invalid(`a transaction that may change ${shown(key)} twice`, 'one put or deletion of a key');
}

function invalid(what: string, accepted: string): Failure {
  return new Failure('invalid', `${what} makes no sense: expected ${accepted}`);
}
