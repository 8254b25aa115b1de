/**
 * The driver on `better-sqlite3`, for a Node whose own SQLite is missing or not good enough. The package is not a
 * dependency (docs/decisions/0018): users install it, and the error says how.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type Sqlite from 'better-sqlite3';
import type { Database, SqliteDriver, Statement } from './driver.ts';
import { installCommand, rebuildCommand, VERSION_FOR_NODE_20 } from './remedy.ts';
import { SqliteMissing } from './sqlite-missing.ts';

type Open = (path: string, isReadOnly: boolean, busyTimeoutMs: number) => Database;

/** From this version on, the package needs Node 22, and crashes the process in Node 20 instead of refusing. */
const FIRST_FOR_NODE_22 = 13;

/** `known` is the version whose native part is used directly. */
export function loadBetterSqlite3(known = VERSION_FOR_NODE_20): SqliteDriver {
  const require = createRequire(import.meta.url);
  const version = installedVersion(require);
  const isForNode22 = major(version) >= FIRST_FOR_NODE_22;
  if (isForNode22 && major(process.versions.node) < 22) {
    throw new SqliteMissing(`better-sqlite3 ${version} would crash Node ${process.version}`, installCommand());
  }
  const open = version === known ? openNative(require) : openPackage(require, isForNode22);
  return {
    name: 'better-sqlite3',
    open: (file, { isReadOnly = false, busyTimeoutMs = 0 } = {}) => opened(() => open(file, isReadOnly, busyTimeoutMs)),
  };
}

/**
 * Uses the native part of the one version that we test this way; every other version is used as documented. The
 * package's JavaScript is thirteen small files for things we do not use; every start would look for them and compile
 * them, which takes longer than opening a store.
 */
function openNative(require: NodeJS.Require): Open {
  const file = nativePart(require);
  return (path, isReadOnly, busyTimeoutMs) => {
    const native = require(file) as Native;
    // A program may use the package too. Then errors are of the package's class, as the program expects.
    if (native.isInitialized !== true) native.setErrorConstructor(SqliteError);
    const isInMemory = path === ':memory:';
    return new NativeDatabase(
      new native.Database(path, path, isInMemory, isReadOnly, false, busyTimeoutMs, null, null),
    );
  };
}

/** Opens the package in the documented way, which works for any version. */
function openPackage(require: NodeJS.Require, isForNode22: boolean): Open {
  // By themselves, earlier versions try a dozen places at every start.
  const nativeBinding = isForNode22 ? undefined : nativePart(require);
  const Package = require('better-sqlite3') as new (path: string, options: Sqlite.Options) => Sqlite.Database;
  return (path, isReadOnly, busyTimeoutMs) =>
    new PackageDatabase(
      new Package(path, {
        readonly: isReadOnly,
        timeout: busyTimeoutMs,
        ...(nativeBinding !== undefined && { nativeBinding }),
      }),
    );
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
  // Only beside its package: Node would go on to the directories above, and find the native part of another version.
  const file = join(dirname(require.resolve('better-sqlite3/package.json')), 'build', 'Release', 'better_sqlite3.node');
  if (existsSync(file)) return file;
  const told =
    'better-sqlite3 was installed without its native part (npm may have been told not to run install scripts)';
  throw new SqliteMissing(told, rebuildCommand());
}

function opened(open: () => Database): Database {
  try {
    return open();
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

class PackageDatabase implements Database {
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

/** The exports of that version's native part that are used here. */
interface Native {
  /** Whether the package has loaded it and set its own class of errors. */
  readonly isInitialized?: boolean;
  setErrorConstructor(constructor: typeof SqliteError): void;
  readonly Database: new (
    path: string,
    name: string,
    isInMemory: boolean,
    isReadOnly: boolean,
    mustExist: boolean,
    busyTimeoutMs: number,
    log: null,
    content: null,
  ) => NativeConnection;
}

interface NativeConnection {
  readonly open: boolean;
  readonly inTransaction: boolean;
  prepare(sql: string, database: object, isPragma: boolean): Statement & { pluck(): Statement };
  exec(sql: string): void;
  close(): void;
}

class SqliteError extends Error {
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

class NativeDatabase implements Database {
  readonly readsWholeText = true;
  readonly #connection: NativeConnection;

  constructor(connection: NativeConnection) {
    this.#connection = connection;
  }

  get isInTransaction(): boolean {
    return this.#connection.inTransaction;
  }

  prepare(sql: string): Statement {
    return this.#connection.prepare(sql, this, false);
  }

  exec(sql: string): void {
    this.#connection.exec(sql);
  }

  pragma(text: string): unknown {
    return this.#connection.prepare(`PRAGMA ${text}`, this, true).pluck().get();
  }

  close(): void {
    if (this.#connection.open) this.#connection.close();
  }
}

/** Undefined if it is no error of this driver. */
export function betterSqlite3Result(error: Error): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : undefined;
}
