/** Checks a directory that an option names, before anything is written or started. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { shown } from '../failure.ts';
import { CliExit, EXIT } from './exit-code.ts';

/** The absolute path. `option`: as the user wrote it, such as `--root`. */
export function directoryOf(option: string, given: string): string {
  const directory = foundAt(given);
  if (directory === undefined) throw new CliExit(EXIT.usage, `${option} ${shown(given)} is not a directory`);
  return directory;
}

/** Undefined also for a directory that was deleted, or that this user may not look at. */
function foundAt(given: string): string | undefined {
  try {
    const path = resolve(given);
    return statSync(path).isDirectory() ? path : undefined;
  } catch {
    return undefined;
  }
}
