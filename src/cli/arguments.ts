/** Parses arguments and options. What is thrown here goes on after `--ttl is "5q"; `. */
import { InvalidArgumentError } from 'commander';
import { nameProblem } from '../core/index.ts';
import { parseDuration, SHORTEST_TTL_MS } from './duration.ts';

export { given } from '../core/given.ts';

/** As `nameProblem` accepts them. */
export const NAMES = '1 to 200 printable characters';

export interface ResourceArgument {
  readonly kind: 'lock' | 'semaphore';
  readonly name: string;
}

/** Without a kind: the lock and the semaphore of that name. */
export type NamedResource = ResourceArgument | { readonly kind: undefined; readonly name: string };

/** `lock/NAME`, `semaphore/NAME` or `sem/NAME`; a plain NAME is the lock and the semaphore of that name. */
export function resourceArgument(text: string): NamedResource {
  const [, kind, name] = /^(lock|sem|semaphore)\/(.+)$/s.exec(text) ?? [];
  if (nameProblem(name ?? text) !== undefined) {
    throw new InvalidArgumentError(`expected NAME, lock/NAME or semaphore/NAME; NAME has ${NAMES}`);
  }
  if (kind === undefined || name === undefined) return { kind: undefined, name: text };
  return { kind: kind === 'lock' ? 'lock' : 'semaphore', name };
}

export function durationArgument(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

/** The time of a lease, or the limit of a hold. */
export function limitArgument(text: string): number {
  const ms = durationArgument(text);
  if (ms < SHORTEST_TTL_MS) throw new InvalidArgumentError(`expected at least ${SHORTEST_TTL_MS}ms`);
  return ms;
}

/** Checks only that it is a whole number; the library checks which numbers it accepts. */
export function numberArgument(text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(number)) {
    throw new InvalidArgumentError('expected a whole number');
  }
  return number;
}

/** What happens to a command whose hold is lost. */
export const ON_LOST = ['term', 'kill', 'warn'] as const;
export type OnLost = (typeof ON_LOST)[number];

export function onLostArgument(text: string): OnLost {
  const known = ON_LOST.find((one) => one === text);
  if (known === undefined) throw new InvalidArgumentError(`expected ${ON_LOST.join(', ')}`);
  return known;
}

export function portArgument(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port < 65_536) return port;
  throw new InvalidArgumentError('expected a port, from 0 to 65535');
}
