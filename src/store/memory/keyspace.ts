/** The keys and what they hold. It does as it is told; whether it may was decided before. */
import { checkWellFormed } from '../check.ts';
import type { Change, Compare, KeyRange, KeyValue, Put, Read, ReadResult, Revision } from '../contract.ts';
import { isPlain } from '../key-order.ts';
import { holds } from '../compare.ts';
import { compareEntries, Entry, isLive, type LiveEntry } from './entry.ts';
import type { Changed } from './history.ts';
import { attach, detach, type HeldLease, type Leases } from './leases.ts';
import { byAge, byKey, countIn } from './part.ts';
import { SortedEntries } from './sorted-entries.ts';

/**
 * So many entries are kept of keys that are gone and may come back; past that, the longest gone are cleared. More would
 * help those who rotate many keys, and hinder those who use every name once: reads walk past the places of the gone.
 */
export const KEPT_GONE = 128;
export const CLEARED_AT_ONCE = 32;

export class Keyspace {
  readonly #leases: Leases;
  readonly #entries = new Map<string, Entry>();
  readonly #sorted = new SortedEntries();
  /** Entries without a key, and some whose key has come back since. */
  readonly #gone: Entry[] = [];
  /** The one found last: a transaction asks for the same one several times. */
  #last = new Entry('', true);
  #changed: Change | Change[] | undefined = undefined;

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  /** What was changed since this was last asked, in order. */
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
    const parts = this.#sorted.partsOf(key, end);
    const count = countIn(parts);
    if (countOnly) return { do: 'read', pairs: [], more: false, count };
    const most = Math.min(limit ?? count, count);
    const entries = order === 'create' ? byAge(parts, most) : byKey(parts, most);
    return { do: 'read', pairs: entries.map((entry) => entry.pair), more: most < count, count };
  }

  #readKey(key: string, countOnly: boolean): ReadResult {
    const pair = this.#find(key)?.pair;
    if (pair === undefined) return { do: 'read', pairs: [], more: false, count: 0 };
    return { do: 'read', pairs: countOnly ? [] : [pair], more: false, count: 1 };
  }

  put({ key, value, lease: asked }: Put, revision: Revision): void {
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

  delete({ key, end }: KeyRange, revision: Revision): number {
    if (end === undefined) {
      const entry = this.#find(key);
      return isLive(entry) ? this.#remove([entry], revision) : 0;
    }
    if (this.#sorted.isEmpty(key, end)) return 0;
    return this.#remove(byKey(this.#sorted.partsOf(key, end)), revision);
  }

  /** Deletes what hangs on a lease, by key. */
  deleteAttached({ entries }: HeldLease, revision: Revision): void {
    this.#remove((entries as LiveEntry[]).slice().sort(compareEntries), revision);
  }

  #remove(entries: readonly LiveEntry[], revision: Revision): number {
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

  /** The entry for a key, whether or not it exists. Throws `invalid` if it cannot. */
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
