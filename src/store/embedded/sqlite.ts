/** SQLite itself, loaded when it is first needed: whoever never opens such a store does not pay for it. */
import { createRequire } from 'node:module';
import type Sqlite from 'better-sqlite3';
import { Failure } from '../../failure.ts';

export async function openSqlite(file: string, options: Sqlite.Options): Promise<Sqlite.Database> {
  const { default: Database } = await import('better-sqlite3');
  return new Database(file, { ...options, nativeBinding: nativePart() });
}

/**
 * Where it is built. Left to itself, the package tries a dozen places, at every start of the command line; and where the
 * command line is one file, beside the wrong one.
 */
function nativePart(): string {
  try {
    return createRequire(import.meta.url).resolve('better-sqlite3/build/Release/better_sqlite3.node');
  } catch (cause) {
    throw new Failure(
      'unavailable',
      'better-sqlite3 was installed without its native part (npm may have been told not to run install scripts): ' +
        'npm rebuild better-sqlite3',
      { cause },
    );
  }
}
