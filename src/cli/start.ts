#!/usr/bin/env node
/**
 * What is started as `signalbox`: it hands over to `main.cjs` beside it, with the code that V8 made of it the last time.
 * To compile it anew takes as long as everything that `run` does. Later versions of Node can do this themselves; this is
 * the same for those that cannot.
 *
 * Whatever goes wrong with the kept code, the command line runs without it.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';

const here = import.meta.dirname;
const main = join(here, 'main.cjs');

const kept = keptFile(process.argv[2]);
const cachedData = kept === undefined ? undefined : readIfThere(kept);
// It is plain ASCII, which V8 keeps in half the room.
const script = new Script(`(function (exports, require, module, __filename) {${readFileSync(main, 'latin1')}\n})`, {
  filename: main,
  ...(cachedData !== undefined && { cachedData }),
});
if (kept !== undefined && (cachedData === undefined || script.cachedDataRejected === true)) {
  // At the end, so that what was compiled on the way is in it.
  process.once('exit', () => keep(kept, script.createCachedData()));
}
const module = { exports: {} };
(script.runInThisContext() as (...scope: unknown[]) => void)(module.exports, createRequire(main), module, main);

/** One for each command, because it holds what that command needed; undefined where it could not be trusted. */
function keptFile(command = ''): string | undefined {
  try {
    const directory = cacheDirectory();
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(directory);
    // Code that others may write is not run.
    if (process.platform !== 'win32' && (uid !== process.getuid?.() || (mode & 0o022) !== 0)) return undefined;
    const { size, mtimeMs } = statSync(main);
    const version = `${process.version}-${process.arch}-${size}-${Math.floor(mtimeMs)}`;
    return join(directory, `${/^[a-z]+$/.test(command) ? command : 'other'}-${version}.v8`);
  } catch {
    return undefined;
  }
}

function cacheDirectory(): string {
  const named = process.env['XDG_CACHE_HOME'];
  if (named !== undefined && named !== '') return join(named, 'signalbox');
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'signalbox');
  return join(homedir(), '.cache', 'signalbox');
}

function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

function keep(file: string, code: Buffer): void {
  const fresh = `${file}.${process.pid}`;
  try {
    writeFileSync(fresh, code, { mode: 0o600 });
    renameSync(fresh, file);
    removeOlder(file);
  } catch {
    rmSync(fresh, { force: true });
  }
}

/** Those of the same command, made by versions that are not there any more. */
function removeOlder(file: string): void {
  const directory = dirname(file);
  const command = (path: string): string => path.slice(0, path.indexOf('-'));
  const name = file.slice(directory.length + 1);
  for (const other of readdirSync(directory)) {
    if (other !== name && other.endsWith('.v8') && command(other) === command(name)) {
      rmSync(join(directory, other), { force: true });
    }
  }
}
