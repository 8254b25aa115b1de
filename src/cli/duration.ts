/** Durations on the command line. */
import { DURATIONS, durationMs, LONGEST_MS } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';

/** A lease that is shorter could end between two renewals of a busy process. */
export const SHORTEST_TTL_MS = 100;

/** In milliseconds. */
export function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined) throw new Failure('invalid', `${shown(text)} is not a duration; expected ${DURATIONS}`);
  if (ms > LONGEST_MS) throw new Failure('invalid', `${shown(text)} is longer than a hundred years`);
  return ms;
}
