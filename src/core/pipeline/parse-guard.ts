/** A guard on its own, as people write it: a condition, or an object with a condition in it. */
import type { Guard } from '../guard/guard.ts';
import { isRecord, type Problem, unaccepted } from '../shape.ts';
import { guardOf } from './guards.ts';
import { Reading } from './reading.ts';

export type ParsedGuard =
  | { readonly ok: true; readonly guard: Guard }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const LIST = 'one condition: {all: [ … ]} if all of these must hold, {any: [ … ]} if one is enough';
const GUARD = 'a condition such as {lockFree: main}, or a guard {id, condition, onFailure, wakeOn}';

/** `id`: for a guard that has none. Never throws on anything that JSON or YAML can say. */
export function parseGuard(value: unknown, id: string): ParsedGuard {
  if (Array.isArray(value))
    return { ok: false, problems: [{ path: [], message: `the guard is a list of ${value.length}; expected ${LIST}` }] };
  if (!isRecord(value)) return { ok: false, problems: [unaccepted(value, [], GUARD, 'the guard')] };
  const reading = new Reading('text');
  const guard = guardOf(reading, value, [], id, {});
  if (guard === undefined || reading.problems.length > 0) return { ok: false, problems: reading.problems };
  return { ok: true, guard };
}
