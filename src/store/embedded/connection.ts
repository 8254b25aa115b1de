/** One connection to the file: statements that are prepared when first used, and transactions that never wait. */
import type { Database, Statement } from '../../sqlite/index.ts';

export type { Statement };

export class Connection {
  readonly #database: Database;
  readonly #onClosed: () => void;
  readonly #statements = new Map<string, Statement>();
  #begin: Statement | undefined;
  #beginWrite: Statement | undefined;
  #commit: Statement | undefined;
  #isClosed = false;

  /** Calls `onClosed` after SQLite has let go of the file. */
  constructor(database: Database, onClosed: () => void = () => undefined) {
    this.#database = database;
    this.#onClosed = onClosed;
  }

  sql(text: string): Statement {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#database.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  /** What to select for a column of text: its bytes, where the driver would stop reading at a NUL. `textOf` takes both. */
  text(column: string): string {
    return this.#database.readsWholeText ? column : `CAST(${column} AS BLOB) AS ${column}`;
  }

  /** Throws at once, having done nothing, if another process is writing: `isBusy` tells. */
  write<T>(work: () => T): T {
    this.#beginWrite ??= this.sql('BEGIN IMMEDIATE');
    return this.#within(this.#beginWrite, work);
  }

  /** Everything that `work` reads is of one moment. */
  read<T>(work: () => T): T {
    this.#begin ??= this.sql('BEGIN');
    return this.#within(this.#begin, work);
  }

  /** Returns what `work` would lead to, then undoes it. Throws as `write` does. */
  attempt<T>(work: () => T): T {
    this.sql('BEGIN IMMEDIATE').run();
    try {
      return work();
    } finally {
      if (this.#database.isInTransaction) this.sql('ROLLBACK').run();
    }
  }

  pragma(text: string): unknown {
    return this.#database.pragma(text);
  }

  /** Runs several statements that return nothing. */
  execute(text: string): void {
    this.#database.exec(text);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#database.close();
    this.#onClosed();
  }

  #within<T>(begin: Statement, work: () => T): T {
    begin.run();
    try {
      const result = work();
      this.#commit ??= this.sql('COMMIT');
      this.#commit.run();
      return result;
    } catch (error) {
      // Some errors have rolled it back already.
      if (this.#database.isInTransaction) this.sql('ROLLBACK').run();
      throw error;
    }
  }
}

/** Decodes what was selected by `Connection.text`. */
export function textOf(value: string | Uint8Array): string {
  if (typeof value === 'string') return value;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString();
}
