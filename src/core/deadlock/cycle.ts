/**
 * Finds a shortest cycle among the waiters that will never move. A waiter waits for everyone ahead of it in the line and, if
 * there is no room for it, for every holder of a part of what it wants.
 */
import type { Demand } from './line.ts';
import { fits, type Pool } from './pool.ts';
import { waitersOf } from './reduce.ts';

/** A waiter and the holder that blocks it, which is the waiter of the next link, or of the first. */
export interface Link {
  readonly pool: Pool;
  readonly demand: Demand;
  /** The holder that waits: the one that asks, or an outer one around it. */
  readonly waiter: string;
  readonly blockedBy: string;
}

interface Wait {
  readonly pool: Pool;
  readonly demand: Demand;
  /** The waiter's place in the line. */
  readonly place: number;
}

type Waits = ReadonlyMap<string, readonly Wait[]>;

/** The pools must be reduced: only then is every remaining waiter and holder stuck. */
export function shortestCycle(pools: readonly Pool[]): readonly Link[] | undefined {
  const waits = waitsByHolder(pools);
  const holders = new Set(pools.flatMap(({ held, stale }) => [...held.keys(), ...stale.keys()]));
  let shortest: readonly Link[] | undefined;
  for (const [start, own] of waits) {
    // A waiter that holds nothing and waits in one line blocks others in that line only, and a line is not a cycle.
    if (own.length === 1 && !holders.has(start)) continue;
    shortest = cycleThrough(start, waits, shortest?.length ?? Infinity) ?? shortest;
    if (shortest !== undefined && shortest.length <= 2) break;
  }
  return shortest;
}

/** Searches breadth first, so that the first way back is a shortest one; gives up at `limit` links. */
function cycleThrough(start: string, waits: Waits, limit: number): readonly Link[] | undefined {
  const linkTo = new Map<string, Link>();
  const seen: Seen = { line: new Map(), held: new Set(), stale: new Set() };
  let front = [start];
  for (let length = 1; length < limit && front.length > 0; length++) {
    const next: string[] = [];
    for (const [waiter, wait] of front.flatMap((holder) =>
      (waits.get(holder) ?? []).map((one) => [holder, one] as const),
    )) {
      for (const blockedBy of blockers(wait, length === 1 ? undefined : seen)) {
        if (linkTo.has(blockedBy) || !waits.has(blockedBy)) continue;
        linkTo.set(blockedBy, { ...wait, waiter, blockedBy });
        if (blockedBy === start) return wayTo(start, linkTo);
        next.push(blockedBy);
      }
    }
    front = next;
  }
  return undefined;
}

/**
 * Marks how much of each pool the search has reached. Without the marks it would walk a long line once for each of its waiters.
 * The holder where the search starts leaves no mark: it does not block itself, but the others must find it.
 */
interface Seen {
  readonly line: Map<Pool, number>;
  readonly held: Set<Pool>;
  readonly stale: Set<Pool>;
}

function* blockers({ pool, demand, place }: Wait, seen: Seen | undefined): Generator<string> {
  for (let ahead = seen?.line.get(pool) ?? pool.served; ahead < place; ahead++) {
    const { holder } = pool.line[ahead] as Demand;
    if (holder !== demand.holder) yield holder;
  }
  seen?.line.set(pool, Math.max(place, seen.line.get(pool) ?? 0));
  if (fits(pool, demand)) return;
  if (seen?.held.has(pool) !== true) {
    for (const holder of pool.held.keys()) if (holder !== demand.holder) yield holder;
  }
  seen?.held.add(pool);
  if (demand.steals || seen?.stale.has(pool) === true) return;
  yield* pool.stale.keys();
  seen?.stale.add(pool);
}

function wayTo(start: string, linkTo: ReadonlyMap<string, Link>): readonly Link[] {
  const way: Link[] = [];
  let holder = start;
  do {
    const link = linkTo.get(holder) as Link;
    way.unshift(link);
    holder = link.waiter;
  } while (holder !== start);
  return way;
}

function waitsByHolder(pools: readonly Pool[]): Waits {
  const waits = new Map<string, Wait[]>();
  for (const pool of pools) {
    for (let place = pool.served; place < pool.line.length; place++) {
      const demand = pool.line[place] as Demand;
      for (const waiter of waitersOf(demand)) {
        const own = waits.get(waiter);
        if (own === undefined) waits.set(waiter, [{ pool, demand, place }]);
        else own.push({ pool, demand, place });
      }
    }
  }
  return waits;
}
