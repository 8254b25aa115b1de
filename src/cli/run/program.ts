/** Which file a command means: found out before anything is acquired, as a shell would find it. */
import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { CliExit } from '../exit-code.ts';

/** What shells look through where no path is set. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

/** Throws, with the exit code that shells have for it, if there is none or if it cannot be executed. */
export function findProgram(name: string, env: NodeJS.ProcessEnv, directory?: string): string {
  const places = name.includes('/')
    ? ['']
    : (env['PATH'] ?? DEFAULT_PATH).split(':').map((place) => `${place || '.'}/`);
  const files = places.map((place) => placed(place + name, directory)).filter(isThere);
  const program = files.find(isExecutable);
  if (program !== undefined) return program;
  const [file] = files;
  if (file === undefined) throw new CliExit(NOT_FOUND, `${name}: command not found`);
  const why = statSync(file).isDirectory() ? 'is a directory' : 'permission denied';
  // A directory on the way that happens to have the name is not what was meant.
  if (!name.includes('/') && why === 'is a directory') throw new CliExit(NOT_FOUND, `${name}: command not found`);
  throw new CliExit(NOT_EXECUTABLE, `${name}: ${why}`);
}

/** The directory that we are in may have been deleted, and is of no interest to a path that does not begin there. */
function placed(path: string, directory: string | undefined): string {
  if (isAbsolute(path)) return resolve(path);
  try {
    return resolve(directory ?? process.cwd(), path);
  } catch {
    return path;
  }
}

/** A directory on the path that may not be looked into is passed by, as shells do. */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
