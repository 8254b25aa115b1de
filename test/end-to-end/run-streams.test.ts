// To its command, run is not there: what goes in and out, and what is in the environment, is as if it had been started
// by hand.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isMissing } from '../support/programs.ts';
import { built, isAlive, Place } from '../support/run-processes.ts';

describe('the command of a run', () => {
  let place: Place;
  beforeAll(built);
  beforeAll(() => {
    place = new Place();
  });
  afterAll(() => place.leave());

  const run = (...args: string[]): ReturnType<Place['run']> => place.run(['--lock', 'a', ...args]);

  it('reads what is piped in, to the end', async () => {
    const text = 'line\n'.repeat(50_000);
    const { stdout } = await place.run(['--lock', 'a', '--', 'cat'], { stdin: text }).ended;
    expect(stdout).toBe(text);
  });

  it('reads a here-document, and leaves what it does not read to the next command', async () => {
    const script = `{ "$NODE" "$ENTRY" run --lock a -- head -c 4; echo; cat; } <<'END'\nonetwo\nEND`;
    const { stdout } = await place.start('sh', ['-c', script]).ended;
    expect(stdout).toBe('onet\nwo\n');
  });

  it('has stdout and stderr apart, and run adds nothing to either', async () => {
    const ended = await run('--', 'sh', '-c', 'echo out; echo err >&2').ended;
    expect(ended).toMatchObject({ code: 0, stdout: 'out\n', stderr: 'err\n' });
  });

  it('writes to pipes that block when they are full, as programs expect', async () => {
    const { stdout } = await run('--', 'sh', '-c', 'sleep 0.1; grep flags /proc/self/fdinfo/1 /proc/self/fdinfo/2')
      .ended;
    const flags = [...stdout.matchAll(/flags:\s*([0-7]+)/g)].map(
      ([, octal = '']) => Number.parseInt(octal, 8) & 0o4000,
    );
    expect(flags).toEqual([0, 0]);
  });

  it('has no descriptor of ours', async () => {
    const list = ['sh', '-c', 'ls /proc/self/fd'] as const;
    const [without, within] = [place.start(list[0], list.slice(1)), run('--', ...list)];
    expect((await within.ended).stdout).toBe((await without.ended).stdout);
  });

  it('has the variables that it would have had, also those no shell could have made', async () => {
    const env = { 'BASH_FUNC_hi%%': '() { echo hi; }', 'with.dot': '1', PLAIN: 'a=b c' };
    const { stdout } = await place.run(['--lock', 'a', '--', 'env', '-0'], { env }).ended;
    const variables = stdout.split('\0');
    expect(variables).toEqual(expect.arrayContaining(Object.entries(env).map(([name, value]) => `${name}=${value}`)));
  });

  it('knows its token, its holder, its slots and its store', async () => {
    const { stdout } = await place.run([
      ...['--lock', 'main-branch', '--sem', 'api.keys=2/3', '--holder', 'agent:7'],
      ...['--', 'sh', '-c', 'env | grep ^SIGNALBOX_ | grep -v RUN= | sort'],
    ]).ended;
    const told = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/s).slice(0, 2)),
    ) as Record<string, string>;
    const holds = JSON.parse(told['SIGNALBOX_HOLDS'] ?? '') as Record<string, { holder: string; token: number }>;
    expect(told).toMatchObject({
      SIGNALBOX_URL: place.url,
      SIGNALBOX_HOLDER: 'agent:7',
      SIGNALBOX_TOKEN: String(holds['lock/main-branch']?.token),
      SIGNALBOX_TOKEN_MAIN_BRANCH: String(holds['lock/main-branch']?.token),
      SIGNALBOX_TOKEN_API_KEYS: String(holds['semaphore/api.keys']?.token),
      SIGNALBOX_SLOT_API_KEYS: '0',
      SIGNALBOX_SLOTS_API_KEYS: '0 1',
    });
    expect(holds['lock/main-branch']?.holder).toBe('agent:7');
  });

  it('has slots that nobody else has at the time', async () => {
    const first = place.run(['--sem', 'ports/3', '--', 'sh', '-c', 'echo "slot $SIGNALBOX_SLOT_PORTS"; read -r line']);
    await first.prints(/slot 0/);
    const { stdout } = await place.run(['--sem', 'ports=2', '--', 'sh', '-c', 'echo "$SIGNALBOX_SLOTS_PORTS"']).ended;
    expect(stdout).toBe('1 2\n');
    first.write('\n');
    expect((await first.ended).code).toBe(0);
  });

  it('uses the same store inside, whichever directory it changes to', async () => {
    const repository = place.path('repository');
    execFileSync('git', ['init', '-q', repository]);
    const inside = `cd / && "$NODE" "$ENTRY" run --lock a --no-wait -- sh -c 'echo "$SIGNALBOX_URL"'`;
    const script = 'cd "$1" && "$NODE" "$ENTRY" run --lock a -- sh -c "$2"';
    const env = { SIGNALBOX_URL: '' };
    const { code, stdout } = await place.start('sh', ['-c', script, 'sh', repository, inside], { env }).ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: `file:${repository}/.git/signalbox\n` });
  });

  it('has the other descriptors that run was given, and no more', async () => {
    const command = `sh -c 'echo on five >&5; cat <&7; ls /proc/self/fd' 5>> five 7<&0 < /dev/null`;
    const script = `echo through | ${command}; echo through | "$NODE" "$ENTRY" run --lock a -- ${command}`;
    const { stdout } = await place.start('sh', ['-c', script], { stdin: '' }).ended;
    const [, alone, under] = stdout.split('through\n');
    expect(alone).toMatch(/^5\n7\n/m);
    expect(under).toBe(alone);
    expect(place.read('five')).toBe('on five\non five\n');
  });

  it.skipIf(isMissing('make'))('has the job server of a make around it', async () => {
    const makefile = 'all:\n\t+@"$$NODE" "$$ENTRY" run --lock a -- $(MAKE) -f inner.mk\n';
    writeFileSync(place.path('outer.mk'), makefile);
    writeFileSync(place.path('inner.mk'), 'all: a b\na b:\n\t@echo made $@\n');
    const { code, stdout, stderr } = await place.start('make', ['-j3', '-s', '-f', 'outer.mk']).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/made a/);
  });

  describe('that leaves processes behind in its group', () => {
    it('keeps the lock until they have ended', async () => {
      const started = run('--', 'sh', '-c', '(sleep 0.4; echo straggler >> order) & echo begun; exit 5');
      await started.prints(/begun/);
      const next = run('--', 'sh', '-c', 'echo next >> order');
      expect([(await started.ended).code, (await next.ended).code]).toEqual([5, 0]);
      expect(place.read('order')).toBe('straggler\nnext\n');
    });

    it('has them ended after the grace, and its exit code is its own', async () => {
      const started = run(
        '--grace',
        '200ms',
        '--',
        'sh',
        '-c',
        '(trap "" TERM; echo "pid $$"; exec sleep 1000) & exit 5',
      );
      const { code, stderr } = await started.ended;
      expect(code).toBe(5);
      expect(stderr).toMatch(/left processes behind: \d+; ending them/);
    });

    it('leaves those alone that have gone to a session of their own, as servers do', async () => {
      const script = `echo "pid $$"; exec sleep 1000 >/dev/null 2>&1 </dev/null`;
      const started = run('--', 'sh', '-c', 'setsid sh -c "$1" & read -r line; exit 0', 'sh', script);
      const server = await started.pidOf();
      started.write('\n');
      expect((await started.exited).code).toBe(0);
      expect(isAlive(server)).toBe(true);
    });
  });
});
