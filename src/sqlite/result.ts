import { betterSqlite3Result } from './better-sqlite3.ts';
import { nodeSqliteResult } from './node-sqlite.ts';

/** SQLite's result code by its name (`SQLITE_BUSY`), from either driver; undefined for any other error. */
export function sqliteResult(error: unknown): string | undefined {
  return error instanceof Error ? (betterSqlite3Result(error) ?? nodeSqliteResult(error)) : undefined;
}

/** Whether another process is writing, or is just opening or closing the file. */
export function isBusy(error: unknown): boolean {
  const result = sqliteResult(error);
  return result !== undefined && /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(result);
}
