/** One connection to the file: statements that are prepared when first used, and transactions that never wait. */
import type Sqlite from 'better-sqlite3';

export type Statement = Sqlite.Statement<unknown[]>;

export class Connection {
  readonly #database: Sqlite.Database;
  readonly #statements = new Map<string, Statement>();

  constructor(database: Sqlite.Database) {
    this.#database = database;
  }

  sql(text: string): Statement {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#database.prepare<unknown[]>(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  /** Throws at once, having done nothing, if another process is writing: `isBusy` tells. */
  write<T>(work: () => T): T {
    return this.#within('BEGIN IMMEDIATE', work);
  }

  /** All that `work` reads is of one moment. */
  read<T>(work: () => T): T {
    return this.#within('BEGIN', work);
  }

  pragma(text: string): unknown {
    return this.#database.pragma(text, { simple: true });
  }

  close(): void {
    this.#database.close();
  }

  #within<T>(begin: string, work: () => T): T {
    this.sql(begin).run();
    try {
      const result = work();
      this.sql('COMMIT').run();
      return result;
    } catch (error) {
      // Some errors have rolled it back already.
      if (this.#database.inTransaction) this.sql('ROLLBACK').run();
      throw error;
    }
  }
}
