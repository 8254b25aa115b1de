/** What SQLite's errors mean for whoever asked. */
import { Failure, type FailureCode } from '../../failure.ts';
import { writerOf } from './writer.ts';

interface SqliteError extends Error {
  readonly code: string;
}

function isSqliteError(error: unknown): error is SqliteError {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('SQLITE_')
  );
}

/** Another process is writing, or is just opening or closing the file. */
export function isBusy(error: unknown): boolean {
  return isSqliteError(error) && /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(error.code);
}

export function busyTooLong(file: string, waitedMs: number): Failure {
  const told = `has kept the store busy for ${Math.round(waitedMs)} ms; nothing was changed`;
  const writer = writerOf(file);
  if (writer === undefined) return new Failure('unavailable', `${file}: another process ${told}`);
  const { pid, isStopped } = writer;
  const help = isStopped ? `; it is stopped: let it go on (kill -CONT ${pid}) or end it` : '';
  return new Failure('unavailable', `${file}: process ${pid} ${told}${help}`);
}

/** A `Failure` for an error of SQLite's; any other error is answered as it is. */
export function asFailure(error: unknown, file: string): unknown {
  if (!isSqliteError(error)) return error;
  const [code, told] = meaning(error.code);
  return new Failure(code, `${file}: ${told} (${error.code}: ${error.message})`, { cause: error });
}

function meaning(code: string): readonly [FailureCode, string] {
  if (/^SQLITE_(CORRUPT|NOTADB|FORMAT)/.test(code)) {
    return ['corrupt', 'the store is damaged and was left as it is; move it away, or restore it from an export'];
  }
  if (/^SQLITE_(READONLY|PERM|AUTH)/.test(code)) return ['forbidden', 'this process may not write the store'];
  if (code === 'SQLITE_FULL') return ['unavailable', 'the disk is full; nothing was changed'];
  // A write that failed half-way through is rolled back, but whether the last step reached the disk is not known.
  if (code.startsWith('SQLITE_IOERR')) return ['outcome-unknown', 'reading or writing the file failed'];
  return ['unavailable', 'the store could not be used; nothing was changed'];
}
