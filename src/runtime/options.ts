/** Checks options of callers without types: a misspelt option must not pass for one that was left out. */
import { nameProblem, requestProblem } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import { STRATEGIES, type Strategy } from '../core/strategy.ts';

const WAIT = ['waitMs', 'signal', 'onWaiting'];
/** The options of a request for several resources at once: the others belong to each resource, or do not exist for several. */
const TOGETHER = ['holder', 'priority', 'reason', 'metadata', 'sensitive', 'within', ...WAIT];
const SINGLE = [...TOGETHER, 'maxHoldMs', 'strategy'];
const KNOWN = {
  together: TOGETHER,
  lock: [...SINGLE, 'mode'],
  semaphore: [...SINGLE, 'weight'],
  detached: [...SINGLE, 'mode', 'weight', 'ttlMs', 'ticketMs', 'pid'],
} as const;

/** What is wrong with the options of a request of this kind; undefined if nothing is. */
export function optionsProblem(options: unknown, kind: keyof typeof KNOWN): string | undefined {
  const shape = shapeProblem(options, KNOWN[kind]);
  if (shape !== undefined) return shape;
  const { strategy, reason, sensitive, signal, onWaiting } = options as Readonly<Record<string, unknown>>;
  if (strategy !== undefined && !STRATEGIES.includes(strategy as Strategy)) {
    return `strategy is ${shown(strategy)}; expected ${STRATEGIES.map(shown).join(' or ')}`;
  }
  if (strategy === 'force' && (reason ?? '') === '') return 'strategy is "force", which has to give a reason';
  if (sensitive !== undefined && typeof sensitive !== 'boolean')
    return `sensitive is ${shown(sensitive)}; expected true or false`;
  if (signal !== undefined && !(signal instanceof AbortSignal)) return `signal is ${shown(signal)}, not an AbortSignal`;
  if (onWaiting !== undefined && typeof onWaiting !== 'function') {
    return `onWaiting is ${shown(onWaiting)}, not a function`;
  }
  // The weight is not checked here: the machine refuses an impossible weight, as it does one that is too large.
  return requestProblem({ ...(options as object), weight: undefined });
}

/** The problem of a value that is no object, or has an unknown option. */
export function shapeProblem(options: unknown, known: readonly string[]): string | undefined {
  if (typeof options !== 'object' || options === null) return `the options are ${shown(options)}, not an object`;
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  return unknown === undefined ? undefined : `${shown(unknown)} is not an option; there are ${known.join(', ')}`;
}

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
