/** Shapes: what a piece of unknown JSON must look like, and the message if it does not. */
import { nameProblem } from './name.ts';
import { nearest } from './nearest.ts';
import { shown } from './shown.ts';

export type Path = readonly (string | number)[];

export interface Problem {
  /** From the outside in: `['all', 1, 'branchMerged', 'into']`. */
  readonly path: Path;
  /** Shows the offending value and what is accepted. */
  readonly message: string;
}

/** Everything that is wrong with the value; nothing if it fits. */
export type Shape = (value: unknown, path: Path) => readonly Problem[];

export const name: Shape = (value, path) => {
  const message = nameProblem(value, nounOf(path));
  return message === undefined ? [] : [{ path, message }];
};

export const positiveInteger = scalar(
  'a whole number of at least 1',
  (value) => Number.isSafeInteger(value) && (value as number) >= 1,
);

export const boolean = scalar('true or false', (value) => typeof value === 'boolean');

export function text(what: string, least: number, most: number): Shape {
  return scalar(
    `${what} of ${least} to ${most} characters without NUL`,
    (value) => typeof value === 'string' && value.length >= least && value.length <= most && !value.includes('\0'),
  );
}

export function oneOf(words: readonly string[]): Shape {
  return scalar(words.map(shown).join(' or '), (value) => words.includes(value as string));
}

export function scalar(accepted: string, fits: (value: unknown) => boolean): Shape {
  return (value, path) => (fits(value) ? [] : [unaccepted(value, path, accepted)]);
}

export function listOf(what: string, item: Shape): Shape {
  return (value, path) =>
    Array.isArray(value) && value.length > 0
      ? Array.from(value).flatMap((each, at) => item(each, [...path, at]))
      : [unaccepted(value, path, `a list of at least one ${what}`)];
}

export function record(required: Readonly<Record<string, Shape>>, optional: Readonly<Record<string, Shape>>): Shape {
  const fields = new Map(Object.entries({ ...required, ...optional }));
  const accepted = [...fields.keys()].join(', ');
  return (value, path) => {
    if (!isRecord(value)) return [unaccepted(value, path, `an object with ${accepted}`)];
    const missing = Object.keys(required).filter((key) => !Object.hasOwn(value, key));
    return [
      ...missing.map((key) => ({ path: [...path, key], message: `${key} is missing; expected ${accepted}` })),
      ...Object.entries(value).flatMap(([key, field]) => {
        const at = [...path, key];
        const shape = fields.get(key);
        if (shape !== undefined) return shape(field, at);
        return [{ path: at, message: unknown(key, [...fields.keys()]) }];
      }),
    ];
  };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object that the text is, as JSON; undefined if it is anything else. */
export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** `whole`: the noun for a value at the top, where the path is empty. */
export function unaccepted(value: unknown, path: Path, accepted: string, whole?: string): Problem {
  return { path, message: `${nounOf(path, whole)} is ${shown(value)}; expected ${accepted}` };
}

/** `"holdr" is unknown here; did you mean holder? Expected name, holder`. */
export function unknown(key: string, accepted: readonly string[], what = 'is unknown here'): string {
  const meant = nearest(key, accepted);
  const all = accepted.join(', ');
  return `${shown(key)} ${what}; ${meant === undefined ? `expected ${all}` : `did you mean ${meant}? Expected ${all}`}`;
}

/** `into` for `['branchMerged', 'into']`, `ids[1]` for `['ids', 1]`. */
function nounOf(path: Path, whole = 'condition'): string {
  const last = path.at(-1) ?? whole;
  return typeof last === 'number' ? `${path.at(-2)}[${last}]` : last;
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Whether a time can be shown as a date: beyond this range there are no dates. */
export function isTime(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= 8.64e15;
}

/** The problem of a value that is no object, or has an unknown option. */
export function shapeProblem(options: unknown, known: readonly string[]): string | undefined {
  if (typeof options !== 'object' || options === null) return `the options are ${shown(options)}, not an object`;
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  return unknown === undefined ? undefined : `${shown(unknown)} is not an option; there are ${known.join(', ')}`;
}
