/**
 * Opens the store in a directory. A file that is not ours, is damaged, or was written by a later version is refused and
 * left as it is.
 */
import { accessSync, constants, existsSync, lchownSync, mkdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Clock, pause, systemClock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { isTrustedOwner, type ProcessIdentity, thisHost } from '../../host/index.ts';
import { isBusy, sqliteDriver } from '../../sqlite/index.ts';
import { checkHistoryLimit } from '../check.ts';
import { secure } from './access.ts';
import { Connection } from './connection.ts';
import { settleMade } from './entries.ts';
import { type FileFormat, formatOf, isOpenHere } from './format.ts';
import { networkFileSystem } from './network-file-system.ts';
import { heirOf, trustIn } from './trust.ts';
import { APPLICATION_ID, FORMAT, MIGRATIONS, SCHEMA } from './schema.ts';
import { type Access, MODES, type Share } from './share.ts';
import { asFailure, busyTooLong } from './sqlite-failure.ts';
import { EmbeddedStore } from './store.ts';

/**
 * `normal`: consistent after any crash of processes or machine; a power cut may lose the last instants, but then every
 * holder is gone anyway. `full`: every change is on the disk before it is answered.
 */
export type Durability = 'normal' | 'full';

/** How to open a store in a file. */
export interface EmbeddedOptions {
  /** Where time comes from; the system, if not given. */
  readonly clock?: Clock | undefined;
  /** Whether a commit survives a crash of the machine, or only of the process. */
  readonly durability?: Durability | undefined;
  /**
   * Whether other users may use the store too. If not given, it stays as it was left, and a new store is for its owner
   * alone.
   */
  readonly share?: Share | undefined;
  /**
   * Names a user whose store root may use, because git trusts the repository that it is in (`safe.directory`). Called
   * only if need be.
   */
  readonly trustedOwner?: (() => number | undefined) | undefined;
  /** How many revisions watches may look back; 8,192 if not given. */
  readonly historyLimit?: number | undefined;
  /** How many bytes of changes watches may look back over; 16 MiB if not given. */
  readonly historyBytes?: number | undefined;
  /** How long to retry on a busy file before it counts as unavailable. */
  readonly busyMs?: number | undefined;
  /** Whether a process has certainly ended; replaced in tests. */
  readonly isGone?: ((process: ProcessIdentity) => boolean) | undefined;
}

const DEFAULT_HISTORY = 8192;
const DEFAULT_HISTORY_BYTES = 16 * 2 ** 20;
const DEFAULT_BUSY_MS = 4000;
/** SQLite's log is cut back to this size after a burst. */
const LOG_BYTES = 4 * 2 ** 20;
const FIRST_FORMAT = 1;
/** For missing directories above the store: others may enter them, if the umask lets them. */
const PARENT_MODE = 0o755;

/** The one file in the directory that matters; all others can be made again. */
export function storeFile(directory: string): string {
  return join(directory, 'store.db');
}

/** Opens a store that all processes of this machine share. */
export async function openEmbedded(named: string, options: EmbeddedOptions = {}): Promise<EmbeddedStore> {
  const { clock = systemClock, historyLimit = DEFAULT_HISTORY, busyMs = DEFAULT_BUSY_MS } = options;
  const { historyBytes = DEFAULT_HISTORY_BYTES } = options;
  checkHistoryLimit(historyLimit);
  checkHistoryLimit(historyBytes);
  const directory = makeDirectory(named);
  const file = storeFile(directory);
  refuseNetworkFileSystem(directory);
  const access = lookedAt(directory, file, options);
  refuseUnwritable(directory, file);
  const connection = await connect(file, options.durability ?? 'normal', clock, busyMs);
  // One mark for each pid namespace: a process cannot tell whether a process of another namespace has ended.
  const mark = join(directory, `rounds-${/\d+/.exec(thisHost()?.space ?? '')?.[0] ?? 'unknown'}`);
  return new EmbeddedStore(connection, {
    directory,
    file,
    mark,
    access,
    clock,
    historyLimit,
    historyBytes,
    busyMs,
    isGone: options.isGone,
  });
}

/** Returns the real path of the directory: a link that the user named is followed once, and never again. */
function makeDirectory(directory: string): string {
  try {
    makeWithParents(directory, true);
    return realpathSync(directory);
  } catch (cause) {
    throw new Failure('forbidden', whyNotMade(directory, cause as NodeJS.ErrnoException), { cause });
  }
}

/** Names the part of the path that is in the way. */
function whyNotMade(directory: string, { code, path = directory, message }: NodeJS.ErrnoException): string {
  if (code === 'EEXIST') return `${path} is a file; expected a directory`;
  if (code === 'ENOTDIR') return `${directory}: a part of this path is a file; expected a directory`;
  if (code === 'EACCES') return `${path}: you have no permission to make or read this directory`;
  return `${directory} cannot be made: ${message}`;
}

/**
 * Makes the missing directories one by one, not with `recursive`: where nothing can be made although nothing is missing
 * (`/proc`), Node would loop for ever. Returns who will own what is made in the directory: the nearest existing
 * directory above decides for all that are made below it.
 */
function makeWithParents(directory: string, isStore: boolean): Access['heir'] {
  const found = statSync(directory, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) return callerIn(found);
  const parent = dirname(directory);
  const heir = parent === directory ? undefined : makeWithParents(parent, false);
  try {
    mkdirSync(directory, isStore ? MODES.none.directory : PARENT_MODE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // Another process has just made it.
    const made = statSync(directory);
    if (!made.isDirectory()) throw error;
    return callerIn(made) ?? heir;
  }
  if (isStore) settleMade(directory, { share: 'none', heir });
  else if (heir !== undefined) bequeath(directory, heir);
  return heir;
}

function bequeath(directory: string, { uid, gid }: NonNullable<Access['heir']>): void {
  try {
    lchownSync(directory, uid, gid);
  } catch {
    // This file system keeps no owners.
  }
}

/** What root makes in a directory of the user who called `sudo` is for that user. */
function callerIn(parent: Stats): Access['heir'] {
  return isTrustedOwner(parent.uid) ? heirOf(parent, 'none') : undefined;
}

function lookedAt(directory: string, file: string, { share, trustedOwner }: EmbeddedOptions): Access {
  try {
    return secure(directory, file, share, trustIn(trustedOwner));
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure('forbidden', `${directory} cannot be looked at: ${(cause as Error).message}`, { cause });
  }
}

function refuseNetworkFileSystem(directory: string): void {
  const kind = networkFileSystem(directory);
  if (kind === undefined) return;
  throw new Failure(
    'forbidden',
    `${directory} is on a network file system (${kind}), where several machines would break each other's store; ` +
      `name a directory on a local disk`,
  );
}

/**
 * Asks the system instead of opening the files: closing a file that SQLite has open in the same process drops SQLite's
 * locks on it.
 */
function refuseUnwritable(directory: string, file: string): void {
  try {
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw new Failure('forbidden', `${file} cannot be written: ${(cause as Error).message}`, { cause });
  }
}

async function connect(file: string, durability: Durability, clock: Clock, busyMs: number): Promise<Connection> {
  const since = clock.monotonic();
  const connection = openDatabase(file);
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        prepare(connection, file, durability);
        return connection;
      } catch (error) {
        // Many processes may open a new file at the same time; all but one of them have to try again.
        if (!isBusy(error)) throw error;
        if (clock.monotonic() - since > busyMs) throw busyTooLong(file, clock.monotonic() - since);
        await pause(Math.min(2 ** attempt, 20) * (0.5 + Math.random()), undefined, clock);
      }
    }
  } catch (error) {
    connection.close();
    throw asFailure(error, file);
  }
}

function openDatabase(file: string): Connection {
  const driver = sqliteDriver();
  let leave = (): void => undefined;
  try {
    leave = enter(file);
    return new Connection(driver.open(file), leave);
  } catch (error) {
    leave();
    const failure = asFailure(error, file);
    if (failure instanceof Failure) throw failure;
    throw new Failure('forbidden', `${file} cannot be opened: ${(error as Error).message}`, { cause: error });
  }
}

/** Files that this process has open, by device and inode, and how often. */
const inUse = new Map<string, number>();

/**
 * Reads the format before SQLite touches the file, but only while nothing in this process has it open: see `formatOf`.
 * Otherwise `prepare` asks SQLite. Returns what to call when SQLite has let go of the file.
 */
function enter(file: string): () => void {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return () => undefined;
  const place = `${stat.dev}:${stat.ino}`;
  if (!inUse.has(place) && !isOpenHere(stat)) refuseOtherFormats(file, formatOf(file));
  inUse.set(place, (inUse.get(place) ?? 0) + 1);
  return () => {
    const left = (inUse.get(place) ?? 1) - 1;
    if (left > 0) inUse.set(place, left);
    else inUse.delete(place);
  };
}

function refuseOtherFormats(file: string, found: FileFormat | undefined): void {
  if (found?.applicationId !== APPLICATION_ID) return;
  const { format } = found;
  if (format > FORMAT) {
    throw new Failure(
      'corrupt',
      `${file} has format ${format}, and this version of signalbox knows ${FORMAT}: use a newer version; ` +
        `it was not touched`,
    );
  }
  if (format < FIRST_FORMAT) {
    throw new Failure(
      'corrupt',
      `${file} has format ${format}, which no version of signalbox writes: the store is damaged and was not touched; ` +
        `move it away, or restore it from an export`,
    );
  }
}

function prepare(connection: Connection, file: string, durability: Durability): void {
  // All of one moment: another process may just be making the tables.
  const { isUsed, ...found } = connection.read(() => ({
    applicationId: Number(connection.pragma('application_id')),
    format: Number(connection.pragma('user_version')),
    isUsed: hasTables(connection),
  }));
  refuseOtherFormats(file, found);
  const isOurs = found.applicationId === APPLICATION_ID;
  if (!isOurs && isUsed) {
    throw new Failure('corrupt', `${file} is a database of another program; it was not touched`);
  }
  // Set while the file is empty: later it takes a `VACUUM`.
  if (!isOurs) connection.pragma('auto_vacuum = INCREMENTAL');
  if (connection.pragma('journal_mode = WAL') !== 'wal') {
    throw new Failure('forbidden', `${file} is on a file system that cannot share memory between processes`);
  }
  connection.pragma(`synchronous = ${durability}`);
  connection.pragma(`journal_size_limit = ${LOG_BYTES}`);
  if (!isOurs) {
    // Another process may have just made the tables.
    connection.write(() => {
      if (!hasTables(connection)) connection.execute(SCHEMA);
    });
  }
  migrate(connection);
  letShrink(connection);
}

/**
 * Lets a file of format 1 shrink: it was made without that setting, and setting it takes a `VACUUM`, which needs room
 * for a copy of the file. Whatever goes wrong (the file is busy, the disk is full), the file is as good as before, and
 * the next opening tries again.
 */
function letShrink(connection: Connection): void {
  if (Number(connection.pragma('auto_vacuum')) !== 0) return;
  try {
    connection.pragma('auto_vacuum = INCREMENTAL');
    connection.execute('VACUUM');
  } catch {
    // The next opening tries again.
  }
}

/** Brings a file of an older format up to this one, in one transaction. */
function migrate(connection: Connection): void {
  if (Number(connection.pragma('user_version')) >= FORMAT) return;
  connection.write(() => {
    for (let format = Number(connection.pragma('user_version')); format < FORMAT; format++) {
      connection.execute(MIGRATIONS.get(format + 1) as string);
    }
  });
}

function hasTables(connection: Connection): boolean {
  return connection.sql('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
}
