/** Finds the file of a command like a shell does, before anything is acquired. */
import { isUtf8 } from 'node:buffer';
import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { originalVariables, type Text } from '../../host/index.ts';
import { CliExit } from '../exit-code.ts';

/** The path that shells use if PATH is not set. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

/**
 * A path with one character per byte, so that paths that are not UTF-8 can be handled like any other: slashes and colons
 * are the same in both.
 */
type BytePath = string;

/** Throws with the exit code of shells if there is no such file, or if it cannot be executed. */
export function findProgram(command: Text, env: NodeJS.ProcessEnv, directory?: string): Text {
  const name = bytePath(command);
  const places = name.includes('/')
    ? ['']
    : pathOf(env)
        .split(':')
        .map((place) => `${place || '.'}/`);
  const files = places.map((place) => placed(place + name, directory)).filter(isThere);
  const program = files.find(isExecutable);
  if (program !== undefined) return textOf(program);
  const [file] = files;
  if (file === undefined) throw new CliExit(NOT_FOUND, `${String(command)}: command not found`);
  const why = statSync(bytesOf(file)).isDirectory() ? 'is a directory' : 'permission denied';
  // A directory on the PATH with the same name is not the command.
  if (!name.includes('/') && why === 'is a directory')
    throw new CliExit(NOT_FOUND, `${String(command)}: command not found`);
  throw new CliExit(NOT_EXECUTABLE, `${String(command)}: ${why}`);
}

function pathOf(env: NodeJS.ProcessEnv): BytePath {
  const [original] = originalVariables(env).get('PATH') ?? [];
  return bytePath(original?.subarray('PATH='.length) ?? env['PATH'] ?? DEFAULT_PATH);
}

/** A relative path stays relative: our directory may have been deleted, or have a name that is not UTF-8. */
function placed(path: BytePath, directory: string | undefined): BytePath {
  if (isAbsolute(path)) return resolve(path);
  return directory === undefined ? path : resolve(bytePath(directory), path);
}

/** Skips a directory on the PATH that may not be read, like shells do. */
function isThere(file: BytePath): boolean {
  try {
    return statSync(bytesOf(file), { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function isExecutable(file: BytePath): boolean {
  try {
    accessSync(bytesOf(file), constants.X_OK);
    return statSync(bytesOf(file)).isFile();
  } catch {
    return false;
  }
}

function bytePath(text: Text): BytePath {
  return (typeof text === 'string' ? Buffer.from(text) : text).toString('latin1');
}

function bytesOf(path: BytePath): Buffer {
  return Buffer.from(path, 'latin1');
}

function textOf(path: BytePath): Text {
  const bytes = bytesOf(path);
  return isUtf8(bytes) ? bytes.toString() : bytes;
}
