/** SQLite for tests that look into a store, or plant something in it: by the driver that signalbox itself uses here. */
import { type Database, sqliteDriver } from '../../src/sqlite/index.ts';

export function openDatabase(file: string): Database {
  return sqliteDriver().open(file);
}

/** Opens the file for one statement, and answers its rows. */
export function sql<T>(file: string, text: string, ...bound: readonly unknown[]): T[] {
  const database = openDatabase(file);
  try {
    const statement = database.prepare(text);
    if (/^\s*(SELECT|PRAGMA)\b/i.test(text)) return statement.all(...bound) as T[];
    statement.run(...bound);
    return [];
  } finally {
    database.close();
  }
}
