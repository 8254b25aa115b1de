/**
 * Finds git's common directory, which all worktrees of a repository share, by the rules of git itself but without
 * starting git: that would take longer than everything else `run` does.
 *
 *     GIT_DIR names one ───────────────────────────────────────────────────────── used as it is
 *     otherwise, from here up to a ceiling, a mount point or the root:
 *       `.git` is a repository, or a file that leads to one ── owner checked ──── used
 *       the directory itself is a repository (bare) ── remembered, and passed by
 *     only a bare one was found ───────────────────────────────────────────────── refused
 *
 * One rule is stricter than git's default: a bare repository is used only if `GIT_DIR` names it (git has this rule as
 * `safe.bareRepository=explicit`). A checkout cannot contain a `.git`, but it can contain a directory that looks like a
 * bare repository and contains a store that its author made.
 */
import { accessSync, constants, lstatSync, readlinkSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { Failure, shown } from '../../failure.ts';
import { beginningOfFile, ifPossible, readRegularFile } from '../../host/index.ts';
import { real, refuseForeign } from './git-ownership.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const LARGEST_GIT_FILE_BYTES = 1 << 20;
const HEAD_BYTES = 255;

export function gitCommonDirectory(from: string, environment: Environment): string | undefined {
  const named = environment['GIT_DIR'];
  const directory =
    named === undefined ? search(from, environment) : explicit(resolve(from, named), named, from, environment);
  return directory === undefined ? undefined : real(commonOf(directory, from, environment));
}

/** The git directory behind `.git` in this place; undefined if there is none. Does not check its owner. */
export function gitDirectoryAt(place: string, from: string, environment: Environment): Found | undefined {
  const dotGit = join(place, '.git');
  const stat = statOf(dotGit);
  if (stat === undefined) return undefined;
  if (stat.isFile()) return { gitFile: dotGit, directory: leadsTo(dotGit, from, environment) };
  return isRepository(dotGit, from, environment) ? { directory: dotGit } : undefined;
}

export interface Found {
  readonly directory: string;
  /** The `.git` file that points there: that of a linked worktree, a submodule, or `--separate-git-dir`. */
  readonly gitFile?: string;
}

/** Trusts a directory that was named, as git does. */
function explicit(directory: string, named: string, from: string, environment: Environment): string {
  const stat = named === '' ? undefined : statOf(directory);
  if (stat?.isFile() === true) return leadsTo(directory, from, environment);
  if (stat !== undefined && isRepository(directory, from, environment)) return directory;
  throw new Failure(
    'forbidden',
    `GIT_DIR is ${shown(named)}, which is not a git repository; unset it, or name the store with SIGNALBOX_URL`,
  );
}

function search(from: string, environment: Environment): string | undefined {
  const start = real(resolve(from));
  const ceiling = ceilingLength(start, environment['GIT_CEILING_DIRECTORIES']);
  const device = isTrue(environment, 'GIT_DISCOVERY_ACROSS_FILESYSTEM') ? undefined : statOf(start)?.dev;
  let bare: string | undefined;
  for (let place = start; ; place = dirname(place)) {
    if (place !== start && device !== undefined && statOf(place)?.dev !== device) break;
    const found = gitDirectoryAt(place, from, environment);
    if (found !== undefined) {
      refuseForeign({ ...found, worktree: place }, environment);
      return found.directory;
    }
    if (isRepository(place, from, environment)) {
      if (isInsideDotGit(place)) {
        refuseForeign({ directory: place }, environment);
        return place;
      }
      bare ??= place;
    }
    const parent = dirname(place);
    if (parent === place || (parent === sep ? 0 : parent.length) <= ceiling) break;
  }
  if (bare === undefined) return undefined;
  throw new Failure(
    'forbidden',
    `${bare} is a bare git repository; signalbox uses one only if you name it, because a checkout can contain a ` +
      `directory that looks like one. Set GIT_DIR=${bare}, or name the store with SIGNALBOX_URL=file:DIRECTORY`,
  );
}

/** Whether the place is inside a `.git`, which no checkout can contain. */
function isInsideDotGit(place: string): boolean {
  return place.endsWith(`${sep}.git`) || /[\\/]\.git[\\/](?:worktrees|modules)[\\/]/.test(place);
}

/**
 * The length of the nearest directory above `start` that the search must not enter; -1 without one. A ceiling below an
 * empty entry is compared as it is written; the others without links, as git does.
 */
function ceilingLength(start: string, list: string | undefined): number {
  let followsLinks = true;
  let longest = -1;
  for (const entry of list?.split(process.platform === 'win32' ? ';' : ':') ?? []) {
    if (entry === '') followsLinks = false;
    if (!isAbsolute(entry)) continue;
    const ceiling = (followsLinks ? realOrMissing(entry) : entry).replace(/[\\/]$/, '');
    if (start.startsWith(ceiling + sep) && start.length > ceiling.length + 1)
      longest = Math.max(longest, ceiling.length);
  }
  return longest;
}

/** Resolves links also where only the last part of the path is missing. */
function realOrMissing(path: string): string {
  return ifPossible(() => realpathSync(path)) ?? join(real(dirname(path)), path.slice(dirname(path).length));
}

/**
 * Refuses a `.git` file that leads to no repository. The processes that share the repository use its store, so a separate
 * store here would break every lock.
 */
function leadsTo(gitFile: string, from: string, environment: Environment): string {
  const text = readText(gitFile) ?? '';
  const named = /^gitdir: ([^]+?)[\r\n]*$/.exec(text)?.[1];
  if (named === undefined) {
    throw new Failure(
      'forbidden',
      `${gitFile} does not say where the repository is (expected is one line: gitdir: DIRECTORY); ` +
        'repair it, or name the store with SIGNALBOX_URL=file:DIRECTORY',
    );
  }
  const directory = resolve(dirname(gitFile), named);
  if (isRepository(directory, from, environment)) return real(directory);
  throw new Failure(
    'forbidden',
    `${gitFile} says that the repository is in ${shown(directory)}, which cannot be seen from here; ` +
      'name the store that everybody shares with SIGNALBOX_URL',
  );
}

/** Whether git would take the directory for a repository: one with less may only look like it. */
function isRepository(directory: string, from: string, environment: Environment): boolean {
  if (!isHead(join(directory, 'HEAD'))) return false;
  const common = commonOf(directory, from, environment);
  const objects = environment['GIT_OBJECT_DIRECTORY'];
  return (
    canEnter(objects === undefined ? join(common, 'objects') : resolve(from, objects)) && canEnter(join(common, 'refs'))
  );
}

/** Reads the common directory that all worktrees share from a worktree's own directory. */
function commonOf(directory: string, from: string, environment: Environment): string {
  const named = environment['GIT_COMMON_DIR'];
  if (named !== undefined && named !== '') return resolve(from, named);
  const file = join(directory, 'commondir');
  if (lstatOf(file) === undefined) return directory;
  const shared = readText(file)?.replace(/[\r\n]+$/, '') ?? '';
  if (shared !== '') return resolve(directory, shared);
  throw new Failure('forbidden', `${file} does not say where the repository is; git cannot use it either`);
}

function isHead(path: string): boolean {
  const stat = lstatOf(path);
  if (stat?.isSymbolicLink() === true) return readlinkSync(path).startsWith('refs/');
  if (stat?.isFile() !== true) return false;
  return /^(?:ref:\s*refs\/|[0-9a-fA-F]{40})/.test(beginningOfFile(path, HEAD_BYTES)?.toString('latin1') ?? '');
}

function canEnter(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Reads a boolean as git does. */
function isTrue(environment: Environment, name: string): boolean {
  const value = environment[name]?.toLowerCase() ?? '';
  if (/^(?:|false|no|off|[+-]?0+[kmg]?)$/.test(value)) return false;
  if (/^(?:true|yes|on|[+-]?\d+[kmg]?)$/.test(value)) return true;
  throw new Failure('invalid', `${name} is ${shown(value)}; expected true or false`);
}

function statOf(path: string): Stats | undefined {
  return ifPossible(() => statSync(path, { throwIfNoEntry: false }));
}

function lstatOf(path: string): Stats | undefined {
  return ifPossible(() => lstatSync(path, { throwIfNoEntry: false }));
}

/** Reads with care: another user may have put the file there, or a FIFO in its place. */
function readText(path: string): string | undefined {
  return readRegularFile(path, LARGEST_GIT_FILE_BYTES)?.toString('utf8');
}
