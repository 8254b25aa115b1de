// `assert` and not `expect` wherever a law is checked after every move: it is many times as fast.
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { findDeadlocks } from '../deadlock/find.ts';
import { type Hold, isStale } from '../hold.ts';
import { usedSlots } from '../semaphore.ts';
import { emptyManager, type Handled, type Manager, momentOf, resourcesOf } from './manager.ts';
import { handle } from './handle.ts';
import { maintain, reclaimStale, tick } from './sweep.ts';
import type { ManagerCommand } from './command.ts';
import { leasesIn } from './lease.ts';

/** LAW_RUNS=10 for ten times as many. */
const NUM_RUNS = 150 * Number(process.env['LAW_RUNS'] ?? 1);
const RUNS = { numRuns: NUM_RUNS };

/** What somebody does to the manager, and how much later than the one before. */
interface Move {
  readonly act: ManagerCommand | 'tick' | 'reclaimStale' | 'maintain';
  readonly later: number;
}

const sweeps = { tick, reclaimStale, maintain };

function make(manager: Manager, { act }: Move, now: number): Handled {
  return typeof act === 'string' ? sweeps[act](manager, { now }) : handle(manager, act, { now });
}

type Look = (before: Manager, handled: Handled, move: Move, now: number) => void;

/** Every manager on the way, with what led to it. */
function play(moves: readonly Move[], look: Look): void {
  let manager = emptyManager;
  let now = 1000;
  for (const move of moves) {
    now += move.later;
    const handled = make(deepFreeze(manager), move, now);
    look(manager, handled, move, now);
    manager = handled.manager;
  }
}

/** All of them are asked after every move of the same plays, because to play takes longer than to ask. */
const laws: { readonly look: Look; isBroken: boolean }[] = [];

function law(name: string, look: Look): void {
  const own = { look, isBroken: false };
  laws.push(own);
  it(name, () => {
    // Once more by itself, for the shortest play that breaks it.
    if (own.isBroken) {
      fc.assert(
        fc.property(moveLists, (moves) => play(moves, look)),
        RUNS,
      );
    }
    expect(own.isBroken).toBe(false);
  });
}

const kinds = new Set<string>();

beforeAll(() => {
  const askAll: Look = (...step) => {
    kinds.add(step[1].outcome.kind);
    for (const each of laws) {
      if (each.isBroken) continue;
      try {
        each.look(...step);
      } catch {
        each.isBroken = true;
      }
    }
  };
  fc.assert(
    fc.property(moveLists, (moves) => play(moves, askAll)),
    RUNS,
  );
});

describe('whatever is asked, and however time passes,', () => {
  law('a lock is held by one writer or by readers, and tokens only grow', (before, { manager }) => {
    for (const [name, { record }] of Object.entries(manager.locks)) {
      if (record.holds.some(({ mode }) => mode === 'exclusive')) assert.equal(record.holds.length, 1);
      const last = before.locks[name]?.record.token ?? 0;
      assert(record.token >= last);
      const old = new Set(before.locks[name]?.record.holds.map(({ token }) => token));
      for (const { token } of record.holds) assert(old.has(token) || token > last);
    }
  });

  law('no more slots are used than there are, no slot twice, and tokens only grow', (before, { manager }) => {
    for (const [name, semaphore] of Object.entries(manager.semaphores)) {
      const { capacity, holds, token } = semaphore.record;
      const earlier = before.semaphores[name];
      // Shrinking takes effect as holders leave.
      assert(usedSlots(semaphore) <= Math.max(capacity, earlier === undefined ? 0 : usedSlots(earlier)));
      const slots = holds.flatMap((hold) => hold.slots);
      assert.equal(new Set(slots).size, slots.length);
      assert.equal(slots.length, usedSlots(semaphore));
      const last = earlier?.record.token ?? 0;
      assert(token >= last);
      const old = new Set(earlier?.record.holds.map((hold) => hold.token));
      for (const hold of holds) assert(old.has(hold.token) || hold.token > last);
    }
  });

  it('a hold that went stale stays stale, and is warned of at most once', () => {
    fc.assert(
      fc.property(moveLists, (moves) => {
        const stale = new Set<string>();
        const warned: string[] = [];
        play(moves, (_before, { manager, outcome, events }, _move, now) => {
          // It was not told the time either.
          if (outcome.kind === 'invalid') return;
          const at = momentOf(manager, { now });
          for (const { name, state } of resourcesOf(manager)) {
            for (const hold of state.record.holds) {
              const key = `${name} ${hold.token}`;
              if (isStale(hold, at)) stale.add(key);
              else assert(!stale.has(key), key);
            }
          }
          for (const { type, resource, token } of events)
            if (type.endsWith(':stale')) warned.push(`${resource} ${token}`);
        });
        expect(new Set(warned).size).toBe(warned.length);
      }),
      { numRuns: NUM_RUNS },
    );
  });

  law(
    'maintenance leaves nothing stale that may be reclaimed, nobody dead in a queue, and nobody in a deadlock',
    (_before, { manager, outcome }, { act }, now) => {
      if (act !== 'maintain' || outcome.kind === 'invalid') return;
      const at = momentOf(manager, { now });
      for (const { state } of resourcesOf(manager)) {
        const holds: readonly Hold[] = state.record.holds;
        if (state.record.onStale === 'reclaim') assert(!holds.some((hold) => isStale(hold, at)));
        assert(!state.waiting.some(({ lease }) => at.gone(lease)));
      }
      assert.deepEqual(findDeadlocks(resourcesOf(manager), at), []);
    },
  );

  it('a request that is queued, or a grant, never leaves a deadlock behind', () => {
    let refused = 0;
    fc.assert(
      fc.property(jams, (moves) =>
        play(moves, (_before, { manager, outcome }, _move, now) => {
          if (outcome.kind === 'deadlock') refused++;
          assert.deepEqual(findDeadlocks(resourcesOf(manager), momentOf(manager, { now })), []);
        }),
      ),
      { numRuns: NUM_RUNS },
    );
    expect(refused).toBeGreaterThan(NUM_RUNS / 4);
  });

  law(
    'there is a lease for each hold and request, an arrival for each request, and none besides',
    (_before, { manager }) => {
      const states = resourcesOf(manager).map(({ state }) => state);
      assert.deepEqual(
        Object.keys(manager.leases).sort(),
        [...new Set(states.flatMap((s) => [...leasesIn(s)]))].sort(),
      );
      assert.deepEqual(
        Object.keys(manager.arrivals).sort(),
        states.flatMap((s) => s.waiting.map(({ id }) => id)).sort(),
      );
    },
  );

  law('a hold with a maximum has a limit from its grant on', (_before, { manager }) => {
    for (const { state } of resourcesOf(manager)) {
      const holds: readonly Hold[] = state.record.holds;
      for (const { maxHoldMs, limit } of holds) assert(maxHoldMs === undefined || limit !== undefined);
    }
  });

  law(
    'the same question gets the same answer, also from a manager that went through JSON',
    (before, handled, move, now) => {
      assert.deepEqual(make(before, move, now), handled);
      assert.deepEqual(JSON.parse(JSON.stringify(handled.manager)), handled.manager);
      assert.deepEqual(make(JSON.parse(JSON.stringify(before)) as Manager, move, now), handled);
    },
  );

  law('a command that makes no sense gives the very same manager back', (before, { manager, outcome, events }) => {
    if (outcome.kind !== 'invalid') return;
    assert.equal(manager, before);
    assert.deepEqual(events, []);
  });
});

it('random play is not idle', () => {
  const usual = [
    ...['acquired', 'reclaimed', 'extended', 'increased', 'already-held', 'queued', 'busy', 'full', 'impossible'],
    ...['released', 'already-free', 'not-owner', 'not-holder', 'refreshed', 'lost', 'cancelled', 'broken', 'upgraded'],
    ...['downgraded', 'maintained', 'configured', 'resized', 'acquired-together', 'refused-together', 'renewed'],
    ...['warned', 'swept', 'invalid'],
  ];
  expect(usual.filter((kind) => !kinds.has(kind))).toEqual([]);
});

const holder = fc.constantFrom('a', 'b', 'c', 'd');
const lock = fc.constantFrom('lock/x' as const, 'lock/y' as const);
const semaphore = fc.constantFrom('semaphore/s' as const, 'semaphore/t' as const);
const resource = fc.oneof(lock, semaphore);
const oneIn = <T>(times: number, value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: times - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });

const asking = {
  holder,
  id: oneIn(5, fc.constantFrom('r1', 'r2', 'r3', 'r4', 'r5')),
  lease: oneIn(4, fc.constantFrom('session-1', 'session-2')),
  ttlMs: oneIn(4, fc.constantFrom(5_000, 100_000)),
  priority: oneIn(4, fc.constantFrom(0, 5)),
  maxHoldMs: oneIn(4, fc.constantFrom(3_000, 70_000)),
  metadata: oneIn(4, fc.constantFrom<unknown>({ a: [1, null] }, 'text', Number.NaN)),
  steal: oneIn(4, fc.constant(true)),
  force: oneIn(15, fc.constant(true)),
  wait: fc.constantFrom(true, true, false),
};
const claim = { holder, token: oneIn(8, fc.integer({ min: 1, max: 4 })) };

const kind = <K extends string>(name: K) => fc.constant(name);

const commands = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({
      ...asking,
      resource: lock,
      kind: kind('acquire'),
      mode: fc.constantFrom('shared', 'exclusive'),
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      ...asking,
      resource: semaphore,
      kind: kind('acquire'),
      weight: fc.constantFrom(1, 1, 2, 3, 0),
      capacity: fc.constantFrom(3, 3, 3, undefined, 2),
    }),
  },
  { weight: 4, arbitrary: fc.record({ ...claim, resource, kind: kind('release') }) },
  { weight: 2, arbitrary: fc.record({ ...claim, resource, kind: kind('heartbeat') }) },
  { weight: 2, arbitrary: fc.record({ ...claim, resource: lock, kind: kind('upgrade'), wait: fc.boolean() }) },
  fc.record({ ...claim, resource: lock, kind: kind('downgrade') }),
  fc.record({ ...claim, resource, kind: kind('extend'), ttlMs: asking.ttlMs, maxHoldMs: asking.maxHoldMs }),
  fc.record({ resource, kind: kind('cancel'), id: fc.constantFrom('r1', 'r2', 'r3') }),
  fc.record({ resource, kind: kind('configure'), onStale: fc.constantFrom('alert', 'reclaim', 'reclaim') }),
  fc.record({ resource: semaphore, kind: kind('resize'), capacity: fc.constantFrom(1, 3, 3, 4) }),
  fc.record({ resource, kind: fc.constantFrom('settle', 'tick', 'maintain') }),
  fc.record({ resource, kind: kind('break'), holder, reason: kind('stuck') }),
  { weight: 2, arbitrary: fc.record({ kind: kind('renew'), holder }) },
  fc.record({ kind: kind('renew'), lease: fc.constantFrom('session-1', 'session-2', '#1', '#2', '#5') }),
  {
    weight: 2,
    arbitrary: fc.record({
      ...asking,
      kind: kind('acquire-together'),
      parts: fc.uniqueArray(
        fc.oneof(
          fc.record({ resource: lock }),
          fc.record({ resource: semaphore, weight: fc.constantFrom(1, 2), capacity: fc.constantFrom(3, undefined) }),
        ),
        { minLength: 1, maxLength: 3, selector: (part) => part.resource },
      ),
    }),
  },
);

const moveLists: fc.Arbitrary<readonly Move[]> = fc.array(
  fc.record({
    act: fc.oneof(
      { weight: 8, arbitrary: commands.map((command) => defined(command) as unknown as ManagerCommand) },
      fc.constantFrom('tick' as const, 'reclaimStale' as const, 'maintain' as const),
    ),
    later: fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(0, 1) },
      { weight: 2, arbitrary: fc.constantFrom(1_000, 4_000, -2_000) },
      { weight: 1, arbitrary: fc.constantFrom(30_000, 61_000) },
    ),
  }),
  { minLength: 5, maxLength: 40, size: 'max' },
);

/** Everybody waits for everything, and no time passes. */
const jams: fc.Arbitrary<readonly Move[]> = fc.array(
  fc
    .oneof(
      {
        weight: 4,
        arbitrary: fc.record({ holder, resource, kind: kind('acquire'), wait: fc.constant(true), ...manner() }),
      },
      { weight: 1, arbitrary: fc.record({ holder, resource, kind: kind('release') }) },
    )
    .map((command) => ({ act: defined(command) as unknown as ManagerCommand, later: 0 })),
  { minLength: 8, maxLength: 30, size: 'max' },
);

function manner() {
  return {
    mode: oneIn(3, kind('shared')),
    weight: fc.constantFrom(1, 2),
    capacity: fc.constant(3),
    priority: oneIn(4, fc.constant(5)),
  };
}

/** A field that is left out is not there at all. */
function defined(command: object): object {
  return Object.fromEntries(Object.entries(command).filter(([, value]) => value !== undefined));
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
