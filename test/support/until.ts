/** Waiting for what no event tells of. */
import { setTimeout as sleep } from 'node:timers/promises';

/** The pause between looks that take a process each: without one, they take the processor from what they wait for. */
export const BETWEEN_PROCESSES_MS = 200;

/** Looks again until it is so. */
export async function until(isSo: () => unknown, pauseMs = 10): Promise<void> {
  while ((await isSo()) !== true) await sleep(pauseMs);
}
