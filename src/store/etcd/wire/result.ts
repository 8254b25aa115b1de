/** What etcd answers to a transaction or a read. */
import type { KeyValue, OperationResult, ReadResult, Revision, TransactionResult } from '../../contract.ts';
import { Value } from '../../value.ts';
import type { Keyspace } from '../keyspace.ts';
import { readLease, readNumber } from './int64.ts';
import { endOfMessage, newReader, type Reader, skip } from './protobuf.ts';

export function transactionResult(message: Uint8Array, keyspace: Keyspace): TransactionResult {
  const reader = newReader(message);
  return readTransactionResult(reader, reader.len, keyspace);
}

function readTransactionResult(reader: Reader, end: number, keyspace: Keyspace): TransactionResult {
  let revision: Revision = 0;
  let succeeded = false;
  const results: OperationResult[] = [];
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x0a) revision = readHeader(reader);
    else if (tag === 0x10) succeeded = reader.bool();
    else if (tag === 0x1a) results.push(readOperationResult(reader, endOfMessage(reader), keyspace));
    else skip(reader, tag);
  }
  return { succeeded, revision, results };
}

/** The revision is all that is wanted of a header. */
export function readHeader(reader: Reader): Revision {
  const end = endOfMessage(reader);
  let revision: Revision = 0;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x18) revision = readNumber(reader);
    else skip(reader, tag);
  }
  return revision;
}

const PUT_DONE: OperationResult = { do: 'put' };

function readOperationResult(reader: Reader, end: number, keyspace: Keyspace): OperationResult {
  let result: OperationResult = PUT_DONE;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x0a) {
      result = readReadResult(reader, endOfMessage(reader), keyspace);
    } else if (tag === 0x1a) {
      result = { do: 'delete', deleted: readDeleted(reader, endOfMessage(reader)) };
    } else if (tag === 0x22) {
      const { succeeded, results } = readTransactionResult(reader, endOfMessage(reader), keyspace);
      result = { do: 'transaction', succeeded, results };
    } else {
      skip(reader, tag);
    }
  }
  return result;
}

function readDeleted(reader: Reader, end: number): number {
  let deleted = 0;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x10) deleted = readNumber(reader);
    else skip(reader, tag);
  }
  return deleted;
}

function readReadResult(reader: Reader, end: number, keyspace: Keyspace): ReadResult {
  const pairs: KeyValue[] = [];
  let more = false;
  let count = 0;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x12) pairs.push(readPair(reader, keyspace));
    else if (tag === 0x18) more = reader.bool();
    else if (tag === 0x20) count = readNumber(reader);
    else skip(reader, tag);
  }
  return { do: 'read', pairs, more, count };
}

/** Of a read that is no part of a transaction. */
export function readResult(message: Uint8Array, keyspace: Keyspace): ReadResult {
  const reader = newReader(message);
  return readReadResult(reader, reader.len, keyspace);
}

export function readPair(reader: Reader, keyspace: Keyspace): KeyValue {
  const end = endOfMessage(reader);
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
  return { key: keyspace.ourKey(key) ?? key, value: Value.text(text), createRevision, modRevision, version, lease };
}

/** Of an answer that is nothing but its header. */
export function revisionOf(message: Uint8Array): Revision {
  const reader = newReader(message);
  let revision: Revision = 0;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 0x0a) revision = readHeader(reader);
    else skip(reader, tag);
  }
  return revision;
}
