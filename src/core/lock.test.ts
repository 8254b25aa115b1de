import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CAN_BE_WRITTEN,
  Chance,
  lawBrokenIn,
  lockLaws,
  lockRules,
  type Moves,
  NO_TRACE,
  play,
  settingsBugs,
  sharedBugs,
  Trial,
} from '../../test/laws/index.ts';
import {
  freeLock,
  isFree,
  isHeldBy,
  type Lock,
  type LockCommand,
  type LockHold,
  type LockRequest,
  type LockStep,
  lockTransition,
  staleHolds,
} from './lock.ts';
import type { Moment } from './machine.ts';
import type { formsOf } from './queue.ts';

type Transition = (lock: Lock, command: LockCommand, at: Moment) => LockStep;

const locks: Moves<Lock> = {
  wish: (chance) => ({ mode: chance.pick(['exclusive', 'shared']) }),
  more: () => ({ mode: 'exclusive' }),
  same: ({ mode }) => ({ mode }),
  ticket(command) {
    const { kind: _kind, ...request } = command;
    return request as LockRequest;
  },
  claims: ['downgrade'],
  upgrades: true,
  other: (chance) => ({ kind: chance.pick(['settle', 'maintain']) }),
};

/** LAW_RUNS=100 runs a hundred times as many trials. */
const RUNS = Number(process.env['LAW_RUNS'] ?? 1);

const moves = fc.array(fc.nat(), { maxLength: 80, size: 'max' });
const most = fc.constantFrom(undefined, undefined, 1, 2, 3, 8);

function onTrial(
  transition: Transition,
  laws: typeof lockLaws = lockLaws,
  forms?: typeof formsOf,
): fc.IProperty<[number[], boolean, number | undefined]> {
  return fc.property(moves, fc.boolean(), most, (moves, counts, most) => {
    const suspect = { transition, laws, rules: lockRules, renewed: () => freeLock, ...(forms && { forms }) };
    const trial: Trial<Lock, LockCommand> = new Trial(suspect, freeLock, counts, most);
    moves.forEach((move, place) => play(trial, new Chance(move), locks, `#${place}`));
    trial.finish({
      release: (claim) => ({ ...claim, kind: 'release' }),
      maintain: { kind: 'maintain' },
      settle: { kind: 'settle' },
      breakAll: { kind: 'break', holder: 'admin', reason: 'going home' },
    });
  });
}

describe('a lock', () => {
  it('obeys every law, whatever is asked of it and whichever process dies', () => {
    fc.assert(onTrial(lockTransition), { numRuns: 300 * RUNS });
  });

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

it('of two processes that move one hold from the same lease, one succeeds', () => {
  const at: Moment = { now: 0, revision: 0, gone: () => false };
  const request = { id: '1', holder: 'a', lease: 'ticket', priority: 0, mode: 'exclusive', wait: false } as const;
  const held = lockTransition(freeLock, { ...request, kind: 'acquire' }, at).state;
  const move = { kind: 'extend', holder: 'a', id: '1', from: 'ticket' } as const;
  const first = lockTransition(held, { ...move, lease: 'one' }, at);
  expect(first.outcome.kind).toBe('refreshed');
  const second = lockTransition(first.state, { ...move, lease: 'other' }, at);
  expect([second.outcome.kind, second.state.record.holds[0]?.lease]).toEqual(['lost', 'one']);
});

it('a writer whose hold was made shared before it heard of its grant does not have what it asked for', () => {
  const at: Moment = { now: 0, revision: 0, gone: () => false };
  const request = { id: '1', holder: 'a', lease: 'l', priority: 0, mode: 'exclusive', wait: false } as const;
  const written = lockTransition(freeLock, { ...request, kind: 'acquire' }, at).state;
  const read = lockTransition(written, { kind: 'downgrade', holder: 'a' }, at).state;
  const asked = lockTransition(read, { ...request, kind: 'acquire', again: true }, at);
  expect([asked.outcome.kind, asked.state === read]).toEqual(['lost', true]);
});

describe('a holder that asks to write and may still give up', () => {
  const at: Moment = { now: 0, revision: 0, gone: () => false };
  const asks = (id: string, mode: 'shared' | 'exclusive', more: object = {}): LockCommand => {
    return { kind: 'acquire', id, holder: 'ann', lease: 'l', priority: 0, mode, wait: true, ...more };
  };
  const reading = lockTransition(freeLock, asks('1', 'shared'), at).state;
  const writing = lockTransition(reading, asks('2', 'exclusive'), at).state;
  const modeShown = (command: LockCommand): unknown => {
    const { outcome } = lockTransition(writing, command, at);
    return 'hold' in outcome && outcome.hold.mode;
  };

  it('shows its other requests a reader, because that is what is left to them', () => {
    expect(modeShown(asks('3', 'shared'))).toBe('shared');
    expect(modeShown(asks('1', 'shared', { again: true }))).toBe('shared');
  });

  it('shows itself, and every request that needs the writer, the writer', () => {
    expect(modeShown(asks('2', 'exclusive', { again: true }))).toBe('exclusive');
    expect(modeShown(asks('3', 'exclusive'))).toBe('exclusive');
  });
});

// A law that nothing breaks proves nothing, so each kind of bug is planted once and must be caught by the law it breaks.

const withRecord = (lock: Lock, record: Partial<Lock['record']>): Lock => ({
  ...lock,
  record: { ...lock.record, ...record },
});
const withState = (step: LockStep, state: Lock): LockStep => ({ ...step, state });
const alive = (at: Moment): Moment => ({ ...at, gone: () => false });

/** The command is carried out as if the record said something else. */
function asIf(lock: Lock, record: Partial<Lock['record']>, command: LockCommand, at: Moment): LockStep {
  const altered = withRecord(lock, record);
  const step = lockTransition(altered, command, at);
  if (step.state === altered) return withState(step, lock);
  // What it says about being passed is decided anew in each step.
  if ('passed' in record) return step;
  const restored = Object.keys(record).map((key) => [key, lock.record[key as keyof typeof record]]);
  return withState(step, withRecord(step.state, Object.fromEntries(restored)));
}

/** The command is carried out as if nobody waited. */
const pastTheQueue: Transition = (lock, command, at) => {
  const without = { ...lock, waiting: [] };
  const step = lockTransition(without, command, at);
  if (step.state === without) return withState(step, lock);
  return withState(step, { ...step.state, waiting: [...lock.waiting, ...step.state.waiting] });
};

interface Bug {
  readonly bug: string;
  readonly breaks: string;
  readonly planted: Transition;
  readonly forms?: typeof formsOf;
  /** Where the search begins, because it ended there the last time. */
  readonly run?: number;
}

const BUGS: readonly Bug[] = [
  ...(settingsBugs(lockTransition as never) as unknown as readonly Bug[]),
  ...(sharedBugs(lockTransition as never) as unknown as readonly Bug[]),
  {
    bug: 'tokens start over once the lock is free',
    breaks: 'tokens only grow, and no two grants share one',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      return isFree(step.state) && !isFree(lock) ? withState(step, withRecord(step.state, { token: 0 })) : step;
    },
  },
  {
    bug: 'an upgrade keeps its token',
    breaks: 'tokens only grow, and no two grants share one',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      if (step.outcome.kind !== 'upgraded') return step;
      const { id } = step.outcome.hold;
      const token = lock.record.holds.find((hold) => hold.id === id)?.token ?? 0;
      const hold = { ...step.outcome.hold, token };
      const events = step.events.map((event) => (event.type === 'lock:acquired' ? { ...event, token } : event));
      return { ...step, outcome: { kind: 'upgraded', hold }, state: withRecord(step.state, { holds: [hold] }), events };
    },
  },
  {
    bug: 'a waiter is granted although its lease is gone',
    run: 39,
    breaks: 'nothing is granted to the dead',
    planted: (lock, command, at) => {
      const isHeld = (lease: string): boolean =>
        lock.record.holds.some((hold) => [hold.lease, hold.limit].includes(lease));
      return lockTransition(lock, command, { ...at, gone: (lease) => at.gone(lease) && isHeld(lease) });
    },
  },
  {
    bug: 'a release asks neither for holder nor token',
    breaks: 'a claim that no hold answers to does nothing',
    planted(lock, command, at) {
      const [hold] = lock.record.holds;
      if (command.kind !== 'release' || hold === undefined) return lockTransition(lock, command, at);
      return lockTransition(lock, { kind: 'release', holder: hold.holder, id: hold.id }, at);
    },
  },
  {
    bug: 'a release takes the other readers along',
    breaks: 'a hold ends only by its holder, by force, or because it was stale',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      const takesAll = step.outcome.kind === 'released' && step.state.waiting.length === 0;
      return takesAll ? withState(step, withRecord(step.state, { holds: [] })) : step;
    },
  },
  {
    bug: 'an old holder is not told that its hold was taken',
    breaks: 'a hold ends only by its holder, by force, or because it was stale',
    planted: (lock, command, at) => ({ ...lockTransition(lock, command, at), losses: [] }),
  },
  {
    bug: 'maintenance frees what a person should decide about',
    run: 49,
    breaks: 'where a person must decide, only one who steals or forces takes a stale hold',
    planted(lock, command, at) {
      if (command.kind !== 'maintain') return lockTransition(lock, command, at);
      return asIf(lock, { onStale: 'reclaim' }, command, at);
    },
  },
  {
    bug: 'a renewal revives a stale hold',
    breaks: 'a stale holder cannot revive',
    planted: (lock, command, at) => lockTransition(lock, command, command.kind === 'heartbeat' ? alive(at) : at),
  },
  {
    bug: 'a new lease revives a stale hold',
    run: 39,
    breaks: 'a stale holder cannot revive',
    planted: (lock, command, at) => lockTransition(lock, command, command.kind === 'extend' ? alive(at) : at),
  },
  {
    bug: 'a refused try is written down',
    breaks: 'a request that is refused, and a look, change nothing',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      return step.outcome.kind === 'busy' ? withState(step, withRecord(lock, { token: lock.record.token + 1 })) : step;
    },
  },
  {
    bug: 'a field is there as undefined',
    breaks: 'a state survives a journey through JSON',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      const holds = step.state.record.holds.map((hold) => Object.assign({ limit: undefined }, hold) as typeof hold);
      return step.outcome.kind === 'acquired' ? withState(step, withRecord(step.state, { holds })) : step;
    },
  },
  {
    bug: 'a refused request gets it nevertheless',
    breaks: 'a lock is free, or held by one, or shared by readers',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      if (step.outcome.kind !== 'busy' || command.kind !== 'acquire') return step;
      const alone = lockTransition(withRecord({ ...lock, waiting: [] }, { holds: [] }), command, at);
      const holds = [...lock.record.holds, ...alone.state.record.holds];
      return withState(alone, { record: { ...alone.state.record, holds }, waiting: lock.waiting });
    },
  },
  {
    bug: 'a second upgrader waits for the first',
    run: 50,
    breaks: 'two readers never wait to become the writer',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      if (command.kind !== 'upgrade' || step.outcome.kind !== 'upgrade-conflict') return step;
      const { request: id, holder, lease } = command;
      const upgrades = lock.record.holds.find((hold) => hold.holder === holder)?.id ?? '';
      const rival = { id, holder, lease, priority: 0, mode: 'exclusive', upgrades } as const;
      return {
        ...step,
        outcome: { kind: 'queued', position: 2, holders: [] },
        state: { ...lock, waiting: [...lock.waiting, rival] },
      };
    },
  },
  {
    bug: 'a newcomer does not look whether anybody waits',
    breaks: 'the queue is served in order, and no newcomer before one who could have it',
    planted: (lock, command, at) => (command.kind === 'acquire' ? pastTheQueue : lockTransition)(lock, command, at),
  },
  {
    bug: 'the last to come is the first to be served',
    breaks: 'the queue is served in order, and no newcomer before one who could have it',
    planted(lock, command, at) {
      const step = lockTransition({ ...lock, waiting: lock.waiting.toReversed() }, command, at);
      return withState(step, { ...step.state, waiting: step.state.waiting.toReversed() });
    },
  },
  {
    bug: 'being passed is forgotten',
    breaks: 'the queue is served in order, and no newcomer before one who could have it',
    planted: (lock, command, at) => asIf(lock, { passed: null }, command, at),
  },
  {
    bug: 'nobody is served when the lock is released',
    breaks: 'nobody waits in front of something it could have',
    planted: (lock, command, at) => (command.kind === 'release' ? pastTheQueue : lockTransition)(lock, command, at),
  },
  {
    bug: 'a request that was given up stays in the queue',
    breaks: 'a request that is given up leaves no trace',
    planted: (lock, command, at) => lockTransition(lock, command.kind === 'cancel' ? { kind: 'settle' } : command, at),
  },
  {
    bug: 'an upgrade outlives the hold it belongs to',
    run: 37,
    breaks: 'a wish for more ends with its hold',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      const upgrades = lock.waiting.filter(
        (waiter) => waiter.upgrades !== undefined && !step.state.waiting.includes(waiter),
      );
      return step.outcome.kind === 'released' && upgrades.length > 0
        ? withState(step, { ...step.state, waiting: [...step.state.waiting, ...upgrades] })
        : step;
    },
  },
  {
    bug: 'a grant makes no noise',
    breaks: 'events tell of every grant and every end',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      return { ...step, events: step.events.filter(({ type }) => type !== 'lock:acquired') };
    },
  },
  {
    bug: 'a stale hold is warned of again and again',
    breaks: 'a hold is warned of once, and only when stale',
    planted(lock, command, at) {
      const holds = lock.record.holds.map(({ warned: _warned, ...hold }) => hold);
      return lockTransition(command.kind === 'tick' ? withRecord(lock, { holds }) : lock, command, at);
    },
  },
  {
    bug: "a bystander's request renews everybody's lease",
    breaks: 'a hold changes only by what its own holder asks',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      if (step.outcome.kind !== 'acquired') return step;
      return withState(
        step,
        withRecord(step.state, { holds: step.state.record.holds.map((hold) => ({ ...hold, lease: 'x' })) }),
      );
    },
  },
  {
    bug: 'a reader that waits twice is served as a writer, although it asked to read',
    breaks: 'nothing is granted that was not asked, nor what can never be had',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      const answer = step.answers.find(({ outcome }) => outcome.kind === 'extended' && outcome.hold.mode === 'shared');
      if (answer === undefined || !('hold' in answer.outcome)) return step;
      const token = step.state.record.token + 1;
      const hold: LockHold = { ...answer.outcome.hold, mode: 'exclusive', token, upgradedBy: answer.id };
      const holds = step.state.record.holds.map((held) => (held.id === hold.id ? hold : held));
      const acquired = { type: 'lock:acquired', at: at.now, holder: hold.holder, token, mode: hold.mode };
      return {
        ...withState(step, withRecord(step.state, { holds, token })),
        events: [...step.events, acquired],
        answers: step.answers.map((other) =>
          other === answer ? { ...other, outcome: { kind: 'upgraded', hold } } : other,
        ),
      };
    },
  },
  {
    bug: 'a request of one who holds already waits on',
    breaks: 'nobody waits for what it can never have, or has already',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      const isJoined = ({ outcome }: LockStep['answers'][number]): boolean => outcome.kind === 'extended';
      const joined = lock.waiting.filter(({ id }) =>
        step.answers.some((answer) => answer.id === id && isJoined(answer)),
      );
      if (joined.length === 0) return step;
      const waiting = lock.waiting.filter((one) => step.state.waiting.includes(one) || joined.includes(one));
      const arriving = step.state.waiting.filter((one) => !lock.waiting.includes(one));
      const state = { ...step.state, waiting: [...waiting, ...arriving] };
      return { ...step, state, answers: step.answers.filter((answer) => !isJoined(answer)) };
    },
  },
  {
    bug: 'a reader that asks twice to become the writer goes before everyone twice',
    run: 47,
    breaks: CAN_BE_WRITTEN,
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      const last = step.state.waiting.at(-1);
      const first = lock.waiting.find(({ holder, upgrades }) => upgrades !== undefined && holder === last?.holder);
      if (step.outcome.kind !== 'queued' || last === undefined || first?.upgrades === undefined) return step;
      if (last.mode === 'shared' || lock.waiting.includes(last)) return step;
      const again = { ...last, upgrades: first.upgrades };
      return withState(step, { ...step.state, waiting: [...step.state.waiting.slice(0, -1), again] });
    },
  },
  {
    bug: 'a request that became an upgrade is withdrawn where it would wait had it not',
    run: 29,
    breaks: NO_TRACE,
    planted: lockTransition,
    forms: (request) => [request],
  },
  {
    bug: 'an upgrade that is given up takes the writing from another request that has it too',
    breaks: 'a request that is given up takes nothing from another request of the same holder',
    planted(lock, command, at) {
      const step = lockTransition(lock, command, at);
      return step.outcome.kind === 'extended' ? { ...withState(step, lock), answers: [] } : step;
    },
  },
];

/** Laws about more than one step: a trial looks after them itself. */
const OF_TRIALS = [CAN_BE_WRITTEN, NO_TRACE];

describe('a lock with a planted bug is caught when', () => {
  for (const { bug, breaks, planted, forms, run = 0 } of BUGS) {
    it(bug, () => {
      const law = lockLaws[breaks];
      if (law === undefined && !OF_TRIALS.includes(breaks)) throw new Error(`there is no such law: ${breaks}`);
      expect(lawBrokenIn(onTrial(planted, law && { [breaks]: law }, forms), run)).toBe(breaks);
    });
  }

  it('the answer depends on more than the question', () => {
    let calls = 0;
    const planted: Transition = (lock, command, at) => lockTransition(lock, command, { ...at, now: calls++ });
    expect(lawBrokenIn(onTrial(planted))).toBe('the same question has the same answer');
  });

  it('there is a bug for every law', () => {
    const caught = new Set(BUGS.map(({ breaks }) => breaks));
    expect(Object.keys(lockLaws).filter((law) => !caught.has(law))).toEqual([]);
  });
});
