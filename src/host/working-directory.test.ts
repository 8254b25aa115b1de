import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
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
import { WorkingDirectory } from './working-directory.ts';

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
  /** The name that this process gives its own directory, as another process would have given it. */
  const nameOf = (child: ChildProcess): string => {
    const own = new WorkingDirectory('task');
    const { start = '' } = identify(child.pid as number) ?? {};
    rmSync(own.path, { recursive: true });
    return own.path.replace(/-\d+-\d+-\w{6}$/, `-${child.pid}-${start}-abcdef`);
  };
  const sweep = (): void => new WorkingDirectory('phase').remove();

  it('of a process that was killed is removed by the next one, with all that is in it', async () => {
    const maker = sleeper();
    const path = nameOf(maker);
    mkdirSync(path, { mode: 0o700 });
    writeFileSync(join(path, 'data.json'), '1');
    sweep();
    expect(existsSync(path)).toBe(true);
    await ended(maker);
    sweep();
    expect(readdirSync(tmp)).toEqual([]);
  });

  it('stays for as long as the command still runs that the killed process had started', async () => {
    const maker = sleeper();
    const command = sleeper();
    const path = nameOf(maker);
    mkdirSync(path, { mode: 0o700 });
    writeFileSync(join(path, 'child.json'), JSON.stringify(offspringOf(command.pid as number, true, 'm')));
    await ended(maker);
    sweep();
    expect(existsSync(path)).toBe(true);
    await ended(command);
    sweep();
    expect(existsSync(path)).toBe(false);
  });

  it('stays if its note cannot be read, if others may enter it, or if its name is one that signalbox never gives', async () => {
    const maker = sleeper();
    const path = nameOf(maker);
    await ended(maker);
    const paths = [
      path,
      `${path.slice(0, -6)}open00`,
      join(tmp, 'signalbox-task-abcdef'),
      path.replace('task', 'logs'),
    ];
    for (const one of paths) mkdirSync(one, { mode: 0o700 });
    writeFileSync(join(path, 'child.json'), '{');
    chmodSync(paths[1] as string, 0o755);
    sweep();
    expect(paths.filter((one) => !existsSync(one))).toEqual([]);
  });

  it('is never a link that somebody put there', async () => {
    const maker = sleeper();
    const path = nameOf(maker);
    await ended(maker);
    const precious = join(tmp, 'precious');
    mkdirSync(precious, { mode: 0o700 });
    writeFileSync(join(precious, 'file'), 'kept');
    symlinkSync(precious, path);
    sweep();
    expect([existsSync(path), existsSync(join(precious, 'file'))]).toEqual([true, true]);
  });

  it('is left where others could replace it meanwhile', async () => {
    const maker = sleeper();
    const path = nameOf(maker);
    await ended(maker);
    mkdirSync(path, { mode: 0o700 });
    chmodSync(tmp, 0o777);
    sweep();
    expect(existsSync(path)).toBe(true);
    chmodSync(tmp, 0o1777);
    sweep();
    expect(existsSync(path)).toBe(false);
  });
});
