// Places where something is missing that others take for granted: a home, an entry for the user, SQLite's native part.

import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../house/sources.ts';
import { CLI, type Ended, startProgram } from '../support/cli.ts';

/** Nobody has this id. */
const UID = '54321';
const canBecomeOthers = process.getuid?.() === 0 && spawnSync('setpriv', ['--version']).status === 0;

let place: string;
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'signalbox-bare-'));
  chmodSync(place, 0o777);
});
afterAll(() => rmSync(place, { recursive: true }));

// It takes root to become a user that the system has no entry for.
describe.skipIf(!canBecomeOthers)('a user without HOME and without an entry in the system', () => {
  const asNobody = (...args: readonly string[]): Promise<Ended> => {
    const user = ['--reuid', UID, '--regid', UID, '--clear-groups'];
    const env = { HOME: undefined, XDG_STATE_HOME: undefined, XDG_CACHE_HOME: undefined };
    return startProgram('setpriv', [...user, process.execPath, CLI, ...args], { env, cwd: place }).ended;
  };

  it('is told what to set, and it is no bug of ours', async () => {
    for (const args of [['who'], ['run', '--lock', 'a', '--', 'true'], ['doctor']]) {
      const { code, stderr } = await asNobody(...args);
      expect([args[0], code]).toEqual([args[0], 64]);
      expect(stderr).toMatch(/HOME is not set.*SIGNALBOX_URL=file:DIRECTORY/);
    }
  });

  it('has a store where one is named, and in a git repository of its own', async () => {
    expect(await asNobody('run', '--store', `file:${place}/named`, '--lock', 'a', '--', 'true')).toMatchObject({
      code: 0,
    });
    const user = { uid: Number(UID), gid: Number(UID) };
    spawnSync('git', ['init', '--quiet', place], { ...user, env: { PATH: process.env['PATH'], HOME: '/' } });
    expect(await asNobody('run', '--lock', 'a', '--', 'true')).toMatchObject({ code: 0 });
  });
});

describe('a signalbox without the native part of SQLite', () => {
  it('is told by the doctor how to build it, and not that the store is busy', async () => {
    const copy = join(place, 'copy');
    cpSync(dirname(CLI), join(copy, 'dist', 'bin'), { recursive: true });
    const sqlite = join('node_modules', 'better-sqlite3');
    mkdirSync(join(copy, sqlite), { recursive: true });
    for (const part of ['package.json', 'lib']) {
      cpSync(join(root, sqlite, part), join(copy, sqlite, part), { recursive: true });
    }
    const cli = join(copy, 'dist', 'bin', 'signalbox.cjs');
    const store = `file:${place}/unread`;
    const { code, stdout } = await startProgram(process.execPath, [cli, 'doctor', '--json', '--store', store]).ended;
    expect(code).toBe(69);
    const { findings } = JSON.parse(stdout) as { findings: readonly { check: string; advice?: string }[] };
    expect(findings.find(({ check }) => check === 'store')).toMatchObject({
      verdict: 'fail',
      message: expect.stringContaining('without its native part'),
      advice: expect.stringContaining('npm rebuild better-sqlite3'),
    });
  });
});
