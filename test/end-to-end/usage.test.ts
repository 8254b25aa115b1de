// Calling it wrongly, asking for help, and reading what it prints.

import { afterAll, describe, expect, it } from 'vitest';
import { CLI, Scratch, signalbox, startProgram } from '../support/cli.ts';

const scratch = new Scratch();
afterAll(() => scratch.remove());

describe.concurrent('a mistake in the call', () => {
  it.each([
    [['lok'], 'unknown command "lok"; did you mean lock?', 'expected: run, lock, sem'],
    [['lock', 'aquire', 'x'], 'unknown command "aquire"; did you mean acquire?', 'expected: acquire, renew'],
    [['lock', 'acquire', 'x', '--hodler', 'a'], 'unknown option --hodler; did you mean --holder?', '--shared'],
    [['lock', 'lokc'], 'unknown command "lokc"', 'see: signalbox lock --help'],
    [['lokc'], 'unknown command "lokc"; did you mean lock?', 'see: signalbox --help'],
    [['who', '--stroe', 'file:x'], 'unknown option --stroe; did you mean --store?', 'see: signalbox who --help'],
    [['who', '--stroe=file:x'], 'unknown option --stroe; did you mean --store?', 'see: signalbox who --help'],
    [['who', '--store'], '--store needs a url', 'see: signalbox who --help'],
    [['lock', 'acquire'], '<name> is missing', 'usage: signalbox lock acquire'],
    [['lock', 'acquire', 'x', 'y'], 'unexpected argument "y"', 'usage: signalbox lock acquire [options] <name>'],
    [['run', '--lock', 'a'], 'COMMAND is missing', 'usage: signalbox run [options] -- COMMAND'],
    [['run', '--lock', 'a', '--wait', '5q', '--', 'true'], '--wait is "5q"; expected', 'see: signalbox run --help'],
    [['github', 'lock', '7', '--worker', 'a', '--ttl', '5q'], '--ttl is "5q"; expected', 'see: signalbox github lock'],
    [['pipeline', 'resume', 'x', '--rerun', '--skip'], '--rerun and --skip contradict each other', 'see: signalbox'],
    [['lock', 'acquire', 'x', '--ttl', '5q', '--holder', 'a'], '--ttl is "5q"; expected', '250ms, 60s, 5m'],
    [['lock', 'acquire', 'x'], '--holder is missing', 'SIGNALBOX_HOLDER'],
    [
      ['lock', 'acquire', 'x', '--holder', 'a', '--priority', '1.5'],
      '--priority is "1.5"; expected a whole number',
      'see: signalbox',
    ],
    [['lock', 'acquire', 'x', '--holder', 'a', '--priority', '500'], 'from -100 to 100', ''],
    [['lock', 'acquire', '', '--holder', 'a'], 'lock is empty', '1 to 200 printable characters'],
    [['lock', 'renew', 'x', '--holder', 'a'], '--token is missing', 'use: --token <number>'],
    [['lock', 'break', 'x'], '--reason is missing', 'see: signalbox lock break --help'],
    [['sem', 'acquire', 'x', '--holder', 'a', '--weight', '0', '--capacity', '2'], 'weight', ''],
    [['sem', 'acquire', 'x', '--holder', 'a', '--weight', '3', '--capacity', '2'], 'capacity', ''],
    [['sem', 'acquire', 'never-used', '--holder', 'a'], 'its capacity must be named', ''],
    [['sem', 'resize', 'x', '--capacity', '0'], 'capacity is 0', 'at least 1'],
    [['who', ''], 'lock/NAME or semaphore/NAME', ''],
    [['who', '--store', 'memory:'], 'no other process sees it', 'expected file:DIRECTORY'],
    [['run', '--lock', '--', 'true'], '--lock needs a name', 'see: signalbox run --help'],
    [['events', 'tail', 'nonsense'], 'pattern is "nonsense"', 'expected'],
    [['events', 'tail', '-n', '0'], 'at least 1', ''],
    [['completion', 'tcsh'], '<shell> is "tcsh"; expected bash, zsh, fish', 'see: signalbox completion --help'],
    [['export'], '<dir> is missing', 'usage: signalbox export [options] <dir>'],
    [['who', '--store', '/srv/store'], 'expected file:DIRECTORY', 'a directory is written file:/srv/store'],
    [['help', 'lock', 'acqire'], 'unknown command "acqire"; did you mean acquire?', 'see: signalbox lock --help'],
    [['lock', 'acqire', '--help'], 'unknown command "acqire"; did you mean acquire?', 'see: signalbox lock --help'],
    [['list', '--help'], 'unknown command "list"; did you mean who?', 'see: signalbox --help'],
    [['--store', 'file:x', 'whoo', '-h'], 'unknown command "whoo"; did you mean who?', 'see: signalbox --help'],
    [['lock', 'configure', 'x', '--ttl', '0'], '--ttl is "0"', 'expected at least 100ms'],
    [['lock', 'acquire', 'x', '--holder', 'a', '--ttl', '1ms'], '--ttl is "1ms"', 'expected at least 100ms'],
    [['members', 'join', '--', 'true'], 'the id of the member is missing', 'members join ID [options] -- COMMAND'],
    [['members', 'join', 'a'], 'the command is missing', 'after --'],
    [['guard', 'check', '-e', 'nonsense'], 'signalbox: the guard is "nonsense"', 'lockFree'],
    [['task', 'publish', 't', '--data', '"x"', '--retries', '3'], 'keeps its retries in its data', '{"value":"x"}'],
    [['who', '--store', 'carrier-pigeon:7'], 'the store is "carrier-pigeon:7"', 'expected'],
  ] as const)('is told with what is accepted, and nothing is done: %j', async (args, problem, hint) => {
    const { code, stdout, stderr } = await scratch.run(...args);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toMatch(/^signalbox: (?!error)/);
    expect(stderr).toContain(problem);
    expect(stderr).toContain(hint);
  });

  it('is told as JSON where JSON was asked for', async () => {
    for (const args of [
      ['--json', 'lock', 'acquire', 'x'],
      ['lock', 'acquire', 'x', '--hodler', 'a', '--json'],
      ['run', '--json', '--lock', '--', 'true'],
      ['run', '--json', '--lock', 'a', '--wait', '5q', '--', 'true'],
      ['--json'],
      ['lock', '--json'],
    ]) {
      const { code, stdout, stderr } = await scratch.run(...args);
      expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
      expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'invalid', message: expect.any(String) } });
    }
  });

  it('such as a command that cannot be run has a word of its own in JSON', async () => {
    const missing = await scratch.run('run', '--json', '--lock', 'a', '--', './not-there');
    expect(missing.code).toBe(127);
    expect(JSON.parse(missing.stderr)).toMatchObject({ error: { code: 'command-not-found' } });
    const directory = await scratch.run('run', '--json', '--lock', 'a', '--', '/');
    expect(directory.code).toBe(126);
    expect(JSON.parse(directory.stderr)).toMatchObject({ error: { code: 'command-not-executable' } });
  });

  it('such as no command at all is answered with the help', async () => {
    for (const args of [[], ['lock'], ['sem'], ['events']]) {
      const { code, stdout, stderr } = await scratch.run(...args);
      expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
      expect(stderr).toContain('Usage: signalbox');
    }
  });
});

describe('help', () => {
  it('and version are there before and after the command, and go to stdout', async () => {
    const { code, stdout, stderr } = await signalbox(['lock', 'acquire', '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: signalbox lock acquire/);
    expect((await signalbox(['help', 'lock', 'acquire'])).stdout).toBe(stdout);
    expect((await signalbox(['-h'])).stdout).toMatch(/^Usage: signalbox \[/);
    expect((await signalbox(['--version'])).stdout).toBe((await signalbox(['lock', 'list', '--version'])).stdout);
  });
});

describe('help without a terminal', () => {
  it('fits into 80 columns, with the examples still to be copied', async () => {
    const { stdout } = await signalbox(['run', '--help']);
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(stdout).toContain(
      "--guard 'fileNotExists: FREEZE' \\\n      --guard 'command: {cmd: make test}' -- git push\n",
    );
  });
});

describe('the options that every command has', () => {
  it('work before the command, between its words and after it', async () => {
    const store = `file:${scratch.path('elsewhere')}`;
    const lines = [
      ['--store', store, '--json', 'lock', 'list'],
      ['lock', '--store', store, '--json', 'list'],
      ['lock', 'list', '--json', `--store=${store}`],
    ];
    await scratch.run('--store', store, 'lock', 'acquire', 'here', '--holder', 'a');
    for (const args of lines) {
      const { stdout } = await scratch.run(...args);
      expect(JSON.parse(stdout)).toMatchObject({ locks: [{ name: 'here' }] });
    }
    expect(await scratch.json('lock', 'list')).toEqual({ locks: [], malformed: [] });
  });
});

describe('a reader that goes away', () => {
  it('ends a command quietly', async () => {
    const script = `"$NODE" "$CLI" --help | head -1; echo "$?"; "$NODE" "$CLI" events tail --store "$STORE" | true`;
    const env = { NODE: process.execPath, CLI, STORE: scratch.store };
    const done = startProgram('bash', ['-c', `${script} & wait $! ; exit 0`], { env, cwd: scratch.dir });
    // The second one notices with its first event: it is given some until it has gone.
    let isOver = false;
    const ended = done.ended.finally(() => (isOver = true));
    for (let turn = 0; !isOver; turn++) await scratch.run('lock', 'acquire', `turn-${turn}`, '--holder', 'a');
    const { stdout, stderr } = await ended;
    expect(stdout).toBe('Usage: signalbox [options] [command]\n0\n');
    expect(stderr).toBe('');
  });
});
