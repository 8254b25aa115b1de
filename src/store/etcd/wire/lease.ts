/** Leases, whose time etcd counts in whole seconds. */
import type { Lease, LeaseId, LeaseState } from '../../contract.ts';
import { compareKeys } from '../../key-order.ts';
import type { Keyspace } from '../keyspace.ts';
import { readLease, readNumber, writeLease } from './int64.ts';
import { countEntry, newReader, newWriter, skip } from './protobuf.ts';

export function grantMessage(ttlMs: number): Uint8Array {
  return newWriter()
    .uint32(0x08)
    .int64(Math.ceil(ttlMs / 1000))
    .finish();
}

/** A request that only names a lease: to end it, or to renew it. */
export function leaseMessage(id: LeaseId): Uint8Array {
  const writer = newWriter().uint32(0x08);
  writeLease(writer, id);
  return writer.finish();
}

export function leaseStateMessage(id: LeaseId): Uint8Array {
  const writer = newWriter().uint32(0x08);
  writeLease(writer, id);
  return writer.uint32(0x10).bool(true).finish();
}

/** A granted or renewed lease; the ttl of a lease that had ended is 0. */
export function grantedLease(message: Uint8Array): Lease {
  const reader = newReader(message);
  let id: LeaseId = '';
  let seconds = 0;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 0x10) id = readLease(reader) ?? '';
    else if (tag === 0x18) seconds = readNumber(reader);
    else skip(reader, tag);
  }
  return { id, ttlMs: 1000 * seconds };
}

/** `null` if there is no such lease: etcd then answers a TTL of -1 and no granted TTL. */
export function leaseState(message: Uint8Array, keyspace: Keyspace): LeaseState | null {
  const reader = newReader(message);
  let id: LeaseId = '';
  let remaining = 0;
  let granted = 0;
  const keys: string[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 0x10) {
      id = readLease(reader) ?? '';
    } else if (tag === 0x18) {
      remaining = readNumber(reader);
    } else if (tag === 0x20) {
      granted = readNumber(reader);
    } else if (tag === 0x2a) {
      countEntry();
      const key = keyspace.ourKey(reader.string());
      if (key !== undefined) keys.push(key);
    } else {
      skip(reader, tag);
    }
  }
  if (granted === 0) return null;
  // When the time is over and etcd has not ended the lease yet, it answers a negative number, which is read as a huge one.
  const left = Number.isSafeInteger(remaining) ? remaining : 0;
  return { id, ttlMs: 1000 * granted, remainingMs: 1000 * left, keys: keys.sort(compareKeys) };
}
