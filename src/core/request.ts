/** Checks whether a request makes sense, whatever the state. Every entry point calls it once. */
import { nameProblem } from './name.ts';
import { shown } from './shown.ts';
import { bytesIn } from './utf8.ts';

export const LOWEST_PRIORITY = -100;
export const HIGHEST_PRIORITY = 100;
export const LARGEST_METADATA_BYTES = 64 * 1024;

/** Beyond it nobody could read the value, and functions that walk it would run out of stack. */
const DEEPEST_METADATA = 100;

/** Every field that is present is checked. Input can be anything, so every field is `unknown`. */
export interface Asked {
  readonly id?: unknown;
  readonly holder?: unknown;
  readonly lease?: unknown;
  readonly priority?: unknown;
  readonly mode?: unknown;
  readonly weight?: unknown;
  readonly capacity?: unknown;
  readonly token?: unknown;
  readonly ttlMs?: unknown;
  readonly ticketMs?: unknown;
  readonly pid?: unknown;
  readonly maxHoldMs?: unknown;
  /** How long the caller is willing to wait; zero is not at all. */
  readonly waitMs?: unknown;
  readonly wait?: unknown;
  readonly onStale?: unknown;
  readonly reason?: unknown;
  readonly metadata?: unknown;
  readonly within?: unknown;
}

/** What is wrong with a request, where, and what is accepted; undefined if nothing is. Required fields must be present. */
export function requestProblem(asked: Asked, required: readonly (keyof Asked)[] = []): string | undefined {
  // A plain loop, for speed: a process that is handed a lock runs it on the record and on every ticket that it reads.
  for (let place = 0; place < FIELDS.length; place++) {
    const field = FIELDS[place] as keyof Asked;
    if (asked[field] === undefined && !required.includes(field)) continue;
    const problem = fieldProblem(field, asked[field]);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** What is wrong with one field, which must be present; undefined if nothing is. */
export function fieldProblem(field: keyof Asked, value: unknown): string | undefined {
  return CHECKS[field](value, field);
}

type Check = (value: unknown, what: string) => string | undefined;

const CHECKS: Readonly<Record<keyof Asked, Check>> = {
  id: nameProblem,
  holder: nameProblem,
  lease: nameProblem,
  priority: whole(LOWEST_PRIORITY, HIGHEST_PRIORITY),
  mode: oneOf('exclusive', 'shared'),
  weight: whole(1, Number.MAX_SAFE_INTEGER),
  capacity: whole(1, Number.MAX_SAFE_INTEGER),
  token: whole(1, Number.MAX_SAFE_INTEGER),
  ttlMs: milliseconds(false),
  ticketMs: milliseconds(false),
  pid: whole(1, Number.MAX_SAFE_INTEGER),
  maxHoldMs: milliseconds(false),
  waitMs: milliseconds(true),
  wait: oneOf(true, false),
  onStale: oneOf('reclaim', 'alert'),
  reason: textProblem,
  metadata: (value, what) => documentProblem(value, what, LARGEST_METADATA_BYTES),
  within: namesProblem,
};
const FIELDS = Object.keys(CHECKS) as readonly (keyof Asked)[];

function whole(least: number, most: number): Check {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return (value, what) => {
    const fits = Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
    return fits ? undefined : `${what} is ${shown(value)}; expected a whole number ${range}`;
  };
}

function milliseconds(zero: boolean): Check {
  return (value, what) => {
    const fits = typeof value === 'number' && Number.isFinite(value) && (value > 0 || (zero && value === 0));
    if (fits) return undefined;
    return `${what} is ${shown(value)}; expected a number of milliseconds ${zero ? 'that is not negative' : 'above zero'}`;
  };
}

function oneOf(...accepted: readonly (string | boolean)[]): Check {
  return (value, what) =>
    accepted.some((one) => one === value)
      ? undefined
      : `${what} is ${shown(value)}; expected ${accepted.map(shown).join(' or ')}`;
}

/** A reason is kept and sent around with the metadata, so the same limit holds. */
function textProblem(value: unknown, what: string): string | undefined {
  if (typeof value !== 'string') return `${what} is ${shown(value)}, not a string`;
  return sizeProblem(value, what);
}

function namesProblem(value: unknown, what: string): string | undefined {
  if (!Array.isArray(value)) return `${what} is ${shown(value)}, not a list of holders`;
  return firstProblem(value, (name) => nameProblem(name, what));
}

/** What is wrong with a value that is to be stored as JSON, within a limit in bytes; undefined if nothing is. */
export function documentProblem(value: unknown, what: string, largest: number): string | undefined {
  const bytes = { left: largest };
  const found = jsonProblem(value, what, 0, bytes);
  if (found !== undefined) return found;
  return bytes.left < 0 ? tooLarge(what, `more than ${largest}`, largest) : sizeProblem(value, what, largest);
}

/**
 * Finds what JSON would silently leave out or turn into something else. Every value costs at least one byte, so the walk gives
 * up early on what is much too large: a small value that contains itself many times over would never end.
 */
function jsonProblem(value: unknown, where: string, depth: number, bytes: { left: number }): string | undefined {
  bytes.left -= 1;
  if (bytes.left < 0) return undefined;
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value))
    return undefined;
  if (typeof value !== 'object') return `${where} is ${shown(value)}, which JSON cannot express`;
  if (depth === DEEPEST_METADATA) return `${where} is nested more than ${DEEPEST_METADATA} deep, or in itself`;
  if (Array.isArray(value)) {
    return firstProblem(value.keys(), (index) => jsonProblem(value[index], `${where}[${index}]`, depth + 1, bytes));
  }
  if (!isPlain(value)) return `${where} is a ${value.constructor?.name ?? 'class instance'}; expected plain JSON`;
  return firstProblem(Object.entries(value), ([key, child]) =>
    child === undefined ? undefined : jsonProblem(child, `${where}.${key}`, depth + 1, bytes),
  );
}

function firstProblem<T>(items: Iterable<T>, problem: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = problem(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether it is a plain object, also one from another realm, whose `Object` is not ours. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function sizeProblem(value: unknown, what: string, largest = LARGEST_METADATA_BYTES): string | undefined {
  const bytes = bytesIn(JSON.stringify(value));
  return bytes > largest ? tooLarge(what, String(bytes), largest) : undefined;
}

function tooLarge(what: string, bytes: string, largest: number): string {
  return `${what} has ${bytes} bytes as JSON; expected at most ${largest} (${largest / 1024} KiB)`;
}
