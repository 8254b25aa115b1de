/** Real processes of other users, for tests that root can run. */
import { accessSync, constants, lstatSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../house/sources.ts';
import { CLI, type CliOptions, type Started, startProgram } from './cli.ts';

export interface User {
  readonly uid: number;
  readonly gid: number;
  readonly groups?: readonly number[];
}

/** Made up, but for the first: no machine needs to know them. */
export const NOBODY: User = { uid: 65_534, gid: 65_534 };
export const TEAM = 54_321;
export const ANNA: User = { uid: 54_001, gid: 54_001, groups: [TEAM] };
export const BERT: User = { uid: 54_002, gid: 54_002, groups: [TEAM] };

/** Why other users cannot be played here; undefined where they can. */
export function whyNoOthers(): string | undefined {
  if (process.platform !== 'linux') return 'setpriv is only on Linux';
  if (process.geteuid?.() !== 0) return 'only root can start processes of other users';
  try {
    accessSync('/usr/bin/setpriv', constants.X_OK);
  } catch {
    return 'setpriv is not installed';
  }
  const closed = [CLI, process.execPath, join(root, 'node_modules')].flatMap((path) => closedOnTheWay(path));
  return closed.length === 0 ? undefined : `${closed[0]} is closed to other users`;
}

function closedOnTheWay(path: string): string[] {
  const closed = [];
  for (let place = dirname(realpathSync(path)); place !== dirname(place); place = dirname(place)) {
    if ((lstatSync(place).mode & 0o001) === 0) closed.push(place);
  }
  return closed;
}

/** A process of this user, with a umask of its own. */
export function startAs(user: User, program: string, args: readonly string[], options: CliOptions = {}): Started {
  const { uid, gid, groups = [] } = user;
  const asGroups = groups.length === 0 ? '--clear-groups' : `--groups=${groups.join(',')}`;
  const as = [`--reuid=${uid}`, `--regid=${gid}`, asGroups, program, ...args];
  return startProgram('/usr/bin/setpriv', as, { ...options, env: { SUDO_UID: undefined, ...options.env } });
}

export function signalboxAs(user: User, args: readonly string[], options: CliOptions = {}): Started {
  return startAs(user, process.execPath, [CLI, ...args], options);
}
