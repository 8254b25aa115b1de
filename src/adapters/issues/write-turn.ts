/**
 * Lets one process of the machine write to a file at a time, by SQLite's lock on an empty file beside it. The kernel
 * releases that lock when its holder dies, however it dies, so no process has to judge whether a lock is stale: two
 * processes that did so at once would both take it.
 */
import { pause, systemClock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { type Database, isBusy, sqliteDriver } from '../../sqlite/index.ts';

/** A turn takes some milliseconds, so a process that waits this long gives up. */
const LONGEST_WAIT_MS = 30_000;
const LONGEST_PAUSE_MS = 20;

export async function withTurn<T>(file: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const lock = sqliteDriver().open(`${file}.lock`);
  try {
    for (const until = systemClock.monotonic() + LONGEST_WAIT_MS; !isTaken(lock);) {
      if (systemClock.monotonic() > until)
        throw new Failure(
          'unavailable',
          `${file}: other processes have been writing to it for ${LONGEST_WAIT_MS} ms; try again`,
        );
      // Random, so that waiting processes do not move in step.
      await pause(1 + Math.random() * LONGEST_PAUSE_MS, signal);
      signal?.throwIfAborted();
    }
    return await work();
  } finally {
    lock.close();
  }
}

function isTaken(lock: Database): boolean {
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}
