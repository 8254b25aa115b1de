/**
 * Checks which users may use a store. A user who can read its files can lock all others out (a read lock on the shared
 * memory keeps all writers waiting), and a user who can write them can forge every hold. So a store belongs to one user
 * and is closed to all others, unless it is shared with a group on purpose.
 *
 * Links are refused: a checkout or another user could use one to lead this process to any other file.
 */
import { chmodSync, lchownSync, lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../failure.ts';
import { groupShown, isTrustedOwner, userShown } from '../../host/index.ts';
import { makeFile } from './entries.ts';
import { heirOf, isMember, ownUid, type Trust } from './trust.ts';
import { type Access, isSharedDirectory, MODES, octal, PERMISSIONS, type Share } from './share.ts';

const BY_OWNER = 0o700;
const BY_ANYONE_ELSE_WRITABLE = 0o022;

/** The files of a store; anything else in its directory belongs to another program. */
const FILE = /^(store\.db(-wal|-shm|-journal)?|rounds-(\d+|unknown))$/;
const BELLS = 'bells';

interface Part {
  readonly path: string;
  readonly stat: Stats;
  readonly isBells: boolean;
}

/**
 * Checks whether this process may use the store in this directory, and takes away permissions that other users should not
 * have. Creates the store's file if it is missing: SQLite gives the files that it adds next to it the same mode.
 */
export function secure(
  directory: string,
  file: string,
  asked: Share | undefined,
  trust: Trust = isTrustedOwner,
): Access {
  const { stat, parts, isOurs, access } = examined(directory, file, asked, trust);
  if (isOurs) settle(directory, file, stat, parts, access);
  else makeFile(file, access);
  return access;
}

/** The same for a process that only reads: refuses what `secure` refuses, and changes nothing. */
export function refuseUntrusted(
  directory: string,
  file: string,
  asked: Share | undefined,
  trust: Trust = isTrustedOwner,
): void {
  examined(directory, file, asked, trust);
}

function examined(
  directory: string,
  file: string,
  asked: Share | undefined,
  trust: Trust,
): { readonly stat: Stats; readonly parts: readonly Part[]; readonly isOurs: boolean; readonly access: Access } {
  const stat = lstatSync(directory);
  if (!stat.isDirectory()) throw refused(`${directory} is ${kindOf(stat)}, and no directory`);
  const isOurs = trust(stat.uid);
  if (!isOurs && (asked !== 'group' || !isSharedDirectory(stat) || !isMember(stat.gid))) {
    throw notYours(directory, stat, asked);
  }
  const share = asked ?? recordedShare(stat, file);
  const access = { share, heir: heirOf(stat, share) };
  const parts = partsOf(directory);
  refuseOddKinds(parts);
  // In a directory that all members write, the owner of a file does not show whether to trust it.
  if (share === 'none' || !isSharedDirectory(stat)) refuseForeign(parts, trust);
  return { stat, parts, isOurs, access };
}

function partsOf(directory: string): Part[] {
  return readdirSync(directory).flatMap((name) => {
    if (name !== BELLS && !FILE.test(name)) return [];
    const path = join(directory, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat === undefined ? [] : [{ path, stat, isBells: name === BELLS }];
  });
}

/** If the URL does not say, the owner finds the store as it was left: a shared store stays shared for the others. */
function recordedShare(directory: Stats, file: string): Share {
  const mode = lstatSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  const isShared = isSharedDirectory(directory) && (mode & MODES.group.file) === MODES.group.file;
  return isShared ? 'group' : 'none';
}

function refuseOddKinds(parts: readonly Part[]): void {
  for (const { path, stat, isBells } of parts) {
    if (isBells ? stat.isDirectory() : stat.isFile()) continue;
    throw refused(
      `${path} is ${kindOf(stat)}, and no ${isBells ? 'directory' : 'regular file'}: signalbox never makes such a thing, ` +
        `so this store may be a trap. Nothing was changed; see where it came from, and remove it`,
    );
  }
}

function refuseForeign(parts: readonly Part[], trust: Trust): void {
  for (const { path, stat } of parts) {
    if (trust(stat.uid)) continue;
    throw refused(
      `${path} belongs to ${userShown(stat.uid)}, and this process runs as ${userShown(ownUid())}. ` +
        `Nothing was changed; remove the file if nobody uses it, or make it yours (chown)`,
    );
  }
}

/** Brings all modes to what they should be. The directory is closed first, so that nobody else can move files meanwhile. */
function settle(directory: string, file: string, stat: Stats, parts: readonly Part[], access: Access): void {
  if (process.geteuid === undefined) return makeFile(file, access);
  const others = readdirSync(directory).filter((name) => name !== BELLS && !FILE.test(name));
  if (others.length > 0) return settleAmongOthers(directory, file, stat, parts, access, others);
  const { share } = access;
  const wanted = directoryMode(stat, share);
  const isMade = parts.some(({ path }) => path === file);
  if (isMade && (stat.mode & PERMISSIONS) === wanted && misfits(parts, stat, share).length === 0) return;
  change(directory, directoryMode(stat, 'none'));
  for (const part of misfits(partsOf(directory), stat, share)) fit(part, stat, share);
  makeFile(file, access);
  change(directory, wanted);
}

/** A directory that has another purpose (a project, `/tmp`) is not ours to close: it has to be safe as it is. */
function settleAmongOthers(
  directory: string,
  file: string,
  stat: Stats,
  parts: readonly Part[],
  access: Access,
  others: readonly string[],
): void {
  const among = `${directory} has other files in it (${others.slice(0, 3).join(', ')}) and mode ${octal(stat.mode)}`;
  const instead = `name a directory of its own, file:${join(directory, 'signalbox')}`;
  if (access.share === 'group' && !isSharedDirectory(stat)) {
    throw refused(`${among}, so it is not opened to its group: ${instead}?share=group`);
  }
  if (access.share === 'none') {
    if ((stat.mode & BY_ANYONE_ELSE_WRITABLE) !== 0) {
      const close = `or let only yourself write this one: chmod go-w ${directory}`;
      throw refused(`${among}, so other users can replace what is in it: ${instead}, ${close}`);
    }
    for (const part of misfits(parts, stat, 'none')) fit(part, stat, 'none');
  }
  makeFile(file, access);
}

/** Finds the parts with wrong modes, but only those that belong to this user: other members open their own files. */
function misfits(parts: readonly Part[], directory: Stats, share: Share): Part[] {
  return parts.filter(({ stat, isBells }) => {
    if (stat.isSymbolicLink() || !(isTrustedOwner(stat.uid) || stat.uid === directory.uid)) return false;
    if (share === 'group' && stat.gid !== directory.gid) return true;
    return (stat.mode & PERMISSIONS) !== (isBells ? directoryMode : fileMode)(stat, share);
  });
}

function fit({ path, stat, isBells }: Part, directory: Stats, share: Share): void {
  if (share === 'group' && stat.gid !== directory.gid) {
    try {
      lchownSync(path, stat.uid, directory.gid);
    } catch {
      // Its owner is not in that group, or the file has just gone: a user who cannot open it gets the error.
    }
  }
  change(path, (isBells ? directoryMode : fileMode)(stat, share));
}

/** Leaves the owner's own permissions as they are: a store that was made read-only on purpose is not opened up. */
function directoryMode({ mode }: Stats, share: Share): number {
  return (mode & BY_OWNER) | (MODES[share].directory & ~BY_OWNER);
}

function fileMode({ mode }: Stats, share: Share): number {
  return (mode & BY_OWNER) | (MODES[share].file & ~BY_OWNER);
}

function change(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch {
    // The file has just gone, or this file system keeps no modes (vfat): `doctor` tells who has access.
  }
}

function notYours(directory: string, stat: Stats, asked: Share | undefined): Failure {
  const owner = userShown(stat.uid);
  const you = userShown(ownUid());
  const told = `the store ${directory} belongs to ${owner}`;
  const shared = `file:${directory}?share=group`;
  if (!isSharedDirectory(stat)) {
    return refused(
      `${told}, and you are ${you}, so you cannot use it. To use it together, its owner shares it with a group that ` +
        `you are in (signalbox doctor --store '${shared}'), and you name it the same way. To use another one: ` +
        `SIGNALBOX_URL=file:DIRECTORY, which does not exclude those who use this one`,
    );
  }
  const group = groupShown(stat.gid);
  if (!isMember(stat.gid)) {
    return refused(`${told}, who shares it with the group ${group}. You (${you}) are not in that group`);
  }
  return refused(
    asked === 'none'
      ? `${told}, and only ${owner} can end the sharing`
      : `${told}, who shares it with the group ${group}. You (${you}) are in that group: if you trust its members, ` +
          `name it as '${shared}'`,
  );
}

function refused(message: string): Failure {
  return new Failure('forbidden', message);
}

function kindOf(stat: Stats): string {
  if (stat.isSymbolicLink()) return 'a symbolic link';
  if (stat.isDirectory()) return 'a directory';
  if (stat.isFile()) return 'a file';
  if (stat.isFIFO()) return 'a pipe';
  return stat.isSocket() ? 'a socket' : 'a device';
}
