/** The messages of a watch stream, in both directions. */
import type { Change, Changes, KeyRange, Revision } from '../../contract.ts';
import type { Keyspace } from '../keyspace.ts';
import { readNumber } from './int64.ts';
import { endOfMessage, mustEndAt, newReader, newWriter, type Reader, skip } from './protobuf.ts';
import { readHeader, readPair } from './result.ts';
import { writeRange } from './transaction.ts';

/**
 * Starts a watch at `start`; 0 is from now on. It asks for fragments: without them, etcd puts up to a thousand
 * revisions that a watch has missed into one message, however large their values are. A fragment is not larger than a
 * request may be.
 */
export function createWatch(id: number, range: KeyRange, start: Revision, keyspace: Keyspace): Uint8Array {
  const writer = newWriter();
  writer.uint32(0x0a).fork();
  writeRange(writer, range, keyspace);
  if (start > 0) writer.uint32(0x18).int64(start);
  writer.uint32(0x38).int64(id).uint32(0x40).bool(true).ldelim();
  return writer.finish();
}

export function cancelWatch(id: number): Uint8Array {
  return newWriter().uint32(0x12).fork().uint32(0x08).int64(id).ldelim().finish();
}

/** Asks for a sign of life. */
export function requestProgress(): Uint8Array {
  return newWriter().uint32(0x1a).fork().ldelim().finish();
}

export interface WatchMessage {
  readonly revision: Revision;
  /** The id of the watch that the message is for; larger than any given id if it is for none. */
  readonly id: number;
  readonly created: boolean;
  readonly canceled: boolean;
  /** Above 0 if the watch was cancelled because history up to here was compacted. */
  readonly compacted: Revision;
  readonly reason: string;
  /** The next message for this watch may have more of the last revision. */
  readonly isFragment: boolean;
  /** By revision: a message may carry several, and only a fragment may split the changes of one. */
  readonly changes: readonly MutableChanges[];
}

export interface MutableChanges extends Changes {
  readonly changes: Change[];
}

export function watchMessage(message: Uint8Array, keyspace: Keyspace): WatchMessage {
  const reader = newReader(message);
  let [revision, id, created, canceled, compacted, reason] = [0, 0, false, false, 0, ''];
  const all: MutableChanges[] = [];
  let isFragment = false;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 0x0a) revision = readHeader(reader, reader.len);
    else if (tag === 0x10) id = readNumber(reader);
    else if (tag === 0x18) created = reader.bool();
    else if (tag === 0x20) canceled = reader.bool();
    else if (tag === 0x28) compacted = readNumber(reader);
    else if (tag === 0x32) reason = reader.string();
    else if (tag === 0x38) isFragment = reader.bool();
    else if (tag === 0x5a) add(all, readChange(reader, keyspace));
    else skip(reader, tag);
  }
  return { revision, id, created, canceled, compacted, reason, isFragment, changes: all };
}

function add(all: MutableChanges[], change: Change): void {
  const revision = change.kind === 'put' ? change.pair.modRevision : change.revision;
  const last = all[all.length - 1];
  if (last !== undefined && last.revision === revision) last.changes.push(change);
  else all.push({ revision, changes: [change] });
}

function readChange(reader: Reader, keyspace: Keyspace): Change {
  const end = endOfMessage(reader);
  let isDeletion = false;
  let pair;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 0x08) isDeletion = reader.uint32() === 1;
    else if (tag === 0x12) pair = readPair(reader, end, keyspace);
    else skip(reader, tag);
  }
  mustEndAt(reader, end);
  if (pair === undefined) throw new RangeError('an event without a key');
  return isDeletion ? { kind: 'delete', key: pair.key, revision: pair.modRevision } : { kind: 'put', pair };
}
