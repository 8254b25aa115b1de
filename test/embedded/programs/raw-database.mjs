// @ts-check
// SQLite for programs that disturb a store from another process: Node's own, or better-sqlite3 where there is none.
import { createRequire } from 'node:module';

/** @returns {{ exec(sql: string): unknown, close(): unknown }} */
export function openRaw(/** @type {string} */ file) {
  if (Number.parseInt(process.versions.node, 10) >= 22) {
    // Node 22 warns that it is experimental.
    process.removeAllListeners('warning');
    const { DatabaseSync } = /** @type {any} */ (process.getBuiltinModule('node:sqlite'));
    return new DatabaseSync(file);
  }
  return new (createRequire(import.meta.url)('better-sqlite3'))(file);
}
