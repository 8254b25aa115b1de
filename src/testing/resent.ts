/** Copies requests and answers as text, as if they had crossed a connection. */
import type {
  Changes,
  KeyValue,
  Operation,
  OperationResult,
  Transaction,
  TransactionResult,
} from '../store/contract.ts';
import { Value } from '../store/value.ts';

function resentValue(value: Value): Value {
  return Value.text(value.text);
}

function resentPair(pair: KeyValue): KeyValue {
  return { ...pair, value: resentValue(pair.value) };
}

export function resentTransaction<T extends Transaction>(transaction: T): T {
  return {
    ...transaction,
    success: transaction.success.map(resentOperation),
    failure: transaction.failure.map(resentOperation),
  };
}

function resentOperation(operation: Operation): Operation {
  if (operation.do === 'put' && operation.value instanceof Value)
    return { ...operation, value: resentValue(operation.value) };
  return operation.do === 'transaction' ? resentTransaction(operation) : operation;
}

export function resentResult(result: TransactionResult): TransactionResult {
  return { ...result, results: result.results.map(resentOperationResult) };
}

function resentOperationResult(result: OperationResult): OperationResult {
  if (result.do === 'read') return { ...result, pairs: result.pairs.map(resentPair) };
  return result.do === 'transaction' ? { ...result, results: result.results.map(resentOperationResult) } : result;
}

export function resentChanges({ revision, changes }: Changes): Changes {
  return {
    revision,
    changes: changes.map((change) => (change.kind === 'put' ? { ...change, pair: resentPair(change.pair) } : change)),
  };
}
