import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { OnFailure } from '../guard/guard.ts';
import { BrokenLaw } from '../../../test/laws/trial.ts';
import {
  driverLaws,
  type Fate,
  type Laws,
  type Luck,
  type Move,
  NOTHING_THROWS,
} from '../../../test/laws/pipeline/index.ts';
import { phaseLaws, recordLaws, type Transition, Trial } from '../../../test/laws/pipeline/index.ts';
import { type DriverCommand, effectOf, type PhaseResult } from './command.ts';
import { pipelineTransition } from './pipeline.ts';
import { hasEnded, type PipelineRecord } from './record.ts';
import type { Phase, Runbook } from './runbook.ts';

/** LAW_RUNS=10 for ten times as many. */
const RUNS = { numRuns: 150 * Number(process.env['LAW_RUNS'] ?? 1) };
const laws: Laws = { ...phaseLaws, ...driverLaws, ...recordLaws };

// Runbooks

const onFailure = fc.constantFrom<OnFailure[]>('block', 'warn', { retry: 5_000 }, { fail: 'call ann' }, { fail: '' });

const phase = fc.record({
  pre: fc.array(fc.option(onFailure, { nil: undefined }), { maxLength: 2 }),
  post: fc.array(fc.option(onFailure, { nil: undefined }), { maxLength: 2 }),
  hasHolds: fc.boolean(),
  onFailure: fc.option(onFailure, { nil: undefined }),
  retries: fc.constantFrom(0, 0, 1, 2),
  idempotent: fc.boolean(),
});

const runbook: fc.Arbitrary<Runbook> = fc.array(phase, { minLength: 1, maxLength: 3 }).map((phases) => ({
  name: 'release',
  env: {},
  phases: phases.map(({ pre, post, hasHolds, onFailure: action, ...rest }, at): Phase => {
    const guard = (id: string, given: OnFailure | undefined) => ({
      id,
      condition: { lockFree: 'main' },
      ...(given !== undefined && { onFailure: given }),
    });
    return {
      name: `phase-${at}`,
      run: { shell: 'true' },
      pre: pre.map((given, nth) => guard(`${at}.pre.${nth}`, given)),
      post: post.map((given, nth) => guard(`${at}.post.${nth}`, given)),
      holds: hasHolds ? [{ lock: 'main' }] : [],
      ...(action !== undefined && { onFailure: action }),
      backoffMs: 1_000,
      env: {},
      ...rest,
    };
  }),
}));

// What happens to them

const words = fc.constantFrom('exit code 1', 'held by ci', 'no answer', 'so it goes '.repeat(5_000));

const outputs = fc.constantFrom<Record<string, string>[]>({}, {}, { VERSION: '1' }, { VERSION: '2', URL: 'x' });
const refusedOutputs = fc.constantFrom<Record<string, string>[]>({ SIGNALBOX_TOKEN: '1' }, { 'A-B': '1' });

const result: fc.Arbitrary<PhaseResult> = fc.oneof(
  { weight: 4, arbitrary: outputs.map((given) => ({ kind: 'succeeded', outputs: given }) as const) },
  { weight: 1, arbitrary: refusedOutputs.map((given) => ({ kind: 'succeeded', outputs: given }) as const) },
  { weight: 4, arbitrary: words.map((why) => ({ kind: 'failed', why }) as const) },
  { weight: 1, arbitrary: words.map((why) => ({ kind: 'stopped', why }) as const) },
  { weight: 1, arbitrary: fc.constant({ kind: 'cancelled' } as const) },
);

const fate = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fate>('passed') },
  { weight: 2, arbitrary: fc.constantFrom<Fate[]>('open', 'stuck', 'in vain', 'not judged', 'never') },
);

const luck: fc.Arbitrary<Luck> = fc.record({
  fates: fc.array(fate, { minLength: 2, maxLength: 2 }),
  result,
  holds: fc.constantFrom<Luck['holds'][]>('had', 'had', 'waits', 'refused'),
  choice: fc.constantFrom('rerun', 'skip'),
  words,
});

const anything: fc.Arbitrary<DriverCommand> = fc.oneof(
  fc.constant({ kind: 'waits', resources: ['lock/main'] } as const),
  words.map((why) => ({ kind: 'refused', why }) as const),
  fc.constant({ kind: 'begun', tokens: { 'lock/main': 7 } } as const),
  result.map((given) => ({ kind: 'ended', result: given }) as const),
  fc.constant({ kind: 'rested' } as const),
  fc
    .tuple(fc.constantFrom('rerun', 'skip'), fc.nat(40))
    .map(([choice, question]) => ({ kind: 'decided', question, choice, by: 'ann' }) as const),
);

/** The driver of now, one of those before it, or one that is to come. */
const late = fc.constantFrom(0, 1, 2, -1);
const when = fc.constantFrom('before', 'after');

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 40, arbitrary: luck.map((given): Move => ({ do: 'follow', luck: given })) },
  { weight: 5, arbitrary: fc.constant<Move>({ do: 'take over' }) },
  { weight: 4, arbitrary: fc.tuple(late, anything).map(([by, command]): Move => ({ do: 'say', late: by, command })) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('answer'),
      ago: fc.constantFrom(1, 1, 2, 0, -1),
      choice: fc.constantFrom('rerun', 'skip'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('judge'), late, when, luck }) },
  { weight: 1, arbitrary: late.map((by): Move => ({ do: 'drive', late: Math.max(0, by) })) },
  { weight: 1, arbitrary: words.map((reason): Move => ({ do: 'cancel', reason })) },
  { weight: 1, arbitrary: fc.constant<Move>({ do: 'start' }) },
);

interface Life {
  readonly runbook: Runbook;
  readonly moves: readonly Move[];
}

const life: fc.Arbitrary<Life> = fc.record({
  runbook,
  moves: fc
    .array(move, { minLength: 5, maxLength: 30, size: 'max' })
    .map((moves): Move[] => [{ do: 'start' }, { do: 'take over' }, ...moves]),
});

function live(transition: Transition, held: Laws, { runbook: book, moves }: Life): PipelineRecord | undefined {
  const trial = new Trial(transition, book, held);
  for (const each of moves) trial.make(each);
  return trial.record;
}

describe('whatever any process asks of a pipeline, and whichever process dies', () => {
  test.each(Object.entries(laws))('%s', (sentence, law) => {
    fc.assert(
      fc.property(life, (drawn) => void live(pipelineTransition, { [sentence]: law }, drawn)),
      RUNS,
    );
  });

  test(NOTHING_THROWS, () => {
    fc.assert(
      fc.property(life, (drawn) => void live(pipelineTransition, {}, drawn)),
      RUNS,
    );
  });

  test('a driver that is lucky from now on brings it to its end', () => {
    const lucky: Luck = {
      fates: ['passed'],
      result: { kind: 'succeeded', outputs: {} },
      holds: 'had',
      choice: 'rerun',
      words: '',
    };
    fc.assert(
      fc.property(life, ({ runbook: book, moves }) => {
        const trial = new Trial(pipelineTransition, book, {});
        for (const each of [...moves, { do: 'take over' } as const]) trial.make(each);
        // Five steps for each phase, and one to begin with: to rest, or to ask.
        for (let steps = 0; steps < 5 * book.phases.length + 1; steps++) trial.make({ do: 'follow', luck: lucky });
        expect(trial.record).toSatisfy(hasEnded);
      }),
      RUNS,
    );
  });

  test('and it comes to many different ends on the way', () => {
    const ends = new Set<string>();
    fc.assert(
      fc.property(life, (drawn) => {
        const record = live(pipelineTransition, {}, drawn);
        ends.add(`${record?.state} ${record?.blocked?.on ?? ''}`.trim());
      }),
      { numRuns: 1000 },
    );
    expect([...ends].sort()).toEqual(
      [
        'blocked backoff',
        'blocked guard',
        'blocked holds',
        'blocked person',
        'cancelled',
        'done',
        'failed',
        'running',
      ].sort(),
    );
  });
});

// A law that nothing breaks proves nothing, so each kind of bug is planted once and must be caught by the law it breaks.

type Bugs = readonly {
  readonly bug: string;
  readonly breaks: string;
  readonly planted: Transition;
  readonly run?: number;
}[];

const withPhases = (book: Runbook, change: (phase: Phase) => Phase): Runbook => ({
  ...book,
  phases: book.phases.map(change),
});

function without<T extends object, Key extends keyof T>(value: T, key: Key): Omit<T, Key> {
  const { [key]: _, ...rest } = value;
  return rest;
}

const machine = pipelineTransition;
const REPLACED = 'a driver that was replaced changes nothing, and has to leave';
const RERUN =
  'a command runs again only if it failed and is to be retried, if it is idempotent, or if a person says so';
const ANSWERS = 'what a person decides counts for the question that he names, and for no other';
const GUARDS = 'what guards say is done: pass, wait, or fail';
const FAILS = 'a command that fails is retried, let pass, asked about, or fails the pipeline, as the phase says';
const TAKES_OVER =
  'a driver that takes over can go on, or has to ask, or may leave; it is never in the middle of a command';
const BLOCKED = 'it says what it is blocked on exactly while it is blocked, and that is about where it is';
const TOLD = 'a pipeline that is blocked, resumes or ends is reported';

const BUGS: Bugs = [
  {
    bug: 'the token of a driver is not checked',
    breaks: REPLACED,
    planted: (book, record, command, at) =>
      'token' in command && command.kind !== 'drive'
        ? machine(book, record, { ...command, token: record?.driver?.token ?? 0 }, at)
        : machine(book, record, command, at),
  },
  {
    bug: 'a driver that was replaced gets the effect of its successor',
    breaks: REPLACED,
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      return step.outcome.kind === 'replaced'
        ? { ...step, effect: effectOf(book, step.state as PipelineRecord) }
        : step;
    },
  },
  {
    bug: 'one who is back takes over with its old token',
    breaks: 'tokens of drivers only grow',
    planted: (book, record, command, at) =>
      machine(book, record && command.kind === 'drive' ? { ...record, lastToken: 0 } : record, command, at),
  },
  {
    bug: 'commands are heard from a driver that has not taken over',
    run: 37,
    breaks: 'nobody is heard as a driver who did not take over',
    planted: (book, record, command, at) =>
      'token' in command && command.kind !== 'drive' && command.token > (record?.lastToken ?? 0)
        ? machine(book, record, { ...command, token: record?.driver?.token ?? 0 }, at)
        : machine(book, record, command, at),
  },
  {
    bug: 'an answer is taken for whatever question is open',
    breaks: ANSWERS,
    planted: (book, record, command, at) =>
      machine(
        book,
        record,
        command.kind === 'decided' && record?.blocked?.on === 'person'
          ? { ...command, question: record.blocked.question }
          : command,
        at,
      ),
  },
  {
    bug: 'an answer is heard only if it is the first',
    run: 25,
    breaks: ANSWERS,
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      return command.kind === 'decided' && record?.answered !== undefined && step.state !== record
        ? { ...step, state: record, outcome: { kind: 'answered' } }
        : step;
    },
  },
  {
    bug: 'the questions of every phase are counted from one again',
    run: 25,
    breaks: 'a question has a number that none had before, and keeps it while it is open',
    planted: (book, record, command, at) =>
      machine(book, record && { ...record, lastQuestion: 0 }, command, { ...at, revision: 0 }),
  },
  {
    bug: 'a driver that takes over asks anew',
    breaks: 'a question has a number that none had before, and keeps it while it is open',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      const { state } = step;
      if (command.kind !== 'drive' || state === record || state?.blocked?.on !== 'person') return step;
      const question = state.lastQuestion + 1;
      return { ...step, state: { ...state, lastQuestion: question, blocked: { ...state.blocked, question } } };
    },
  },
  {
    bug: 'a phase whose driver died is run again, idempotent or not',
    run: 25,
    breaks: RERUN,
    planted: (book, ...rest) =>
      machine(
        withPhases(book, (each) => ({ ...each, idempotent: true })),
        ...rest,
      ),
  },
  {
    bug: 'an interruption is taken for a failure, and retried',
    run: 167,
    breaks: RERUN,
    planted(book, record, command, at) {
      if (command.kind !== 'ended' || command.result.kind !== 'stopped') return machine(book, record, command, at);
      return machine(book, record, { ...command, result: { kind: 'failed', why: command.result.why } }, at);
    },
  },
  {
    bug: 'a phase is run again when its driver died after its command',
    breaks: RERUN,
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      if (command.kind !== 'drive' || step.state?.step.when !== 'after' || step.state === record) return step;
      const state: PipelineRecord = { ...step.state, step: { ...step.state.step, when: 'before' } };
      return { ...step, state, effect: effectOf(book, state) };
    },
  },
  {
    bug: 'a driver that takes over goes on with the command of the one before',
    breaks: TAKES_OVER,
    planted(book, record, command, at) {
      if (command.kind !== 'drive' || record?.step.when !== 'during') return machine(book, record, command, at);
      if (command.token <= record.lastToken || hasEnded(record)) return machine(book, record, command, at);
      const { holder, token, command: lastDriven } = command;
      const driver = { holder, token, since: at.now };
      const state = { ...record, driver, lastToken: token, lastDriven };
      return { state, outcome: { kind: 'ok' }, events: [], effect: effectOf(book, state) };
    },
  },
  {
    bug: 'a phase is left out',
    breaks: 'phases begin in order, each when the one before it is over',
    planted(book, record, command, at) {
      const { state, ...step } = machine(book, record, command, at);
      const isNext = state !== undefined && record !== undefined && state.step.phase > record.step.phase;
      if (!isNext || state.step.phase + 1 >= book.phases.length) return { state, ...step };
      const further = { ...state, step: { ...state.step, phase: state.step.phase + 1 } };
      return { ...step, state: further, effect: effectOf(book, further) };
    },
  },
  {
    bug: 'the last phase is left out',
    breaks: 'a pipeline is done when every phase is over',
    planted: (book, record, command, at) =>
      machine(
        command.kind === 'ended' && record?.step.phase === 0 ? { ...book, phases: book.phases.slice(0, 1) } : book,
        record,
        command,
        at,
      ),
  },
  {
    bug: 'a command that fails fails the pipeline although its phase only warns',
    breaks: FAILS,
    planted: (book, ...rest) =>
      machine(
        withPhases(book, (each) => (each.onFailure === 'warn' ? without(each, 'onFailure') : each)),
        ...rest,
      ),
  },
  {
    bug: 'there is one retry too few',
    breaks: FAILS,
    planted: (book, ...rest) =>
      machine(
        withPhases(book, (each) => ({ ...each, retries: Math.max(0, each.retries - 1) })),
        ...rest,
      ),
  },
  {
    bug: 'a guard that only warns blocks',
    breaks: GUARDS,
    planted: (book, ...rest) =>
      machine(
        withPhases(book, (each) => ({
          ...each,
          pre: each.pre.map((guard) => (guard.onFailure === 'warn' ? without(guard, 'onFailure') : guard)),
        })),
        ...rest,
      ),
  },
  {
    bug: 'a guard passes that nobody could find out about',
    breaks: GUARDS,
    planted(book, record, command, at) {
      if (command.kind !== 'judged') return machine(book, record, command, at);
      const outcomes = command.outcomes.map((outcome) =>
        outcome.kind === 'needsInput' ? ({ kind: 'passed', guard: outcome.guard } as const) : outcome,
      );
      return machine(book, record, { ...command, outcomes }, at);
    },
  },
  {
    bug: 'a guard that can never pass is waited for',
    breaks: GUARDS,
    planted(book, record, command, at) {
      if (command.kind !== 'judged') return machine(book, record, command, at);
      const outcomes = command.outcomes.map((outcome) =>
        outcome.kind === 'failed' ? { ...outcome, outlook: 'open' as const } : outcome,
      );
      return machine(book, record, { ...command, outcomes }, at);
    },
  },
  {
    bug: 'the guards after a phase are forgotten',
    breaks: 'nothing else gets past the guards after a phase',
    planted: (book, ...rest) =>
      machine(
        withPhases(book, (each) => ({ ...each, post: [] })),
        ...rest,
      ),
  },
  {
    bug: 'a phase begins without what it holds',
    breaks: 'a phase that has passed its guards begins, if it holds something once it has that',
    planted: (book, ...rest) =>
      machine(
        withPhases(book, (each) => ({ ...each, holds: [] })),
        ...rest,
      ),
  },
  {
    bug: 'a phase that a person runs again keeps the number of its attempt',
    run: 25,
    breaks: 'the number of the attempt tells how often it failed before',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      if (command.kind !== 'decided' || command.choice !== 'rerun' || step.state === record || !step.state) return step;
      return { ...step, state: { ...step.state, step: { ...step.state.step, attempt: record?.step.attempt ?? 1 } } };
    },
  },
  {
    bug: 'only first attempts are counted as runs',
    breaks: 'runs are counted',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      if (command.kind !== 'begun' || step.state === record || !step.state || step.state.step.attempt === 1)
        return step;
      return { ...step, state: { ...step.state, phases: record?.phases ?? [] } };
    },
  },
  {
    bug: 'what a phase passes on replaces what those before it did',
    run: 50,
    breaks: 'what is passed on is what successful commands passed on',
    planted: (book, record, command, at) =>
      machine(book, record && command.kind === 'ended' ? { ...record, outputs: {} } : record, command, at),
  },
  {
    bug: 'a cancel ends it while its command runs',
    run: 53,
    breaks: 'a pipeline does not end while its command runs',
    planted: (book, record, command, at) =>
      machine(
        book,
        record && command.kind === 'cancel' ? { ...record, step: { ...record.step, when: 'before' } } : record,
        command,
        at,
      ),
  },
  {
    bug: 'a cancel is forgotten when the command ends by itself',
    run: 87,
    breaks: 'cancelled, it ends at once, or with its command',
    planted: (book, record, command, at) =>
      machine(book, record && command.kind === 'ended' ? without(record, 'cancel') : record, command, at),
  },
  {
    bug: 'a driver that should pause gets the guards to check',
    breaks: 'what is to be done fits where the pipeline is',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      const each = book.phases[0];
      return step.effect.kind === 'pause' && each
        ? { ...step, effect: { kind: 'evaluate', when: 'before', phase: each } }
        : step;
    },
  },
  {
    bug: 'a pipeline that is over can be driven again',
    breaks: 'a pipeline that has ended never changes',
    planted: (book, record, command, at) =>
      machine(book, record && command.kind === 'drive' ? { ...record, state: 'running' } : record, command, at),
  },
  {
    bug: 'what it was blocked on before stays with it in the next phase',
    run: 125,
    breaks: BLOCKED,
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      if (command.kind !== 'refused' || step.state === record || !step.state || hasEnded(step.state)) return step;
      const { blocked } = record ?? {};
      return blocked && !step.state.blocked ? { ...step, state: { ...step.state, state: 'blocked', blocked } } : step;
    },
  },
  {
    bug: 'it is called running while it is blocked',
    breaks: BLOCKED,
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      return step.state?.blocked?.on === 'backoff' ? { ...step, state: { ...step.state, state: 'running' } } : step;
    },
  },
  {
    bug: 'a phase without holds is said to wait for some',
    breaks: 'it is blocked on holds only where there are some',
    planted: (book, ...rest) =>
      machine(
        withPhases(book, (each) => ({ ...each, holds: [{ lock: 'main' }] })),
        ...rest,
      ),
  },
  {
    bug: 'that it goes on after a pause is not reported',
    breaks: TOLD,
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      return command.kind === 'rested' ? { ...step, events: [] } : step;
    },
  },
  {
    bug: 'that it was cancelled is not reported',
    breaks: TOLD,
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      return { ...step, events: step.events.filter(({ type }) => type !== 'pipeline:cancelled') };
    },
  },
  {
    bug: 'a record is written although nothing changed',
    breaks: 'nothing changed means the very same record, and what was refused changed nothing',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      return step.state && step.state === record ? { ...step, state: { ...record } } : step;
    },
  },
  {
    bug: 'nobody can find out whether a command of a driver has landed',
    breaks: 'who wrote it is written into it',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      return step.state && step.state !== record && 'token' in command
        ? { ...step, state: { ...step.state, lastDriven: '', last: command.command } }
        : step;
    },
  },
  {
    bug: 'a field is left undefined in the record, and gone when it is read again',
    breaks: 'it survives being written and read, and so does every decision on it',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      const state = step.state && step.state !== record ? { cancel: undefined, ...step.state } : step.state;
      return { ...step, state: state as PipelineRecord | undefined };
    },
  },
  {
    bug: 'a command may say as much as it likes about its end',
    run: 139,
    breaks: 'its size has a limit, however long people and programs talk',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      const why = command.kind === 'ended' && command.result.kind === 'failed' ? command.result.why : undefined;
      return why && step.state?.reason ? { ...step, state: { ...step.state, reason: why } } : step;
    },
  },
  {
    bug: 'the phase that was cancelled seems to run for ever',
    breaks: 'no phase is left running by a pipeline that has ended',
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      return step.state?.state === 'cancelled' && record
        ? { ...step, state: { ...step.state, phases: record.phases } }
        : step;
    },
  },
  {
    bug: 'a word out of turn is thrown back',
    breaks: NOTHING_THROWS,
    planted(book, record, command, at) {
      const step = machine(book, record, command, at);
      if (step.outcome.kind === 'misplaced') throw new TypeError('out of turn');
      return step;
    },
  },
];

describe('a pipeline with a planted bug is caught when', () => {
  test.each(BUGS)('$bug', ({ breaks, planted, run = 0 }) => {
    const held = Object.fromEntries(Object.entries(laws).filter(([sentence]) => sentence === breaks));
    const checked = fc.check(
      fc.property(life, (drawn) => void live(planted, held, drawn)),
      { numRuns: 1000, seed: 1, path: String(run), endOnFailure: true },
    );
    expect(checked.errorInstance).toBeInstanceOf(BrokenLaw);
    expect((checked.errorInstance as BrokenLaw).law).toBe(breaks);
  });

  test('every law catches one', () => {
    const caught = new Set(BUGS.map(({ breaks }) => breaks));
    expect([...Object.keys(laws), NOTHING_THROWS].filter((sentence) => !caught.has(sentence))).toEqual([]);
  });
});
