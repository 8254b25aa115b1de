/**
 * Refuses a store that came with a checkout: its author decided which locks are held, and which processes signalbox ends
 * as leftovers. git never checks anything out into a `.git`, so this concerns stores elsewhere in a worktree: those that a
 * `file:` URL names, and those in a directory that `GIT_DIR` names.
 *
 * This starts git only if its index may list a file of the store; a look at the index usually rules that out.
 */
import { spawnSync } from 'node:child_process';
import { lstatSync, readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { Failure, shown } from '../../failure.ts';
import { gitEnvironment, ifPossible, QUIET, readRegularFile } from '../../host/index.ts';
import { gitDirectoryAt } from './git-directory.ts';
import { isOurs } from './git-ownership.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const GIT_TIMEOUT_MS = 10_000;
/** The index of a million files has some hundred MiB. */
const LARGEST_INDEX_BYTES = 512 << 20;
/** The beginnings of the names of files that the embedded engine reads. A `.gitignore` next to them may well be tracked. */
const OF_A_STORE = /^(?:store\.db|bells|rounds-)/;
/** Older index versions list whole paths; in newer ones each path leaves out the prefix that it shares with the one before. */
const PLAIN_INDEX_VERSIONS = [2, 3];

/** `directory`: with its links resolved. */
export function refuseCheckedOut(directory: string, environment: Environment = process.env): void {
  if (directory.split(sep).includes('.git')) return;
  const files = entriesOf(directory).filter((name) => OF_A_STORE.test(name));
  if (files.length > 0) refuseTracked(directory, directory, files, environment);
}

/** `directory`: as it was named. Following a link in a checkout would let its author choose the place. */
export function refuseCheckedOutLinks(directory: string, environment: Environment = process.env): void {
  for (let path = directory; path !== dirname(path); path = dirname(path)) {
    if (!isLink(path)) continue;
    const parent = realpathSync(dirname(path));
    if (!parent.split(sep).includes('.git')) refuseTracked(directory, parent, [basename(path)], environment);
  }
}

function refuseTracked(store: string, folder: string, names: readonly string[], environment: Environment): void {
  for (let place = folder; ; place = dirname(place)) {
    const index = indexAt(place, environment);
    if (index !== undefined) {
      const paths = names.map((name) => relative(place, join(folder, name)).split(sep).join('/'));
      const mayBe = mayList(index, paths);
      const tracked = mayBe === true ? trackedOf(place, paths, environment) : mayBe === false ? [] : undefined;
      if (tracked === undefined || tracked.length > 0) throw refusal(store, place, tracked?.[0]);
      return;
    }
    if (place === dirname(place)) return;
  }
}

function refusal(store: string, worktree: string, tracked: string | undefined): Failure {
  const why =
    tracked === undefined
      ? `git cannot say whether it came with the checkout in ${worktree}`
      : `it came with the checkout in ${worktree} (git tracks ${shown(tracked)})`;
  return new Failure(
    'forbidden',
    `${store} is not used as a store: ${why}, and the author of a committed store decides what is locked and which processes ` +
      'are ended. Remove it from git (git rm -r), or name another directory with SIGNALBOX_URL=file:DIRECTORY',
  );
}

interface Index {
  readonly gitDirectory: string;
  readonly file: string;
}

/**
 * The index of the worktree whose root this is; undefined if it is none. The worktree of another user does not count: it could
 * name programs that git runs, and its index could list anything. Files that another user checked out are refused for their
 * owner.
 */
function indexAt(place: string, environment: Environment): Index | undefined {
  try {
    // GIT_DIR and its like in the environment are about another repository.
    const found = gitDirectoryAt(place, place, { PATH: environment['PATH'] });
    const isTrusted = [place, found?.gitFile, found?.directory].every(
      (path) => path === undefined || isOurs(path, environment),
    );
    return found === undefined || !isTrusted
      ? undefined
      : { gitDirectory: found.directory, file: join(found.directory, 'index') };
  } catch {
    // A `.git` that git cannot use either.
    return undefined;
  }
}

/** False is certain. Undefined: there is something else in place of the index, and git would wait for it. */
function mayList({ gitDirectory, file }: Index, paths: readonly string[]): boolean | undefined {
  if (!isThere(file)) return false;
  const index = readRegularFile(file, LARGEST_INDEX_BYTES);
  if (index === undefined) return undefined;
  const isPlain =
    index.length >= 12 &&
    index.toString('latin1', 0, 4) === 'DIRC' &&
    PLAIN_INDEX_VERSIONS.includes(index.readUInt32BE(4)) &&
    // A split index has most of its entries in another file.
    !entriesOf(gitDirectory).some((name) => name.startsWith('sharedindex.'));
  return !isPlain || paths.some((path) => index.includes(path));
}

/** The tracked files at or below these paths; undefined if git cannot answer. */
function trackedOf(place: string, paths: readonly string[], environment: Environment): readonly string[] | undefined {
  const args = [...QUIET, '--literal-pathspecs', 'ls-files', '-z', '--', ...paths];
  const { status, stdout, stderr } = spawnSync('git', args, {
    cwd: place,
    env: gitEnvironment(environment),
    encoding: 'utf8',
    timeout: GIT_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  return status === 0 && !/^(?:error|fatal):/m.test(stderr) ? stdout.split('\0').slice(0, -1) : undefined;
}

function entriesOf(directory: string): readonly string[] {
  return ifPossible(() => readdirSync(directory)) ?? [];
}

function isThere(path: string): boolean {
  return ifPossible(() => lstatSync(path, { throwIfNoEntry: false }) !== undefined) ?? true;
}

function isLink(path: string): boolean {
  return ifPossible(() => lstatSync(path).isSymbolicLink()) ?? false;
}
