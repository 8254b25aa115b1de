/**
 * The port to SQLite: what signalbox asks of a binding, and no more. Statements are the binding's own objects, because a
 * wrapper around each call would cost as much as the call.
 */
export type DriverName = 'node:sqlite' | 'better-sqlite3';

export interface Statement {
  /** Runs a statement that returns no rows. */
  run(...bound: unknown[]): { readonly changes: number | bigint };
  /** The first row; undefined if there is none. */
  get(...bound: unknown[]): unknown;
  all(...bound: unknown[]): unknown[];
  iterate(...bound: unknown[]): IterableIterator<unknown>;
}

export interface Database {
  /** Whether text is read whole; if not, a NUL ends the text of a column. See `Connection.text`. */
  readonly readsWholeText: boolean;
  readonly isInTransaction: boolean;
  prepare(sql: string): Statement;
  /** Runs several statements that return nothing. */
  exec(sql: string): void;
  /** The first value that the pragma returns, if any. */
  pragma(text: string): unknown;
  /** May be called again. */
  close(): void;
}

export interface OpenOptions {
  /** Refuses to write, and to make a file that is missing. */
  readonly isReadOnly?: boolean | undefined;
  /** How long SQLite itself waits for a busy file, while the event loop is blocked; 0 if not given. */
  readonly busyTimeoutMs?: number | undefined;
}

export interface SqliteDriver {
  readonly name: DriverName;
  open(file: string, options?: OpenOptions): Database;
}
