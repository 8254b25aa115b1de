/**
 * Who is writing the file at this moment, where the system tells. One who is stopped in the middle of a write (it takes
 * a SIGSTOP at an unlucky moment) keeps everyone else from writing until it goes on or ends; then its pid is all that
 * helps.
 */
import { readFileSync, statSync } from 'node:fs';
import { readStat } from '../../host/index.ts';

/** The place in the shared memory file that SQLite locks for writing, in WAL mode. */
const WRITE_LOCK = '120';

export interface Writer {
  readonly pid: number;
  readonly isStopped: boolean;
}

export function writerOf(file: string, locks: () => string = readLocks): Writer | undefined {
  try {
    const { ino } = statSync(`${file}-shm`);
    for (const line of locks().split('\n')) {
      // 1: POSIX  ADVISORY  WRITE 4711 08:01:12345 120 120
      const [, , , access, pid = '', place = '', first] = line.trim().split(/\s+/);
      if (access !== 'WRITE' || first !== WRITE_LOCK || place.split(':').at(-1) !== String(ino)) continue;
      return { pid: Number(pid), isStopped: readStat(Number(pid))?.state === 'T' };
    }
  } catch {
    // Only Linux tells.
  }
  return undefined;
}

function readLocks(): string {
  return readFileSync('/proc/locks', 'latin1');
}
