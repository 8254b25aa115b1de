/** Decides whether the commands of conditions have to run, once everything else is known. */
import type { Condition } from './condition.ts';
import { evaluate } from './evaluate.ts';
import type { Inputs } from './inputs.ts';

/**
 * `inputs`: all but those of commands. Commands matter if a verdict is still open, and if the `required` conditions would pass
 * with the answers they want from commands.
 */
export function needsCommands(
  conditions: readonly Condition[],
  required: readonly Condition[],
  inputs: Inputs,
): boolean {
  if (!conditions.some((condition) => evaluate(condition, inputs).kind === 'needsInput')) return false;
  return evaluate({ all: required.map((condition) => withGoodCommands(condition, true)) }, inputs).kind === 'passed';
}

const PASSES: Condition = { all: [] };
const FAILS: Condition = { any: [] };

/** Replaces each command by the answer that makes the whole pass; under `not` that is a failure. */
function withGoodCommands(condition: Condition, wanted: boolean): Condition {
  if ('all' in condition) return { all: condition.all.map((child) => withGoodCommands(child, wanted)) };
  if ('any' in condition) return { any: condition.any.map((child) => withGoodCommands(child, wanted)) };
  if ('not' in condition) return { not: withGoodCommands(condition.not, !wanted) };
  if (!('command' in condition)) return condition;
  return wanted ? PASSES : FAILS;
}
