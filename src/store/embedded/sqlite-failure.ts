/** Translates SQLite's errors into failures for the caller. */
import { Failure, type FailureCode } from '../../failure.ts';
import { sqliteResult } from '../../sqlite/index.ts';
import { type Blocker, blockersOf } from './blockers.ts';

export function busyTooLong(file: string, waitedMs: number, blockers = blockersOf(file)): Failure {
  const known = blockers.filter(({ pid }) => pid !== undefined).slice(0, MOST_NAMED);
  const who = known.length === 0 ? 'another process' : known.map(named).join(' and ');
  const have = known.length > 1 ? 'have' : 'has';
  const how = blockers.length > 0 && blockers.every(({ isReader }) => isReader) ? ' with a read lock' : '';
  const told = `${who} ${have} kept the store busy for ${Math.round(waitedMs)} ms${how}; nothing was changed`;
  return new Failure('unavailable', `${file}: ${[told, ...known.flatMap(helpFor)].join('; ')}`);
}

const MOST_NAMED = 3;

function named({ pid, about }: Blocker): string {
  return `process ${pid}${about === '' ? '' : ` (${about})`}`;
}

function helpFor({ pid, isStopped, isReader }: Blocker): string[] {
  if (isStopped) return [`it is stopped: let it go on (kill -CONT ${pid}) or end it`];
  // Signalbox itself holds such a lock only for a moment.
  return isReader ? [`a read lock of this kind keeps every write out: end that process (kill ${pid})`] : [];
}

/** A `Failure` for an error of SQLite's; returns any other error as it is. */
export function asFailure(error: unknown, file: string): unknown {
  const result = sqliteResult(error);
  if (result === undefined) return error;
  const [code, told] = meaning(result);
  return new Failure(code, `${file}: ${told} (${result}: ${(error as Error).message})`, { cause: error });
}

function meaning(result: string): readonly [FailureCode, string] {
  if (result === 'SQLITE_NOTADB') return ['corrupt', 'this is not a store of signalbox; it was not touched'];
  if (/^SQLITE_(CORRUPT|FORMAT)/.test(result)) {
    return ['corrupt', 'the store is damaged and was left as it is; move it away, or restore it from an export'];
  }
  if (/^SQLITE_(READONLY|PERM|AUTH)/.test(result)) return ['forbidden', 'this process may not write the store'];
  if (result === 'SQLITE_FULL') return ['unavailable', 'the disk is full; nothing was changed'];
  // A write that failed half-way through is rolled back, but whether the last step reached the disk is not known.
  if (result.startsWith('SQLITE_IOERR')) return ['outcome-unknown', 'reading or writing the file failed'];
  return ['unavailable', 'the store could not be used; nothing was changed'];
}
