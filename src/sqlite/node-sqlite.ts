/**
 * The driver on `node:sqlite`, which comes with Node: nothing has to be installed or built, or rebuilt for another
 * version of Node.
 */
import type { Database, OpenOptions, SqliteDriver, Statement } from './driver.ts';

/** The part that is used. The types of Node 20 do not have it. */
interface NodeSqlite {
  readonly DatabaseSync: new (file: string, options: { readonly readOnly: boolean }) => DatabaseSync;
}

interface DatabaseSync {
  readonly isOpen: boolean;
  readonly isTransaction: boolean;
  prepare(sql: string): Statement;
  exec(sql: string): void;
  close(): void;
}

/** From this version on, it tells whether a transaction is open. Node 23 ended before it did. */
const FIRST_GOOD = [22, 16] as const;
const NEVER_GOOD = 23;

export function hasNodeSqlite(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major === NEVER_GOOD) return false;
  return major > FIRST_GOOD[0] || (major === FIRST_GOOD[0] && minor >= FIRST_GOOD[1]);
}

/** Undefined if Node was built without it. */
export function loadNodeSqlite(): SqliteDriver | undefined {
  const module = withoutItsWarning(() => process.getBuiltinModule('node:sqlite') as NodeSqlite | undefined);
  if (module === undefined) return undefined;
  const readsWholeText = canReadWholeText(module);
  return {
    name: 'node:sqlite',
    open: (file, options) => new NodeDatabase(module, readsWholeText, file, options),
  };
}

/** Tries it on an empty database: the first statement on a file may find the file busy. */
function canReadWholeText({ DatabaseSync }: NodeSqlite): boolean {
  const database = new DatabaseSync(':memory:', { readOnly: false });
  const { text } = database.prepare("SELECT 'a' || char(0) AS text").get() as { text: string };
  database.close();
  return text.length === 2;
}

class NodeDatabase implements Database {
  readonly readsWholeText: boolean;
  readonly #database: DatabaseSync;

  constructor(
    { DatabaseSync }: NodeSqlite,
    readsWholeText: boolean,
    file: string,
    { isReadOnly = false, busyTimeoutMs = 0 }: OpenOptions = {},
  ) {
    this.readsWholeText = readsWholeText;
    this.#database = new DatabaseSync(file, { readOnly: isReadOnly });
    // Set by a pragma, because Node before 22.16 ignores the option.
    if (busyTimeoutMs > 0) this.#database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  prepare(sql: string): Statement {
    return this.#database.prepare(sql);
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  pragma(text: string): unknown {
    // Reads all rows, because some pragmas do their work row by row.
    const [first] = this.#database.prepare(`PRAGMA ${text}`).all() as Record<string, unknown>[];
    return first === undefined ? undefined : Object.values(first)[0];
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }
}

/**
 * Hides Node 22's warning at the first use that the module is experimental, which tells users of `signalbox` nothing.
 * Only this warning is hidden, and only while the module is loaded, when nothing else can run.
 */
function withoutItsWarning<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = ((...told: Parameters<typeof process.emitWarning>) => {
    const [warning, type] = told as readonly unknown[];
    if (type === 'ExperimentalWarning' && String(warning).startsWith('SQLite ')) return;
    emitWarning.apply(process, told);
  }) as typeof process.emitWarning;
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** SQLite's primary result codes that mean something to us. */
const RESULTS: Readonly<Record<number, string>> = {
  3: 'SQLITE_PERM',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  15: 'SQLITE_PROTOCOL',
  23: 'SQLITE_AUTH',
  24: 'SQLITE_FORMAT',
  26: 'SQLITE_NOTADB',
};
const PRIMARY = 0xff;

/** Undefined if it is no error of this driver. */
export function nodeSqliteResult(error: Error): string | undefined {
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown };
  if (code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number') return RESULTS[errcode & PRIMARY] ?? 'SQLITE_ERROR';
  // A whole number that no store of ours writes. Other errors about a range have other words.
  const isTooLarge = code === 'ERR_OUT_OF_RANGE' && error.message.startsWith('Value is too large to be represented');
  return isTooLarge ? 'SQLITE_CORRUPT' : undefined;
}
