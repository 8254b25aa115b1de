// A store that a process may read and not write, as in a sandbox: looking works, leaves no trace, and trusts no more than before.

import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, type Ended, signalbox, start, startProgram } from '../support/cli.ts';
import { ANNA, NOBODY, signalboxAs, type User, whyNoOthers } from '../support/users.ts';

const noMounts = spawnSync('unshare', ['-m', 'true']).status !== 0;
const why = whyNoOthers();

let top: string;
let directory: string;
let env: { readonly SIGNALBOX_URL: string };

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'signalbox-read-only-'));
  chmodSync(top, 0o755);
  directory = join(top, 'store');
  env = { SIGNALBOX_URL: `file:${directory}` };
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

/** Everything in the store, as far as it shows whether it was written. */
function trace(): readonly string[] {
  return readdirSync(directory, { recursive: true })
    .map((name) => join(directory, name as string))
    .map((path) => `${path} ${statSync(path).size}`)
    .sort();
}

/** In a namespace where the directory of the store is mounted read-only. */
function mounted(...args: readonly string[]): Promise<Ended> {
  const mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"';
  const unshared = ['-m', 'sh', '-c', mount, directory, process.execPath, CLI, ...args];
  return startProgram('unshare', unshared, { env, cwd: top }).ended;
}

describe.skipIf(noMounts)('on a read-only mount', () => {
  it('who, status, list, show and doctor say what is there, whether or not another process has the store open', async () => {
    await signalbox(['lock', 'acquire', 'main', '--holder', 'agent:a', '--ttl', '5m', '--reason', 'merging'], { env });
    const before = trace();
    expect((await mounted('who')).stdout).toContain('agent:a');
    expect((await mounted('status')).stdout).toContain('merging');
    expect((await mounted('lock', 'list', '--names')).stdout).toBe('main\n');
    expect(JSON.parse((await mounted('lock', 'show', 'main', '--json')).stdout)).toMatchObject({ isFree: false });
    const doctor = await mounted('doctor', '--json');
    expect(doctor.code).toBe(1);
    const { findings } = JSON.parse(doctor.stdout) as { findings: { check: string; verdict: string }[] };
    expect(findings.filter(({ verdict }) => verdict === 'fail').map(({ check }) => check)).toEqual(['write']);
    expect(trace()).toEqual(before);
    const running = start(['run', '--lock', 'docs', '--', 'sh', '-c', 'echo begun; sleep 60'], { env, cwd: top });
    await running.printed('begun');
    expect((await mounted('who')).stdout).toMatch(/lock\/docs .*\n.*\n?lock\/main /s);
    running.child.kill('SIGTERM');
    await running.ended;
  });

  it('taking a lock is refused, and so is following', async () => {
    await signalbox(['lock', 'acquire', 'main', '--holder', 'agent:a'], { env });
    const acquired = await mounted('lock', 'acquire', 'other', '--holder', 'agent:b');
    expect(acquired).toMatchObject({ code: 77, stdout: '' });
    expect(acquired.stderr).toContain('cannot be written');
    expect(await mounted('who', '--watch')).toMatchObject({ code: 77, stdout: '' });
  });

  it('the hook of an agent sees the lock', async () => {
    await signalbox(['lock', 'acquire', 'main-branch', '--holder', 'agent:a'], { env });
    const tool = {
      hook_event_name: 'PreToolUse',
      cwd: top,
      tool_name: 'Bash',
      tool_input: { command: 'git push origin main' },
    };
    const mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"';
    const hook = ['-m', 'sh', '-c', mount, directory, process.execPath, CLI, 'agents', 'hook', 'codex'];
    const { stdout } = await startProgram('unshare', hook, { env, cwd: top, input: JSON.stringify(tool) }).ended;
    expect(stdout).toContain('held by agent:a');
  });
});

describe.skipIf(why !== undefined)('without the permission to write', () => {
  const as = (user: User, ...args: readonly string[]): Promise<Ended> =>
    signalboxAs(user, args, { env: { ...env, HOME: top }, cwd: top }).ended;

  beforeEach(async () => {
    mkdirSync(directory, 0o700);
    chownSync(directory, NOBODY.uid, NOBODY.gid);
    expect(await as(NOBODY, 'lock', 'acquire', 'main', '--holder', 'agent:a', '--ttl', '5m')).toMatchObject({
      code: 0,
    });
  });

  it('its owner sees what is there', async () => {
    chmodSync(join(directory, 'store.db'), 0o400);
    chmodSync(directory, 0o500);
    const who = await as(NOBODY, 'who');
    expect({ code: who.code, stderr: who.stderr }).toEqual({ code: 0, stderr: '' });
    expect(who.stdout).toContain('agent:a');
    chmodSync(directory, 0o700);
  });

  it('another user is refused as before, even where the files could be read', async () => {
    chmodSync(join(directory, 'store.db'), 0o444);
    chmodSync(directory, 0o555);
    const who = await as(ANNA, 'who');
    expect(who).toMatchObject({ code: 77, stdout: '' });
    expect(who.stderr).toContain('belongs to');
    chmodSync(directory, 0o700);
  });
});
