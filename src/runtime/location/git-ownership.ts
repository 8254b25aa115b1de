/**
 * Checks whether git would trust a repository that was found, not named. The owner of a repository decides what runs in it,
 * so git refuses one of another user ("dubious ownership") unless `safe.directory` lists it. A store needs the same care:
 * it says which processes are leftovers, and signalbox ends those.
 */
import { execFileSync } from 'node:child_process';
import { lstatSync, realpathSync } from 'node:fs';
import { isAbsolute, join, sep } from 'node:path';
import { Failure } from '../../failure.ts';
import { ifPossible, isTrustedOwner, userShown } from '../../host/index.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface FoundRepository {
  readonly directory: string;
  readonly gitFile?: string | undefined;
  /** Undefined for a bare repository. */
  readonly worktree?: string | undefined;
}

const GIT_TIMEOUT_MS = 10_000;

export function refuseForeign({ directory, gitFile, worktree }: FoundRepository, environment: Environment): void {
  const uid = process.geteuid?.();
  // Windows has no user ids.
  if (uid === undefined) return;
  const foreign = [gitFile, worktree, directory].find((path) => path !== undefined && !isOurs(path, environment));
  const path = worktree ?? directory;
  if (foreign === undefined || isSafe(path, environment)) return;
  const owner = ownerOf(foreign);
  const trust = `git config --global --add safe.directory ${path}`;
  // Root may use what it trusts; other users cannot open the store unless its owner has shared it.
  const how =
    uid === 0
      ? `If you trust them: ${trust}`
      : `To use it together: trust them (${trust}), and let them share the store with a group that you are in ` +
        `(signalbox doctor --store 'file:${join(directory, 'signalbox')}?share=group')`;
  throw new Failure(
    'forbidden',
    `${foreign} belongs to ${owner === undefined ? 'another user' : userShown(owner)}, and you are ${userShown(uid)}; the owner of a store ` +
      `decides which processes signalbox ends, so it is not used. ${how}. To use another one: SIGNALBOX_URL=file:DIRECTORY`,
  );
}

/** Under sudo, root may work in a repository of the user who called sudo. */
export function isOurs(path: string, environment: Environment): boolean {
  const owner = ownerOf(path);
  return owner !== undefined && isTrustedOwner(owner, environment);
}

function ownerOf(path: string): number | undefined {
  return ifPossible(() => lstatSync(path).uid);
}

/** The last matching entry decides; an empty entry cancels those before it. */
function isSafe(path: string, environment: Environment): boolean {
  let is = false;
  for (const value of safeDirectories(environment)) {
    if (value === '') is = false;
    else if (value === '*' || isWithin(path, expanded(value, environment))) is = true;
  }
  return is;
}

function isWithin(path: string, listed: string): boolean {
  if (!isAbsolute(listed)) return false;
  if (listed.endsWith('/*')) return path.startsWith(real(listed.slice(0, -2)).replace(/\/$/, '') + sep);
  return path === real(listed);
}

function expanded(value: string, environment: Environment): string {
  const home = environment['HOME'] ?? '';
  return value.startsWith('~/') && isAbsolute(home) ? join(home, value.slice(2)) : value;
}

/**
 * Asks git, which alone knows where its settings are. Asks outside of any repository, for the settings of the system, the
 * user and the command line: a repository must not be able to call itself safe.
 */
function safeDirectories(environment: Environment): readonly string[] {
  try {
    const env = { ...environment, GIT_DIR: '/dev/null', GIT_COMMON_DIR: undefined, GIT_WORK_TREE: undefined };
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
    const options = { cwd: '/', env, encoding: 'utf8' as const, timeout: GIT_TIMEOUT_MS, stdio };
    return execFileSync('git', ['config', '--null', '--get-all', 'safe.directory'], options).split('\0').slice(0, -1);
  } catch {
    // No directory is listed, or git is not installed.
    return [];
  }
}

/** The path without symbolic links; as it is if it cannot be followed. */
export function real(path: string): string {
  return ifPossible(() => realpathSync(path)) ?? path;
}
