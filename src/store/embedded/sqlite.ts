/** SQLite itself, loaded when it is first needed: whoever never opens such a store does not pay for it. */
import { createRequire } from 'node:module';
import type Sqlite from 'better-sqlite3';
import { Failure } from '../../failure.ts';

export async function openSqlite(file: string, options: Sqlite.Options): Promise<Sqlite.Database> {
  const { default: Database } = await import('better-sqlite3');
  const nativeBinding = nativePart();
  try {
    return new Database(file, { ...options, nativeBinding });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === 'ERR_DLOPEN_FAILED' ? unusable('with a native part for another Node', error) : error;
  }
}

/**
 * Where it is built. Left to itself, the package tries a dozen places, at every start of the command line; and where the
 * command line is one file, beside the wrong one.
 */
function nativePart(): string {
  try {
    return createRequire(import.meta.url).resolve('better-sqlite3/build/Release/better_sqlite3.node');
  } catch (cause) {
    throw unusable('without its native part (npm may have been told not to run install scripts)', cause);
  }
}

function unusable(how: string, cause: unknown): Failure {
  return new Failure('unavailable', `better-sqlite3 was installed ${how}: npm rebuild better-sqlite3`, { cause });
}
