/** How long to pause before the next attempt: the one place that says so. */

const FIRST_MS = 20;
const LONGEST_MS = 1000;

/** `failures`: how often in a row it has failed, from 0 on. */
export function backoffMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** failures, LONGEST_MS);
}
