import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { identify, type ProcessIdentity, thisProcess } from './process.ts';
import { Vigil } from './vigil.ts';

/** Our open files in /proc that tell whether a process is there: the descriptor, and which process. */
function files(): readonly (readonly [fd: string, pid: string])[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const pid = /^\/proc\/(\d+)\/statm$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1];
      return pid === undefined ? [] : [[fd, pid] as const];
    } catch {
      return [];
    }
  });
}

/** Of those that other tests in this process have left open. */
let before = new Set<string>();
const opened = (): string[] => files().flatMap(([fd, pid]) => (before.has(fd) ? [] : pid));

// Only Linux tells which process is which.
describe.skipIf(!existsSync('/proc/self/statm'))('watching whether processes are still there', () => {
  let vigil: Vigil;
  let child: ChildProcess;
  let identity: ProcessIdentity;

  beforeEach(async () => {
    before = new Set(files().map(([fd]) => fd));
    vigil = new Vigil();
    child = spawn('sleep', ['60'], { stdio: 'ignore' });
    await once(child, 'spawn');
    identity = identify(child.pid as number) as ProcessIdentity;
  });

  afterEach(async () => {
    vigil.end();
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  it('finds one that lives there, as often as it looks, with one file', () => {
    for (let i = 0; i < 3; i++) expect(vigil.isGone(identity)).toBe(false);
    expect(opened()).toEqual([String(identity.pid)]);
  });

  it('finds one gone that was killed', async () => {
    expect(vigil.isGone(identity)).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(vigil.isGone(identity)).toBe(true);
  });

  it('finds one there that is stopped', async () => {
    child.kill('SIGSTOP');
    expect(vigil.isGone(identity)).toBe(false);
    child.kill('SIGCONT');
  });

  it('does not take a process for an earlier one that had its pid', () => {
    expect(vigil.isGone({ ...identity, start: '1' })).toBe(true);
    expect(opened()).toEqual([]);
    expect(vigil.isGone(identity)).toBe(false);
  });

  it('says nothing of processes that it cannot see', () => {
    expect(vigil.isGone({ ...identity, space: 'pid:[1]', start: '1' })).toBe(false);
    expect(opened()).toEqual([]);
  });

  it('closes the files of those that nobody asks for any more, and all of them at its end', () => {
    const ours = thisProcess() as ProcessIdentity;
    vigil.isGone(identity);
    vigil.isGone(ours);
    vigil.tidy();
    expect(opened()).toHaveLength(2);
    vigil.isGone(ours);
    vigil.tidy();
    expect(opened()).toEqual([String(ours.pid)]);
    vigil.end();
    expect(opened()).toEqual([]);
  });
});
