// What the contract of commands does not say: how they end, what they leave behind, and how much they print.

import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Commands, localAdapters, type LocalAdaptersOptions } from 'signalbox';
import { readStat } from '../../src/host/index.ts';

let root: string;

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-commands-')));
});

afterEach(() => rmSync(root, { recursive: true }));

function commands(options: Partial<LocalAdaptersOptions> = {}): Commands {
  return localAdapters({ root, ...options }).commands;
}

/** Until the file is there, which is written whole. */
async function written(name: string): Promise<string> {
  const path = join(root, name);
  await new Promise<void>((resolve) => {
    const look = (): void => {
      if (!existsSync(path)) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(root, look);
    look();
  });
  return readFileSync(path, 'utf8').trim();
}

const isAlive = (pid: string): boolean => {
  const stat = readStat(Number(pid));
  return stat !== undefined && stat.state !== 'Z';
};

/** Shell: writes the pid that is in VARIABLE to a file, whole. */
const note = (variable: string, file: string): string => `echo "$${variable}" > ${file}.new; mv ${file}.new ${file}`;

describe('a command', () => {
  it('runs in the root, reads nothing, and prints both streams in order', async () => {
    const { output } = await commands().run('pwd; cat; for i in 1 2 3; do echo out $i; echo err $i >&2; done');
    expect(output).toBe(`${root}\nout 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n`);
  });

  it('of a list meets no shell', async () => {
    const { output } = await commands().run(['printf', '%s|', '$HOME', '`id`', "it's", 'a b', '', '-n', '$(touch x)']);
    expect(output).toBe("$HOME|`id`|it's|a b||-n|$(touch x)|");
    expect(existsSync(join(root, 'x'))).toBe(false);
  });

  it('has all the time that it is given, also where that is months', async () => {
    expect(await commands({ commandTimeoutMs: 90 * 86_400_000 }).run('sleep 0.1; echo done')).toMatchObject({
      output: 'done\n',
    });
  });

  it('that a signal ended has 128 and its number', async () => {
    expect(await commands().run('kill -9 $$')).toMatchObject({ exitCode: 137 });
    expect(await commands().run(['sh', '-c', 'kill -TERM $$'])).toMatchObject({ exitCode: 143 });
  });

  it('that the shell cannot find is an exit code, and one that cannot be started is an error', async () => {
    expect(await commands().run('no-such-program')).toMatchObject({ exitCode: 127 });
    await expect(commands().run([root])).rejects.toThrow('permission denied');
    await expect(commands().run(['./none'])).rejects.toThrow('no such program');
    await expect(commands().run(['true', 'a\0b'])).rejects.toMatchObject({ code: 'invalid' });
    await expect(commands({ root: join(root, 'gone') }).run('true')).rejects.toThrow('no command can run in');
  });
});

describe('what a command started', () => {
  it('is ended when it has exited', async () => {
    const { exitCode } = await commands().run(`sleep 1000 & ${note('!', 'pid')}; exit 4`);
    expect(exitCode).toBe(4);
    expect(isAlive(await written('pid'))).toBe(false);
  });

  it('is ended with it when its time is over, also if all of them ignore that they are asked to', async () => {
    const deaf = `trap '' TERM HUP INT; sh -c "trap '' TERM; ${note('$', 'grandchild').replaceAll('$', '\\$').replaceAll('"', '\\"')}; while :; do sleep 1; done" & ${note('$', 'child')}; while :; do sleep 1; done`;
    const running = commands({ commandTimeoutMs: 5_000, commandGraceMs: 100 }).run(deaf);
    const pids = [await written('child'), await written('grandchild')];
    expect(pids.map(isAlive)).toEqual([true, true]);
    await expect(running).rejects.toThrow('took longer than 5000 ms and was ended');
    expect(pids.map(isAlive)).toEqual([false, false]);
  });

  it('is ended with it when nobody wants to know any more', async () => {
    const over = new AbortController();
    const running = commands().run(`sleep 1000 & ${note('!', 'pid')}; wait`, over.signal);
    const pid = await written('pid');
    over.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
    expect(isAlive(pid)).toBe(false);
  });

  it('in groups of its own is ended too', async () => {
    const { exitCode } = await commands({ commandGraceMs: 100 }).run(
      `set -m; sleep 1000 & ${note('!', 'pid')}; exit 0`,
    );
    expect(exitCode).toBe(0);
    expect(isAlive(await written('pid'))).toBe(false);
  });

  it('does not keep it waiting if it has left for a session of its own and has the pipes', async () => {
    const { output } = await commands().run(
      `setsid sh -c '${note('$', 'pid')}; exec sleep 1000' & while ! [ -e pid ]; do sleep 0.01; done; echo done`,
    );
    expect(output).toBe('done\n');
    const pid = await written('pid');
    expect(isAlive(pid)).toBe(true);
    process.kill(Number(pid), 'SIGKILL');
  });
});

describe('what a command prints', () => {
  it('is told, the last line of it, where its time was over', async () => {
    const running = commands({ commandTimeoutMs: 3_000, commandGraceMs: 0 }).run(
      'echo step one; echo step two; sleep 1000',
    );
    await expect(running).rejects.toThrow('it had printed last: "step two"');
  });

  it('is kept whole up to the limit', async () => {
    const { output } = await commands({ outputLimitBytes: 1000 }).run('printf %01000d 7');
    expect(output).toBe('7'.padStart(1000, '0'));
  });

  it('of 10 MB is kept at both ends, with a word on how much was left out', async () => {
    const { output, exitCode } = await commands().run(
      'echo begin; head -c 10000000 /dev/zero | tr "\\0" x; echo; echo end; exit 5',
    );
    expect(exitCode).toBe(5);
    expect(output.length).toBeLessThan(66_000);
    expect(output).toMatch(/^begin\nx+\n… (\d+) bytes left out …\nx+\nend\n$/);
    const left = Number(/(\d+) bytes left out/.exec(output)?.[1]);
    expect(left + output.length - `\n… ${left} bytes left out …\n`.length).toBe(10_000_011);
  });

  it('takes no memory, however much it is', async () => {
    const before = process.memoryUsage().rss;
    const { output } = await commands().run('head -c 300000000 /dev/zero');
    expect(output).toContain('bytes left out');
    expect(process.memoryUsage().rss - before).toBeLessThan(250_000_000);
  });

  it('without an end does not keep it from being ended', async () => {
    await expect(commands({ commandTimeoutMs: 300 }).run(['yes'])).rejects.toThrow('took longer than 300 ms');
  });

  it('is cut between characters', async () => {
    for (const limit of [20, 21, 22, 23]) {
      const { output } = await commands({ outputLimitBytes: limit }).run(
        'for i in 1 2 3 4 5 6 7 8 9 10; do printf 🐟ü; done',
      );
      expect(output).not.toContain('\ufffd');
      expect(output).toContain('bytes left out');
    }
  });
});
