/** The keys and their values. It applies what plan.ts has checked. */
import { checkWellFormed } from '../check.ts';
import type { Change, Compare, KeyRange, KeyValue, LeaseId, Put, Read, ReadResult, Revision } from '../contract.ts';
import { holds } from '../compare.ts';
import { isPlain } from '../key-order.ts';
import type { TransactionKeys } from '../plan.ts';
import { WideMap } from '../wide-map.ts';
import { compareEntries, Entry, isLive, type LiveEntry } from './entry.ts';
import type { Changed } from './history.ts';
import { attach, detach, type HeldLease, type Leases } from './leases.ts';
import { byAge, byKey, countIn } from './part.ts';
import { SortedEntries } from './sorted-entries.ts';

/**
 * How many entries of deleted keys are kept in case the key comes back; beyond that, those deleted longest ago are
 * cleared. More would help programs that rotate many keys, but slow down programs that use every name once: reads walk
 * past these entries.
 */
export const KEPT_GONE = 128;
export const CLEARED_AT_ONCE = 32;

export class Keyspace implements TransactionKeys {
  /** The revision that the next change gets. */
  nextRevision: Revision = 0;
  readonly #leases: Leases;
  readonly #entries = new WideMap<Entry>();
  readonly #sorted = new SortedEntries();
  /** Entries of deleted keys, and some whose key has come back since. */
  readonly #gone: Entry[] = [];
  /** The entry found last: a transaction looks the same one up several times. */
  #last = new Entry('', true);
  #changed: Change | Change[] | undefined = undefined;

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  /** Returns the changes since the last call, in order. */
  takeChanged(): Changed | undefined {
    const changed = this.#changed;
    this.#changed = undefined;
    return changed;
  }

  holds(compare: Compare): boolean {
    const { key, end } = compare;
    if (end === undefined) return holds(compare, this.#find(key)?.pair);
    if (this.#sorted.isEmpty(key, end)) return holds(compare, undefined);
    if (compare.target === 'version' && compare.is === '=' && compare.than === 0) return false;
    return byKey(this.#sorted.partsOf(key, end)).every((entry) => holds(compare, entry.pair));
  }

  read({ key, end, limit, order, countOnly = false }: Read): ReadResult {
    if (end === undefined) return this.#readKey(key, countOnly);
    if (countOnly) return { do: 'read', pairs: [], more: false, count: countIn(this.#sorted.partsOf(key, end)) };
    // One more than asked for tells whether there are more. A page costs the same in a short range and in a long one.
    const most = (limit ?? Number.POSITIVE_INFINITY) + 1;
    const parts = this.#sorted.partsOf(key, end, order === 'create' ? undefined : most);
    const entries = order === 'create' ? byAge(parts, most) : byKey(parts, most);
    const more = entries.length === most;
    if (more) entries.pop();
    return { do: 'read', pairs: entries.map((entry) => entry.pair), more, count: entries.length };
  }

  #readKey(key: string, countOnly: boolean): ReadResult {
    const pair = this.#find(key)?.pair;
    if (pair === undefined) return { do: 'read', pairs: [], more: false, count: 0 };
    return { do: 'read', pairs: countOnly ? [] : [pair], more: false, count: 1 };
  }

  checkKey(key: string): void {
    this.place(key);
  }

  exists(key: string): boolean {
    return this.place(key).pair !== undefined;
  }

  hasLease(id: LeaseId): boolean {
    return this.#leases.get(id) !== undefined;
  }

  put({ key, value, lease: asked }: Put): void {
    const revision = this.nextRevision;
    const entry = this.place(key);
    const before = entry.pair;
    const lease = asked === undefined ? undefined : asked === 'keep' ? entry.lease : this.#leases.get(asked);
    const pair: KeyValue = {
      key: entry.key,
      value,
      createRevision: before === undefined ? revision : before.createRevision,
      modRevision: revision,
      version: before === undefined ? 1 : before.version + 1,
      lease: lease === undefined ? null : lease.id,
    };
    if (entry.chunk === undefined) this.#sorted.add(entry);
    if (entry.lease !== lease) {
      detach(entry);
      if (lease !== undefined) attach(entry, lease);
    }
    entry.pair = pair;
    if (before === undefined) entry.chunk?.cameToBe(entry as LiveEntry);
    this.#record({ kind: 'put', pair });
  }

  delete({ key, end }: KeyRange): number {
    if (end === undefined) {
      const entry = this.#find(key);
      return isLive(entry) ? this.#remove([entry]) : 0;
    }
    if (this.#sorted.isEmpty(key, end)) return 0;
    return this.#remove(byKey(this.#sorted.partsOf(key, end)));
  }

  /** Deletes the keys attached to a lease, in the order of keys. */
  deleteAttached({ entries }: HeldLease): void {
    this.#remove((entries as LiveEntry[]).slice().sort(compareEntries));
  }

  #remove(entries: readonly LiveEntry[]): number {
    const revision = this.nextRevision;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as LiveEntry;
      entry.chunk?.ceased(entry);
      detach(entry);
      (entry as Entry).pair = undefined;
      this.#expectBack(entry);
      this.#record({ kind: 'delete', key: entry.key, revision });
    }
    return entries.length;
  }

  #record(change: Change): void {
    if (this.#changed === undefined) this.#changed = change;
    else if (Array.isArray(this.#changed)) this.#changed.push(change);
    else this.#changed = [this.#changed, change];
  }

  #find(key: string): Entry | undefined {
    if (this.#last.key === key) return this.#last;
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#last = entry;
    return entry;
  }

  /** The entry of a key, whether or not the key exists. Throws `invalid` if no such key can exist. */
  place(key: string): Entry {
    const found = this.#find(key);
    if (found !== undefined) return found;
    const plain = isPlain(key);
    if (!plain) checkWellFormed(key);
    const entry = new Entry(key, plain);
    this.#entries.set(key, entry);
    this.#last = entry;
    this.#expectBack(entry);
    return entry;
  }

  #expectBack(entry: Entry): void {
    if (entry.isListedGone) return;
    entry.isListedGone = true;
    if (this.#gone.push(entry) > KEPT_GONE) this.#clearPlaces();
  }

  #clearPlaces(): void {
    this.#last = new Entry('', true);
    for (const entry of this.#gone.splice(0, CLEARED_AT_ONCE)) {
      entry.isListedGone = false;
      if (isLive(entry)) continue;
      this.#entries.delete(entry.key);
      this.#sorted.clearAround(entry);
    }
  }
}
