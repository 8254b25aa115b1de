import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isStale } from '../hold.ts';
import { freeLock, type Lock, type LockMode, lockTransition } from '../lock.ts';
import type { Moment, Request } from '../machine.ts';
import { newSemaphore, type Semaphore, semaphoreTransition } from '../semaphore.ts';
import { findDeadlocks, needsLook } from './find.ts';

type World = Readonly<Record<string, Lock | Semaphore>>;

const resourcesOf = (world: World) => Object.entries(world).map(([name, state]) => ({ name, state }));

/** All leases whose name ends in a cross are gone. */
const at: Moment = { now: 0, revision: 0, gone: (lease) => lease.endsWith('✝') };
const earlier: Moment = { ...at, gone: () => false };

interface Ask {
  readonly holder: string;
  readonly of: string;
  readonly mode?: LockMode;
  readonly weight?: number;
  readonly priority?: number;
  readonly lease?: string;
  readonly steal?: true;
  readonly id?: string;
  readonly within?: readonly string[];
}

let ids = 0;

/** Everyone asks in this order, and waits if it has to. */
function world(resources: World, ...asks: readonly Ask[]): World {
  return asks.reduce((before, ask) => {
    const { of, mode = 'exclusive', weight = 1, ...rest } = ask;
    const request = { id: `${ask.holder}-${of}-${ids++}`, lease: ask.holder, priority: 0, ...rest };
    return { ...before, [of]: acquire(before[of] as Lock | Semaphore, request, mode, weight, true, earlier) };
  }, resources);
}

function acquire(
  state: Lock | Semaphore,
  request: Request,
  mode: LockMode,
  weight: number,
  wait: boolean,
  when: Moment,
) {
  if (state.record.kind === 'lock') {
    return lockTransition(state as Lock, { ...request, kind: 'acquire', mode, wait }, when).state;
  }
  return semaphoreTransition(state as Semaphore, { ...request, kind: 'acquire', weight, wait }, when).state;
}

function command(
  state: Lock | Semaphore,
  asked: { kind: 'release'; holder: string; id: string } | Refuse,
): Lock | Semaphore {
  return state.record.kind === 'lock'
    ? lockTransition(state as Lock, asked, at).state
    : semaphoreTransition(state as Semaphore, asked, at).state;
}

type Refuse = { readonly kind: 'refuse'; readonly id: string; readonly cycle: [] };

const x = freeLock;
const y = freeLock;
const ab = (...links: readonly string[]) =>
  links.map((link) => {
    const [holder, resource, blockedBy] = link.split(' ');
    return { holder, resource, blockedBy };
  });

describe('holders within others, who go on only when those have come to their end', () => {
  it('are in a deadlock if those around them hold what the other one waits for', () => {
    const found = findDeadlocks(
      resourcesOf(
        world(
          { x: freeLock, y: freeLock },
          { holder: 'a', of: 'x' },
          { holder: 'b', of: 'y' },
          { holder: 'in a', of: 'y', within: ['a'] },
          { holder: 'in b', of: 'x', within: ['b'] },
        ),
      ),
      at,
    );
    expect(found.map(({ cycle }) => cycle)).toEqual([
      [
        { holder: 'in b', resource: 'x', blockedBy: 'a', inside: 'b' },
        { holder: 'in a', resource: 'y', blockedBy: 'b', inside: 'a' },
      ],
    ]);
  });

  it('are in one if they wait for what a holder around them holds', () => {
    const found = findDeadlocks(
      resourcesOf(world({ x: freeLock }, { holder: 'a', of: 'x' }, { holder: 'in a', of: 'x', within: ['b', 'a'] })),
      at,
    );
    expect(found.map(({ cycle }) => cycle)).toEqual([[{ holder: 'in a', resource: 'x', blockedBy: 'a', inside: 'a' }]]);
  });

  it('are in none if they wait for each other one after another, or for a holder that is running', () => {
    const found = findDeadlocks(
      resourcesOf(
        world(
          { x: freeLock, y: freeLock, z: freeLock },
          { holder: 'a', of: 'x' },
          { holder: 'first in a', of: 'y', within: ['a'] },
          { holder: 'second in a', of: 'y', within: ['a'] },
          { holder: 'b', of: 'z' },
          { holder: 'third in a', of: 'z', within: ['a'] },
          { holder: 'c', of: 'x' },
        ),
      ),
      at,
    );
    expect(found).toEqual([]);
  });
});

describe('a deadlock', () => {
  it('of two who hold what the other wants is found, and the younger one gives way', () => {
    const crossed = world(
      { x, y },
      { holder: 'a', of: 'x' },
      { holder: 'b', of: 'y' },
      { holder: 'b', of: 'x', id: 'b-waits' },
      { holder: 'a', of: 'y', id: 'a-waits' },
    );
    const arrival = (id: string) => (id === 'a-waits' ? 7 : 3);
    const [deadlock, ...more] = findDeadlocks(resourcesOf(crossed), at, arrival);
    expect(more).toEqual([]);
    expect(deadlock?.cycle).toEqual(ab('a y b', 'b x a'));
    expect(deadlock?.victim).toMatchObject({ resource: 'y', request: { id: 'a-waits', holder: 'a' } });
  });

  it('takes the one of lowest priority, even if it is the oldest', () => {
    const crossed = world(
      { x, y },
      { holder: 'a', of: 'x' },
      { holder: 'b', of: 'y' },
      { holder: 'a', of: 'y', priority: -1, id: 'low' },
      { holder: 'b', of: 'x', id: 'young' },
    );
    const [deadlock] = findDeadlocks(resourcesOf(crossed), at, (id) => (id === 'young' ? 2 : 1));
    expect(deadlock?.victim.request.id).toBe('low');
  });

  it('goes round any number of locks and semaphores, and names every holder on the way', () => {
    const round = world(
      { x, y, s: newSemaphore(2) },
      { holder: 'a', of: 'x' },
      { holder: 'b', of: 'y' },
      { holder: 'c', of: 's', weight: 2 },
      { holder: 'a', of: 'y' },
      { holder: 'b', of: 's' },
      { holder: 'c', of: 'x' },
    );
    const [deadlock] = findDeadlocks(resourcesOf(round), at);
    expect(deadlock?.cycle).toHaveLength(3);
    expect(new Set(deadlock?.cycle)).toEqual(new Set(ab('a y b', 'b s c', 'c x a')));
  });

  it('of two who both want to grow on one semaphore is found', () => {
    const growing = world(
      { s: newSemaphore(2) },
      { holder: 'a', of: 's' },
      { holder: 'b', of: 's' },
      { holder: 'a', of: 's', weight: 2 },
      { holder: 'b', of: 's', weight: 2 },
    );
    const [deadlock] = findDeadlocks(resourcesOf(growing), at);
    expect(deadlock?.cycle).toEqual(ab('b s a', 'a s b'));
  });

  it('of a reader who upgrades and one who waits for what that reader holds is found', () => {
    const upgrading = world(
      { x, y },
      { holder: 'a', of: 'x', mode: 'shared' },
      { holder: 'b', of: 'x', mode: 'shared' },
      { holder: 'a', of: 'y' },
      { holder: 'a', of: 'x' },
      { holder: 'b', of: 'y' },
    );
    const [deadlock] = findDeadlocks(resourcesOf(upgrading), at);
    expect(new Set(deadlock?.cycle)).toEqual(new Set(ab('a x b', 'b y a')));
  });

  it('by waiting behind a request that waits for what I hold is found', () => {
    // The slot that is free would do for `b`, but `a` is ahead and needs both.
    const behind = world(
      { x, s: newSemaphore(2) },
      { holder: 'a', of: 'x' },
      { holder: 'c', of: 's' },
      { holder: 'heavy', of: 's', weight: 2 },
      { holder: 'a', of: 's' },
      { holder: 'c', of: 'x' },
    );
    const [deadlock] = findDeadlocks(resourcesOf(behind), at);
    expect(deadlock?.cycle).toEqual(ab('a s heavy', 'heavy s c', 'c x a'));
  });

  it('that only the next grant will close is found before it does', () => {
    const soon = world(
      { x, y },
      { holder: 'running', of: 'x' },
      { holder: 'b', of: 'y' },
      { holder: 'a', of: 'x' },
      { holder: 'a', of: 'y' },
      { holder: 'b', of: 'x' },
    );
    const [deadlock] = findDeadlocks(resourcesOf(soon), at);
    expect(new Set(deadlock?.cycle)).toEqual(new Set(ab('a y b', 'b x a')));
  });

  it('is named by its shortest circle', () => {
    const nested = world(
      { w: freeLock, x, y },
      { holder: 'a', of: 'w' },
      { holder: 'b', of: 'x' },
      { holder: 'c', of: 'y' },
      { holder: 'a', of: 'x' },
      { holder: 'b', of: 'y' },
      { holder: 'c', of: 'w' },
      { holder: 'c', of: 'x' },
    );
    const [deadlock] = findDeadlocks(resourcesOf(nested), at);
    expect(new Set(deadlock?.cycle)).toEqual(new Set(ab('b y c', 'c x b')));
  });

  it('is reported once for each circle, and once those victims are gone nobody is stuck', () => {
    const twice = world(
      { x, y, s: newSemaphore(1), t: newSemaphore(1) },
      { holder: 'a', of: 'x' },
      { holder: 'b', of: 'y' },
      { holder: 'c', of: 's' },
      { holder: 'd', of: 't' },
      { holder: 'a', of: 'y' },
      { holder: 'b', of: 'x' },
      { holder: 'c', of: 't' },
      { holder: 'd', of: 's' },
    );
    const deadlocks = findDeadlocks(resourcesOf(twice), at);
    expect(deadlocks).toHaveLength(2);
    expect(findDeadlocks(resourcesOf(refuseAll(twice, deadlocks)), at)).toEqual([]);
  });
});

describe('it is no deadlock', () => {
  it('if one more holder of the semaphore is running, although the waiters form a circle', () => {
    const running = world(
      { x, s: newSemaphore(2) },
      { holder: 'a', of: 'x' },
      { holder: 'b', of: 's' },
      { holder: 'running', of: 's' },
      { holder: 'b', of: 'x' },
      { holder: 'a', of: 's' },
    );
    expect(findDeadlocks(resourcesOf(running), at)).toEqual([]);
  });

  it('if one of the waiters has died', () => {
    const dead = world(
      { x, y },
      { holder: 'a', of: 'x' },
      { holder: 'b', of: 'y' },
      { holder: 'a', of: 'y', lease: 'a✝' },
      { holder: 'b', of: 'x' },
    );
    expect(findDeadlocks(resourcesOf(dead), at)).toEqual([]);
  });

  it('if what is waited for is held by a lease that ended, and may be reclaimed', () => {
    const stale = world(
      { x, y },
      { holder: 'a', of: 'x', lease: 'a✝' },
      { holder: 'b', of: 'y' },
      { holder: 'a', of: 'y' },
      { holder: 'b', of: 'x' },
    );
    expect(findDeadlocks(resourcesOf(stale), at)).toEqual([]);
  });

  it('to ask again, after a crash, for what only a person may give back', () => {
    const alert: Lock = { ...x, record: { ...x.record, onStale: 'alert' } };
    const again = world({ x: alert }, { holder: 'a', of: 'x', lease: 'a✝' }, { holder: 'b', of: 'x' });
    const own = { ...(again['x'] as Lock), waiting: (again['x'] as Lock).waiting.map((w) => ({ ...w, holder: 'a' })) };
    expect(findDeadlocks([{ name: 'x', state: own }], at)).toEqual([]);
  });

  it('to wait for oneself where re-entry would answer', () => {
    const held = world({ x }, { holder: 'a', of: 'x' }, { holder: 'b', of: 'x' });
    const own = { ...(held['x'] as Lock), waiting: (held['x'] as Lock).waiting.map((w) => ({ ...w, holder: 'a' })) };
    expect(findDeadlocks([{ name: 'x', state: own }], at)).toEqual([]);
  });

  it('while ten thousand wait for one lock, and that is seen at once', () => {
    const crowd: Lock = {
      record: (world({ x }, { holder: 'a', of: 'x' })['x'] as Lock).record,
      waiting: Array.from({ length: 10_000 }, (_, n) => ({
        id: `r${n}`,
        holder: `h${n}`,
        lease: `h${n}`,
        priority: n % 5,
        mode: n % 3 === 0 ? 'shared' : 'exclusive',
      })),
    };
    const others = world({ y }, { holder: 'h9999', of: 'y' }, { holder: 'z', of: 'y' });
    expect(findDeadlocks(resourcesOf({ x: crowd, ...others }), at)).toEqual([]);
  });
});

describe('a request that was just queued', () => {
  const held = world({ x, y }, { holder: 'a', of: 'x' }, { holder: 'b', of: 'y' });

  it('needs no look if its holder has nothing and goes behind everyone', () => {
    const queued = world(held, { holder: 'c', of: 'x' }, { holder: 'd', of: 'x', id: 'new' });
    expect(needsLook(resourcesOf(queued), requestIn(queued, 'new'))).toBe(false);
  });

  it('needs one if its holder has or wants something else', () => {
    const holds = world(held, { holder: 'b', of: 'x', id: 'new' });
    expect(needsLook(resourcesOf(holds), requestIn(holds, 'new'))).toBe(true);
    const waits = world(held, { holder: 'c', of: 'y' }, { holder: 'c', of: 'x', id: 'new' });
    expect(needsLook(resourcesOf(waits), requestIn(waits, 'new'))).toBe(true);
  });

  it('needs one if it goes before others, who may hold what it wants', () => {
    const s = newSemaphore(2);
    const before = world(
      { s },
      { holder: 'a', of: 's' },
      { holder: 'running', of: 's' },
      { holder: 'a', of: 's', weight: 2 },
    );
    expect(findDeadlocks(resourcesOf(before), at)).toEqual([]);
    const after = world(before, { holder: 'urgent', of: 's', weight: 2, priority: 5, id: 'new' });
    expect(findDeadlocks(resourcesOf(after), at)).toHaveLength(1);
    expect(needsLook(resourcesOf(after), requestIn(after, 'new'))).toBe(true);
  });
});

describe('in small random systems', () => {
  const runs = { numRuns: 1000 };

  it('a deadlock is found exactly if no schedule lets everybody finish', () => {
    let deadlocked = 0;
    fc.assert(
      fc.property(worlds(), (random) => {
        const deadlocks = findDeadlocks(resourcesOf(random), at);
        const ends = allEnds(random);
        // Whatever the schedule, the same are left waiting.
        expect(ends.size).toBe(1);
        const stuck = [...ends].join().split(',');
        if (deadlocks.length === 0) expect(stuck).toEqual(['']);
        else deadlocked++;
        for (const { cycle } of deadlocks)
          expect(stuck).toEqual(expect.arrayContaining(cycle.map(({ holder }) => holder)));
      }),
      runs,
    );
    expect(deadlocked).toBeGreaterThan(runs.numRuns / 20);
  });

  it('all holders finish once the victims are refused, and with one victim fewer one of them would not', () => {
    fc.assert(
      fc.property(worlds(), (random) => {
        const deadlocks = findDeadlocks(resourcesOf(random), at);
        expect([...allEnds(refuseAll(random, deadlocks))]).toEqual(['']);
        if (deadlocks.length === 0) return;
        expect([...allEnds(refuseAll(random, deadlocks.slice(0, -1)))]).not.toEqual(['']);
      }),
      runs,
    );
  });

  it('the circle that is named is one: each waits for the next, who holds it or is ahead', () => {
    fc.assert(
      fc.property(worlds(), (random) => {
        for (const { cycle, victim } of findDeadlocks(resourcesOf(random), at)) {
          expect(cycle[0]).toMatchObject({ holder: victim.request.holder, resource: victim.resource });
          for (const [place, { holder, resource, blockedBy }] of cycle.entries()) {
            expect(blockedBy).toBe(cycle[(place + 1) % cycle.length]?.holder);
            const { record, waiting } = random[resource] as Lock | Semaphore;
            expect(waiting.map((waiter) => waiter.holder)).toContain(holder);
            expect([...record.holds, ...waiting].map((one) => one.holder)).toContain(blockedBy);
          }
          expect(new Set(cycle.map(({ holder }) => holder)).size).toBe(cycle.length);
        }
      }),
      runs,
    );
  });

  it('a request that needs no look never closes a circle', () => {
    fc.assert(
      fc.property(worlds(), ask, (random, asked) => {
        if (findDeadlocks(resourcesOf(random), at).length > 0) return;
        const after = world(random, { ...asked, id: 'new' });
        const request = Object.values(after)
          .flatMap<Request>(({ waiting }) => waiting)
          .find(({ id }) => id === 'new');
        if (request === undefined || needsLook(resourcesOf(after), request)) return;
        expect(findDeadlocks(resourcesOf(after), at)).toEqual([]);
      }),
      runs,
    );
  });
});

const ask: fc.Arbitrary<Ask> = fc
  .record({
    holder: fc.constantFrom('a', 'b', 'c', 'd'),
    of: fc.constantFrom('x', 'y', 's', 't'),
    mode: fc.constantFrom<LockMode>('exclusive', 'exclusive', 'shared'),
    weight: fc.constantFrom(1, 1, 2, 3),
    priority: fc.constantFrom(0, 0, 0, 5, 9),
    dies: fc.integer({ min: 0, max: 15 }),
    steals: fc.integer({ min: 0, max: 7 }),
  })
  .map(({ dies, steals, ...asked }) => ({
    ...asked,
    ...(dies === 0 && { lease: `${asked.holder}✝` }),
    ...(steals === 0 && { steal: true as const }),
  }));

function worlds(): fc.Arbitrary<World> {
  return fc
    .tuple(fc.array(ask, { minLength: 3, maxLength: 14 }), fc.constantFrom('reclaim', 'reclaim', 'alert'))
    .map(([asks, onStale]) => {
      const alert = { onStale: onStale as 'reclaim' };
      const [s, t] = [newSemaphore(2), newSemaphore(3)];
      const x: Lock = { ...freeLock, record: { ...freeLock.record, ...alert } };
      return world({ x, y: freeLock, s, t: { ...t, record: { ...t.record, ...alert } } }, ...asks);
    });
}

/**
 * Who is left waiting in the end, for every order in which those who run could release what they hold, one hold at a
 * time. Nothing is known here of circles or reductions: it just tries, on the machines themselves.
 */
function allEnds(start: World): Set<string> {
  const ends = new Set<string>();
  const seen = new Set<string>();
  const explore = (now: World): void => {
    const key = JSON.stringify(
      Object.values(now).map(({ record, waiting }) => [record.holds.map((h) => h.id), waiting]),
    );
    if (seen.has(key)) return;
    seen.add(key);
    const waiters = new Set(Object.values(now).flatMap(({ waiting }) => waiting.map(({ holder }) => holder)));
    let moved = false;
    for (const [name, state] of Object.entries(now)) {
      for (const { holder, id } of state.record.holds) {
        if (waiters.has(holder)) continue;
        moved = true;
        explore({ ...now, [name]: command(state, { kind: 'release', holder, id }) });
      }
    }
    if (!moved) ends.add([...waiters].sort().join());
  };
  explore(settled(start));
  return ends;
}

/** As things are: leases have ended, and a person gave back what its former holder asks for anew. */
function settled(start: World): World {
  return Object.fromEntries(
    Object.entries(start).map(([name, state]) => {
      const left = (state.record.holds as Lock['record']['holds']).filter(
        (hold) => !isStale(hold, at) || !state.waiting.some(({ holder }) => holder === hold.holder),
      );
      const cleared = { ...state, record: { ...state.record, holds: left } } as Lock | Semaphore;
      // The dead leave the queue by themselves, in a store together with their leases.
      const alive = { ...cleared, waiting: cleared.waiting.filter(({ lease }) => !at.gone(lease)) } as Lock | Semaphore;
      return [name, settle(alive)];
    }),
  );
}

function settle(state: Lock | Semaphore): Lock | Semaphore {
  return state.record.kind === 'lock'
    ? lockTransition(state as Lock, { kind: 'settle' }, at).state
    : semaphoreTransition(state as Semaphore, { kind: 'settle' }, at).state;
}

function refuseAll(random: World, deadlocks: ReturnType<typeof findDeadlocks>): World {
  return deadlocks.reduce<World>((before, { victim: { resource, request } }) => {
    const { record, waiting } = before[resource] as Lock;
    // By hand, because `refuse` would serve the queue while `settled` has yet to say how things are.
    return { ...before, [resource]: { record, waiting: waiting.filter(({ id }) => id !== request.id) } as Lock };
  }, random);
}

function requestIn(now: World, id: string): Request {
  const request = Object.values(now)
    .flatMap<Request>(({ waiting }) => waiting)
    .find((waiter) => waiter.id === id);
  if (request === undefined) throw new Error(`${id} does not wait`);
  return request;
}
