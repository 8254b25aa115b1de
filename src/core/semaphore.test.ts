import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Chance,
  type Command,
  lawBrokenIn,
  type Moves,
  play,
  semaphoreLaws,
  semaphoreRules,
  settingsBugs,
  sharedBugs,
  Trial,
} from '../../test/laws/index.ts';
import { withDrain } from './drain.ts';
import type { Moment } from './machine.ts';
import {
  availableSlots,
  canAcquire,
  newSemaphore,
  type Semaphore,
  type SemaphoreCommand,
  type SemaphoreHold,
  type SemaphoreRequest,
  type SemaphoreStep,
  semaphoreTransition,
  staleHolders,
  unusedSemaphore,
  usedSlots,
} from './semaphore.ts';
import { slotNumbers } from './slots.ts';

/** Undone more often than done: else nothing would be granted for most of the time. */
const OTHERS: readonly Command[] = [
  { kind: 'configure' },
  { kind: 'configure' },
  { kind: 'drain', holder: 'admin', reason: 'a repair' },
  { kind: 'undrain', holder: 'admin' },
  { kind: 'undrain', holder: 'admin' },
  { kind: 'undrain', holder: 'admin', revision: 1 },
];

type Transition = (semaphore: Semaphore, command: SemaphoreCommand, at: Moment) => SemaphoreStep;

/** Few slots, which makes for queues, or thousands; `scale`: how many a step of weight has. */
function semaphores(scale: number): Moves<Semaphore> {
  const weight = (chance: Chance): number =>
    chance.often(90) ? scale * (1 + chance.nat(3)) : chance.pick([0, -1, 1.5, NaN, 9 * scale]);
  const capacity = (chance: Chance): number => scale * (1 + chance.nat(5));
  return {
    wish: (chance) => ({ weight: weight(chance), ...(chance.often(15) && { capacity: capacity(chance) }) }),
    more: ({ weight = 1 }) => ({ weight: weight + 1 }),
    same: ({ weight = 1 }) => ({ weight }),
    ticket(command) {
      const { kind: _kind, ...request } = command;
      return request as SemaphoreRequest;
    },
    claims: [],
    upgrades: false,
    other: (chance) =>
      chance.often(60) ? { kind: 'resize', capacity: capacity(chance) } : chance.pick<Command>(OTHERS),
  };
}

/** LAW_RUNS=100 runs a hundred times as many trials. */
const RUNS = Number(process.env['LAW_RUNS'] ?? 1);

const moves = fc.array(fc.nat(), { maxLength: 80, size: 'max' });
const most = fc.constantFrom(undefined, undefined, 1, 2, 3, 8);
const scale = fc.constantFrom(1, 1, 1, 1, 1, 1, 1, 100);

function onTrial(
  transition: Transition,
  laws = semaphoreLaws,
): fc.IProperty<[number[], boolean, number, number, number | undefined]> {
  return fc.property(moves, fc.boolean(), scale, fc.nat(6), most, (moves, counts, scale, capacity, most) => {
    const renewed = (): Semaphore => unusedSemaphore;
    const suspect = { transition, laws, rules: semaphoreRules, renewed };
    const initial = capacity === 0 ? unusedSemaphore : newSemaphore(capacity * scale);
    const trial: Trial<Semaphore, SemaphoreCommand> = new Trial(suspect, initial, counts, most);
    const possible = semaphores(scale);
    moves.forEach((move, place) => play(trial, new Chance(move), possible, `#${place}`));
    trial.finish({
      release: (claim) => ({ ...claim, kind: 'release' }),
      reopen: { kind: 'undrain', holder: 'admin' },
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
  it('obeys every law, whatever is asked of it and whichever process dies', () => {
    fc.assert(onTrial(semaphoreTransition), { numRuns: 250 * RUNS });
  });

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

  it('has nothing to offer while a request waits, or while it is shrinking', () => {
    const waitedFor = after(newSemaphore(4), acquiring('a', 2), acquiring('b', 3, true));
    expect([availableSlots(waitedFor), canAcquire(waitedFor, 1)]).toEqual([2, false]);
    const shrunk = after(newSemaphore(4), acquiring('a', 3), { kind: 'resize', capacity: 2 });
    expect([usedSlots(shrunk), availableSlots(shrunk), canAcquire(shrunk, 1)]).toEqual([3, 0, false]);
  });

  it('shows the other requests of a holder only the slots that its last growth cannot take away again', () => {
    const grown = after(newSemaphore(4), acquiring('a', 2), acquiring('a', 4));
    const slotsShown = (command: SemaphoreCommand): unknown => {
      const { outcome } = semaphoreTransition(grown, command, now);
      return 'hold' in outcome && slotNumbers(outcome.hold.slots);
    };
    const again = (weight: number): SemaphoreCommand =>
      ({ ...acquiring('a', weight), again: true }) as SemaphoreCommand;
    expect(slotsShown(acquiring('a', 1))).toEqual([0, 1]);
    expect(slotsShown(again(2))).toEqual([0, 1]);
    expect(slotsShown(acquiring('a', 3))).toEqual([0, 1, 2, 3]);
    expect(slotsShown(again(4))).toEqual([0, 1, 2, 3]);
  });

  it('serves the next in line as soon as the last living holder leaves, although that one does not know who died', () => {
    const held = after(newSemaphore(4), acquiring('dead', 2), acquiring('living', 2), acquiring('heavy', 4, true));
    const knowing: Moment = { ...now, gone: (lease) => lease === 'dead' };
    const served = semaphoreTransition(held, { kind: 'settle' }, knowing);
    expect(served).toMatchObject({
      outcome: { kind: 'settled' },
      losses: [{ hold: { holder: 'dead' }, why: 'reclaimed' }],
    });
    const left = semaphoreTransition(served.state, { kind: 'release', holder: 'living' }, now);
    expect(left.answers).toMatchObject([{ id: 'heavy 4', outcome: { kind: 'acquired' } }]);
  });

  it('knows who is stale', () => {
    const semaphore = after(newSemaphore(4), acquiring('a', 1), acquiring('b', 2));
    const stale = staleHolders(semaphore, { ...now, gone: (lease) => lease === 'b' });
    expect(stale.map(({ holder }) => holder)).toEqual(['b']);
  });
});

// A law that nothing breaks proves nothing, so each kind of bug is planted once and must be caught by the law it breaks.

const withRecord = (semaphore: Semaphore, record: Partial<Semaphore['record']>): Semaphore => ({
  ...semaphore,
  record: { ...semaphore.record, ...record },
});
const withState = (step: SemaphoreStep, state: Semaphore): SemaphoreStep => ({ ...step, state });

/** Changes the holds of a step wherever they are told of. */
function withHolds(step: SemaphoreStep, change: (hold: SemaphoreHold) => SemaphoreHold): SemaphoreStep {
  const told = <O extends SemaphoreStep['outcome']>(outcome: O): O =>
    'hold' in outcome ? { ...outcome, hold: change(outcome.hold) } : outcome;
  return {
    ...step,
    state: withRecord(step.state, { holds: step.state.record.holds.map(change) }),
    outcome: told(step.outcome),
    answers: step.answers.map((answer) => ({ ...answer, outcome: told(answer.outcome) })),
  };
}

/** The command is carried out as if the record said something else. */
function asIf(
  semaphore: Semaphore,
  record: Partial<Semaphore['record']>,
  command: SemaphoreCommand,
  at: Moment,
): SemaphoreStep {
  const altered = withRecord(semaphore, record);
  const step = semaphoreTransition(altered, command, at);
  if (step.state === altered) return withState(step, semaphore);
  // What it says about being passed is decided anew in each step.
  if ('passed' in record) return step;
  const restored = Object.keys(record).map((key) => [key, semaphore.record[key as keyof typeof record]]);
  return withState(step, withRecord(step.state, Object.fromEntries(restored)));
}

/** The command is carried out as if these did not wait. */
function pastThose(
  semaphore: Semaphore,
  passed: readonly Semaphore['waiting'][number][],
  command: SemaphoreCommand,
  at: Moment,
): SemaphoreStep {
  const without = { ...semaphore, waiting: semaphore.waiting.filter((waiter) => !passed.includes(waiter)) };
  const step = semaphoreTransition(without, command, at);
  if (step.state === without) return withState(step, semaphore);
  return withState(step, { ...step.state, waiting: [...passed, ...step.state.waiting] });
}

interface Bug {
  readonly bug: string;
  readonly breaks: string;
  readonly planted: Transition;
  /** Where the search begins, because it ended there the last time. */
  readonly run?: number;
}

const BUGS: readonly Bug[] = [
  ...(settingsBugs(semaphoreTransition as never) as unknown as readonly Bug[]),
  ...(sharedBugs(semaphoreTransition as never) as unknown as readonly Bug[]),
  {
    bug: 'there is one slot more than there is',
    breaks: 'used slots never exceed the capacity, and after a shrinking never grow beyond it',
    planted(semaphore, command, at) {
      if (command.kind !== 'acquire') return semaphoreTransition(semaphore, command, at);
      return asIf(semaphore, { capacity: semaphore.record.capacity + 1 }, command, at);
    },
  },
  {
    bug: 'shrinking is not heeded',
    breaks: 'used slots never exceed the capacity, and after a shrinking never grow beyond it',
    planted(semaphore, command, at) {
      if (command.kind === 'resize') return semaphoreTransition(semaphore, command, at);
      return asIf(semaphore, { capacity: 6 }, command, at);
    },
  },
  {
    bug: 'everybody gets the first slots',
    breaks: 'everyone has as many slots as its weight, and nobody the same',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (step.outcome.kind !== 'acquired') return step;
      const { id } = step.outcome.hold;
      return withHolds(step, (hold) =>
        hold.id === id ? { ...hold, slots: slotNumbers(hold.slots).map((_, slot) => slot) } : hold,
      );
    },
  },
  {
    bug: 'slots are given from the top',
    breaks: 'the queue is served in order, and no newcomer before one who could have it',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      const isAlone = step.outcome.kind === 'acquired' && step.state.record.holds.length === 1;
      const { capacity } = step.state.record;
      return isAlone
        ? withHolds(step, (hold) => ({ ...hold, slots: slotNumbers(hold.slots).map((slot) => capacity - 1 - slot) }))
        : step;
    },
  },
  {
    bug: 'growth changes the token',
    breaks: 'a hold that grows keeps its token and its slots',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (step.outcome.kind !== 'increased') return step;
      const { id } = step.outcome.hold;
      return withHolds(step, (hold) => (hold.id === id ? { ...hold, token: hold.token + 1 } : hold));
    },
  },
  {
    bug: 'growth moves a holder to other slots',
    breaks: 'a hold that grows keeps its token and its slots',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (step.outcome.kind !== 'increased') return step;
      const { id } = step.outcome.hold;
      return withHolds(step, (hold) => (hold.id === id ? { ...hold, slots: hold.slots.toReversed() } : hold));
    },
  },
  {
    bug: 'a denied growth reports success',
    run: 403,
    breaks: 'a request that is granted has as much as it asked for',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (step.outcome.kind !== 'full' || command.kind !== 'acquire') return step;
      const hold = semaphore.record.holds.find(({ holder }) => holder === command.holder);
      return hold === undefined ? step : { ...step, outcome: { kind: 'already-held', hold } };
    },
  },
  {
    bug: 'what can never be had is waited for',
    breaks: 'what can never be had is refused at once, and only that',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      const { holds } = semaphore.record;
      return step.outcome.kind === 'impossible'
        ? { ...step, outcome: { kind: 'full', free: 0, holders: holds } }
        : step;
    },
  },
  {
    bug: 'a shrinking leaves those waiting who wait for more than there will be',
    breaks: 'nobody waits for what it can never have, or has already',
    planted(semaphore, command, at) {
      if (command.kind !== 'resize') return semaphoreTransition(semaphore, command, at);
      return pastThose(semaphore, semaphore.waiting, command, at);
    },
  },
  {
    bug: 'only the last stale holder is reclaimed',
    run: 792,
    breaks: 'a request that reclaims takes every stale hold',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (command.kind !== 'maintain' || step.losses.length < 2) return step;
      const losses = step.losses.slice(-1);
      const holds = semaphore.record.holds.filter((hold) => hold !== losses[0]?.hold);
      return { ...step, losses, state: withRecord(semaphore, { holds }), answers: [] };
    },
  },
  {
    bug: 'tokens start over once nobody holds',
    breaks: 'tokens only grow, and no two grants share one',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      const isFreed = usedSlots(semaphore) > 0 && usedSlots(step.state) === 0;
      return isFreed ? withState(step, withRecord(step.state, { token: 0 })) : step;
    },
  },
  {
    bug: 'a waiter is granted although its lease is gone',
    run: 81,
    breaks: 'nothing is granted to the dead',
    planted(semaphore, command, at) {
      const isHeld = (lease: string): boolean =>
        semaphore.record.holds.some((hold) => hold.lease === lease || hold.limit === lease);
      return semaphoreTransition(semaphore, command, { ...at, gone: (lease) => at.gone(lease) && isHeld(lease) });
    },
  },
  {
    bug: 'a release asks neither for holder nor token',
    breaks: 'a claim that no hold answers to does nothing',
    planted(semaphore, command, at) {
      const hold = semaphore.record.holds.at(-1);
      if (command.kind !== 'release' || hold === undefined) return semaphoreTransition(semaphore, command, at);
      return semaphoreTransition(semaphore, { kind: 'release', holder: hold.holder, id: hold.id }, at);
    },
  },
  {
    bug: 'a release takes another holder along',
    breaks: 'a hold ends only by its holder, by force, or because it was stale',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (step.outcome.kind !== 'released') return step;
      return withState(step, withRecord(step.state, { holds: step.state.record.holds.slice(1) }));
    },
  },
  {
    bug: 'an acquire reclaims what a person should decide about',
    run: 94,
    breaks: 'where a person must decide, only one who steals or forces takes a stale hold',
    planted(semaphore, command, at) {
      if (command.kind !== 'acquire') return semaphoreTransition(semaphore, command, at);
      return asIf(semaphore, { onStale: 'reclaim' }, command, at);
    },
  },
  {
    bug: 'a stale holder grows',
    run: 120,
    breaks: 'nothing is granted to the dead',
    planted(semaphore, command, at) {
      const isAsking =
        command.kind === 'acquire' && semaphore.record.holds.some(({ holder }) => holder === command.holder);
      return semaphoreTransition(semaphore, command, isAsking ? { ...at, gone: () => false } : at);
    },
  },
  {
    bug: 'a renewal revives a stale hold',
    run: 94,
    breaks: 'a stale holder cannot revive',
    planted(semaphore, command, at) {
      const isRenewal = command.kind === 'heartbeat' || command.kind === 'extend';
      return semaphoreTransition(semaphore, command, isRenewal ? { ...at, gone: () => false } : at);
    },
  },
  {
    bug: 'a refused try reclaims stale holders',
    breaks: 'a request that is refused, and a look, change nothing',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (step.outcome.kind !== 'full') return step;
      return { ...semaphoreTransition(semaphore, { kind: 'maintain' }, at), outcome: step.outcome };
    },
  },
  {
    bug: 'a field is there as undefined',
    breaks: 'a state survives a journey through JSON',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (step.outcome.kind !== 'acquired') return step;
      return withHolds(step, (hold) => Object.assign({ grown: undefined }, hold) as SemaphoreHold);
    },
  },
  {
    bug: 'a light request passes a heavy one at the head',
    breaks: 'the queue is served in order, and no newcomer before one who could have it',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      const [head] = step.state.waiting;
      if (step.outcome.kind !== 'released' || head === undefined || head.weight < 3) return step;
      return { ...pastThose(step.state, [head], { kind: 'settle' }, at), outcome: step.outcome };
    },
  },
  {
    bug: 'growth passes those who wait',
    run: 191,
    breaks: 'the queue is served in order, and no newcomer before one who could have it',
    planted(semaphore, command, at) {
      const grows =
        command.kind === 'acquire' && semaphore.record.holds.some(({ holder }) => holder === command.holder);
      if (!grows || command.wait) return semaphoreTransition(semaphore, command, at);
      return pastThose(semaphore, semaphore.waiting, command, at);
    },
  },
  {
    bug: 'what a stale holder leaves goes to a newcomer',
    breaks: 'the queue is served in order, and no newcomer before one who could have it',
    planted(semaphore, command, at) {
      const isStale = staleHolders(semaphore, at).length > 0;
      if (command.kind !== 'acquire' || !isStale) return semaphoreTransition(semaphore, command, at);
      return pastThose(semaphore, semaphore.waiting, command, at);
    },
  },
  {
    bug: 'being passed is forgotten',
    run: 2024,
    breaks: 'the queue is served in order, and no newcomer before one who could have it',
    planted: (semaphore, command, at) => asIf(semaphore, { passed: null }, command, at),
  },
  {
    bug: 'nobody is served when slots are released',
    breaks: 'nobody waits in front of something it could have',
    planted(semaphore, command, at) {
      if (command.kind !== 'release') return semaphoreTransition(semaphore, command, at);
      return pastThose(semaphore, semaphore.waiting, command, at);
    },
  },
  {
    bug: 'a cancel that comes after the grant leaves the grant behind',
    run: 55,
    breaks: 'a request that is given up leaves no trace',
    planted(semaphore, command, at) {
      const isGranted = command.kind === 'cancel' && semaphore.record.holds.some(({ id }) => id === command.id);
      return semaphoreTransition(semaphore, isGranted ? { kind: 'settle' } : command, at);
    },
  },
  {
    bug: 'a growth outlives the hold it belongs to',
    breaks: 'a wish for more ends with its hold',
    planted(semaphore, command, at) {
      if (command.kind !== 'release') return semaphoreTransition(semaphore, command, at);
      const growing = semaphore.waiting.filter(({ grows }) => grows !== undefined);
      return pastThose(semaphore, growing, command, at);
    },
  },
  {
    bug: "a bystander's request renews everybody's lease",
    breaks: 'a hold changes only by what its own holder asks',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      return step.outcome.kind === 'acquired' ? withHolds(step, (hold) => ({ ...hold, lease: 'x' })) : step;
    },
  },
  {
    bug: 'a holder that waits twice shrinks to what it asked for last, and keeps its slots',
    breaks: 'everyone has as many slots as its weight, and nobody the same',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      const answer = step.answers.find(({ outcome }) => outcome.kind === 'already-held');
      const request = semaphore.waiting.find(({ id }) => id === answer?.id);
      if (answer === undefined || !('hold' in answer.outcome) || request === undefined) return step;
      const { id } = answer.outcome.hold;
      return withHolds(step, (hold) => (hold.id === id ? { ...hold, weight: request.weight } : hold));
    },
  },
  {
    bug: 'the capacity that a waiter expects is not checked',
    breaks: 'nothing is granted that was not asked, nor what can never be had',
    planted(semaphore, command, at) {
      const blind = semaphore.waiting.map(({ capacity: _capacity, ...request }) => request);
      const asked = new Map(blind.map((request, place) => [request, semaphore.waiting[place]]));
      const altered = { ...semaphore, waiting: blind };
      const step = semaphoreTransition(altered, command, at);
      if (step.state === altered) return withState(step, semaphore);
      const waiting = step.state.waiting.map((request) => asked.get(request) ?? request);
      return withState(step, { ...step.state, waiting });
    },
  },
  {
    bug: 'slots are listed one by one',
    run: 36,
    breaks: 'many slots in a row take no more room than a few',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      return step.outcome.kind === 'acquired'
        ? withHolds(step, (hold) => ({ ...hold, slots: slotNumbers(hold.slots) }))
        : step;
    },
  },
  {
    bug: 'a growth that is given up takes slots from another request that has them too',
    breaks: 'a request that is given up takes nothing from another request of the same holder',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      return step.outcome.kind === 'already-held' ? { ...withState(step, semaphore), answers: [] } : step;
    },
  },
  {
    bug: 'an end makes no noise',
    breaks: 'events tell of every grant and every end',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      return { ...step, events: step.events.filter(({ type }) => type !== 'semaphore:released') };
    },
  },
  {
    bug: 'only one stale holder is warned of',
    run: 1290,
    breaks: 'a hold is warned of once, and only when stale',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      return command.kind === 'tick' ? { ...step, events: step.events.slice(-1) } : step;
    },
  },
  {
    bug: 'a drain is passed over',
    breaks: 'nobody gets anything while it is drained',
    planted(semaphore, command, at) {
      const { drained } = semaphore.record;
      if (drained === undefined || command.kind === 'undrain' || command.kind === 'drain') {
        return semaphoreTransition(semaphore, command, at);
      }
      const step = semaphoreTransition({ ...semaphore, record: withDrain(semaphore.record, undefined) }, command, at);
      return withState(step, { ...step.state, record: withDrain(step.state.record, drained) });
    },
  },
  {
    bug: 'a drain ends with a release',
    breaks: 'a drain begins and ends only by command',
    planted(semaphore, command, at) {
      const step = semaphoreTransition(semaphore, command, at);
      if (step.outcome.kind !== 'released') return step;
      return withState(step, { ...step.state, record: withDrain(step.state.record, undefined) });
    },
  },
];

describe('a semaphore with a planted bug is caught when', () => {
  for (const { bug, breaks, planted, run = 0 } of BUGS) {
    it(bug, () => {
      const law = semaphoreLaws[breaks];
      if (law === undefined) throw new Error(`there is no such law: ${breaks}`);
      expect(lawBrokenIn(onTrial(planted, { [breaks]: law }), run)).toBe(breaks);
    });
  }

  it('there is a bug for every law', () => {
    const caught = new Set(BUGS.map(({ breaks }) => breaks));
    expect(Object.keys(semaphoreLaws).filter((law) => !caught.has(law))).toEqual([]);
  });
});
