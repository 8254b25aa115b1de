/**
 * Finds deadlocks over all locks and semaphores. A cycle of waiters is not enough: if one more holder of a semaphore is
 * running, a slot will become free. So everything that can still move is removed first (`reduce.ts`), and only the rest is
 * searched for cycles (`cycle.ts`).
 */
import type { Moment, Request } from '../machine.ts';
import type { Cycle } from '../queue.ts';
import { runAtOnce, type Steps } from '../steps.ts';
import { type Link, shortestCycle } from './cycle.ts';
import { type Pool, poolOf, type Resource } from './pool.ts';
import { canDeadlock, reduce } from './reduce.ts';

export interface Deadlock {
  /** Begins with the victim. */
  readonly cycle: Cycle;
  readonly victim: { readonly resource: string; readonly request: Request };
}

/**
 * One victim for each cycle: once these are refused, everyone else will be served. `arrival` says which of two requests,
 * perhaps for different resources, came later; without it, their places in their own queues decide.
 */
export function findDeadlocks(
  resources: readonly Resource[],
  at: Moment,
  arrival?: (requestId: string) => number,
): readonly Deadlock[] {
  return runAtOnce(deadlockSearch(resources, at, arrival));
}

/** The same in steps: there may be thousands of resources. */
export function* deadlockSearch(
  resources: readonly Resource[],
  at: Moment,
  arrival?: (requestId: string) => number,
): Steps<readonly Deadlock[]> {
  const contended = resources.filter(({ state }) => state.waiting.length > 0);
  const found: Deadlock[] = [];
  const refused = new Set<Request>();
  for (;;) {
    const pools: Pool[] = [];
    for (const resource of contended) {
      yield;
      pools.push(poolOf(resource, refused, at));
    }
    if (!(yield* canDeadlock(pools))) return found;
    yield* reduce(pools);
    const links = shortestCycle(pools.filter(({ line, served }) => served < line.length));
    if (links === undefined) return found;
    const deadlock = breakAt(links, arrival);
    refused.add(deadlock.victim.request);
    found.push(deadlock);
  }
}

/**
 * Whether a request that was just queued can have closed a cycle: only if a waiter waits for its holder, because of what else
 * the holder holds or waits for, or because the request goes before others. A grant that passed waiters can close one too,
 * if its holder waits elsewhere.
 */
export function needsLook(resources: readonly Resource[], request: Request): boolean {
  return resources.some(({ state: { record, waiting } }) => {
    const isWaiter = (holder: string): boolean =>
      holder === request.holder || request.within?.includes(holder) === true;
    if (record.holds.some(({ holder }) => isWaiter(holder))) return true;
    const others: readonly Request[] = waiting.filter(({ id }) => id !== request.id);
    if (others.some(({ holder }) => isWaiter(holder))) return true;
    return others.length < waiting.length && others.some(({ priority }) => priority < request.priority);
  });
}

function breakAt(links: readonly Link[], arrival: (requestId: string) => number = () => 0): Deadlock {
  const worth = ({ demand: { request, place } }: Link): readonly number[] => [
    request.priority,
    -arrival(request.id),
    -place,
  ];
  let victim = 0;
  for (const [place, link] of links.entries()) if (isLess(worth(link), worth(links[victim] as Link))) victim = place;
  const fromVictim = [...links.slice(victim), ...links.slice(0, victim)];
  const { pool, demand } = links[victim] as Link;
  return {
    cycle: fromVictim.map((link) => ({
      holder: link.demand.holder,
      resource: link.pool.name,
      blockedBy: link.blockedBy,
    })),
    victim: { resource: pool.name, request: demand.request },
  };
}

function isLess(one: readonly number[], other: readonly number[]): boolean {
  const differs = one.findIndex((value, place) => value !== other[place]);
  return differs >= 0 && (one[differs] as number) < (other[differs] as number);
}
