/**
 * The driver on `better-sqlite3`, for a Node whose own SQLite is missing or not good enough. The package is not a
 * dependency (docs/decisions/0018): users install it, and the error says how.
 */
import { createRequire } from 'node:module';
import type Sqlite from 'better-sqlite3';
import type { Database, OpenOptions, SqliteDriver, Statement } from './driver.ts';
import { installCommand, rebuildCommand } from './remedy.ts';
import { SqliteMissing } from './sqlite-missing.ts';

type Open = new (file: string, options: Sqlite.Options) => Sqlite.Database;

/** From this version on it needs Node 22, and crashes the process in Node 20 instead of refusing. */
const FIRST_FOR_NODE_22 = 13;

export function loadBetterSqlite3(): SqliteDriver {
  const require = createRequire(import.meta.url);
  const version = installedVersion(require);
  const isForNode22 = major(version) >= FIRST_FOR_NODE_22;
  if (isForNode22 && major(process.versions.node) < 22) {
    throw new SqliteMissing(`better-sqlite3 ${version} would crash Node ${process.version}`, installCommand());
  }
  // Left to itself, version 12 tries a dozen places at every start.
  const nativeBinding = isForNode22 ? undefined : nativePart(require);
  const open = require('better-sqlite3') as Open;
  return {
    name: 'better-sqlite3',
    open: (file, options) => new BetterDatabase(opened(open, nativeBinding, file, options)),
  };
}

function installedVersion(require: NodeJS.Require): string {
  try {
    return (require('better-sqlite3/package.json') as { readonly version: string }).version;
  } catch (cause) {
    const told = `a store in a file needs Node 22.16 or later, or better-sqlite3 beside signalbox; this is Node ${process.version}`;
    throw new SqliteMissing(told, installCommand(), cause);
  }
}

function nativePart(require: NodeJS.Require): string {
  try {
    return require.resolve('better-sqlite3/build/Release/better_sqlite3.node');
  } catch (cause) {
    const told =
      'better-sqlite3 was installed without its native part (npm may have been told not to run install scripts)';
    throw new SqliteMissing(told, rebuildCommand(), cause);
  }
}

function opened(
  open: Open,
  nativeBinding: string | undefined,
  file: string,
  { isReadOnly = false, busyTimeoutMs = 0 }: OpenOptions = {},
): Sqlite.Database {
  try {
    return new open(file, {
      readonly: isReadOnly,
      timeout: busyTimeoutMs,
      ...(nativeBinding !== undefined && { nativeBinding }),
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_DLOPEN_FAILED') throw error;
    const told = `better-sqlite3 was built for another Node than this one (${process.version})`;
    throw new SqliteMissing(told, rebuildCommand(), error);
  }
}

function major(version: string): number {
  return Number.parseInt(version, 10);
}

class BetterDatabase implements Database {
  readonly readsWholeText = true;
  readonly #database: Sqlite.Database;

  constructor(database: Sqlite.Database) {
    this.#database = database;
  }

  get isInTransaction(): boolean {
    return this.#database.inTransaction;
  }

  prepare(sql: string): Statement {
    return this.#database.prepare<unknown[]>(sql);
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  pragma(text: string): unknown {
    return this.#database.pragma(text, { simple: true });
  }

  close(): void {
    if (this.#database.open) this.#database.close();
  }
}

/** Undefined for what is no error of this driver. */
export function betterSqlite3Result(error: Error): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : undefined;
}
