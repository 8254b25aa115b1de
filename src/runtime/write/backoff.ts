/** The pause before the next attempt. Every retry of the runtime takes it from here. */

const FIRST_MS = 20;
const LONGEST_MS = 1000;

/** `failures`: how many attempts have failed in a row before this one. */
export function backoffMs(failures: number, longestMs = LONGEST_MS): number {
  return Math.min(FIRST_MS * 2 ** failures, longestMs);
}
