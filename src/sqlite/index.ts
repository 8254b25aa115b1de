export { sqliteDriver } from './choice.ts';
export type { Database, DriverName, OpenOptions, SqliteDriver, Statement } from './driver.ts';
export { isBusy, sqliteResult } from './result.ts';
export { remedyOf } from './sqlite-missing.ts';
