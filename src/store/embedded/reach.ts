/** Tells people who can open the files of a store. */
import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import { groupShown, ifPossible, userShown } from '../../host/index.ts';
import { isTrustedOwner } from '../../host/index.ts';
import { BY_EVERYBODY_WRITABLE, octal } from './share.ts';

/** In such a directory, only the owner of a file may move or remove it. */
const STICKY = 0o1000;
const BY_GROUP_WRITABLE = 0o020;

/** Who can open the files of a store, as their modes say. */
export interface Reach {
  readonly who: 'owner' | 'group' | 'everybody';
  readonly owner: string;
  /** Whether this user may use the store as its owner. */
  readonly isOurs: boolean;
  readonly group: string;
  readonly mode: string;
  /** A directory above the store in which others could replace it, and what is wrong with that directory. */
  readonly weakAbove: string | undefined;
}

/** Undefined where nothing is there yet, or where the system knows no owners. */
export function reachOf(directory: string, file: string): Reach | undefined {
  if (process.geteuid === undefined) return undefined;
  const stat = lstatSync(directory, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  // If the file cannot be seen, at least the directory keeps others out; if there is no file yet, nobody can open it.
  // Not possible if the directory is closed to us.
  const mode = ifPossible(() => lstatSync(file, { throwIfNoEntry: false })?.mode) ?? 0;
  const isFor = (search: number, read: number, write: number): boolean =>
    (stat.mode & search) !== 0 && ((mode & read) !== 0 || (stat.mode & write) !== 0);
  const who = isFor(0o001, 0o006, 0o002) ? 'everybody' : isFor(0o010, 0o060, 0o020) ? 'group' : 'owner';
  return {
    who,
    owner: userShown(stat.uid),
    isOurs: isTrustedOwner(stat.uid),
    group: groupShown(stat.gid),
    mode: octal(stat.mode),
    weakAbove: weakAbove(directory),
  };
}

function weakAbove(directory: string): string | undefined {
  for (let path = dirname(directory); ; path = dirname(path)) {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    const isSticky = (stat.mode & STICKY) !== 0;
    if ((stat.mode & BY_EVERYBODY_WRITABLE) !== 0 && !isSticky) return `${path} can be written by everybody`;
    if ((stat.mode & BY_GROUP_WRITABLE) !== 0 && !isSticky && stat.gid !== 0) {
      return `${path} can be written by the group ${groupShown(stat.gid)}`;
    }
    if (stat.uid !== 0 && !isTrustedOwner(stat.uid)) return `${path} belongs to ${userShown(stat.uid)}`;
    if (path === dirname(path)) return undefined;
  }
}
