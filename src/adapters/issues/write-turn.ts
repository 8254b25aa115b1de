/**
 * One writer at a time for a file, among all processes of the machine: by SQLite's lock on an empty file beside it. The
 * kernel gives it up when its holder dies, however it dies, so that nobody ever has to judge whether a lock is stale;
 * two who judge so at once would both take it.
 */
import { Failure } from '../../failure.ts';
import { type Database, isBusy, sqliteDriver } from '../../sqlite/index.ts';
import { pause } from '../pause.ts';

/** A turn takes some milliseconds. */
const PATIENCE_MS = 30_000;
const LONGEST_PAUSE_MS = 20;

export async function withTurn<T>(file: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const lock = sqliteDriver().open(`${file}.lock`);
  try {
    for (const until = performance.now() + PATIENCE_MS; !isTaken(lock);) {
      if (performance.now() > until)
        throw new Failure('unavailable', `${file}: others have been writing to it for ${PATIENCE_MS} ms`);
      // Not in step with the others who wait.
      await pause(1 + Math.random() * LONGEST_PAUSE_MS, signal);
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
