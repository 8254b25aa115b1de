#!/usr/bin/env node
/**
 * The entry point of `signalbox`: it loads `main.cjs`, and as soon as that needs them, two chunks of the library and `rest.cjs`,
 * with the code that V8 compiled the last time. Compiling them takes as long as everything else that `run` does. Later
 * versions of Node can cache by themselves; this is for the versions that cannot.
 *
 * A user who can write the cached code decides what we run. So it is used only where no other user can write: every
 * directory on its path belongs to root or to us, and no other user may rename it. Because the check goes from the root
 * down, nothing can be swapped after it was checked.
 *
 * If anything is wrong with the cached code, the command line runs without it.
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
  type Stats,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Script } from 'node:vm';

// The build puts these here (scripts/common-code.mjs).
/** The hash of the scripts, as they were built. V8 itself would only compare lengths. */
declare const BUILD: string;
/** A chunk of the library, its length, and what has to change in its text for it to be a script. */
interface Chunk {
  readonly file: string;
  readonly length: number;
  readonly edits: readonly (readonly [number, number, string])[];
}
declare const COMMON: Chunk;
/** What `run` uses nothing of. */
declare const SELDOM: Chunk;
/** Parts of Node that only some commands use; each takes time to load, so it is loaded when it is used. */
declare const RARELY_USED: readonly string[];
/** This file becomes CommonJS. `createRequire` would load the loader of ES modules. */
declare const require: (name: string) => unknown;

const OLD_MS = 30 * 86_400_000;

/** The commands with cached code of their own, which contains what that command needed. */
const COMMANDS = new Set([
  ...['run', 'lock', 'sem', 'task', 'bus', 'pipeline', 'guard', 'members', 'lead', 'github', 'who', 'status', 'events'],
  ...['top', 'completion', 'witness', 'serve', 'mcp', 'token', 'maintain', 'doctor', 'export', 'import', 'agents'],
]);

/**
 * How many later processes add the functions that they compiled to the cache. The first process may have ended early, for example
 * after its help, and then every later one would compile nearly everything again.
 */
const ADDITIONS = 3;

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;
const MOST_LINKS = 8;
const LENGTH_BYTES = 4;
const STDERR = 2;
/** As `EXIT.internal` has it, which is in a file that may be missing. */
const INTERNAL = 70;
/** On Windows a user's profile belongs to that user by other rules. */
const HAS_MODES = process.platform !== 'win32';

const main = join(import.meta.dirname, 'main.cjs');
const rest = join(import.meta.dirname, 'rest.cjs');
const rarelyUsed = new Set(RARELY_USED);

/** The scripts, each of which is loaded when it is first needed. */
const chunks = [COMMON, SELDOM] as const;
const files = [...chunks.map(({ file }) => join(import.meta.dirname, file)), main, rest];
const [COMMON_PLACE, SELDOM_PLACE, MAIN_PLACE, REST_PLACE] = [0, 1, 2, 3] as const;
const stamps = files.map(stampBefore);
const kept = keptFile(process.argv.slice(2).find((word) => COMMANDS.has(word)));
const { codes = [], additions } = (kept === undefined ? undefined : readIfSound(kept)) ?? { additions: 0 };
const scripts: (Script | undefined)[] = files.map(() => undefined);
/** What was read of them and has not been compiled yet. */
const contents: (Buffer | undefined)[] = files.map(() => undefined);
let isChanging = false;
// At the end, so that it includes the functions compiled on the way.
if (kept !== undefined) process.once('exit', () => keepIfMore(kept));

/** What the chunk imports when it needs it is in `main.cjs` or beside it. The build checks that `main.cjs` says how of each. */
let loaders: Readonly<Record<string, () => Promise<unknown>>> = {};
/** Is empty until something of it is used: the help and the version need none of it. */
const common = Object.create(
  new Proxy({}, { get: (_, name) => Reflect.get(loadedWith(name), name) as unknown }),
) as object;
/** What the chunks have for each other. */
let commonOwn = {};
let seldomOwn: object | undefined;
Object.assign(common, { $offer: (offered: typeof loaders) => void (loaders = offered) });
const mainExports = {};
let restExports: object | undefined;
loadModule(MAIN_PLACE, mainExports);

/** Loads the chunk that has this name; if neither has it, both are loaded. */
function loadedWith(name: PropertyKey): object {
  if (scripts[COMMON_PLACE] === undefined) loadCommon();
  if (!Object.hasOwn(common, name)) loadedSeldom();
  return Object.hasOwn(common, name) ? common : {};
}

function loadCommon(): void {
  // A command may run for days before it needs the others, which may be those of another version by then.
  for (const place of [COMMON_PLACE, SELDOM_PLACE, REST_PLACE]) {
    if (scripts[place] !== undefined) continue;
    const content = (contents[place] = contentOf(place));
    if (place !== REST_PLACE) refuseChanged(files[place] as string, content, chunks[place]);
  }
  commonOwn = loadChunk(COMMON_PLACE, namesIn(loadedSeldom));
}

function loadedSeldom(): object {
  return (seldomOwn ??= loadChunk(SELDOM_PLACE, commonOwn));
}

/** Answers what the other chunk imports of this one. */
function loadChunk(place: typeof COMMON_PLACE | typeof SELDOM_PLACE, other: object): object {
  const parts = ['"use strict";', ...edited(takeContent(place), chunks[place])];
  const script = scriptOf(place, '$require, $createRequire, $names, $import, $meta, $other', parts);
  const load = (name: string): Promise<unknown> => (loaders[name] as () => Promise<unknown>)();
  const meta = { url: pathToFileURL(files[place] as string).href };
  const { $own, ...names } = Object.getOwnPropertyDescriptors(
    run(script, requireLater, () => require, namesOf, load, meta, other),
  );
  Object.defineProperties(common, names);
  return ($own as { readonly value: object }).value;
}

function loadModule(place: typeof MAIN_PLACE | typeof REST_PLACE, exports: object): object {
  const script = scriptOf(place, 'exports, require, module, __filename', [takeContent(place)]);
  run(script, exports, requireLater, { exports }, files[place]);
  return exports;
}

/** Differs if the file was changed after it was installed. */
function stampOf({ size, mtimeMs }: Stats): string {
  return `${size.toString(36)}.${Math.trunc(mtimeMs).toString(36)}`;
}

function stampBefore(path: string): string {
  try {
    return stampOf(statSync(path));
  } catch (error) {
    return refuseUnread(error);
  }
}

function takeContent(place: number): Buffer {
  const content = contents[place] ?? contentOf(place);
  contents[place] = undefined;
  return content;
}

function contentOf(place: number): Buffer {
  try {
    const descriptor = openSync(files[place] as string, 'r');
    try {
      if (stampOf(fstatSync(descriptor)) !== stamps[place]) {
        // Another version is being installed. What is kept under the stamp of the one is not for the other, and the scripts of
        // two versions must not meet: they know each other's functions by short names.
        if (place !== MAIN_PLACE) refuse('another version of signalbox was installed while this one started');
        isChanging = true;
      }
      return readFileSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    return refuseUnread(error);
  }
}

function refuseUnread(error: unknown): never {
  return refuse(`a file of signalbox cannot be read: ${(error as Error).message}`);
}

/** In a text that is not the one that was built, the edits would make other code than the library has. */
function refuseChanged(path: string, content: Buffer, { length, edits }: Chunk): void {
  const isBuilt = edits.every(([from, , instead]) => {
    const word = instead.startsWith('return') ? 'export' : 'import';
    return content.toString('latin1', from, from + word.length) === word;
  });
  if (content.length === length && isBuilt) return;
  const instead = content.length === length ? '' : `: it has ${content.length} bytes instead of ${length}`;
  const why = 'a tool may have patched it, or converted the ends of its lines';
  refuse(`${path} was changed after it was built${instead}\n  ${why}`);
}

function edited(content: Buffer, { edits }: Chunk): readonly (Buffer | string)[] {
  const parts: (Buffer | string)[] = [];
  let at = 0;
  for (const [from, to, instead] of edits) {
    parts.push(content.subarray(at, from), instead);
    at = to;
  }
  return [...parts, content.subarray(at)];
}

function refuse(why: string): never {
  writeSync(STDERR, `signalbox: ${why}\n  install it again, for example with: npm install signalbox\n`);
  process.exit(INTERNAL);
}

/** Joins the parts before they become text: V8 would make a second copy of a text that is put together. */
function scriptOf(place: number, parameters: string, parts: readonly (Buffer | string)[]): Script {
  const cachedData = isChanging ? undefined : codes[place];
  const all = [`(function (${parameters}) {`, ...parts, '\n})'];
  const bytes = all.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part));
  // The files are plain ASCII, which V8 stores in half the space as latin1.
  const script = new Script(Buffer.concat(bytes).toString('latin1'), {
    filename: files[place] as string,
    ...(cachedData !== undefined && cachedData.length > 0 && { cachedData }),
  });
  scripts[place] = script;
  return script;
}

function run(script: Script, ...scope: readonly unknown[]): unknown {
  return (script.runInThisContext() as (...scope: readonly unknown[]) => unknown)(...scope);
}

/** For imports that became properties, which are read where they are used: all of `main.cjs` and `rest.cjs`. */
function requireLater(name: string): unknown {
  if (name === './common') return common;
  if (name === './main.cjs') return mainExports;
  if (name === './rest.cjs') return (restExports ??= loadModule(REST_PLACE, {}));
  if (!rarelyUsed.has(name)) return require(name);
  return new Proxy({}, { get: (_, property) => (require(name) as Record<PropertyKey, unknown>)[property] });
}

/** For the chunks, which take what they import apart at once: functions that look up the real ones when they are used. */
function namesOf(name: string): unknown {
  return rarelyUsed.has(name) ? namesIn(() => require(name) as object) : require(name);
}

/** Has a function for each name that is asked for, which calls the real one. */
function namesIn(load: () => object): object {
  const real = (property: PropertyKey): NewableFunction => Reflect.get(load(), property) as NewableFunction;
  const later = (property: PropertyKey): unknown => {
    const proxy: () => void = new Proxy(function () {}, {
      apply: (_, self, args) => Reflect.apply(real(property), self, args) as unknown,
      // `made` is another class if that class extends this one.
      construct: (_, args, made) =>
        Reflect.construct(real(property), args, (made as unknown) === proxy ? real(property) : made) as object,
      get: (_, member) => Reflect.get(real(property), member) as unknown,
    });
    return proxy;
  };
  return new Proxy({}, { get: (_, property) => later(property) });
}

/** Undefined if the place cannot be trusted. */
function keptFile(command = 'other'): string | undefined {
  try {
    const directory = cacheDirectory();
    // A relative path depends on the current directory, so it is not safe.
    if (!isAbsolute(directory) || !isSafe(directory)) return undefined;
    // Not even a sticky directory: another user could put a link to one of our files there. And in root's we cannot write.
    const { uid, mode } = statSync(directory);
    if (HAS_MODES && (uid !== process.getuid?.() || (mode & WRITABLE_BY_OTHERS) !== 0)) return undefined;
    return join(directory, `${command}-${BUILD}-${stamps.join('-')}-${process.version}-${process.arch}.v8`);
  } catch {
    return undefined;
  }
}

/**
 * Creates the last two directories if they are missing, but only inside a safe one: with another user's HOME, which `sudo`
 * may keep, root creates nothing there.
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
  // In a sticky directory other users may add files, but not replace ours.
  const isOpen = (found.mode & WRITABLE_BY_OTHERS) !== 0 && (found.mode & STICKY) === 0;
  return found.isDirectory() && !(HAS_MODES && isOpen);
}

function cacheDirectory(): string {
  const named = process.env['XDG_CACHE_HOME'];
  if (named !== undefined && named !== '') return join(named, 'signalbox');
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'signalbox');
  return join(homedir(), '.cache', 'signalbox');
}

interface Kept {
  /** Of the scripts, in their order; empty of one that has not been loaded yet. */
  readonly codes?: readonly Buffer[];
  /** How many processes have added to it since it was made. */
  readonly additions: number;
}

/**
 * The codes are stored twice, after their lengths: V8 does not notice damage, and crashes on it. The last byte counts the
 * additions.
 */
function readIfSound(file: string): Kept | undefined {
  try {
    const all = readOwn(file);
    const half = (all.length - 1) / 2;
    const both = all.subarray(0, half);
    const isSound = both.length > LENGTH_BYTES * files.length && both.equals(all.subarray(half, -1));
    if (!isSound) return undefined;
    let at = LENGTH_BYTES * files.length;
    const codes = files.map((_, place) => {
      const from = at;
      at += both.readUInt32LE(LENGTH_BYTES * place);
      return both.subarray(from, at);
    });
    return { codes, additions: all.at(-1) ?? 0 };
  } catch {
    return undefined;
  }
}

/** Empty unless the file is ours and no other user may write it. It checks the opened file, not its name. */
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

/** What was not loaded this time stays as it is kept. */
function keepIfMore(file: string): void {
  if (isChanging) return;
  const isNew = codes.length === 0 || scripts.some((script) => script?.cachedDataRejected === true);
  const hasMore = scripts.some((script, place) => script !== undefined && codes[place]?.length === 0);
  if (!isNew && !hasMore && additions >= ADDITIONS) return;
  const made = scripts.map((script, place) => script?.createCachedData() ?? codes[place] ?? Buffer.alloc(0));
  keep(file, made, isNew ? 0 : additions + 1);
}

function keep(file: string, codes: readonly Buffer[], additions: number): void {
  const fresh = `${file}.${process.pid}`;
  const lengths = Buffer.alloc(LENGTH_BYTES * codes.length);
  codes.forEach((code, place) => lengths.writeUInt32LE(code.length, LENGTH_BYTES * place));
  try {
    writeFileSync(fresh, Buffer.concat([lengths, ...codes, lengths, ...codes, Buffer.of(additions)]), { mode: 0o600 });
    renameSync(fresh, file);
    removeOld(dirname(file));
  } catch {
    removeIfPossible(fresh);
  }
}

/** The command has ended; nothing that fails here may change its exit code. */
function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // The directory was removed meanwhile.
  }
}

/** Removes the code of versions that have not been started for long. */
function removeOld(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (Date.now() - statSync(path).mtimeMs > OLD_MS) rmSync(path, { force: true });
  }
}
