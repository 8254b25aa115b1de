/** Makes and touches the files of a store, and never follows a link. */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  lutimesSync,
} from 'node:fs';
import { mkdirSync, openSync } from 'node:fs';
import { type Access, MODES } from './share.ts';

/** Makes an empty file, unless something with this name is there. */
export function makeFile(path: string, access: Access): void {
  const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW = 0 } = constants;
  const mode = MODES[access.share].file;
  let made: number;
  try {
    made = openSync(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, mode);
  } catch {
    // The file is there, or cannot be made: the code that uses it will report that.
    return;
  }
  try {
    // Exactly this mode, whatever the umask takes away.
    fchmodSync(made, mode);
    if (access.heir !== undefined) fchownSync(made, access.heir.uid, access.heir.gid);
  } catch {
    // This file system keeps no modes.
  } finally {
    closeSync(made);
  }
}

/** Makes a directory in the store, unless it is there; throws if something else is in its place. */
export function makeFolder(path: string, access: Access): void {
  if (isFolder(path)) return;
  try {
    mkdirSync(path, MODES[access.share].directory);
  } catch (error) {
    // Another process was faster.
    if (isFolder(path)) return;
    throw error;
  }
  settleMade(path, access);
}

/**
 * Gives a directory that was just made its mode, whatever the umask took away or the directory above it added. Sets it
 * by descriptor: others may be able to put a link in its place.
 */
export function settleMade(path: string, { share, heir }: Access): void {
  const mode = MODES[share].directory;
  if (process.geteuid === undefined) return;
  const { O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants;
  let made: number;
  try {
    made = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (error) {
    // The umask took even the right to open it.
    if (share !== 'none') throw error;
    return chmodSync(path, mode);
  }
  try {
    if (heir !== undefined) fchownSync(made, heir.uid, heir.gid);
    fchmodSync(made, mode);
  } catch {
    // This file system keeps no modes.
  } finally {
    closeSync(made);
  }
}

/** A directory, and no link to one. */
export function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/**
 * Sets the times of an empty file of a store, and never those of a link's target. Only the owner of a file may choose
 * its times: for any other member of the group, the time of the last change becomes now and that of the last access
 * stays. `accessed` is in seconds.
 */
export function touch(path: string, atMs: number, accessed = atMs / 1000): void {
  try {
    lutimesSync(path, accessed, atMs / 1000);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
    touchAsMember(path);
  }
}

function touchAsMember(path: string): void {
  const { O_WRONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  // Without waiting: opening a pipe in its place would block for ever.
  const opened = openSync(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stat = fstatSync(opened);
    if (stat.isFile() && stat.size === 0) ftruncateSync(opened, 0);
  } finally {
    closeSync(opened);
  }
}
