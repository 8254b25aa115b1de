/** Reports the keys that a command skipped because their values cannot be read. */
import type { Malformed } from '../runtime/stored.ts';
import { complain, printable } from './output.ts';

const MOST_TOLD = 5;

/** Printed on stderr for people: without it, an incomplete answer would look complete. */
export function warnOf(malformed: readonly Malformed[]): void {
  for (const { why } of malformed.slice(0, MOST_TOLD)) complain(`signalbox: skipped: ${printable(why)}`);
  const more = malformed.length - MOST_TOLD;
  if (more > 0) complain(`signalbox: skipped ${more} more keys that cannot be read; signalbox doctor lists them`);
}
