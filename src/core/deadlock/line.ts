/**
 * The line: the order in which waiters will be served. No waiter can be served before those ahead of it, whatever the others
 * do, so the order is known beforehand, and with it which request waits for which.
 */
import { type Passed, PATIENCE, type Waiting } from '../queue.ts';

export interface Demand {
  readonly request: Waiting;
  readonly holder: string;
  /** In order of arrival. */
  readonly place: number;
  /** The total wanted, including what the holder has already. */
  readonly want: number;
  /** Goes before everyone. */
  readonly first: boolean;
  readonly steals: boolean;
}

/**
 * The result of calling `nextInLine` repeatedly. A holder's other requests that the same grant answers are left out: they
 * wait for no other holder.
 */
export function inOrderOfService(demands: readonly Demand[], lastPassed: Passed | null): readonly Demand[] {
  const ranked = demands.toSorted(
    (one, other) => Number(other.first) - Number(one.first) || other.request.priority - one.request.priority,
  );
  const answered = new Set<Demand>();
  const line: Demand[] = [];
  const joins = joiner(demands, answered);
  let passed = lastPassed;
  for (let [o, b] = [0, 0]; ;) {
    while (answered.has(demands[o] as Demand)) o++;
    while (answered.has(ranked[b] as Demand)) b++;
    const oldest = demands[o];
    const best = ranked[b];
    if (oldest === undefined || best === undefined) return line;
    const times = passed?.id === oldest.request.id ? passed.times : 0;
    const next = times >= PATIENCE && !best.first ? oldest : best;
    passed = next === oldest ? null : { id: oldest.request.id, times: times + 1 };
    line.push(next);
    answered.add(next);
    joins(next);
  }
}

/** Marks the other demands of the same holder that serving this demand answers too. */
function joiner(demands: readonly Demand[], answered: Set<Demand>): (served: Demand) => void {
  const byHolder = new Map<string, Demand[]>();
  for (const demand of demands) {
    const own = byHolder.get(demand.holder);
    if (own === undefined) byHolder.set(demand.holder, [demand]);
    else own.push(demand);
  }
  return (served) => {
    for (const other of byHolder.get(served.holder) ?? []) {
      if (other.want <= served.want) answered.add(other);
    }
  };
}
