/** Loads SQLite when it is first needed: a process that never opens such a store does not pay for it. */
import { createRequire } from 'node:module';
import type Sqlite from 'better-sqlite3';
import { Failure } from '../../failure.ts';

/** `before` is called when SQLite is loaded, right before it opens the file. */
export async function openSqlite(
  file: string,
  options: Sqlite.Options,
  before: () => void = () => undefined,
): Promise<Sqlite.Database> {
  const { default: Database } = await import('better-sqlite3').catch((cause: unknown) => {
    throw unusable('better-sqlite3 cannot be loaded, and a store in a file needs it: npm install', cause);
  });
  const nativeBinding = nativePart();
  before();
  try {
    return new Database(file, { ...options, nativeBinding });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_DLOPEN_FAILED') throw error;
    throw unusable(
      'better-sqlite3 was installed with a native part for another Node: npm rebuild better-sqlite3',
      error,
    );
  }
}

/**
 * Where it is built. Left to itself, the package tries a dozen places, at every start of the command line; and where the
 * command line is one file, next to the wrong one.
 */
function nativePart(): string {
  try {
    return createRequire(import.meta.url).resolve('better-sqlite3/build/Release/better_sqlite3.node');
  } catch (cause) {
    const how = 'without its native part (npm may have been told not to run install scripts)';
    throw unusable(`better-sqlite3 was installed ${how}: npm rebuild better-sqlite3 --ignore-scripts=false`, cause);
  }
}

export type NativeTrouble = 'missing' | 'for-another-node' | 'not-installed';

/** What is wrong with the native part, if it is that which kept a store from being opened. */
export function nativeTrouble(error: unknown): NativeTrouble | undefined {
  const { cause } = error as { readonly cause?: unknown };
  return cause instanceof NativeProblem ? cause.trouble : undefined;
}

class NativeProblem extends Error {
  readonly trouble: NativeTrouble;

  constructor(cause: unknown) {
    super((cause as Error).message, { cause });
    const { code } = cause as NodeJS.ErrnoException;
    this.trouble =
      code === 'MODULE_NOT_FOUND' ? 'missing' : code === 'ERR_DLOPEN_FAILED' ? 'for-another-node' : 'not-installed';
  }
}

function unusable(message: string, cause: unknown): Failure {
  return new Failure('unavailable', message, { cause: new NativeProblem(cause) });
}
