/**
 * Reduction: a holder that waits for nothing will finish and release everything. Then the next waiter in line that fits is
 * served, and finishes too once it waits for nothing else; and so on. What is left over will never move.
 *
 *     a holds x          b holds y, waits for x          c waits for y and z, d holds z, waits for y behind c
 *     └─ finishes ─────▶ └─ is served and finishes ────▶ └─ is served y, and then neither can go on: deadlock
 *
 * `reduce` yields after each pool, because there may be thousands. The result does not depend on the order of the pools: each
 * line is served in its own order and every release only makes more room, so what can be served now could be served later too.
 */
import type { Steps } from '../steps.ts';
import type { Demand } from './line.ts';
import { fits, grant, type Pool, release } from './pool.ts';

/** Keeps only the requests that will never be served, and what their holders hold. */
export function* reduce(pools: readonly Pool[]): Steps<void> {
  const waits = yield* waitsByHolder(pools);
  const places = yield* poolsByHolder(pools);
  const unsettled = new Set<Pool>();
  const finish = (holder: string): void => {
    for (const pool of places.get(holder) ?? []) if (release(pool, holder)) unsettled.add(pool);
  };
  const serve = (pool: Pool): void => {
    for (let demand = pool.line[pool.served]; demand !== undefined; demand = pool.line[pool.served]) {
      if (!fits(pool, demand)) break;
      grant(pool, demand);
      pool.served++;
      for (const waiter of waitersOf(demand)) {
        const left = (waits.get(waiter) ?? 0) - 1;
        waits.set(waiter, left);
        if (left === 0) finish(waiter);
      }
    }
  };
  // Waiters that can be served now are served before anyone leaves: a request that steals takes what is stale now.
  for (const pool of pools) {
    yield;
    serve(pool);
  }
  for (const holder of places.keys()) {
    yield;
    if (!waits.has(holder)) finish(holder);
  }
  // A pool that is added while this runs gets its turn too.
  for (const pool of unsettled) {
    yield;
    unsettled.delete(pool);
    serve(pool);
  }
}

/** Only a holder that has, or waits for, a second thing can be part of a cycle. */
export function* canDeadlock(pools: readonly Pool[]): Steps<boolean> {
  const waits = yield* waitsByHolder(pools);
  for (const count of waits.values()) if (count > 1) return true;
  for (const { held, stale } of pools) {
    yield;
    for (const holder of held.keys()) if (waits.has(holder)) return true;
    for (const holder of stale.keys()) if (waits.has(holder)) return true;
  }
  return false;
}

function* waitsByHolder(pools: readonly Pool[]): Steps<Map<string, number>> {
  const waits = new Map<string, number>();
  for (const { line } of pools) {
    yield;
    for (const waiter of line.flatMap(waitersOf)) waits.set(waiter, (waits.get(waiter) ?? 0) + 1);
  }
  return waits;
}

/** The holder that asks, and the holders around it, which continue only when it has ended. */
export function waitersOf({ holder, request: { within } }: Demand): readonly string[] {
  return within === undefined ? [holder] : [holder, ...within.filter((around) => around !== holder)];
}

/** The pools in which a holder has something, or will have once it is served. */
function* poolsByHolder(pools: readonly Pool[]): Steps<Map<string, Pool[]>> {
  const places = new Map<string, Pool[]>();
  for (const pool of pools) {
    yield;
    const holders = [...pool.held.keys(), ...pool.stale.keys(), ...pool.line.map(({ holder }) => holder)];
    for (const holder of holders) {
      const own = places.get(holder);
      if (own === undefined) places.set(holder, [pool]);
      else own.push(pool);
    }
  }
  return places;
}
