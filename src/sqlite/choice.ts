/** Chooses a driver, once in a process: two drivers would drop each other's locks on one file. */
import { loadBetterSqlite3 } from './better-sqlite3.ts';
import type { SqliteDriver } from './driver.ts';
import { hasNodeSqlite, loadNodeSqlite } from './node-sqlite.ts';

let chosen: SqliteDriver | undefined;

/** Loads the driver when it is first needed: a process that opens no such store does not pay for it. Throws `SqliteMissing`. */
export function sqliteDriver(): SqliteDriver {
  chosen ??= (hasNodeSqlite(process.versions.node) ? loadNodeSqlite() : undefined) ?? loadBetterSqlite3();
  return chosen;
}
