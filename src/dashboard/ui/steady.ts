/** Rows that keep their places: sorted again at most every two seconds, and not while the pointer or the focus is on them. */
import { useRef } from 'preact/hooks';
import type { Snapshot } from '../live/store.ts';
import { inPlace, type Order, ordered } from '../model/rows.ts';
import type { Resource } from '../model/types.ts';

const SORT_MS = 2_000;

export function useSteadyOrder(
  { state, now }: Snapshot,
  found: readonly Resource[],
  order: Order,
  key = '',
): readonly Resource[] {
  const last = useRef<{ order: string; at: number; names: readonly string[] }>({ order: '', at: 0, names: [] });
  if (state === undefined) return found;
  const wanted = `${order} ${key}`;
  const isNew = last.current.order !== wanted;
  const isUsed = document.querySelector('main a[data-row]:hover, main a[data-row]:focus-visible') !== null;
  if (isNew || (!isUsed && performance.now() - last.current.at > SORT_MS)) {
    const rows = ordered(state, found, order, now);
    last.current = { order: wanted, at: performance.now(), names: rows.map(({ resource }) => resource) };
    return rows;
  }
  return inPlace(last.current.names, found);
}
