/** Keys of the store that a command has passed over, because what they hold cannot be read. */
import type { Malformed } from '../runtime/stored.ts';
import { complain, printable } from './output.ts';

const MOST_TOLD = 5;

/** For people, on stderr: without this, an answer that leaves something out would look whole. */
export function warnOf(malformed: readonly Malformed[]): void {
  for (const { why } of malformed.slice(0, MOST_TOLD)) complain(`signalbox: passed over: ${printable(why)}`);
  const more = malformed.length - MOST_TOLD;
  if (more > 0) complain(`signalbox: passed over ${more} more keys that cannot be read; signalbox doctor lists them`);
}
