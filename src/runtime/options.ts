/** Checks options of callers without types: a misspelt option must not pass for one that was left out. */
import { shapeProblem, nameProblem } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';

/** The check of an option's value, and the words that say what is accepted. */
export interface Accepted {
  readonly words: string;
  readonly fits: (value: unknown) => boolean;
}

export const anything: Accepted = { words: 'anything', fits: () => true };
export const flag: Accepted = { words: 'true or false', fits: (value) => typeof value === 'boolean' };
export const text: Accepted = { words: 'text', fits: (value) => typeof value === 'string' };
export const shortText: Accepted = {
  words: 'text of 1 to 200 characters',
  fits: (value) => typeof value === 'string' && value.length > 0 && value.length <= 200,
};
export const aFunction: Accepted = { words: 'a function', fits: (value) => typeof value === 'function' };
export const anObject: Accepted = { words: 'an object', fits: (value) => typeof value === 'object' && value !== null };
export const aMap: Accepted = { words: 'a Map', fits: (value) => value instanceof Map };
export const aName: Accepted = {
  words: 'a name of 1 to 200 printable characters',
  fits: (value) => nameProblem(value) === undefined,
};
export const aHolder: Accepted = {
  words: `${aName.words}, or a list of them`,
  fits: (value) => (Array.isArray(value) ? value : [value]).every((one) => aName.fits(one)),
};
export const abortSignal: Accepted = { words: 'an AbortSignal', fits: (value) => value instanceof AbortSignal };
export const milliseconds: Accepted = {
  words: 'a number of milliseconds above zero',
  fits: (value) => Number.isFinite(value) && (value as number) > 0,
};
/** With so short a session, a process that has nothing to do renews in time; one that runs a long step does not. */
const SHORTEST_SESSION_MS = 100;
export const sessionTime: Accepted = {
  words: `a number of milliseconds from ${SHORTEST_SESSION_MS} on`,
  fits: (value) => Number.isFinite(value) && (value as number) >= SHORTEST_SESSION_MS,
};
export const millisecondsFromZero: Accepted = {
  words: 'a number of milliseconds that is not negative',
  fits: (value) => Number.isFinite(value) && (value as number) >= 0,
};
export const wholeNumber: Accepted = {
  words: 'a whole number of at least 1',
  fits: (value) => Number.isSafeInteger(value) && (value as number) >= 1,
};
export const wholeNumberFromZero: Accepted = {
  words: 'a whole number of at least 0',
  fits: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
};

/** Who does something; for the witness and for people. */
export interface Doer {
  /** Its name; this process, if not given. */
  readonly by?: string;
}

/** Accepts one of a few words, and refuses anything else. */
export function oneOf(words: readonly unknown[]): Accepted {
  return { words: words.map(shown).join(' or '), fits: (value) => words.includes(value) };
}

/** What is wrong with the names or the values of options; undefined if nothing is. An option may be undefined. */
export function valuesProblem(options: unknown, accepted: Readonly<Record<string, Accepted>>): string | undefined {
  const shape = shapeProblem(options, Object.keys(accepted));
  if (shape !== undefined) return shape;
  for (const [name, value] of Object.entries(options as object) as [string, unknown][]) {
    const { words, fits } = accepted[name] as Accepted;
    if (value !== undefined && !fits(value)) return `${name} is ${shown(value)}; expected ${words}`;
  }
  return undefined;
}

export function refuseWrongValues(options: unknown, accepted: Readonly<Record<string, Accepted>>): void {
  const problem = valuesProblem(options, accepted);
  if (problem !== undefined) throw new Failure('invalid', problem);
}

export function refuseUnlessFunction(what: string, given: unknown): void {
  if (typeof given !== 'function') throw new Failure('invalid', `${what} is ${shown(given)}, not a function`);
}
