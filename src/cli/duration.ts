/** Durations on the command line. */
import { DURATIONS, durationMs, LONGEST_MS } from '../core/index.ts';
import { Failure } from '../failure.ts';

/** A lease that is shorter could end between two renewals of a busy process. */
export const SHORTEST_TTL_MS = 100;

/** In milliseconds. What it throws goes on after `--ttl is "5q"; `. */
export function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined) throw new Failure('invalid', `expected ${DURATIONS}`);
  if (ms > LONGEST_MS) throw new Failure('invalid', 'expected at most a hundred years');
  return ms;
}
