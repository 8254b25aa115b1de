/** Parses arguments and options. commander reports a mistake together with the option it was in. */
import { InvalidArgumentError } from 'commander';
import { nameProblem } from '../core/index.ts';
import { shown } from '../failure.ts';
import { parseDuration, SHORTEST_TTL_MS } from './duration.ts';

export interface ResourceArgument {
  readonly kind: 'lock' | 'semaphore';
  readonly name: string;
}

/** `lock/NAME`, `semaphore/NAME` or `sem/NAME`; a plain NAME is the lock and the semaphore of that name. */
export function resourceArgument(text: string): ResourceArgument | { readonly kind: undefined; readonly name: string } {
  const [, kind, name] = /^(lock|sem|semaphore)\/(.+)$/s.exec(text) ?? [];
  const problem = nameProblem(name ?? text);
  if (problem !== undefined) throw new InvalidArgumentError(`${problem}. Expected NAME, lock/NAME or semaphore/NAME.`);
  if (kind === undefined || name === undefined) return { kind: undefined, name: text };
  return { kind: kind === 'lock' ? 'lock' : 'semaphore', name };
}

export function durationArgument(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? `${error.message}.` : '');
  }
}

/** The time of a lease, or the limit of a hold. */
export function limitArgument(text: string): number {
  const ms = durationArgument(text);
  if (ms < SHORTEST_TTL_MS) throw new InvalidArgumentError(`It is too short; expected ${SHORTEST_TTL_MS}ms and more.`);
  return ms;
}

/** Checks only that it is a whole number; the library checks which numbers it accepts. */
export function numberArgument(text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(number)) {
    throw new InvalidArgumentError(`${shown(text)} is not a whole number.`);
  }
  return number;
}

/** Drops the options that were not given: the library treats `undefined` and absent differently. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
