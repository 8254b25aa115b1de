/** What is wrong with a guard that a program made; what people write is read by `parse.ts`. */
import { nameProblem } from '../name.ts';
import { shown } from '../shown.ts';
import type { Guard, OnFailure } from './guard.ts';
import { parseCondition } from './parse.ts';

/** Undefined if nothing is. */
export function guardProblem({ id, condition, onFailure = 'block', wakeOn = [] }: Guard): string | undefined {
  const parsed = parseCondition(condition);
  if (!parsed.ok)
    return parsed.problems.map(({ path, message }) => `condition.${path.join('.')}: ${message}`).join('; ');
  if (!Array.isArray(wakeOn) || wakeOn.some((pattern) => typeof pattern !== 'string')) {
    return `wakeOn is ${shown(wakeOn)}; accepted is a list of event patterns such as lock:released, task:* and *`;
  }
  return nameProblem(id, 'id') ?? (isAction(onFailure) ? undefined : `onFailure is ${shown(onFailure)}; ${ACTIONS}`);
}

const ACTIONS = 'accepted are "block", "warn", { retry: MILLISECONDS } and { fail: MESSAGE }';

function isAction(value: OnFailure): boolean {
  if (typeof value !== 'object' || value === null) return value === 'block' || value === 'warn';
  return 'retry' in value ? Number.isFinite(value.retry) && value.retry >= 0 : typeof value.fail === 'string';
}
