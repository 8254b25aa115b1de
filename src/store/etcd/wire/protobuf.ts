/** The two exports we use of the protobuf library, which is CommonJS and names its exports at run time. */
import protobuf from 'protobufjs/minimal.js';
import { skipNumber } from './int64.ts';

export type { Reader, Writer } from 'protobufjs';

export function newWriter(): protobuf.Writer {
  return protobuf.Writer.create();
}

export function newReader(message: Uint8Array): protobuf.Reader {
  entries = 0;
  return protobuf.Reader.create(message);
}

/** How a field is written: the last three bits of its tag. */
const VARINT = 0;
const EIGHT_BYTES = 1;
const BYTES = 2;
const FOUR_BYTES = 5;

/** Where the message that begins here ends; the reader has just read its length. `within`: where the message around it ends. */
export function endOfMessage(reader: protobuf.Reader, within: number = reader.len): number {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > within) throw new RangeError('the message is shorter than it says');
  return end;
}

/** To be called after the last field: a field that is longer than the message around it cannot come from etcd. */
export function mustEndAt(reader: protobuf.Reader, end: number): void {
  if (reader.pos !== end) throw new RangeError('a field is longer than the message it is in');
}

/**
 * How many pairs, events or keys one message may have. Each takes some 300 bytes of memory, but as few as two bytes in
 * the message: without a limit, a message could become one object for every two of its bytes.
 */
const MOST_ENTRIES = 1_000_000;

/** Counts the entries of the message that is being read; messages are read one after the other. */
let entries = 0;

export function countEntry(): void {
  if (++entries > MOST_ENTRIES) throw new RangeError(`a message of more than ${MOST_ENTRIES} entries`);
}

/** Skips a field that is of no interest, or that a newer etcd has added. etcd uses no groups, which could be nested. */
export function skip(reader: protobuf.Reader, tag: number): void {
  switch (tag & 7) {
    case VARINT:
      return skipNumber(reader);
    case EIGHT_BYTES:
      reader.skip(8);
      return;
    case BYTES:
      reader.skip(reader.uint32());
      return;
    case FOUR_BYTES:
      reader.skip(4);
      return;
    default:
      throw new RangeError(`a field of kind ${tag & 7}, which etcd does not use`);
  }
}
