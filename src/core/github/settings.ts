/** The settings of a lock manager, and what is wrong with them. */
import { shown } from '../shown.ts';

export interface Settings {
  readonly maxRetries: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly heartbeatIntervalMs: number;
  readonly lockTimeoutMs: number;
}

/** Dates on GitHub are in whole seconds; a shorter timeout would be mostly rounding. */
const SHORTEST_TIMEOUT_MS = 10_000;
const LONGEST_MS = 7 * 24 * 3_600_000;
const MOST_RETRIES = 1_000;

/** What is wrong with the settings; undefined if nothing is. */
export function problemIn(settings: Settings): string | undefined {
  const { maxRetries, initialBackoffMs, maxBackoffMs, heartbeatIntervalMs, lockTimeoutMs } = settings;
  if (!Number.isSafeInteger(maxRetries) || maxRetries < 0 || maxRetries > MOST_RETRIES)
    return `maxRetries is ${shown(maxRetries)}; expected a whole number from 0 to ${MOST_RETRIES}`;
  const times = { initialBackoffMs, maxBackoffMs, heartbeatIntervalMs, lockTimeoutMs };
  for (const [name, ms] of Object.entries(times)) {
    if (typeof ms !== 'number' || !Number.isFinite(ms) || ms <= 0 || ms > LONGEST_MS)
      return `${name} is ${shown(ms)}; expected a time in milliseconds, above 0 and up to seven days`;
  }
  if (initialBackoffMs > maxBackoffMs)
    return `initialBackoffMs (${initialBackoffMs}) is above maxBackoffMs (${maxBackoffMs})`;
  if (lockTimeoutMs < SHORTEST_TIMEOUT_MS)
    return `lockTimeoutMs is ${lockTimeoutMs}; expected ${SHORTEST_TIMEOUT_MS} and more`;
  if (heartbeatIntervalMs >= lockTimeoutMs / 3)
    return `heartbeatIntervalMs (${heartbeatIntervalMs}) has to be below a third of lockTimeoutMs (${lockTimeoutMs}): otherwise two lost heartbeats lose the lock`;
  return undefined;
}
