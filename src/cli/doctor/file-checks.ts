/** Checks the directory of a `file:` store and the database in it. */
import { existsSync, statSync } from 'node:fs';
import { remedyOf, sqliteDriver } from '../../sqlite/index.ts';
import { FORMAT, networkFileSystem, type Reach, reachOf, storeFile } from '../../store/embedded/index.ts';
import { fail, type Finding, ok, warn } from './finding.ts';

export function fileSystem(directory: string, kind = networkFileSystem(directory)): Finding {
  if (kind === undefined) return ok('file-system', `${directory} appears to be on a local disk`);
  const advice = 'name a directory on a local disk with --store or SIGNALBOX_URL';
  return fail('file-system', `${directory} is on a network file system (${kind})`, advice);
}

/** Says who can open the files, and how to change that; undefined where the system does not report it. */
export function access(directory: string, reach = reachOf(directory, storeFile(directory))): Finding | undefined {
  if (reach === undefined) return undefined;
  const { who, owner, mode, weakAbove, isOurs } = reach;
  if (who === 'everybody') {
    const advice = `any user can block it; its owner closes it by using it once, or with chmod -R go= ${directory}`;
    return warn('access', `every user can open the files of ${owner} (mode ${mode})`, advice);
  }
  const message = whoHasAccess(directory, reach);
  if (who === 'owner' && !isOurs) {
    return fail('access', message, `ask ${owner} to share it with a group that you are in, or name another store`);
  }
  if (weakAbove === undefined) return ok('access', message);
  const advice = 'other users can replace the store with their own: name a directory that only you can replace';
  return warn('access', `${message}; but ${weakAbove}`, advice);
}

/** Says how to change it only to the owner, because only the owner can. */
function whoHasAccess(directory: string, { who, owner, group, isOurs }: Reach): string {
  const say = (what: string, share: string): string =>
    isOurs ? `; to ${what}: signalbox doctor --store 'file:${directory}?share=${share}'` : '';
  if (who === 'owner') return `only ${owner}${say(`share it with its group, ${group}`, 'group')}`;
  return `${owner} and all members of the group ${group}${say('end that', 'none')}`;
}

export interface DatabaseFacts {
  /** Its version, and who brings it. */
  readonly sqlite: string;
  readonly format: number;
  /** `ok`, or the damage that SQLite found. */
  readonly integrity: string;
  readonly bytes: number;
}

/** Reads the file without changing it; undefined if there is none yet. */
export function databaseFacts(directory: string): DatabaseFacts | undefined {
  const file = storeFile(directory);
  if (!existsSync(file)) return undefined;
  const driver = sqliteDriver();
  const database = driver.open(file, { isReadOnly: true, busyTimeoutMs: 2000 });
  try {
    const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string };
    return {
      sqlite: `${version} of ${driver.name}`,
      format: Number(database.pragma('user_version')),
      integrity: String(database.pragma('quick_check(1)')),
      bytes: statSync(file).size,
    };
  } finally {
    database.close();
  }
}

/** Advice for a Node that has no SQLite; undefined for other failures. The store itself is fine then. */
export function sqliteAdvice(error: unknown): string | undefined {
  const command = remedyOf(error);
  return command === undefined ? undefined : `use Node 22.16 or later, or: ${command}`;
}

const LARGE_BYTES = 2 ** 30;

export function database({ format, integrity, bytes }: DatabaseFacts): Finding {
  const message = `format ${format}, ${(bytes / 1024).toFixed(0)} KiB`;
  if (integrity !== 'ok') {
    const advice = 'export what can be read (signalbox export DIR), move the directory away, and import';
    return fail('database', `${message}: ${integrity}`, advice);
  }
  if (format !== FORMAT)
    return fail('database', `${message}; this version of signalbox reads ${FORMAT}`, 'update signalbox');
  if (bytes > LARGE_BYTES) return warn('database', message, 'it is unusually large; run signalbox maintain');
  return ok('database', `${message}, undamaged`);
}
