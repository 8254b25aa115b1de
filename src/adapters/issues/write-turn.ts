/**
 * One writer at a time for a file, among all processes of the machine: by SQLite's lock on an empty file beside it. The
 * kernel gives it up when its holder dies, however it dies, so that nobody ever has to judge whether a lock is stale;
 * two who judge so at once would both take it.
 */
import { createRequire } from 'node:module';
import { Failure } from '../../failure.ts';
import { pause } from '../pause.ts';

/** A turn takes some milliseconds. */
const PATIENCE_MS = 30_000;
const LONGEST_PAUSE_MS = 20;

export async function withTurn<T>(file: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const { default: Database } = await import('better-sqlite3');
  const nativeBinding = createRequire(import.meta.url).resolve('better-sqlite3/build/Release/better_sqlite3.node');
  const lock = new Database(`${file}.lock`, { timeout: 0, nativeBinding });
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

function isTaken(lock: { exec(sql: string): unknown }): boolean {
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if ((error as { readonly code?: string }).code === 'SQLITE_BUSY') return false;
    throw error;
  }
}
