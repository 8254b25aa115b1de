/** The guards of a phase: a condition, a guard, or a list of them. */
import { given } from '../given.ts';
import { conditionKeys, parseCondition } from '../guard/parse.ts';
import type { Condition } from '../guard/condition.ts';
import type { Guard, OnFailure } from '../guard/guard.ts';
import { isRecord, name, type Path } from '../shape.ts';
import { shown } from '../shown.ts';
import { MOST_ITEMS, present, type Read, type Reading, shaped } from './reading.ts';
import { onFailure, wakeOn } from './settings.ts';

/** The settings of the phase, for guards without their own. */
export interface GuardDefaults {
  readonly onFailure?: OnFailure;
  readonly wakeOn?: readonly string[];
}

/** A guard, and where it was written. */
export interface PlacedGuard {
  readonly guard: Guard;
  readonly at: Path;
}

const GUARD = 'a condition such as {lockFree: main}, a guard {id, condition, onFailure, wakeOn}, or a list of them';
const BESIDES = ['id', 'onFailure', 'wakeOn'];

/** `prefix` begins the ids of guards that have none: `PHASE.pre`, then `PHASE.pre.2` and so on by their place. */
export function guards(prefix: string, defaults: GuardDefaults): Read<readonly PlacedGuard[]> {
  return (reading, value, path) => {
    const one = (item: unknown, at: Path, place: number): PlacedGuard | undefined => {
      const guard = guardOf(reading, item, at, place === 0 ? prefix : `${prefix}.${place + 1}`, defaults);
      return guard && { guard, at };
    };
    if (isRecord(value)) return present([one(value, path, 0)]);
    if (!Array.isArray(value)) return reading.unaccepted(value, path, GUARD);
    if (value.length > MOST_ITEMS) {
      return reading.refuse(path, `${value.length} guards are too many; expected at most ${MOST_ITEMS}`);
    }
    return present(Array.from(value, (item, place) => one(item, [...path, place], place)));
  };
}

export function guardOf(
  reading: Reading,
  value: unknown,
  path: Path,
  id: string,
  defaults: GuardDefaults,
): Guard | undefined {
  const isGuard = isRecord(value) && ['condition', ...BESIDES].some((key) => Object.hasOwn(value, key));
  if (!isGuard) {
    const condition = conditionOf(reading, value, path);
    return condition && { id, condition, ...defaults };
  }
  const beside = Object.keys(value).find((key) => conditionKeys.includes(key));
  if (beside !== undefined && !Object.hasOwn(value, 'condition')) {
    return reading.refuse(
      [...path, beside],
      `${shown(beside)} is next to ${shown(BESIDES.find((key) => Object.hasOwn(value, key)))}; expected {condition: {${beside}: …}, …}`,
    );
  }
  const fields = reading.fields(value, path, ['condition'], BESIDES);
  if (fields === undefined) return undefined;
  const own = given({
    id: reading.field(fields, 'id', path, shaped<string>(name)),
    onFailure: reading.field(fields, 'onFailure', path, onFailure),
    wakeOn: reading.field(fields, 'wakeOn', path, wakeOn),
  });
  const condition = reading.field(fields, 'condition', path, conditionOf);
  return condition && { id, condition, ...defaults, ...own };
}

function conditionOf(reading: Reading, value: unknown, path: Path): Condition | undefined {
  const parsed = parseCondition(value);
  if (parsed.ok) return parsed.condition;
  for (const problem of parsed.problems) reading.refuse([...path, ...problem.path], problem.message);
  return undefined;
}
