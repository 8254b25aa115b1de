/** Arguments and options as text, made into what they mean; a mistake is told together with the option it was in. */
import { InvalidArgumentError } from 'commander';
import { shown } from '../failure.ts';
import { parseDuration } from './duration.ts';

export interface ResourceArgument {
  readonly kind: 'lock' | 'semaphore';
  readonly name: string;
}

/** `lock/NAME`, `semaphore/NAME` or `sem/NAME`. */
export function resourceArgument(text: string): ResourceArgument {
  const [, kind, name] = /^(lock|sem|semaphore)\/(.+)$/s.exec(text) ?? [];
  if (kind === undefined || name === undefined) {
    throw new InvalidArgumentError('Accepted is lock/NAME or semaphore/NAME.');
  }
  return { kind: kind === 'lock' ? 'lock' : 'semaphore', name };
}

export function durationArgument(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? `${error.message}.` : '');
  }
}

/** Which numbers are accepted is checked where they are used; here only that it is one. */
export function numberArgument(text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(number)) {
    throw new InvalidArgumentError(`${shown(text)} is no whole number.`);
  }
  return number;
}

/** What was given, without what was not: libraries tell the two apart. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
