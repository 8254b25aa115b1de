/**
 * Laws that every right evaluator keeps, whatever the condition and whatever is known. Only tests import this: they hold
 * the laws against `evaluate`, and against evaluators with a planted bug, to see that the laws would notice.
 */
import { type Condition, leavesOf } from '../../src/core/guard/condition.ts';
import type { Verdict } from '../../src/core/guard/evaluate.ts';
import type { Inputs } from '../../src/core/guard/inputs.ts';

export type Evaluator = (condition: Condition, inputs: Inputs) => Verdict['kind'];

/** Some conditions, all that can be known about them, and the part of it that is known so far. */
export interface Sample {
  readonly conditions: readonly Condition[];
  readonly known: Inputs;
  readonly complete: Inputs;
}

export type Law = (evaluate: Evaluator, sample: Sample) => boolean;

const negated = (conditions: readonly Condition[]): readonly Condition[] => conditions.map((not) => ({ not }));

export const laws: Readonly<Record<string, Law>> = {
  'what is not all is any of the opposites': (evaluate, { conditions, known }) =>
    evaluate({ not: { all: conditions } }, known) === evaluate({ any: negated(conditions) }, known),

  'what is not any is all of the opposites': (evaluate, { conditions, known }) =>
    evaluate({ not: { any: conditions } }, known) === evaluate({ all: negated(conditions) }, known),

  'denying twice changes nothing': (evaluate, { conditions, known }) =>
    conditions.every((condition) => evaluate({ not: { not: condition } }, known) === evaluate(condition, known)),

  'one condition is the same alone, under all and under any': (evaluate, { conditions, known }) =>
    conditions.every((condition) => {
      const alone = evaluate(condition, known);
      return evaluate({ all: [condition] }, known) === alone && evaluate({ any: [condition] }, known) === alone;
    }),

  'the order of conditions does not matter': (evaluate, { conditions, known }) =>
    evaluate({ all: conditions }, known) === evaluate({ all: conditions.toReversed() }, known) &&
    evaluate({ any: conditions }, known) === evaluate({ any: conditions.toReversed() }, known),

  'whatever is learnt later, passed stays passed and failed stays failed': (evaluate, sample) =>
    [{ all: sample.conditions }, { any: sample.conditions }, ...sample.conditions].every((condition) => {
      const early = evaluate(condition, sample.known);
      return early === 'needsInput' || evaluate(condition, sample.complete) === early;
    }),

  'nothing is open once everything is known, and is there': (evaluate, { conditions, complete }) => {
    const isDecided = (condition: Condition): boolean => evaluate(condition, complete) !== 'needsInput';
    // What does not exist fails, and its opposite is open.
    const areThere = (condition: Condition): boolean =>
      leavesOf(condition).every((leaf) => isDecided(leaf) && isDecided({ not: leaf }));
    return conditions.every((condition) => !areThere(condition) || isDecided(condition));
  },
};
