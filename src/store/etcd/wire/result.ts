/** Reads etcd's answer to a transaction or a read. */
import { MOST_OPERATIONS } from '../../check.ts';
import type {
  KeyValue,
  Operation,
  OperationResult,
  Read,
  ReadResult,
  Revision,
  Transaction,
  TransactionResult,
} from '../../contract.ts';
import { Value } from '../../value.ts';
import { askedLimit } from '../by-age.ts';
import type { Keyspace } from '../keyspace.ts';
import { readLease, readNumber } from './int64.ts';
import { countEntry, endOfMessage, mustEndAt, newReader, type Reader, skip } from './protobuf.ts';

export function transactionResult(message: Uint8Array, keyspace: Keyspace): TransactionResult {
  const reader = newReader(message);
  return readTransactionResult(reader, reader.len, keyspace, 0);
}

function readTransactionResult(reader: Reader, end: number, keyspace: Keyspace, depth: number): TransactionResult {
  // No transaction that we send is nested deeper. One level takes only two bytes, so a message could exhaust the stack.
  if (depth > MOST_OPERATIONS) throw new RangeError(`transactions that are nested more than ${MOST_OPERATIONS} deep`);
  let revision: Revision = 0;
  let succeeded = false;
  const results: OperationResult[] = [];
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x0a) revision = readHeader(reader, end);
    else if (tag === 0x10) succeeded = reader.bool();
    else if (tag === 0x1a) results.push(readOperationResult(reader, endOfMessage(reader, end), keyspace, depth));
    else skip(reader, tag);
    if (results.length > MOST_OPERATIONS) throw new RangeError(`more than ${MOST_OPERATIONS} results`);
  }
  mustEndAt(reader, end);
  return { succeeded, revision, results };
}

/** Throws if the results do not fit this transaction: callers take each result as that of the operation in the same place. */
export function mustAnswer(
  asked: Transaction,
  { succeeded, results }: Pick<TransactionResult, 'succeeded' | 'results'>,
): void {
  const operations = succeeded ? asked.success : asked.failure;
  if (results.length !== operations.length)
    throw new RangeError(`${results.length} results of ${operations.length} operations`);
  for (let i = 0; i < results.length; i++) {
    const [operation, result] = [operations[i] as Operation, results[i] as OperationResult];
    if (operation.do === 'transaction' && result.do === 'transaction') mustAnswer(operation, result);
    else if (operation.do === 'read' && result.do === 'read') mustKeepLimit(operation, result);
    else if (operation.do !== result.do) throw new RangeError(`the result of a ${result.do} for a ${operation.do}`);
  }
}

function mustKeepLimit(read: Read, { pairs }: ReadResult): void {
  const most = read.countOnly === true ? 0 : (askedLimit(read) ?? Infinity);
  if (pairs.length > most) throw new RangeError(`${pairs.length} pairs where at most ${most} were asked for`);
}

/** Reads only the revision of a header. */
export function readHeader(reader: Reader, within: number): Revision {
  return readOneNumber(reader, 0x18, endOfMessage(reader, within));
}

/** Reads the number of one field of a message, and skips the others; 0 if the message lacks it. */
function readOneNumber(reader: Reader, field: number, end: number): number {
  let number = 0;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === field) number = readNumber(reader);
    else skip(reader, tag);
  }
  mustEndAt(reader, end);
  return number;
}

const PUT_DONE: OperationResult = { do: 'put' };

function readOperationResult(reader: Reader, end: number, keyspace: Keyspace, depth: number): OperationResult {
  let result: OperationResult = PUT_DONE;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x0a) {
      result = readReadResult(reader, endOfMessage(reader, end), keyspace);
    } else if (tag === 0x1a) {
      result = { do: 'delete', deleted: readOneNumber(reader, 0x10, endOfMessage(reader, end)) };
    } else if (tag === 0x22) {
      const inner = endOfMessage(reader, end);
      const { succeeded, results } = readTransactionResult(reader, inner, keyspace, depth + 1);
      result = { do: 'transaction', succeeded, results };
    } else {
      skip(reader, tag);
    }
  }
  mustEndAt(reader, end);
  return result;
}

function readReadResult(reader: Reader, end: number, keyspace: Keyspace): ReadResult {
  const pairs: KeyValue[] = [];
  let more = false;
  let count = 0;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x12) pairs.push(readPair(reader, end, keyspace));
    else if (tag === 0x18) more = reader.bool();
    else if (tag === 0x20) count = readNumber(reader);
    else skip(reader, tag);
  }
  mustEndAt(reader, end);
  // etcd counts the whole range, whatever the limit; a reader of pages needs only `more`.
  return { do: 'read', pairs, more, count: pairs.length || count };
}

/** Reads the answer to a read outside a transaction. */
export function readResult(message: Uint8Array, keyspace: Keyspace): ReadResult {
  const reader = newReader(message);
  return readReadResult(reader, reader.len, keyspace);
}

export function readPair(reader: Reader, within: number, keyspace: Keyspace): KeyValue {
  countEntry();
  const end = endOfMessage(reader, within);
  let key = '';
  let text = '';
  let createRevision = 0;
  let modRevision = 0;
  let version = 0;
  let lease: string | null = null;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x0a) key = reader.string();
    else if (tag === 0x10) createRevision = readNumber(reader);
    else if (tag === 0x18) modRevision = readNumber(reader);
    else if (tag === 0x20) version = readNumber(reader);
    else if (tag === 0x2a) text = reader.string();
    else if (tag === 0x30) lease = readLease(reader);
    else skip(reader, tag);
  }
  mustEndAt(reader, end);
  if (key === '') throw new RangeError('a pair without a key');
  return { key: keyspace.ourKey(key) ?? key, value: Value.text(text), createRevision, modRevision, version, lease };
}

/** Reads an answer that has only a header. */
export function revisionOf(message: Uint8Array): Revision {
  const reader = newReader(message);
  let revision: Revision = 0;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 0x0a) revision = readHeader(reader, reader.len);
    else skip(reader, tag);
  }
  return revision;
}
