/** The two things that are used of the protobuf library, which is CommonJS and names its exports at run time. */
import protobuf from 'protobufjs/minimal.js';

export type { Reader, Writer } from 'protobufjs';

export function newWriter(): protobuf.Writer {
  return protobuf.Writer.create();
}

export function newReader(message: Uint8Array): protobuf.Reader {
  return protobuf.Reader.create(message);
}

/** What a message is made of: the number of the field and how it is written. */
export const VARINT = 0;
export const BYTES = 2;

/** Where the message that begins here ends; the reader stands behind its length. */
export function endOfMessage(reader: protobuf.Reader): number {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError('the message is shorter than it says');
  return end;
}

/** Goes over a field that is of no interest, or that a newer etcd has added. */
export function skip(reader: protobuf.Reader, tag: number): void {
  reader.skipType(tag & 7);
}
