/** There is no SQLite to open a store with. The store is well; what would read it is not. */
import { Failure } from '../failure.ts';

const MARK = Symbol.for('signalbox.SqliteMissing');

export class SqliteMissing extends Failure {
  /** The exact command that helps, and where to type it. */
  readonly [MARK]: string;

  constructor(told: string, command: string, cause?: unknown) {
    super('unavailable', `${told}: ${command}`, { cause });
    this[MARK] = command;
  }
}

/** The command that brings SQLite, if its lack is what `error` tells. */
export function remedyOf(error: unknown): string | undefined {
  return error instanceof Failure ? (error as Partial<SqliteMissing>)[MARK] : undefined;
}
