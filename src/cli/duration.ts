/** Durations on the command line. */
import { DURATIONS, durationMs, LONGEST_MS } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';

/** In milliseconds. */
export function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined) throw new Failure('invalid', `${shown(text)} is not a duration; expected ${DURATIONS}`);
  if (ms > LONGEST_MS) throw new Failure('invalid', `${shown(text)} is longer than a hundred years`);
  return ms;
}
