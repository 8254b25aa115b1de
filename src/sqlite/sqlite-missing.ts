/** No SQLite was found to open a store with. The store itself is not damaged. */
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

/** The command that installs SQLite, if `error` says that it is missing. */
export function remedyOf(error: unknown): string | undefined {
  return error instanceof Failure ? (error as Partial<SqliteMissing>)[MARK] : undefined;
}
