import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { otherNode } from '../../scripts/nodes.mjs';
import { Failure } from '../failure.ts';
import { loadBetterSqlite3 } from './better-sqlite3.ts';
import { sqliteDriver } from './choice.ts';
import { hasNodeSqlite } from './node-sqlite.ts';
import { installationOf, installCommand, rebuildCommand } from './remedy.ts';
import { isBusy, sqliteResult } from './result.ts';
import { remedyOf, SqliteMissing } from './sqlite-missing.ts';

const told = (error: object): Error => Object.assign(new Error('told'), error);

describe('SQLite', () => {
  it("is Node's own from 22.16 on, where it knows its transactions, and never the one of Node 23", () => {
    const versions = ['20.20.2', '22.15.1', '22.16.0', '22.23.3', '23.11.1', '24.0.0', '26.10.0'];
    expect(versions.filter(hasNodeSqlite)).toEqual(['22.16.0', '22.23.3', '24.0.0', '26.10.0']);
    expect(sqliteDriver().name).toBe(hasNodeSqlite(process.versions.node) ? 'node:sqlite' : 'better-sqlite3');
  });

  it('tells what went wrong alike by both drivers', () => {
    const both = (name: string, errcode: number): (string | undefined)[] =>
      [told({ code: name }), told({ code: 'ERR_SQLITE_ERROR', errcode })].map(sqliteResult);
    expect(both('SQLITE_BUSY', 5)).toEqual(['SQLITE_BUSY', 'SQLITE_BUSY']);
    expect(both('SQLITE_FULL', 13)).toEqual(['SQLITE_FULL', 'SQLITE_FULL']);
    expect(both('SQLITE_NOTADB', 26)).toEqual(['SQLITE_NOTADB', 'SQLITE_NOTADB']);
    // Extended codes, as SQLite has them for a file that is being recovered, and for a write that failed.
    expect(
      [told({ code: 'SQLITE_BUSY_RECOVERY' }), told({ code: 'ERR_SQLITE_ERROR', errcode: 261 })].map(isBusy),
    ).toEqual([true, true]);
    expect(sqliteResult(told({ code: 'ERR_SQLITE_ERROR', errcode: 778 }))).toBe('SQLITE_IOERR');
    expect(sqliteResult(told({ code: 'ENOENT' }))).toBeUndefined();
    expect(isBusy('SQLITE_BUSY')).toBe(false);
  });

  it('tells of a busy file, a full transaction, and text with a NUL as the driver of this Node does', () => {
    const database = sqliteDriver().open(':memory:');
    database.exec('CREATE TABLE t (a TEXT, n INTEGER)');
    expect(database.isInTransaction).toBe(false);
    database.exec('BEGIN');
    expect(database.isInTransaction).toBe(true);
    database.prepare('INSERT INTO t VALUES (?, ?)').run('a\0b', 2 ** 53 - 1);
    database.exec('COMMIT');
    expect(database.prepare('SELECT n FROM t').get()).toMatchObject({ n: 2 ** 53 - 1 });
    if (database.readsWholeText) expect(database.prepare('SELECT a FROM t').get()).toMatchObject({ a: 'a\0b' });
    expect(database.pragma('user_version')).toBe(0);
    expect(database.pragma('synchronous = normal')).toBeUndefined();
    expect(() => database.prepare('SELEC')).toThrow();
    database.close();
    database.close();
  });
});

describe.skipIf(hasNodeSqlite(process.versions.node))('better-sqlite3, driven without its own JavaScript', () => {
  const read = (error: unknown): string | undefined => sqliteResult(error);
  const failureOf = (work: () => unknown): unknown => {
    try {
      return work();
    } catch (error) {
      return error;
    }
  };

  it('leaves its errors to a program that uses the package too, and tells them apart before and after', async () => {
    const database = sqliteDriver().open(':memory:');
    const before = failureOf(() => database.prepare('SELEC'));
    expect(before).toMatchObject({ message: 'near "SELEC": syntax error', code: 'SQLITE_ERROR' });
    const { default: Package } = await import('better-sqlite3');
    const file = createRequire(import.meta.url).resolve('better-sqlite3/build/Release/better_sqlite3.node');
    const theirs = new Package(':memory:', { nativeBinding: file });
    expect(failureOf(() => theirs.prepare('SELEC'))).toBeInstanceOf(Package.SqliteError);
    const after = sqliteDriver().open(':memory:');
    expect(failureOf(() => theirs.prepare('SELEC'))).toBeInstanceOf(Package.SqliteError);
    expect([before, failureOf(() => after.prepare('SELEC'))].map(read)).toEqual(['SQLITE_ERROR', 'SQLITE_ERROR']);
    for (const one of [database, theirs, after]) one.close();
  });

  it('of another version is driven as it documents itself', () => {
    const database = loadBetterSqlite3('another').open(':memory:', { busyTimeoutMs: 7 });
    database.exec('CREATE TABLE t (a)');
    database.prepare('INSERT INTO t VALUES (?)').run('x');
    expect(database.prepare('SELECT a FROM t').get()).toEqual({ a: 'x' });
    expect(database.pragma('busy_timeout')).toBe(7);
    expect(read(failureOf(() => database.prepare('SELEC')))).toBe('SQLITE_ERROR');
    expect(database.isInTransaction).toBe(false);
    database.close();
  });

  it('refuses to write what it opened to read, and to make a file that is missing', () => {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-sqlite-'));
    try {
      const path = join(directory, 'a.db');
      expect(read(failureOf(() => sqliteDriver().open(path, { isReadOnly: true })))).toBe('SQLITE_CANTOPEN');
      expect(existsSync(path)).toBe(false);
      const database = sqliteDriver().open(path, { busyTimeoutMs: 7 });
      database.exec('CREATE TABLE t (a)');
      expect(database.pragma('busy_timeout')).toBe(7);
      database.close();
      const reader = sqliteDriver().open(path, { isReadOnly: true });
      expect(read(failureOf(() => reader.exec('INSERT INTO t VALUES (1)')))).toBe('SQLITE_READONLY');
      reader.close();
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

describe('a place without SQLite', () => {
  const project = (path: string): boolean => path === '/home/me/app/package.json';

  it('gets the exact command, and the directory to type it in', () => {
    const at = (file: string): string => installCommand(installationOf(file, project));
    expect(at('/home/me/app/node_modules/signalbox/dist/chunks/a.js')).toBe(
      'cd /home/me/app && npm install better-sqlite3@12.9.0',
    );
    expect(at('/usr/lib/node_modules/signalbox/dist/bin/main.cjs')).toBe('npm install --global better-sqlite3@12.9.0');
    expect(at('/home/me/.npm/_npx/1f2e/node_modules/signalbox/dist/bin/main.cjs')).toBe(
      'npx --package signalbox --package better-sqlite3@12.9.0 signalbox …',
    );
    expect(at('/home/me/app/dist/bin/main.cjs')).toBe('cd /home/me/app && npm run build');
    const spaced = installationOf("/home/my app's/node_modules/signalbox/dist/a.js", () => true);
    expect(rebuildCommand(spaced)).toContain("cd '/home/my app'\\''s' && npm rebuild better-sqlite3");
  });

  it('is known by the command that helps, in whichever file of the command line it was thrown', () => {
    const error = new SqliteMissing('there is none', 'npm install --global better-sqlite3@12.9.0');
    expect(error).toBeInstanceOf(Failure);
    expect(error.message).toBe('there is none: npm install --global better-sqlite3@12.9.0');
    expect(remedyOf(error)).toBe('npm install --global better-sqlite3@12.9.0');
    expect(remedyOf(new Failure('unavailable', 'busy'))).toBeUndefined();
  });
});

it('holds back no warning but the one about SQLite', async () => {
  const { loadNodeSqlite } = await import('./node-sqlite.ts');
  const emitted = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const original = vi.spyOn(process, 'getBuiltinModule').mockImplementation(() => {
    process.emitWarning('SQLite is an experimental feature', 'ExperimentalWarning');
    process.emitWarning('Something else', 'ExperimentalWarning');
    process.emitWarning('SQLite is old', 'DeprecationWarning');
    return undefined as never;
  });
  try {
    expect(loadNodeSqlite()).toBeUndefined();
    expect(emitted.mock.calls.map(([text]) => text)).toEqual(['Something else', 'SQLite is old']);
    expect(process.emitWarning).toBe(emitted);
  } finally {
    original.mockRestore();
    emitted.mockRestore();
  }
});

describe.skipIf(otherNode() === undefined)('the other driver', () => {
  it('is the one of the other Node', () => {
    const script = `process.stdout.write(process.versions.node)`;
    const version = execFileSync(otherNode() as string, ['-e', script], { encoding: 'utf8' });
    expect(hasNodeSqlite(version)).toBe(!hasNodeSqlite(process.versions.node));
  });
});
