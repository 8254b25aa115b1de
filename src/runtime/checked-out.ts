/**
 * Refuses a store that came with a checkout. Its author decided what is in it: which locks are held, which processes are
 * leftovers. git never checks out anything into a `.git`, so this concerns stores elsewhere in a worktree: those that a
 * `file:` URL names, and those in a directory that `GIT_DIR` names.
 *
 * git is started only if its index may list something of the store; most often a look at the index tells that it does not.
 */
import { spawnSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { Failure, shown } from '../failure.ts';
import { gitDirectoryAt } from './git-directory.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const GIT_TIMEOUT_MS = 10_000;
/** What the embedded engine reads, by how it begins. A `.gitignore` beside it may well be tracked. */
const OF_A_STORE = /^(?:store\.db|bells|rounds-)/;
/** Older ones list whole paths; in later ones each path leaves out what it shares with the one before. */
const PLAIN_INDEX_VERSIONS = [2, 3];

/** `directory` without links in it. */
export function refuseCheckedOut(directory: string, environment: Environment = process.env): void {
  if (directory.split(sep).includes('.git')) return;
  const files = entriesOf(directory).filter((name) => OF_A_STORE.test(name));
  if (files.length > 0) refuseTracked(directory, directory, files, environment);
}

/** `directory` as it was named. A link in a checkout would have its author choose the place. */
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
      const tracked = mayList(index, paths) ? trackedOf(place, paths, environment) : [];
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
    `${store} is not used as a store: ${why}, and whoever committed a store decides what is locked and which processes ` +
      'are ended. Remove it from git (git rm -r), or name another directory with SIGNALBOX_URL=file:DIRECTORY',
  );
}

interface Index {
  readonly gitDirectory: string;
  readonly file: string;
}

/** Of the worktree whose root this is; undefined if it is none. */
function indexAt(place: string, environment: Environment): Index | undefined {
  try {
    // What the environment says of other repositories is no matter here.
    const gitDirectory = gitDirectoryAt(place, place, { PATH: environment['PATH'] })?.directory;
    return gitDirectory === undefined ? undefined : { gitDirectory, file: join(gitDirectory, 'index') };
  } catch {
    // A `.git` that git cannot use either.
    return undefined;
  }
}

/** False is certain. */
function mayList({ gitDirectory, file }: Index, paths: readonly string[]): boolean {
  let index: Buffer;
  try {
    index = readFileSync(file);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
  const isPlain =
    index.length >= 12 &&
    index.toString('latin1', 0, 4) === 'DIRC' &&
    PLAIN_INDEX_VERSIONS.includes(index.readUInt32BE(4)) &&
    // A split index has most of its entries in another file.
    !entriesOf(gitDirectory).some((name) => name.startsWith('sharedindex.'));
  return !isPlain || paths.some((path) => index.includes(path));
}

/** Those of these paths, or below them, that git tracks; undefined if it does not say. */
function trackedOf(place: string, paths: readonly string[], environment: Environment): readonly string[] | undefined {
  const env = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('GIT_')));
  const args = ['-c', 'core.fsmonitor=false', '--literal-pathspecs', 'ls-files', '-z', '--', ...paths];
  const { status, stdout } = spawnSync('git', args, {
    cwd: place,
    // Whose worktree it is does not matter for what is tracked in it; nothing of it is run.
    env: { ...env, GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' },
    encoding: 'utf8',
    timeout: GIT_TIMEOUT_MS,
  });
  return status === 0 ? stdout.split('\0').slice(0, -1) : undefined;
}

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}
