/**
 * Decides what makes a request `invalid`, on every engine alike and before anything is applied. etcd would refuse most
 * of these requests by itself. Where it would not (a put in one nested transaction and its deletion in the next, or a
 * put beside a deletion without end), the engines would do different things, so such a request is refused here.
 */
import { Failure, shown } from '../failure.ts';
import type { Compare, KeyRange, Operation, Read, Revision, Transaction } from './contract.ts';
import { isBackwards, isInRange } from './key-order.ts';

/** etcd's limit for the comparisons and for each branch; a nested transaction may use what those around it left over. */
export const MOST_OPERATIONS = 128;

export function checkTransaction(transaction: Transaction): void {
  checkShape(transaction, MOST_OPERATIONS);
  checkOverlaps(transaction.success);
  checkOverlaps(transaction.failure);
}

function checkShape({ compare, success, failure }: Transaction, most: number): void {
  const longest = Math.max(compare.length, success.length, failure.length);
  if (longest > most)
    throw invalid(`a transaction of ${longest} comparisons or operations`, `at most ${most} in each list`);
  for (let i = 0; i < compare.length; i++) checkCompare(compare[i] as Compare);
  for (let i = 0; i < success.length; i++) checkOperation(success[i] as Operation, most - longest);
  for (let i = 0; i < failure.length; i++) checkOperation(failure[i] as Operation, most - longest);
}

function checkCompare(compare: Compare): void {
  checkRange(compare);
  switch (compare.target) {
    case 'version':
    case 'create':
    case 'mod':
      return;
    case 'value':
    case 'lease':
      if (compare.is === '=' || compare.is === '!=') return;
      throw invalid(`comparing a ${compare.target} with ${shown(compare.is)}`, '= or !=');
    default:
      throw invalid(`comparing ${shown((compare as Compare).target)}`, 'version, create, mod, value or lease');
  }
}

function checkOperation(operation: Operation, most: number): void {
  switch (operation.do) {
    case 'put':
      checkKey(operation.key);
      if (typeof operation.value !== 'object') throw invalid(`the value ${shown(operation.value)}`, 'a Value');
      return;
    case 'delete':
      return checkRange(operation);
    case 'read':
      return checkRead(operation);
    case 'transaction':
      return checkShape(operation, most);
    default:
      throw invalid(`the operation ${shown(operation)}`, 'put, delete, read or transaction');
  }
}

function checkRead(read: Read): void {
  checkRange(read);
  const { limit } = read;
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit > 0))
    throw invalid(`the limit ${shown(limit)}`, 'a whole number from 1');
}

function checkRange(range: KeyRange): void {
  checkKey(range.key);
  if (range.end === '')
    throw invalid('the empty string as the end of a range', "a key, '\\0' for no end, or none for a single key");
}

function checkKey(key: string): void {
  if (typeof key !== 'string' || key === '') throw invalid(`the key ${shown(key)}`, 'a string that is not empty');
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
  const count = operations.length;
  for (let i = 0; i < count; i++) {
    const operation = operations[i] as Operation;
    if (operation.do !== 'transaction') continue;
    checkOverlaps(operation.success);
    checkOverlaps(operation.failure);
  }
  if (count <= FEW) {
    for (let i = 1; i < count; i++)
      for (let j = 0; j < i; j++) refuseClash(operations[i] as Operation, operations[j] as Operation);
  } else {
    checkManyOverlaps(operations);
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
