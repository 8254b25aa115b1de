/**
 * The port to SQLite: what signalbox asks of a binding, and no more. Statements are the binding's own objects, because a
 * wrapper around each call would cost as much as the call.
 */
export type DriverName = 'node:sqlite' | 'better-sqlite3';

export interface Statement {
  /** For a statement that answers no rows. */
  run(...bound: unknown[]): { readonly changes: number | bigint };
  /** The first row; undefined if there is none. */
  get(...bound: unknown[]): unknown;
  all(...bound: unknown[]): unknown[];
  iterate(...bound: unknown[]): IterableIterator<unknown>;
}

export interface Database {
  /** False: a NUL ends the text that is read from a column. See `Connection.text`. */
  readonly readsWholeText: boolean;
  readonly isInTransaction: boolean;
  prepare(sql: string): Statement;
  /** Several statements, none of which answers anything. */
  exec(sql: string): void;
  /** The first value that it answers, if any. */
  pragma(text: string): unknown;
  /** May be called again. */
  close(): void;
}

export interface OpenOptions {
  /** Refuses to write, and to make a file that is missing. */
  readonly isReadOnly?: boolean | undefined;
  /** How long SQLite itself waits for a file that is busy, with the event loop stopped. 0 unless said. */
  readonly busyTimeoutMs?: number | undefined;
}

export interface SqliteDriver {
  readonly name: DriverName;
  open(file: string, options?: OpenOptions): Database;
}
