/** A directory of this user alone among the temporary files, where other users can make directories too. */
import { lstatSync, mkdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Makes `NAME-UID` if it is not there. Throws if it is not this user's alone, or if another user could replace it. */
export function ownTemporaryDirectory(name: string): string {
  const uid = process.geteuid?.();
  const parent = tmpdir();
  // The owner of a directory can rename what is in it, whoever made that.
  if (uid !== undefined && ![0, uid].includes(statSync(parent).uid)) {
    throw new Error(`${parent} belongs to another user`);
  }
  const directory = join(parent, `${name}-${uid ?? 'user'}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const found = lstatSync(directory);
  const isOwn = found.isDirectory() && (uid === undefined || (found.uid === uid && (found.mode & 0o077) === 0));
  if (!isOwn) throw new Error(`${directory} is not this user's alone`);
  return directory;
}
