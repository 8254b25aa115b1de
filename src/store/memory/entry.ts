/**
 * A key and what it holds. Locks make and delete the same few keys over and over, so an entry outlives its key: it
 * stays in its place, without a pair, until the key comes back or the place is needed. (A `Map` would otherwise walk
 * past every earlier deletion of a key to find it: 50 µs in a store of 100,000 keys.)
 */
import type { KeyValue } from '../contract.ts';
import { compareKeys } from '../key-order.ts';
import type { Chunk } from './chunk.ts';
import type { HeldLease } from './leases.ts';

export class Entry {
  readonly key: string;
  /** Whether `<` compares its key correctly with any other. */
  readonly isPlain: boolean;
  /** Replaced, never changed: results and history still hold the pair before. Undefined while the key does not exist. */
  pair: KeyValue | undefined = undefined;
  /** Where it stands in the order of keys; undefined until the key first exists. */
  chunk: Chunk | undefined = undefined;
  lease: HeldLease | undefined = undefined;
  /** Its index among the lease's entries. */
  leaseIndex = -1;
  /** Whether it is among the entries that are cleared once there are too many. */
  isListedGone = false;

  constructor(key: string, plain: boolean) {
    this.key = key;
    this.isPlain = plain;
  }
}

/** An entry whose key exists. */
export type LiveEntry = Entry & { pair: KeyValue };

export function isLive(entry: Entry | undefined): entry is LiveEntry {
  return entry?.pair !== undefined;
}

export function compareEntries(a: Entry, b: Entry): number {
  return compareKeys(a.key, b.key);
}

/** Compares by create revision; keys made in one transaction, by key. */
export function compareAge(a: LiveEntry, b: LiveEntry): number {
  return a.pair.createRevision - b.pair.createRevision || compareKeys(a.key, b.key);
}
