import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { offspringOf } from './offspring.ts';
import { identify, thisHost } from './process.ts';
import { removeAbandoned, WorkingDirectory } from './working-directory.ts';

describe.skipIf(thisHost() === undefined)('a working directory', () => {
  const before = process.env['TMPDIR'];
  let tmp: string;
  const living: ChildProcess[] = [];
  beforeEach(() => {
    tmp = mkdtempSync(join(tmpdir(), 'signalbox-working-'));
    process.env['TMPDIR'] = tmp;
  });
  afterEach(() => {
    for (const child of living.splice(0)) child.kill('SIGKILL');
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    rmSync(tmp, { recursive: true, force: true });
  });

  const sleeper = (): ChildProcess => {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore', detached: true });
    living.push(child);
    return child;
  };
  const ended = async (child: ChildProcess): Promise<void> => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  const ours = (): string => join(tmp, `signalbox-work-${process.geteuid?.()}`);
  /** The name that this process gives its own directory, as another process would have given it. */
  const nameOf = (child: ChildProcess): string => {
    const own = new WorkingDirectory('task');
    const { start = '' } = identify(child.pid as number) ?? {};
    rmSync(own.path, { recursive: true });
    return own.path.replace(/-\d+-\d+-\w{6}$/, `-${child.pid}-${start}-abcdef`);
  };

  it('of a process that was killed is removed by the next one, with all that is in it', async () => {
    const maker = sleeper();
    const path = nameOf(maker);
    mkdirSync(path, { mode: 0o700 });
    writeFileSync(join(path, 'data.json'), '1');
    await removeAbandoned();
    expect(existsSync(path)).toBe(true);
    await ended(maker);
    await removeAbandoned();
    expect(readdirSync(ours())).toEqual([]);
  });

  it('stays for as long as the command still runs that the killed process had started', async () => {
    const maker = sleeper();
    const command = sleeper();
    const path = nameOf(maker);
    mkdirSync(path, { mode: 0o700 });
    writeFileSync(join(path, 'child.json'), JSON.stringify(offspringOf(command.pid as number, true, 'm')));
    await ended(maker);
    await removeAbandoned();
    expect(existsSync(path)).toBe(true);
    await ended(command);
    await removeAbandoned();
    expect(existsSync(path)).toBe(false);
  });

  it('stays if its note is empty, as on a full disk, or if its name is one that signalbox never gives', async () => {
    const maker = sleeper();
    const path = nameOf(maker);
    await ended(maker);
    const paths = [path, join(ours(), 'task-abcdef'), path.replace('/task-', '/logs-')];
    for (const one of paths) mkdirSync(one, { mode: 0o700 });
    writeFileSync(join(path, 'child.json'), '');
    await removeAbandoned();
    expect(paths.filter((one) => !existsSync(one))).toEqual([]);
  });

  it('is never a link', async () => {
    const maker = sleeper();
    const path = nameOf(maker);
    await ended(maker);
    const precious = join(tmp, 'precious');
    mkdirSync(precious, { mode: 0o700 });
    writeFileSync(join(precious, 'file'), 'kept');
    symlinkSync(precious, path);
    await removeAbandoned();
    expect([existsSync(path), existsSync(join(precious, 'file'))]).toEqual([true, true]);
  });

  it('is removed with its process, whose command has ended', async () => {
    const own = new WorkingDirectory('task');
    writeFileSync(join(own.path, 'data.json'), '1');
    expect(own.path.startsWith(`${ours()}/task-`)).toBe(true);
    await own.remove();
    expect(existsSync(own.path)).toBe(false);
  });

  it('is among the other temporary files, and never removed by another process, where somebody else made the place', async () => {
    mkdirSync(ours(), { mode: 0o755 });
    const own = new WorkingDirectory('task');
    expect(own.path.startsWith(join(tmp, 'signalbox-task-'))).toBe(true);
    await expect(removeAbandoned()).rejects.toThrow("is not this user's alone");
    await own.remove();
    expect(readdirSync(tmp)).toEqual([`signalbox-work-${process.geteuid?.()}`]);
  });

  it.skipIf(process.geteuid?.() !== 0)('is not looked for where another user could replace it', async () => {
    chownSync(tmp, 1000, 1000);
    const own = new WorkingDirectory('phase');
    expect(own.path.startsWith(join(tmp, 'signalbox-phase-'))).toBe(true);
    await expect(removeAbandoned()).rejects.toThrow('belongs to another user');
    await own.remove();
  });

  it('is made, and its command runs, although the note about it cannot be written', async () => {
    const own = new WorkingDirectory('task');
    mkdirSync(join(own.path, 'child.json'));
    const child = await own.start('true', ['true'], process.env, { leads: true, mark: 'm' });
    child.letGo();
    expect(await child.ended).toEqual({ code: 0 });
    await own.remove();
  });
});
