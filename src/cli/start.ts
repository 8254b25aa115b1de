#!/usr/bin/env node
/**
 * What is started as `signalbox`: it hands over to `main.cjs` beside it, with the code that V8 made of it the last time.
 * To compile it anew takes as long as everything that `run` does. Later versions of Node can do this themselves; this is
 * the same for those that cannot.
 *
 * Whoever can write the kept code decides what we run, so it is used only where nobody else can: every directory on the
 * way to it belongs to root or to us, and nobody else may change what it is called. Checked from the root down, nothing
 * can be swapped after it was checked.
 *
 * Whatever goes wrong with the kept code, the command line runs without it.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { Script } from 'node:vm';

/** Which `main.cjs`: the build puts the hash of its text here. V8 itself would only compare lengths. */
const MAIN = 'HASH-OF-MAIN';
const OLD_MS = 30 * 86_400_000;

/** Those with kept code of their own, which holds what that command needed. */
const COMMANDS = new Set(['run', 'lock', 'sem', 'task', 'pipeline', 'guard', 'who', 'events']);

/** Parts of Node that only some commands use; each takes time to load, so it is loaded when it is used. */
const RARELY_USED = new Set([
  'node:crypto',
  'node:fs/promises',
  'node:net',
  'node:timers/promises',
  'node:tty',
  'node:worker_threads',
]);

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;
const MOST_LINKS = 8;
/** Windows has other rules, by which what is in a profile is its user's. */
const HAS_MODES = process.platform !== 'win32';

const here = import.meta.dirname;
const main = join(here, 'main.cjs');
const requireNow = createRequire(main);

const kept = keptFile(process.argv.slice(2).find((word) => COMMANDS.has(word)));
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
(script.runInThisContext() as (...scope: unknown[]) => void)(module.exports, requireLater, module, main);

/** For `main.cjs`, whose imports became properties that are read where they are used. */
function requireLater(name: string): unknown {
  if (!RARELY_USED.has(name)) return requireNow(name);
  return new Proxy({}, { get: (_, property) => (requireNow(name) as Record<PropertyKey, unknown>)[property] });
}

/** Undefined where it could not be trusted. */
function keptFile(command = 'other'): string | undefined {
  try {
    const directory = cacheDirectory();
    // What is written relative to wherever we are is not ours.
    if (!isAbsolute(directory) || !isSafe(directory)) return undefined;
    // Not even a sticky one: a link to another file of ours could be put there. And in root's we could keep nothing.
    const { uid, mode } = statSync(directory);
    if (HAS_MODES && (uid !== process.getuid?.() || (mode & WRITABLE_BY_OTHERS) !== 0)) return undefined;
    return join(directory, `${command}-${MAIN}-${process.version}-${process.arch}.v8`);
  } catch {
    return undefined;
  }
}

/**
 * Makes the last two directories where they are missing, but only in a safe one: with another user's HOME, as `sudo`
 * keeps it, root makes nothing there.
 */
function isSafe(path: string, missing = 2, links = 0): boolean {
  const parent = dirname(path);
  if (parent !== path && !isSafe(parent, missing - 1, links)) return false;
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    if (missing <= 0) return false;
    mkdirSync(path, { mode: 0o700 });
    return true;
  }
  if (HAS_MODES && found.uid !== 0 && found.uid !== process.getuid?.()) return false;
  if (found.isSymbolicLink()) {
    const target = resolve(realpathSync(parent), readlinkSync(path));
    return links < MOST_LINKS && isSafe(target, 0, links + 1);
  }
  // In a sticky directory others may add, but not replace what is not theirs.
  const isOpen = (found.mode & WRITABLE_BY_OTHERS) !== 0 && (found.mode & STICKY) === 0;
  return found.isDirectory() && !(HAS_MODES && isOpen);
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
    const both = readOwn(file);
    const one = both.subarray(0, both.length / 2);
    return both.length > 0 && one.equals(both.subarray(both.length / 2)) ? one : undefined;
  } catch {
    return undefined;
  }
}

/** Empty if it is not a file of ours that nobody else may write: that is asked of what was opened, not of its name. */
function readOwn(file: string): Buffer {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const descriptor = openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const found = fstatSync(descriptor);
    const isOurs = found.uid === process.getuid?.() && (found.mode & WRITABLE_BY_OTHERS) === 0;
    if (!found.isFile() || (HAS_MODES && !isOurs)) return Buffer.alloc(0);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function keep(file: string, code: Buffer): void {
  const fresh = `${file}.${process.pid}`;
  try {
    writeFileSync(fresh, Buffer.concat([code, code]), { mode: 0o600 });
    renameSync(fresh, file);
    removeOld(dirname(file));
  } catch {
    removeIfPossible(fresh);
  }
}

/** The command has ended by now; nothing that goes wrong here may change how. */
function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // The directory was taken from us meanwhile.
  }
}

/** Made by versions that nobody has started for long. */
function removeOld(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (Date.now() - statSync(path).mtimeMs > OLD_MS) rmSync(path, { force: true });
  }
}
