/** A transaction, as etcd reads it. The numbers are those of `rpc.proto`: the field, shifted by three, and its kind. */
import { Failure } from '../../../failure.ts';
import { checkWellFormed } from '../../check.ts';
import type { Compare, Delete, KeyRange, Operation, Put, Read, Revision, Transaction } from '../../contract.ts';
import { askedLimit } from '../by-age.ts';
import type { Keyspace } from '../keyspace.ts';
import { writeLease } from './int64.ts';
import { newWriter, type Writer } from './protobuf.ts';

export function transactionMessage(transaction: Transaction, keyspace: Keyspace): Uint8Array {
  const writer = newWriter();
  writeTransaction(writer, transaction, keyspace);
  const message = writer.finish();
  if (message.length <= LARGEST_REQUEST) return message;
  const told = `a transaction of ${message.length} bytes; etcd accepts at most ${LARGEST_REQUEST} (1.5 MiB) in a request`;
  throw new Failure('invalid', told);
}

/** etcd's limit, unless `--max-request-bytes` says otherwise. etcd adds a few bytes of its own, and a proxy may too. */
const LARGEST_REQUEST = 1.5 * 1024 * 1024 - 1024;

function writeTransaction(writer: Writer, { compare, success, failure }: Transaction, keyspace: Keyspace): void {
  for (let i = 0; i < compare.length; i++) {
    writer.uint32(0x0a).fork();
    writeCompare(writer, compare[i] as Compare, keyspace);
    writer.ldelim();
  }
  writeOperations(writer, 0x12, success, keyspace);
  writeOperations(writer, 0x1a, failure, keyspace);
}

function writeOperations(writer: Writer, tag: number, operations: readonly Operation[], keyspace: Keyspace): void {
  for (let i = 0; i < operations.length; i++) {
    writer.uint32(tag).fork();
    writeOperation(writer, operations[i] as Operation, keyspace);
    writer.ldelim();
  }
}

const RESULT = { '=': 0, '>': 1, '<': 2, '!=': 3 } as const;
const TARGET = { version: 0, create: 1, mod: 2, value: 3, lease: 4 } as const;
const THAN = { version: 0x20, create: 0x28, mod: 0x30 } as const;

function writeCompare(writer: Writer, compare: Compare, keyspace: Keyspace): void {
  if (compare.is !== '=') writer.uint32(0x08).uint32(RESULT[compare.is]);
  if (compare.target !== 'version') writer.uint32(0x10).uint32(TARGET[compare.target]);
  const end = keyspace.etcdEnd(compare);
  writer.uint32(0x1a).string(keyspace.etcdStart(compare));
  switch (compare.target) {
    case 'version':
    case 'create':
    case 'mod':
      writer.uint32(THAN[compare.target]).int64(compare.than);
      break;
    case 'value':
      writer.uint32(0x3a).string(compare.than);
      break;
    case 'lease':
      writer.uint32(0x40);
      if (compare.than === null) writer.uint32(0);
      else writeLease(writer, compare.than);
      break;
  }
  if (end !== undefined) writer.uint32(0x202).string(end);
}

function writeOperation(writer: Writer, operation: Operation, keyspace: Keyspace): void {
  switch (operation.do) {
    case 'read':
      writer.uint32(0x0a).fork();
      writeRead(writer, operation, keyspace);
      break;
    case 'put':
      writer.uint32(0x12).fork();
      writePut(writer, operation, keyspace);
      break;
    case 'delete':
      writer.uint32(0x1a).fork();
      writeRange(writer, operation satisfies Delete, keyspace);
      break;
    case 'transaction':
      writer.uint32(0x22).fork();
      writeTransaction(writer, operation, keyspace);
      break;
  }
  writer.ldelim();
}

/** Writes the range with which read, deletion and watch all begin. */
export function writeRange(writer: Writer, range: KeyRange, keyspace: Keyspace): void {
  writer.uint32(0x0a).string(keyspace.etcdStart(range));
  const end = keyspace.etcdEnd(range);
  if (end !== undefined) writer.uint32(0x12).string(end);
}

const BY_CREATION = 2;
const ASCENDING = 1;

function writeRead(writer: Writer, read: Read, keyspace: Keyspace): void {
  writeRange(writer, read, keyspace);
  const limit = askedLimit(read);
  if (limit !== undefined) writer.uint32(0x18).int64(limit);
  if (read.order === 'create') writer.uint32(0x28).uint32(ASCENDING).uint32(0x30).uint32(BY_CREATION);
  if (read.countOnly === true) writer.uint32(0x48).bool(true);
}

function writePut(writer: Writer, { key, value, lease }: Put, keyspace: Keyspace): void {
  checkWellFormed(key);
  writer.uint32(0x0a).string(keyspace.etcdKey(key));
  writer.uint32(0x12).string(value.text);
  if (lease === 'keep') {
    writer.uint32(0x30).bool(true);
  } else if (lease !== undefined) {
    writer.uint32(0x18);
    writeLease(writer, lease);
  }
}

/** Reads all keys of a range that were made in one revision, as they were at another. */
export function peersMessage(range: KeyRange, created: Revision, at: Revision, keyspace: Keyspace): Uint8Array {
  const writer = newWriter();
  writeRange(writer, range, keyspace);
  return writer.uint32(0x20).int64(at).uint32(0x60).int64(created).uint32(0x68).int64(created).finish();
}
