/** Lists of resources: what matches a filter, in which order, and which rows of ten thousand are drawn. */
import { aspectOf, longest, lostHolds, type Aspect } from './needs.ts';
import type { Kind, Resource, State } from './types.ts';

export type Order = 'need' | 'name' | 'held';

export interface Filter {
  readonly kind: Kind;
  /** Part of the name, of a holder or of a waiter; or a token. */
  readonly text: string;
  /** Only resources that are free, held, waited for, or lost. */
  readonly is: string;
}

const RANK: Readonly<Record<Aspect, number>> = { danger: 0, caution: 1, held: 3, shared: 3, free: 4 };

export function matching(state: State, { kind, text, is }: Filter): readonly Resource[] {
  const wanted = text.trim().toLowerCase();
  const found: Resource[] = [];
  for (const one of state.resources.values()) {
    if (one.kind === kind && hasState(one, is) && (wanted === '' || hasText(one, wanted))) found.push(one);
  }
  return found;
}

function hasState(one: Resource, is: string): boolean {
  switch (is) {
    case 'free':
      return one.holds.length === 0;
    case 'held':
      return one.holds.length > 0;
    case 'queue':
      return one.waiting.length > 0;
    case 'lost':
      return lostHolds(one).length > 0;
    default:
      return true;
  }
}

function hasText(one: Resource, wanted: string): boolean {
  return (
    one.name.toLowerCase().includes(wanted) ||
    one.holds.some(({ holder, token }) => holder.toLowerCase().includes(wanted) || String(token) === wanted) ||
    one.waiting.some(({ holder }) => holder.toLowerCase().includes(wanted))
  );
}

export function byName(one: Resource, other: Resource): number {
  if (one.name === other.name) return 0;
  return one.name < other.name ? -1 : 1;
}

/** Free resources come last and unsorted: sorting thousands of names again and again would be noticeable. */
export function ordered(state: State, found: readonly Resource[], order: Order, now: number): readonly Resource[] {
  if (order === 'name') return [...found].sort(byName);
  const free: Resource[] = [];
  const ranked: { readonly one: Resource; readonly rank: number; readonly since: number }[] = [];
  for (const one of found) {
    const [hold] = one.holds;
    if (hold === undefined && one.waiting.length === 0) {
      free.push(one);
    } else if (order === 'held') {
      ranked.push({ one, rank: 0, since: hold?.acquiredAt ?? Infinity });
    } else {
      const known = RANK[aspectOf(state, one, now)];
      const rank = known > 2 && one.waiting.length > 0 ? 2 : known;
      ranked.push({ one, rank, since: longest(one)?.since ?? hold?.acquiredAt ?? 0 });
    }
  }
  ranked.sort((a, b) => a.rank - b.rank || a.since - b.since || byName(a.one, b.one));
  return [...ranked.map(({ one }) => one), ...free];
}

/** Where each row is in a list. */
export type Places = ReadonlyMap<string, number>;

export function placesOf(rows: readonly Resource[]): Places {
  return new Map(rows.map(({ resource }, place) => [resource, place]));
}

/**
 * Keeps rows in their places between two sorts: `places` are those of the last sort. New rows come at the end, and rows
 * that no longer match go. Every draw does this, so it makes nothing but the list.
 */
export function inPlace(places: Places, found: readonly Resource[]): readonly Resource[] {
  const placed = new Array<Resource | undefined>(places.size).fill(undefined);
  const fresh: Resource[] = [];
  for (const one of found) {
    const place = places.get(one.resource);
    if (place === undefined) fresh.push(one);
    else placed[place] = one;
  }
  const kept = placed.filter((one) => one !== undefined);
  return fresh.length === 0 ? kept : [...kept, ...fresh.sort(byName)];
}

/** The rows to draw: those in sight, and some above and below. */
export function inSight(
  count: number,
  rowHeight: number,
  scrolled: number,
  height: number,
  spare = 6,
): { readonly first: number; readonly last: number } {
  const first = Math.max(0, Math.min(count, Math.floor(scrolled / rowHeight) - spare));
  const last = Math.min(count, Math.ceil((scrolled + height) / rowHeight) + spare);
  return { first, last: Math.max(first, last) };
}

export interface LockCounts {
  readonly all: number;
  readonly held: number;
  readonly queued: number;
  readonly lost: number;
  readonly waiters: number;
}

const counted = new WeakMap<State['resources'], Readonly<Record<Kind, LockCounts>>>();

/** Remembered, because several parts of the page ask for it in one render. */
export function countsOf({ resources }: Pick<State, 'resources'>, kind: Kind): LockCounts {
  const known = counted.get(resources) ?? countAll(resources);
  counted.set(resources, known);
  return known[kind];
}

function countAll(resources: State['resources']): Readonly<Record<Kind, LockCounts>> {
  const none = { all: 0, held: 0, queued: 0, lost: 0, waiters: 0 };
  const counts = { lock: { ...none }, semaphore: { ...none } };
  for (const one of resources.values()) {
    const of = counts[one.kind];
    of.all++;
    if (one.holds.length > 0) of.held++;
    if (one.waiting.length > 0) of.queued++;
    of.waiters += one.waiting.length;
    if (lostHolds(one).length > 0) of.lost++;
  }
  return counts;
}
