/** Whether a transaction changes nothing in either branch. */
import type { Operation, Transaction } from './contract.ts';

/** Whether a transaction changes nothing. */
export function readsOnly({ success, failure }: Pick<Transaction, 'success' | 'failure'>): boolean {
  return success.every(isRead) && failure.every(isRead);
}

function isRead(operation: Operation): boolean {
  return operation.do === 'transaction' ? readsOnly(operation) : operation.do === 'read';
}
