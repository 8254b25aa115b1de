/** Requests to the server itself: for a token, its state, and the history that it still has. */
import type { Revision } from '../../contract.ts';
import { readNumber } from './int64.ts';
import { newReader, newWriter, skip } from './protobuf.ts';

export function authenticateMessage(user: string, password: string): Uint8Array {
  return newWriter().uint32(0x0a).string(user).uint32(0x12).string(password).finish();
}

export function tokenOf(message: Uint8Array): string {
  const reader = newReader(message);
  let token = '';
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 0x12) token = reader.string();
    else skip(reader, tag);
  }
  return token;
}

export function compactMessage(revision: Revision): Uint8Array {
  return newWriter().uint32(0x08).int64(revision).finish();
}

/** Asks how many pairs a key has (none or one) at `revision`; 0 is now. */
export function countMessage(etcdKey: string, revision: Revision): Uint8Array {
  const writer = newWriter().uint32(0x0a).string(etcdKey);
  if (revision > 0) writer.uint32(0x20).int64(revision);
  return writer.uint32(0x48).bool(true).finish();
}

/** The state of a server of the etcd. */
export interface ServerStatus {
  /** `3.4.23`. */
  readonly version: string;
  /** The size of its database. */
  readonly databaseBytes: number;
  /** Whether the cluster has a leader. */
  readonly hasLeader: boolean;
  /** Alarms, such as that of a full database; empty if all is well. */
  readonly errors: readonly string[];
}

const MOST_ERRORS = 1000;

export const STATUS_MESSAGE = new Uint8Array();

export function statusOf(message: Uint8Array): ServerStatus {
  const reader = newReader(message);
  let version = '';
  let databaseBytes = 0;
  let hasLeader = false;
  const errors: string[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 0x12) version = reader.string();
    else if (tag === 0x18) databaseBytes = readNumber(reader);
    else if (tag === 0x20) hasLeader = readNumber(reader) !== 0;
    else if (tag === 0x42) errors.push(reader.string());
    else skip(reader, tag);
    // etcd has three kinds of alarms, for each of its members.
    if (errors.length > MOST_ERRORS) throw new RangeError(`more than ${MOST_ERRORS} alarms`);
  }
  return { version, databaseBytes, hasLeader, errors };
}
