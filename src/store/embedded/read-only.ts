/**
 * A store that this process may read and not write: on a read-only file system, or in a sandbox. It works on a private
 * copy of one moment, because even reading a live file takes writes (locks, and the ends of leases that are over). So
 * the engine is the same as everywhere, and nothing is left beside the original.
 *
 *     store.db ── a read transaction, copied by SQLite ──▶ DIRECTORY OF ITS OWN/store.db ── opened as usual, and removed
 *
 * If there is no `-wal` and no `-shm`, nobody has the store open, and SQLite would have to make them to read it. Then
 * the file alone is complete, and it is copied as it is.
 */
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure } from '../../failure.ts';
import { sqliteDriver } from '../../sqlite/index.ts';
import { refuseUntrusted } from './access.ts';
import type { Store } from '../contract.ts';
import { readsOnly } from '../reads-only.ts';
import { type EmbeddedOptions, openEmbedded, storeFile } from './open.ts';
import { asFailure } from './sqlite-failure.ts';
import { trustIn } from './trust.ts';

const MOST_ATTEMPTS = 20;
const BUSY_MS = 1000;

/** Whether the store is there, and can be read, but not written. */
export function isReadOnly(directory: string): boolean {
  const file = storeFile(directory);
  try {
    accessSync(directory, constants.R_OK | constants.X_OK);
    accessSync(file, constants.R_OK);
  } catch {
    return false;
  }
  try {
    accessSync(directory, constants.W_OK);
    accessSync(file, constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

/** Opens a copy of the store as it is now. Writes and watches are refused. */
export async function openToRead(named: string, options: EmbeddedOptions = {}): Promise<Store> {
  const directory = realpathSync(named);
  const file = storeFile(directory);
  refuseUntrusted(directory, file, options.share, trustIn(options.trustedOwner));
  const copy = mkdtempSync(join(tmpdir(), 'signalbox-look-'));
  const remove = (): void => rmSync(copy, { recursive: true, force: true });
  try {
    copyTo(file, storeFile(copy));
    return copied(await openEmbedded(copy, { clock: options.clock }), file, remove);
  } catch (error) {
    remove();
    throw error;
  }
}

function copyTo(file: string, to: string): void {
  for (let attempt = 1; ; attempt++) {
    try {
      if (existsSync(`${file}-wal`)) return copyLive(file, to);
      if (copyClosed(file, to)) return;
    } catch (error) {
      rmSync(to, { force: true });
      // The last process that has it open may close it, or another may open it, at any time.
      if (attempt === MOST_ATTEMPTS) throw asFailure(error, file);
    }
    if (attempt === MOST_ATTEMPTS) throw new Failure('unavailable', `${file} changes all the time; try again`);
  }
}

function copyLive(file: string, to: string): void {
  const database = sqliteDriver().open(file, { isReadOnly: true, busyTimeoutMs: BUSY_MS });
  try {
    database.exec(`VACUUM INTO '${to.replaceAll("'", "''")}'`);
  } finally {
    database.close();
  }
}

/** Returns false if some process opened the store meanwhile: then the copy may be torn. */
function copyClosed(file: string, to: string): boolean {
  const before = statSync(file, { bigint: true });
  copyFileSync(file, to);
  // The copy has the mode of the original.
  chmodSync(to, 0o600);
  const after = statSync(file, { bigint: true });
  if (before.mtimeNs === after.mtimeNs && before.ino === after.ino && !existsSync(`${file}-wal`)) return true;
  rmSync(to, { force: true });
  return false;
}

/** The store of a copy; `remove` removes the copy when the store is closed. */
function copied(store: Store, file: string, remove: () => void): Store {
  const refuse = (): Promise<never> => {
    const why = `${file} can only be read from here; to change or to follow it takes writing`;
    return Promise.reject(new Failure('forbidden', why));
  };
  return {
    transaction: (transaction, signal) => (readsOnly(transaction) ? store.transaction(transaction, signal) : refuse()),
    leaseState: (id, signal) => store.leaseState(id, signal),
    health: (signal) => store.health(signal),
    close: () => store.close().finally(remove),
    watch: refuse,
    grantLease: refuse,
    keepLeaseAlive: refuse,
    revokeLease: refuse,
    compact: refuse,
  };
}
