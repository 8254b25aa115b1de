/** Says what is wrong with a guard that a program made; `parse.ts` reads the guards that people write. */
import { patternProblem } from '../event-names.ts';
import { nameProblem } from '../name.ts';
import { isRecord } from '../shape.ts';
import { shown } from '../shown.ts';
import type { Guard, OnFailure } from './guard.ts';
import { parseCondition } from './parse.ts';

/** Undefined if nothing is. */
export function guardProblem(guard: Guard): string | undefined {
  if (!isRecord(guard)) return `the guard is ${shown(guard)}; expected { id, condition, onFailure, wakeOn }`;
  const { id, condition, onFailure = 'block', wakeOn = [] } = guard;
  const problem = conditionProblem(condition) ?? nameProblem(id, 'id');
  if (problem !== undefined) return problem;
  if (!Array.isArray(wakeOn)) {
    return `wakeOn is ${shown(wakeOn)}; expected a list of event patterns such as lock:released, task:* and *`;
  }
  const odd = wakeOn.map((pattern, at) => patternProblem(pattern, `wakeOn[${at}]`)).find((told) => told !== undefined);
  return odd ?? (isAction(onFailure) ? undefined : `onFailure is ${shown(onFailure)}; ${ACTIONS}`);
}

export function conditionProblem(condition: unknown): string | undefined {
  const parsed = parseCondition(condition);
  if (parsed.ok) return undefined;
  return parsed.problems.map(({ path, message }) => `${['condition', ...path].join('.')}: ${message}`).join('; ');
}

const ACTIONS = 'expected "block", "warn", { retry: MILLISECONDS } and { fail: MESSAGE }';

function isAction(value: OnFailure): boolean {
  if (typeof value !== 'object' || value === null) return value === 'block' || value === 'warn';
  return 'retry' in value ? Number.isFinite(value.retry) && value.retry >= 0 : typeof value.fail === 'string';
}
