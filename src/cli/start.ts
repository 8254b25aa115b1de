#!/usr/bin/env node
/**
 * What is started as `signalbox`: it hands over to `main.cjs` beside it, with the code that V8 made of it the last time.
 * To compile it anew takes as long as everything that `run` does. Later versions of Node can do this themselves; this is
 * the same for those that cannot.
 *
 * Whatever goes wrong with the kept code, the command line runs without it.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { Script } from 'node:vm';

/** Which `main.cjs`: the build puts the hash of its text here. V8 itself would only compare lengths. */
const MAIN = 'HASH-OF-MAIN';
const OLD_MS = 30 * 86_400_000;

const here = import.meta.dirname;
const main = join(here, 'main.cjs');

const kept = keptFile(process.argv[2]);
const cachedData = kept === undefined ? undefined : readIfSound(kept);
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
    // What is written relative to wherever we are is not ours.
    if (!isAbsolute(directory)) return undefined;
    makeIfMissing(dirname(directory));
    makeIfMissing(directory);
    const { uid, mode } = statSync(directory);
    // Code that others may write is not run.
    if (process.platform !== 'win32' && (uid !== process.getuid?.() || (mode & 0o022) !== 0)) return undefined;
    const name = /^(run|lock|sem|who|events)$/.test(command) ? command : 'other';
    return join(directory, `${name}-${MAIN}-${process.version}-${process.arch}.v8`);
  } catch {
    return undefined;
  }
}

/** One level only: Node's way of making all of them never ends where nothing can be made. */
function makeIfMissing(directory: string): void {
  if (!existsSync(directory)) mkdirSync(directory, { mode: 0o700 });
}

function cacheDirectory(): string {
  const named = process.env['XDG_CACHE_HOME'];
  if (named !== undefined && named !== '') return join(named, 'signalbox');
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'signalbox');
  return join(homedir(), '.cache', 'signalbox');
}

/** It is written twice: V8 does not notice damage, and falls over it. */
function readIfSound(file: string): Buffer | undefined {
  try {
    const both = readFileSync(file);
    const one = both.subarray(0, both.length / 2);
    return both.length > 0 && one.equals(both.subarray(both.length / 2)) ? one : undefined;
  } catch {
    return undefined;
  }
}

function keep(file: string, code: Buffer): void {
  const fresh = `${file}.${process.pid}`;
  try {
    writeFileSync(fresh, Buffer.concat([code, code]), { mode: 0o600 });
    renameSync(fresh, file);
    removeOld(dirname(file));
  } catch {
    rmSync(fresh, { force: true });
  }
}

/** Made by versions that nobody has started for long. */
function removeOld(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (Date.now() - statSync(path).mtimeMs > OLD_MS) rmSync(path, { force: true });
  }
}
