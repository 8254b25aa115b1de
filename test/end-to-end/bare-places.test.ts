// Places where something is missing that others take for granted: a home, an entry for the user, SQLite's native part.

import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasNodeSqlite } from '../../src/sqlite/node-sqlite.ts';
import { root } from '../house/sources.ts';
import { CLI, type Ended, startProgram } from '../support/cli.ts';

/** Nobody has this id. */
const UID = '54321';
const canBecomeOthers = process.getuid?.() === 0 && spawnSync('setpriv', ['--version']).status === 0;

let place: string;
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'signalbox-bare-'));
  chmodSync(place, 0o755);
  // What others may write is not trusted with a store.
  mkdirSync(join(place, 'own'));
  if (canBecomeOthers) chownSync(join(place, 'own'), Number(UID), Number(UID));
});
afterAll(() => rmSync(place, { recursive: true }));

// It takes root to become a user that the system has no entry for.
describe.skipIf(!canBecomeOthers)('a user without HOME and without an entry in the system', () => {
  const asNobody = (...args: readonly string[]): Promise<Ended> => {
    const user = ['--reuid', UID, '--regid', UID, '--clear-groups'];
    const env = { HOME: undefined, XDG_STATE_HOME: undefined, XDG_CACHE_HOME: undefined };
    return startProgram('setpriv', [...user, process.execPath, CLI, ...args], { env, cwd: join(place, 'own') }).ended;
  };

  it('is told what to set, and it is no bug of ours', async () => {
    for (const args of [['who'], ['run', '--lock', 'a', '--', 'true'], ['doctor']]) {
      const { code, stderr } = await asNobody(...args);
      expect([args[0], code]).toEqual([args[0], 64]);
      expect(stderr).toMatch(/HOME is not set.*SIGNALBOX_URL=file:DIRECTORY/);
    }
  });

  it('has a store where one is named, and in a git repository of its own', async () => {
    expect(await asNobody('run', '--store', `file:${place}/own/named`, '--lock', 'a', '--', 'true')).toMatchObject({
      code: 0,
    });
    const user = { uid: Number(UID), gid: Number(UID) };
    spawnSync('git', ['init', '--quiet', join(place, 'own')], {
      ...user,
      env: { PATH: process.env['PATH'], HOME: '/' },
    });
    expect(await asNobody('run', '--lock', 'a', '--', 'true')).toMatchObject({ code: 0 });
  });
});

/** Node brings its own from 22.16 on, and none of this can happen. */
describe.skipIf(hasNodeSqlite(process.versions.node))('a signalbox without an SQLite that this Node can load', () => {
  const sqlite = join('node_modules', 'better-sqlite3');
  const native = join(sqlite, 'build', 'Release', 'better_sqlite3.node');
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  const withSources = (copy: string): void => {
    for (const part of ['package.json', 'lib']) {
      cpSync(join(root, sqlite, part), join(copy, sqlite, part), { recursive: true });
    }
  };

  it.each([
    ['which is not installed', () => undefined, 'needs Node 22.16 or later', 'npm run build'],
    ['without its native part', withSources, 'without its native part', 'npm rebuild better-sqlite3'],
    [
      'which was built for another Node',
      (copy: string) => {
        withSources(copy);
        put(join(copy, native), 'for another Node');
      },
      'built for another Node',
      'npm rebuild better-sqlite3',
    ],
    [
      'which would crash it',
      (copy: string) => {
        put(join(copy, sqlite, 'package.json'), JSON.stringify({ version: '13.0.3', main: 'lib/index.js' }));
        put(join(copy, sqlite, 'lib', 'index.js'), "process.kill(process.pid, 'SIGSEGV');");
      },
      'better-sqlite3 13.0.3 would crash Node',
      'npm run build',
    ],
  ])('%s, is told by the doctor what to type and where, and not that the store is busy', async (...given) => {
    const [, plant, message, command] = given;
    const copy = mkdtempSync(join(place, 'copy-'));
    // The command line takes code from the library's chunks.
    for (const part of ['bin', 'chunks'])
      cpSync(join(dirname(CLI), '..', part), join(copy, 'dist', part), { recursive: true });
    put(join(copy, 'package.json'), '{}');
    plant(copy);
    const cli = join(copy, 'dist', 'bin', 'signalbox.cjs');
    const store = `file:${place}/unread`;
    const { code, stdout } = await startProgram(process.execPath, [cli, 'doctor', '--json', '--store', store]).ended;
    expect(code).toBe(69);
    const { findings } = JSON.parse(stdout) as { findings: readonly { check: string; advice?: string }[] };
    expect(findings.find(({ check }) => check === 'store')).toMatchObject({
      verdict: 'fail',
      message: expect.stringContaining(message),
      advice: expect.stringContaining(`cd ${copy} && ${command}`),
    });
  });
});
