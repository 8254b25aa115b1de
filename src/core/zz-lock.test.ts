import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BrokenLaw, lockLaws, lockRules, Trial } from './laws/index.ts';
import {
  freeLock,
  isFree,
  isHeldBy,
  type Lock,
  type LockCommand,
  type LockStep,
  lockTransition,
  staleHolds,
} from './lock.ts';
import type { Moment } from './machine.ts';

type Transition = (lock: Lock, command: LockCommand, at: Moment) => LockStep;
type LockTrial = Trial<Lock, LockCommand>;

/** Something that may happen: a command, or the end of a lease. */
type Move = (trial: LockTrial, id: string) => void;

const who = fc.constantFrom('a', 'b', 'c', 'd');
/** The newest of its holds, or another one, or none in particular. */
const which = fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, fc.nat(6));
const often = (chance: number): fc.Arbitrary<boolean> => fc.nat(99).map((n) => n < chance);
const mode = fc.constantFrom('exclusive', 'shared');
const priority = fc.constantFrom(0, 0, 0, 1, 5, -1);
const shown = (move: Move, words: string): Move => Object.assign(move, { toString: () => words });

const acquire = fc
  .record({ holder: who, mode, priority, wait: often(70), steal: often(20), force: often(5) })
  .map(({ steal, force, ...wish }) => {
    const command = { ...wish, kind: 'acquire' as const, ...(steal && { steal }), ...(force && { force }) };
    return shown(
      (trial, id) => trial.do({ ...command, id, lease: trial.leaseOf(wish.holder) } as LockCommand),
      `acquire ${JSON.stringify(command)}`,
    );
  });

/** By a hold that it has, or once had: what a client that overslept might send. */
const claim = fc
  .record({ kind: fc.constantFrom('release', 'release', 'heartbeat', 'downgrade'), holder: who, which })
  .map(({ kind, holder, which }) =>
    shown(
      (trial) => trial.do({ ...trial.claim(holder, which), kind } as LockCommand),
      `${kind} by ${holder} (${which})`,
    ),
  );

const upgrade = fc
  .record({ holder: who, which, wait: often(80), steal: often(20) })
  .map(({ holder, which, wait, steal }) =>
    shown(
      (trial, id) =>
        trial.do({
          ...trial.claim(holder, which),
          kind: 'upgrade',
          request: id,
          lease: trial.leaseOf(holder),
          wait,
          ...(steal && { steal }),
        }),
      `upgrade by ${holder} (${which}), wait ${wait}, steal ${steal}`,
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
    shown((trial) => trial.do({ kind, id: `#${id}`, cycle: [] } as LockCommand), `${kind} #${id}`),
  );

const rest = fc
  .constantFrom<LockCommand>(
    { kind: 'settle' },
    { kind: 'tick' },
    { kind: 'tick' },
    { kind: 'maintain' },
    { kind: 'configure', onStale: 'alert' },
    { kind: 'configure', onStale: 'reclaim' },
    { kind: 'configure', onStale: 'reclaim' },
    { kind: 'break', holder: 'admin', reason: 'stuck' },
  )
  .map((command) => shown((trial) => trial.do(command), JSON.stringify(command)));

const repetition = which.map((which) => shown((trial) => trial.repeat(which), `one asks again (${which})`));
const death = who.map((holder) => shown((trial) => trial.kill(holder), `${holder} dies`));
const deathOfHolder = which.map((which) =>
  shown(
    (trial) => {
      const hold = trial.state.record.holds.at(which % 2);
      if (hold !== undefined) trial.kill(hold.holder);
    },
    `a holder dies (${which % 2})`,
  ),
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
      const wish = { id: holder, holder, lease: holder, mode: 'exclusive', priority: 9, wait: true } as const;
      trial.do({ ...wish, kind: 'acquire' });
      for (const { holder, id, token } of trial.state.record.holds) trial.do({ kind: 'release', holder, id, token });
    }
  }, `${times} overtake`),
);

const moves = fc.array(
  fc.oneof(
    { arbitrary: acquire, weight: 10 },
    { arbitrary: claim, weight: 8 },
    { arbitrary: upgrade, weight: 2 },
    { arbitrary: extend, weight: 1 },
    { arbitrary: cancel, weight: 2 },
    { arbitrary: rest, weight: 3 },
    { arbitrary: repetition, weight: 1 },
    { arbitrary: death, weight: 2 },
    { arbitrary: deathOfHolder, weight: 2 },
    { arbitrary: disaster, weight: 1 },
    { arbitrary: limitEnds, weight: 1 },
    { arbitrary: deletion, weight: 1 },
    { arbitrary: overtaking, weight: 1 },
  ),
  { maxLength: 80, size: 'max' },
);

function onTrial(transition: Transition, laws = lockLaws): fc.IProperty<[Move[], boolean]> {
  return fc.property(moves, fc.boolean(), (moves, counts) => {
    const trial: LockTrial = new Trial(
      { transition, laws, rules: lockRules, renewed: () => freeLock },
      freeLock,
      counts,
    );
    moves.forEach((move, place) => move(trial, `#${place}`));
    trial.finish({
      release: (claim) => ({ ...claim, kind: 'release' }),
      maintain: { kind: 'maintain' },
      settle: { kind: 'settle' },
      breakAll: { kind: 'break', holder: 'admin', reason: 'going home' },
    });
  });
}

describe('a lock', () => {
  it('obeys every law, whatever is asked of it and whoever dies', () => {
    fc.assert(onTrial(lockTransition), { numRuns: 30000 });
  }, 590_000);

  it('knows whether it is free, who has it, and who is stale', () => {
    const request = { id: '1', holder: 'a', lease: 'l', priority: 0, mode: 'exclusive', wait: false } as const;
    const at: Moment = { now: 0, revision: 0, gone: () => false };
    const { state } = lockTransition(freeLock, { ...request, kind: 'acquire' }, at);
    expect([isFree(freeLock), isFree(state)]).toEqual([true, false]);
    expect([isHeldBy(state, 'a'), isHeldBy(state, 'b')]).toEqual([true, false]);
    expect(staleHolds(state, at)).toEqual([]);
    expect(staleHolds(state, { ...at, gone: (lease) => lease === 'l' })).toEqual(state.record.holds);
  });
});

