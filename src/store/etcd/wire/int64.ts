/**
 * Reads and writes etcd's numbers, which are 64 bits wide. Revisions and counts stay far below 2^53 and are numbers
 * here; lease ids use the whole width and are decimal text. The protobuf library would need another package for this.
 */
import type { Reader, Writer } from 'protobufjs';
import type { LeaseId } from '../../contract.ts';

interface Bits {
  readonly low: number;
  readonly high: number;
  readonly unsigned: boolean;
}

/** The id of no lease. To etcd, 0 means no lease at all, so a text that cannot be an id must not be sent as 0. */
const NO_LEASE: Bits = { low: -1, high: -1, unsigned: false };

const LARGEST_ID = 2n ** 63n - 1n;

let lastId: LeaseId = '';
let lastBits: Bits = NO_LEASE;

export function writeLease(writer: Writer, id: LeaseId): void {
  // A process most often has one lease, and names it in every write.
  if (id !== lastId) {
    lastBits = bitsOf(id);
    lastId = id;
  }
  writer.int64(lastBits);
}

function bitsOf(id: LeaseId): Bits {
  if (!/^[1-9][0-9]{0,18}$/.test(id)) return NO_LEASE;
  const value = BigInt(id);
  if (value > LARGEST_ID) return NO_LEASE;
  return { low: Number(value & 0xffff_ffffn) | 0, high: Number(value >> 32n), unsigned: false };
}

/** The longest varint of 64 bits. A longer one is no number of etcd's, and adding up its bits could take any amount of time. */
const LONGEST_VARINT = 10;

/** `null` for 0: no lease. */
export function readLease(reader: Reader): LeaseId | null {
  let value = 0n;
  for (let count = 0; ; count++) {
    const byte = byteOf(reader, count);
    value |= BigInt(byte & 0x7f) << BigInt(7 * count);
    // Cut to 64 bits: the tenth byte has room for more.
    if (byte < 0x80) return value === 0n ? null : BigInt.asIntN(64, value).toString();
  }
}

/** A negative number of etcd's becomes one that is larger than any count. */
export function readNumber(reader: Reader): number {
  let value = 0;
  let scale = 1;
  for (let count = 0; ; count++, scale *= 0x80) {
    const byte = byteOf(reader, count);
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value;
  }
}

export function skipNumber(reader: Reader): void {
  for (let count = 0; byteOf(reader, count) >= 0x80; count++);
}

/** `before` is how many bytes of the number were read before this one. */
function byteOf(reader: Reader, before: number): number {
  if (before === LONGEST_VARINT) throw new RangeError(`a number of more than ${LONGEST_VARINT} bytes`);
  if (reader.pos >= reader.len) throw new RangeError('the message ends in the middle of a number');
  return reader.buf[reader.pos++] as number;
}
