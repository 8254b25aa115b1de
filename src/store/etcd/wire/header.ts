/** The header that every message of etcd begins with: which cluster the answer is from, and of which revision. */
import type { Revision } from '../../contract.ts';
import { readNumber } from './int64.ts';
import { endOfMessage, newReader, skip } from './protobuf.ts';

export interface Header {
  /** A hash of 64 bits, rounded to what a number holds: enough to tell two clusters apart. 0 if the header has none. */
  readonly cluster: number;
  /** 0 if the header has none. */
  readonly revision: Revision;
}

const NONE: Header = { cluster: 0, revision: 0 };

/** Returns zeros for a message that cannot be read: the reader of the whole message reports that. */
export function headerOf(message: Uint8Array): Header {
  if (message[0] !== 0x0a) return NONE;
  let [cluster, revision] = [0, 0];
  try {
    const reader = newReader(message);
    reader.uint32();
    const end = endOfMessage(reader);
    while (reader.pos < end) {
      const tag = reader.uint32();
      if (tag === 0x08) cluster = readNumber(reader);
      else if (tag === 0x18) revision = readNumber(reader);
      else skip(reader, tag);
    }
  } catch {
    return NONE;
  }
  return { cluster, revision };
}
