import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Condition, entryOf, issueStatuses, type Leaf } from './condition.ts';
import { evaluate, type Verdict } from './evaluate.ts';
import { type Evaluator, type Law, laws, type Sample } from '../../../test/laws/evaluation.ts';
import { explain, renderExplanation } from './explain.ts';
import type { Gathered, Input, InputKind, Inputs, InputValues } from './inputs.ts';
import { parseCondition } from './parse.ts';
import { requiredInputs } from './required-inputs.ts';
import { wakePatterns } from './wake.ts';

/** LAW_RUNS=10 for ten times as many. */
const RUNS = { numRuns: 150 * Number(process.env['LAW_RUNS'] ?? 1) };

// Few names, so that conditions of one tree share inputs and contradict one another.
const name = fc.constantFrom('a', 'b', 'a:b', '%');
const status = fc.constantFrom(...issueStatuses);
const min = fc.integer({ min: 1, max: 3 });

const issueFilter = fc.oneof(
  fc.record({ query: name, min }, { requiredKeys: ['query'] }),
  fc.record(
    {
      labels: fc.array(name, { minLength: 1 }),
      ids: fc.array(
        fc.nat().map((n) => n + 1),
        { minLength: 1 },
      ),
      status,
      min,
    },
    { requiredKeys: [] },
  ),
);

const leaf: fc.Arbitrary<Leaf> = fc.oneof(
  fc.record({ lockFree: name }),
  fc.record({ lockHeld: fc.oneof(name, fc.record({ name, by: name }, { requiredKeys: ['name'] })) }),
  fc.record({ semaphoreAvailable: fc.record({ name, slots: fc.integer({ min: 1, max: 5 }) }) }),
  fc.record({ issuesComplete: issueFilter }),
  fc.record({ noBlockedIssues: issueFilter }),
  fc.record({ issueStatus: fc.record({ id: fc.constantFrom('1', 1, 2), expected: status }) }),
  fc.record({ branchExists: name }),
  fc.record({ branchNotExists: name }),
  fc.record({ branchClean: name }),
  fc.record({ worktreeClean: fc.oneof(name, fc.constant(null), fc.record({ path: name }, { requiredKeys: [] })) }),
  fc.record({ branchMerged: fc.record({ branch: name, into: name }) }),
  fc.record({ fileExists: name }),
  fc.record({ fileNotExists: name }),
  fc.record({ fileContains: fc.record({ path: name, pattern: fc.constantFrom('go', '/^go/i') }) }),
  fc.record({ sessionAlive: name }),
  fc.record({ pipelineInPhase: fc.record({ pipeline: name, phase: name }) }),
  fc.record({ pipelineComplete: name }),
  fc.record({ taskDone: name }),
  fc.record({ memberAlive: name }),
  fc.record({
    command: fc.record(
      { cmd: fc.oneof(name, fc.array(name, { minLength: 1 })), expectSuccess: fc.boolean(), description: name },
      { requiredKeys: ['cmd'] },
    ),
  }),
);

const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.record({ all: fc.array(tie('condition'), { maxLength: 4 }) }),
    fc.record({ any: fc.array(tie('condition'), { maxLength: 4 }) }),
    fc.record({ not: tie('condition') }),
  ),
}));

const values: { readonly [Kind in InputKind]: fc.Arbitrary<InputValues[Kind]> } = {
  lock: fc.option(fc.record({ holders: fc.array(fc.record({ holder: name, stale: fc.boolean() }), { maxLength: 2 }) })),
  semaphore: fc.option(fc.record({ capacity: fc.nat(4), used: fc.nat(6) })),
  issues: fc.array(fc.record({ id: name, status }), { maxLength: 12 }),
  issue: fc.option(fc.record({ status })),
  branch: fc.record({ exists: fc.boolean() }),
  worktrees: fc.option(fc.array(fc.record({ path: name, clean: fc.boolean() }), { maxLength: 2 })),
  worktree: fc.option(fc.record({ path: name, clean: fc.boolean() })),
  branchMerged: fc.oneof(fc.record({ merged: fc.boolean() }), fc.record({ missing: fc.array(name, { minLength: 1 }) })),
  file: fc.record({ exists: fc.boolean() }),
  fileText: fc.option(fc.record({ text: fc.constantFrom('', 'go', 'no', 'no go') })),
  session: fc.record({ alive: fc.boolean() }),
  pipeline: fc.option(
    fc.record({
      state: fc.constantFrom('pending', 'running', 'blocked', 'done', 'failed', 'cancelled'),
      phase: fc.option(name),
    }),
  ),
  task: fc.option(fc.record({ status: fc.constantFrom('pending', 'running', 'complete', 'failed') })),
  member: fc.record({ alive: fc.boolean() }),
  command: fc.record({ exitCode: fc.constantFrom(0, 1, 127, 130) }),
};

type Entry = readonly [key: string, gathered: Gathered];

function entryFor(input: Input): fc.Arbitrary<Entry> {
  return values[input.kind].map((value): Entry => [input.key, { value }]);
}

function toInputs(entries: readonly Entry[]): Inputs {
  return Object.fromEntries(entries) as Inputs;
}

/** Of every input: known, never looked at, or looked at in vain. */
type Fate = 'known' | 'absent' | 'in vain';

function suffer([key, gathered]: Entry, fate: Fate | undefined): readonly Entry[] {
  if (fate === 'absent') return [];
  return [[key, fate === 'in vain' ? { error: 'no answer' } : gathered]];
}

const sample: fc.Arbitrary<Sample> = fc.array(condition, { maxLength: 4 }).chain((conditions) => {
  const inputs = requiredInputs({ all: conditions });
  const fates = fc.array(fc.constantFrom<Fate>('known', 'absent', 'in vain'), {
    minLength: inputs.length,
    maxLength: inputs.length,
  });
  return fc.tuple(fc.tuple(...inputs.map(entryFor)), fates).map(([entries, fate]) => ({
    conditions,
    complete: toInputs(entries),
    known: toInputs(entries.flatMap((entry, at) => suffer(entry, fate[at]))),
  }));
});

const kindOf: Evaluator = (tree, inputs) => evaluate(tree, inputs).kind;

function upheld(law: Law, evaluator: Evaluator): fc.IProperty<[Sample]> {
  return fc.property(sample, (drawn) => law(evaluator, drawn));
}

describe('three-valued logic', () => {
  test.each(Object.entries(laws))('%s', (_, law) => {
    fc.assert(upheld(law, kindOf), RUNS);
  });

  test('evaluating is the same as minimum, maximum and complement over failed < needsInput < passed', () => {
    fc.assert(
      fc.property(sample, ({ conditions, known }) =>
        conditions.every((tree) => evaluatorOf(kleene)(tree, known) === kindOf(tree, known)),
      ),
      RUNS,
    );
  });
});

/** The truth of a composite from that of its children: 0 failed, 1 needsInput, 2 passed. */
interface Logic {
  readonly all: (truths: readonly number[]) => number;
  readonly any: (truths: readonly number[]) => number;
  readonly not: (truth: number) => number;
}

const kleene: Logic = {
  all: (truths) => Math.min(2, ...truths),
  any: (truths) => Math.max(0, ...truths),
  not: (truth) => 2 - truth,
};

const kinds: readonly Verdict['kind'][] = ['failed', 'needsInput', 'passed'];

function evaluatorOf(logic: Logic): Evaluator {
  return (tree, inputs) => {
    // What is not there fails, and is not known where it is denied.
    function truthOf(one: Condition, isDenied: boolean): number {
      if ('all' in one) return logic.all(one.all.map((child) => truthOf(child, isDenied)));
      if ('any' in one) return logic.any(one.any.map((child) => truthOf(child, isDenied)));
      if ('not' in one) return logic.not(truthOf(one.not, !isDenied));
      return isDenied ? 2 - kinds.indexOf(kindOf({ not: one }, inputs)) : kinds.indexOf(kindOf(one, inputs));
    }
    return kinds[truthOf(tree, false)] ?? 'needsInput';
  };
}

const planted: Readonly<Record<string, Logic>> = {
  'any ignores what is not known': { ...kleene, any: (truths) => (truths.includes(2) ? 2 : 0) },
  'all ignores what is not known': { ...kleene, all: (truths) => (truths.includes(0) ? 0 : 2) },
  'all waits for what is not known although it has failed': {
    ...kleene,
    all: (truths) => (truths.includes(1) ? 1 : Math.min(2, ...truths)),
  },
  'the opposite of what is not known passes': { ...kleene, not: (truth) => (truth === 2 ? 0 : 2) },
  'any of nothing passes': { ...kleene, any: (truths) => (truths.length === 0 ? 2 : Math.max(...truths)) },
};

describe('the laws notice a planted bug', () => {
  test('and let the right logic through', () => {
    const evaluator = evaluatorOf(kleene);
    const broken = Object.entries(laws).filter(([, law]) => isBrokenBy(law, evaluator));
    expect(broken.map(([law]) => law)).toEqual([]);
  });

  test.each(Object.entries(planted))('%s', (_, logic) => {
    const evaluator = evaluatorOf(logic);
    // The first one will do.
    expect(Object.values(laws).some((law) => isBrokenBy(law, evaluator))).toBe(true);
  });
});

function isBrokenBy(law: Law, evaluator: Evaluator): boolean {
  return fc.check(upheld(law, evaluator), { ...RUNS, endOnFailure: true }).failed;
}

describe('whatever the condition', () => {
  test('the verdict depends on what was gathered, not on the order in which it came in', () => {
    const shuffled = sample.chain((drawn) => {
      const entries = Object.entries(drawn.known) as unknown as Entry[];
      const order = fc.shuffledSubarray(entries, { minLength: entries.length });
      return fc.tuple(fc.constant(drawn), order.map(toInputs));
    });
    fc.assert(
      fc.property(shuffled, ([{ conditions, known }, reordered]) => {
        expect(evaluate({ all: conditions }, reordered)).toEqual(evaluate({ all: conditions }, known));
      }),
      RUNS,
    );
  });

  test('each input is asked for once, and in the same order every time', () => {
    fc.assert(
      fc.property(condition, (tree) => {
        const keys = requiredInputs(tree).map(({ key }) => key);
        expect(new Set(keys).size).toBe(keys.length);
        expect(requiredInputs(structuredClone(tree)).map(({ key }) => key)).toEqual(keys);
      }),
      RUNS,
    );
  });

  test('two inputs share a key only if they ask the same', () => {
    fc.assert(
      fc.property(leaf, leaf, (one, other) => {
        const [a, b] = [requiredInputs(one)[0], requiredInputs(other)[0]];
        if (a?.key === b?.key) expect(a).toEqual(b);
        else expect({ ...a, key: '' }).not.toEqual({ ...b, key: '' });
      }),
      RUNS,
    );
  });

  test('a failure gives at least one reason, and missing input says which, out of those asked for', () => {
    fc.assert(
      fc.property(sample, ({ conditions, known }) => {
        const tree: Condition = { all: conditions };
        const verdict = evaluate(tree, known);
        if (verdict.kind === 'needsInput') {
          const asked = requiredInputs(tree).map(({ key }) => key);
          expect(verdict.missing.length).toBeGreaterThan(0);
          expect(asked).toEqual(expect.arrayContaining(verdict.missing.map(({ key }) => key)));
        } else {
          expect(verdict.reasons.length).toBeGreaterThan(0);
        }
      }),
      RUNS,
    );
  });

  test('its explanation has a line for every node', () => {
    const nodes = (tree: { children: readonly unknown[] }): number =>
      tree.children.reduce<number>((sum, child) => sum + nodes(child as typeof tree), 1);
    fc.assert(
      fc.property(sample, ({ conditions, known }) => {
        const explanation = explain({ any: conditions }, known);
        expect(renderExplanation(explanation)).toHaveLength(nodes(explanation));
      }),
      RUNS,
    );
  });

  test('denying it twice leaves it waiting for the same events', () => {
    fc.assert(
      fc.property(condition, (tree) => {
        expect(wakePatterns({ not: { not: tree } })).toEqual(wakePatterns(tree));
      }),
      RUNS,
    );
  });
});

describe('parsing', () => {
  test('a condition that went through JSON comes back the same', () => {
    fc.assert(
      fc.property(condition, (tree) => {
        expect(parseCondition(JSON.parse(JSON.stringify(tree)))).toEqual({ ok: true, condition: tree });
      }),
      RUNS,
    );
  });

  test('any JSON whatever is parsed or told what is wrong, and nothing is thrown', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.anything()), (value) => {
        const parsed = parseCondition(value);
        if (!parsed.ok) expect(parsed.problems.length).toBeGreaterThan(0);
      }),
      RUNS,
    );
  });

  test('a known condition with any argument whatever is parsed and evaluated, or told what is wrong', () => {
    const leafKind = leaf.map((one) => entryOf(one)[0]);
    fc.assert(
      fc.property(leafKind, fc.jsonValue(), (kind, argument) => {
        const parsed = parseCondition({ [kind]: argument });
        if (parsed.ok) expect(evaluate(parsed.condition, {}).kind).toBe('needsInput');
        else expect(parsed.problems.every(({ path }) => path[0] === kind)).toBe(true);
      }),
      RUNS,
    );
  });
});
