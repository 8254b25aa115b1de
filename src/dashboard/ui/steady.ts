/**
 * Keeps rows in their places: sorts them again at most every two seconds, and not while the pointer or the focus is on
 * them.
 */
import { useRef } from 'preact/hooks';
import type { Loaded } from '../live/store.ts';
import { inPlace, type Order, ordered, type Places, placesOf } from '../model/rows.ts';
import type { Resource, State } from '../model/types.ts';

const SORT_MS = 2_000;
/** Sorted again even without a change: waits become long by time alone. */
const SORT_UNCHANGED_MS = 10_000;

interface Sorted {
  readonly how: string;
  /** The input of the last sort: while it is the same object, so are the rows. */
  readonly resources: State['resources'] | undefined;
  readonly at: number;
  readonly places: Places;
  readonly rows: readonly Resource[];
}

export function useSteadyOrder(
  { state, now }: Loaded,
  find: (state: State) => readonly Resource[],
  order: Order,
  key = '',
): readonly Resource[] {
  const last = useRef<Sorted>({ how: '', resources: undefined, at: 0, places: new Map(), rows: [] });
  const { resources } = state;
  const { how: before, at, places, resources: sorted } = last.current;
  const how = `${order} ${key}`;
  const isSame = how === before && sorted === resources;
  const age = performance.now() - at;
  const isUsed = document.querySelector('main a[data-row]:hover, main a[data-row]:focus-visible') !== null;
  if (how !== before || (!isUsed && age > (isSame ? SORT_UNCHANGED_MS : SORT_MS))) {
    const fresh = ordered(state, find(state), order, now);
    last.current = { how, resources, at: performance.now(), places: placesOf(fresh), rows: fresh };
  } else if (!isSame) {
    last.current = { how, resources, at, places, rows: inPlace(places, find(state)) };
  }
  return last.current.rows;
}
