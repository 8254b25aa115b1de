/**
 * Reads by age. etcd sorts by create revision alone, and leaves keys that one transaction made in no certain order; we
 * order these by key. Where a limit cuts through such keys, etcd may have kept the wrong ones. So we ask for one more
 * than wanted, and if that one is as old as the last, we read all keys of that age.
 */
import type {
  KeyValue,
  Operation,
  OperationResult,
  Read,
  ReadResult,
  Revision,
  Transaction,
  TransactionResult,
} from '../contract.ts';
import { compareKeys } from '../key-order.ts';

/** How many pairs to ask etcd for, so that `limit` can be answered. */
export function askedLimit({ limit, order }: Read): number | undefined {
  return limit !== undefined && order === 'create' ? limit + 1 : limit;
}

/** A read whose last keys are not certain until all keys that were made in the same revision are known. */
export interface Cut {
  readonly read: Read;
  readonly created: Revision;
  settle(peers: readonly KeyValue[]): void;
}

/** Sorts and cuts the results in place, and returns what is still uncertain. */
export function putInOrder(asked: Transaction, answer: TransactionResult): readonly Cut[] {
  const operations = answer.succeeded ? asked.success : asked.failure;
  return operations.some(mayReadByAge) ? cutsOf(operations, answer.results as OperationResult[]) : NONE;
}

const NONE: readonly Cut[] = [];

function mayReadByAge(operation: Operation): boolean {
  return operation.do === 'transaction' || (operation.do === 'read' && operation.order === 'create');
}

function cutsOf(operations: readonly Operation[], results: OperationResult[]): Cut[] {
  return operations.flatMap((operation, i) => {
    const result = results[i];
    if (operation.do === 'transaction' && result?.do === 'transaction') {
      const branch = result.succeeded ? operation.success : operation.failure;
      return cutsOf(branch, result.results as OperationResult[]);
    }
    if (operation.do !== 'read' || operation.order !== 'create' || result?.do !== 'read') return [];
    const cut = inOrder(operation, result, (ordered) => (results[i] = ordered));
    return cut === undefined ? [] : [cut];
  });
}

function inOrder(read: Read, result: ReadResult, tell: (ordered: ReadResult) => void): Cut | undefined {
  const pairs = [...result.pairs].sort(byAge);
  const { limit = pairs.length } = read;
  if (pairs.length <= limit) {
    tell({ ...result, pairs });
    return undefined;
  }
  const kept = pairs.slice(0, limit);
  tell({ ...result, pairs: kept, more: true, count: limit });
  const created = kept.at(-1)?.createRevision ?? 0;
  if (pairs[limit]?.createRevision !== created) return undefined;
  return {
    read,
    created,
    settle(peers) {
      const older = kept.filter((pair) => pair.createRevision < created);
      const asOld = new Map(peers.map((pair) => [pair.key, pair]));
      // The peers were read at the revision of the answer: the transaction may have changed them after its own read.
      for (const pair of pairs.slice(older.length)) asOld.set(pair.key, pair);
      tell({
        ...result,
        pairs: [...older, ...[...asOld.values()].sort(byAge)].slice(0, limit),
        more: true,
        count: limit,
      });
    },
  };
}

function byAge(a: KeyValue, b: KeyValue): number {
  return a.createRevision - b.createRevision || compareKeys(a.key, b.key);
}
