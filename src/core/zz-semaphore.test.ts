import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BrokenLaw, semaphoreLaws, semaphoreRules, Trial } from './laws/index.ts';
import type { Moment } from './machine.ts';
import {
  availableSlots,
  canAcquire,
  newSemaphore,
  type Semaphore,
  type SemaphoreCommand,
  type SemaphoreHold,
  type SemaphoreStep,
  semaphoreTransition,
  staleHolders,
  usedSlots,
} from './semaphore.ts';

type Transition = (semaphore: Semaphore, command: SemaphoreCommand, at: Moment) => SemaphoreStep;
type SemaphoreTrial = Trial<Semaphore, SemaphoreCommand>;

/** Something that may happen: a command, or the end of a lease. */
type Move = (trial: SemaphoreTrial, id: string) => void;

const who = fc.constantFrom('a', 'b', 'c', 'd', 'e');
/** The newest of its holds, or another one, or none in particular. */
const which = fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, fc.nat(6));
const often = (chance: number): fc.Arbitrary<boolean> => fc.nat(99).map((n) => n < chance);
const weight = fc.oneof({ arbitrary: fc.integer({ min: 1, max: 4 }), weight: 20 }, fc.constantFrom(0, -1, 1.5, NaN, 9));
const capacity = fc.integer({ min: 1, max: 6 });
const priority = fc.constantFrom(0, 0, 0, 1, 5, -1);
const shown = (move: Move, words: string): Move => Object.assign(move, { toString: () => words });

const acquire = fc
  .record({ holder: who, weight, priority, wait: often(70), steal: often(20), force: often(5), names: often(10) })
  .map(({ steal, force, names, ...wish }) => {
    const command = { ...wish, kind: 'acquire' as const, ...(steal && { steal }), ...(force && { force }) };
    const named = names ? { capacity: 4 } : {};
    return shown(
      (trial, id) => trial.do({ ...command, ...named, id, lease: trial.leaseOf(wish.holder) } as SemaphoreCommand),
      `acquire ${JSON.stringify({ ...command, ...named })}`,
    );
  });

/** By a hold that it has, or once had: what a client that overslept might send. */
const claim = fc
  .record({ kind: fc.constantFrom('release', 'release', 'heartbeat'), holder: who, which })
  .map(({ kind, holder, which }) =>
    shown(
      (trial) => trial.do({ ...trial.claim(holder, which), kind } as SemaphoreCommand),
      `${kind} by ${holder} (${which})`,
    ),
  );

const extend = fc.record({ holder: who, which, limit: fc.boolean() }).map(({ holder, which, limit }) =>
  shown(
    (trial, id) => {
      const on = limit ? { limit: `limit ${id}` } : { lease: trial.leaseOf(holder) };
      trial.do({ ...trial.claim(holder, which), kind: 'extend', ...on });
    },
    `extend ${limit ? 'limit' : 'lease'} by ${holder} (${which})`,
  ),
);

/** Of anything that was ever asked: the cancel may come before, after or without the grant. */
const cancel = fc
  .record({ kind: fc.constantFrom('cancel', 'refuse'), id: fc.nat(80) })
  .map(({ kind, id }) =>
    shown((trial) => trial.do({ kind, id: `#${id}`, cycle: [] } as SemaphoreCommand), `${kind} #${id}`),
  );

const rest = fc
  .constantFrom<SemaphoreCommand>(
    { kind: 'settle' },
    { kind: 'tick' },
    { kind: 'tick' },
    { kind: 'maintain' },
    { kind: 'configure', onStale: 'alert' },
    { kind: 'configure', onStale: 'reclaim' },
    { kind: 'configure', onStale: 'reclaim' },
    { kind: 'configure' },
    { kind: 'break', holder: 'admin', reason: 'stuck' },
  )
  .map((command) => shown((trial) => trial.do(command), JSON.stringify(command)));

const resize = capacity.map((capacity) =>
  shown((trial) => trial.do({ kind: 'resize', capacity }), `resize to ${capacity}`),
);

const repetition = which.map((which) => shown((trial) => trial.repeat(which), `one asks again (${which})`));
const death = who.map((holder) => shown((trial) => trial.kill(holder), `${holder} dies`));
const deathOfHolder = which.map((which) =>
  shown((trial) => {
    const { holds } = trial.state.record;
    const hold = holds[which % Math.max(1, holds.length)];
    if (hold !== undefined) trial.kill(hold.holder);
  }, `a holder dies (${which})`),
);
const disaster = fc.constant(
  shown((trial) => {
    for (const { holder } of trial.state.record.holds) trial.kill(holder);
  }, 'all holders die at once'),
);
const limitEnds = fc.nat(80).map((id) => shown((trial) => trial.endLease(`limit #${id}`), `limit #${id} ends`));
const deletion = fc.constant(shown((trial) => trial.deleteRecord(), 'the record is deleted'));

/** One after another with a high priority comes, and is served as soon as those who hold let go. */
const overtaking = fc.integer({ min: 1, max: 6 }).map((times) =>
  shown((trial, id) => {
    for (let time = 0; time < times; time++) {
      const holder = `${id}/${time}`;
      trial.do({ kind: 'acquire', id: holder, holder, lease: holder, weight: 1, priority: 9, wait: true });
      for (const { holder, id, token } of trial.state.record.holds) trial.do({ kind: 'release', holder, id, token });
    }
  }, `${times} overtake`),
);

const moves = fc.array(
  fc.oneof(
    { arbitrary: acquire, weight: 12 },
    { arbitrary: claim, weight: 8 },
    { arbitrary: extend, weight: 1 },
    { arbitrary: cancel, weight: 2 },
    { arbitrary: rest, weight: 3 },
    { arbitrary: repetition, weight: 1 },
    { arbitrary: resize, weight: 1 },
    { arbitrary: death, weight: 2 },
    { arbitrary: deathOfHolder, weight: 2 },
    { arbitrary: disaster, weight: 1 },
    { arbitrary: limitEnds, weight: 1 },
    { arbitrary: deletion, weight: 1 },
    { arbitrary: overtaking, weight: 1 },
  ),
  { maxLength: 80, size: 'max' },
);

function onTrial(transition: Transition, laws = semaphoreLaws): fc.IProperty<[number, Move[], boolean]> {
  return fc.property(capacity, moves, fc.boolean(), (capacity, moves, counts) => {
    const renewed = ({ record }: Semaphore): Semaphore => newSemaphore(record.capacity);
    const suspect = { transition, laws, rules: semaphoreRules, renewed };
    const trial: SemaphoreTrial = new Trial(suspect, newSemaphore(capacity), counts);
    moves.forEach((move, place) => move(trial, `#${place}`));
    trial.finish({
      release: (claim) => ({ ...claim, kind: 'release' }),
      maintain: { kind: 'maintain' },
      settle: { kind: 'settle' },
      breakAll: { kind: 'break', holder: 'admin', reason: 'going home' },
    });
  });
}

const now: Moment = { now: 0, revision: 0, gone: () => false };
const acquiring = (holder: string, weight: number, wait = false): SemaphoreCommand => {
  return { kind: 'acquire', id: `${holder} ${weight}`, holder, lease: holder, priority: 0, weight, wait };
};
const after = (semaphore: Semaphore, ...commands: readonly SemaphoreCommand[]): Semaphore =>
  commands.reduce((state, command) => semaphoreTransition(state, command, now).state, semaphore);

describe('a semaphore', () => {
  it('obeys every law, whatever is asked of it and whoever dies', () => {
    fc.assert(onTrial(semaphoreTransition), { numRuns: 30000 });
  }, 590_000);

  it('knows how many slots are used, and how many are to be had', () => {
    const semaphore = after(newSemaphore(4), acquiring('a', 1), acquiring('b', 2));
    expect([usedSlots(semaphore), availableSlots(semaphore)]).toEqual([3, 1]);
    expect([0, 1, 2, 1.5, NaN].map((weight) => canAcquire(semaphore, weight))).toEqual([
      false,
      true,
      false,
      false,
      false,
    ]);
  });

  it('has nothing to offer while somebody waits, or while it is shrinking', () => {
    const waitedFor = after(newSemaphore(4), acquiring('a', 2), acquiring('b', 3, true));
    expect([availableSlots(waitedFor), canAcquire(waitedFor, 1)]).toEqual([2, false]);
    const shrunk = after(newSemaphore(4), acquiring('a', 3), { kind: 'resize', capacity: 2 });
    expect([usedSlots(shrunk), availableSlots(shrunk), canAcquire(shrunk, 1)]).toEqual([3, 0, false]);
  });

  it('knows who is stale', () => {
    const semaphore = after(newSemaphore(4), acquiring('a', 1), acquiring('b', 2));
    const stale = staleHolders(semaphore, { ...now, gone: (lease) => lease === 'b' });
    expect(stale.map(({ holder }) => holder)).toEqual(['b']);
  });
});

