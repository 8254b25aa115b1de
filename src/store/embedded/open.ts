/**
 * From a directory to a store. A file that is not ours, is damaged, or was written by a later version is refused and
 * left as it is.
 */
import { closeSync, existsSync, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type Sqlite from 'better-sqlite3';
import { type Clock, systemClock } from '../../clock.ts';
import { Failure, shown } from '../../failure.ts';
import type { ProcessIdentity } from '../../host/index.ts';
import { checkHistoryLimit } from '../check.ts';
import { Connection } from './connection.ts';
import { networkFileSystem } from './network-file-system.ts';
import { APPLICATION_ID, FORMAT, SCHEMA } from './schema.ts';
import { openSqlite } from './sqlite.ts';
import { asFailure, busyTooLong, isBusy } from './sqlite-failure.ts';
import { EmbeddedStore } from './store.ts';

/**
 * `normal`: consistent after any crash of processes or machine; the last instants before a power cut may be lost, when
 * every holder is gone anyway. `full`: every change is on the disk before it is answered.
 */
export type Durability = 'normal' | 'full';

export interface EmbeddedOptions {
  readonly clock?: Clock | undefined;
  readonly durability?: Durability | undefined;
  /** For how many revisions watches may look back; 8,192 unless said otherwise. */
  readonly historyLimit?: number | undefined;
  /** So long is a busy file asked again before it counts as unavailable. */
  readonly busyMs?: number | undefined;
  /** Whether a process has certainly ended; tests may know better. */
  readonly isGone?: ((process: ProcessIdentity) => boolean) | undefined;
}

const DEFAULT_HISTORY = 8192;
const DEFAULT_BUSY_MS = 4000;
const MAGIC = 'SQLite format 3\0';

/** The one file in the directory that matters; the others can be made again. */
export function storeFile(directory: string): string {
  return join(directory, 'store.db');
}

export async function openEmbedded(directory: string, options: EmbeddedOptions = {}): Promise<EmbeddedStore> {
  const { clock = systemClock, historyLimit = DEFAULT_HISTORY, busyMs = DEFAULT_BUSY_MS } = options;
  checkHistoryLimit(historyLimit);
  const file = storeFile(directory);
  makeDirectory(directory);
  refuseNetworkFileSystem(directory);
  refuseForeignFile(file);
  const connection = await connect(file, options.durability ?? 'normal', clock, busyMs);
  const mark = join(directory, 'rounds');
  const store = new EmbeddedStore(connection, {
    directory,
    file,
    mark,
    clock,
    historyLimit,
    busyMs,
    isGone: options.isGone,
  });
  await store.begin();
  return store;
}

function makeDirectory(directory: string): void {
  try {
    makeWithParents(directory);
  } catch (cause) {
    throw new Failure('forbidden', `${directory} cannot be made: ${(cause as Error).message}`, { cause });
  }
}

/** Not by `recursive`: where nothing can be made although nothing is missing (`/proc`), Node goes round for ever. */
function makeWithParents(directory: string): void {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const parent = dirname(directory);
  if (parent !== directory) makeWithParents(parent);
  try {
    mkdirSync(directory);
  } catch (error) {
    // Somebody else has just made it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(directory).isDirectory()) throw error;
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

/** Looked at before SQLite is: it would write into an empty file, and complain of others in its own words. */
function refuseForeignFile(file: string): void {
  if (!existsSync(file)) return;
  const head = Buffer.alloc(MAGIC.length);
  const descriptor = openToRead(file);
  try {
    const length = readSync(descriptor, head, 0, head.length, 0);
    if (length === 0 || head.toString('latin1') === MAGIC) return;
  } finally {
    closeSync(descriptor);
  }
  throw new Failure(
    'corrupt',
    `${file} is not a store of signalbox: ${shown(head.toString('latin1'))} …; it was not touched`,
  );
}

function openToRead(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (cause) {
    throw new Failure('forbidden', `${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

async function connect(file: string, durability: Durability, clock: Clock, busyMs: number): Promise<Connection> {
  const since = clock.monotonic();
  const database = await openDatabase(file);
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        return prepare(database, file, durability);
      } catch (error) {
        // Many may open a new file at the same time; all but one of them have to ask again.
        if (!isBusy(error)) throw error;
        if (clock.monotonic() - since > busyMs) throw busyTooLong(file, clock.monotonic() - since);
        await pause(clock, Math.min(2 ** attempt, 20) * (0.5 + Math.random()));
      }
    }
  } catch (error) {
    database.close();
    throw asFailure(error, file);
  }
}

async function openDatabase(file: string): Promise<Sqlite.Database> {
  try {
    return await openSqlite(file, { timeout: 0 });
  } catch (error) {
    const failure = asFailure(error, file);
    if (failure instanceof Failure) throw failure;
    throw new Failure('forbidden', `${file} cannot be opened: ${(error as Error).message}`, { cause: error });
  }
}

function prepare(database: Sqlite.Database, file: string, durability: Durability): Connection {
  const connection = new Connection(database);
  const isOurs = connection.pragma('application_id') === APPLICATION_ID;
  if (!isOurs && hasTables(connection)) {
    throw new Failure('corrupt', `${file} is a database of another program; it was not touched`);
  }
  connection.pragma('journal_mode = WAL');
  connection.pragma(`synchronous = ${durability}`);
  if (!isOurs) {
    // Somebody else may have just made it.
    connection.write(() => {
      if (!hasTables(connection)) database.exec(SCHEMA);
    });
  }
  const format = Number(connection.pragma('user_version'));
  if (format !== FORMAT) {
    throw new Failure(
      'corrupt',
      `${file} has format ${format}, and this version of signalbox knows ${FORMAT}: ` +
        `${format > FORMAT ? 'use a newer version' : 'move the file away'}; it was not touched`,
    );
  }
  return connection;
}

function hasTables(connection: Connection): boolean {
  return connection.sql('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const alive = clock.keepAlive?.();
    clock.timer(ms, () => {
      alive?.cancel();
      resolve();
    });
  });
}
