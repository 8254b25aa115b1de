// On a terminal, run is not there either: keys reach the command, and the shell's job control works.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readStat } from '../../src/host/index.ts';
import { isMissing } from '../support/programs.ts';
import { built, isAlive, Place, type Started } from '../support/run-processes.ts';

const CTRL_C = '\x03';
const CTRL_Z = '\x1a';
const hasNoTerminals = isMissing('script') || isMissing('bash');
const hasPidNamespaces = spawnSync('unshare', ['-pf', '--mount-proc', 'true']).status === 0;

describe.skipIf(hasNoTerminals)('a run on a terminal', () => {
  let place: Place;
  let shell: Started;
  beforeAll(built);
  beforeEach(async () => {
    place = new Place();
    // An interactive shell on a terminal of its own, typed into by the test.
    // A program and not a function: a loop goes on when a function was interrupted.
    writeFileSync(place.path('box'), '#!/bin/sh\nexec "$NODE" "$ENTRY" run "$@"\n', { mode: 0o755 });
    const env = { TERM: 'xterm', HISTFILE: '', PATH: `${place.directory}:${process.env['PATH']}` };
    shell = place.start('script', ['-qfec', 'bash --norc --noprofile -i', '/dev/null'], { env });
    type('stty -echo columns 100; echo ready');
    await shell.prints(/^ready/m);
  });
  afterEach(async () => {
    shell.write('\nexit\n');
    await place.leave();
  });

  const type = (line: string): void => shell.write(`${line}\n`);

  it('lets the command use the terminal', async () => {
    type(`box --lock a -- sh -c 'test -t 0 && test -t 1 && read -r line && echo "got $line"'; echo code $?`);
    type('typed');
    await shell.prints(/got typed\s+code 0/);
  });

  it('leaves Ctrl-C to the command, which gets it once', async () => {
    type(
      `box --lock a -- sh -c 'trap "echo interrupted; n=1" INT; echo begun; until [ "$n" ]; do sleep 0.1; done; sleep 1; exit 9'; echo code $?`,
    );
    await shell.prints(/^begun/m);
    shell.write(CTRL_C);
    await shell.prints(/code 9/);
    expect(shell.stdout.match(/interrupted/g)).toHaveLength(1);
  });

  it('ends a loop of the shell when the command died of Ctrl-C', async () => {
    type(`for i in 1 2 3; do box --lock a -- sh -c 'echo begun $0; exec sleep 100' $i; done`);
    await shell.prints(/begun 1/);
    shell.write(CTRL_C);
    await shell.prints(/begun 1[^]*[$#] $/);
    type('echo code $?');
    await shell.prints(/code 130/);
    expect(shell.stdout).not.toMatch(/begun 2/);
  });

  // A container's first process: the kernel does not end it by a signal, not even by its own.
  it.skipIf(!hasPidNamespaces)('answers 130 at Ctrl-C also where it is pid 1, at work and in the queue', async () => {
    const asFirst = 'unshare -pf --mount-proc box';
    type(`${asFirst} --lock a -- sh -c 'echo begun; exec sleep 1000'; echo code $?`);
    await shell.prints(/^begun/m);
    shell.write(CTRL_C);
    await shell.prints(/code 130/);
    const box = await place.open();
    await box.lock('a').acquire({ holder: 'agent:7' });
    type(`${asFirst} --lock a -- echo ran; echo waited $?`);
    await shell.prints(/next in line/);
    shell.write(CTRL_C);
    await shell.prints(/waited 130/);
  });

  it('tells on one line who has it, leaves the queue at Ctrl-C, and wipes the line', async () => {
    const box = await place.open();
    await box.lock('a').acquire({ holder: 'agent:7', reason: 'deploying' });
    type('box --lock a -- echo ran');
    await shell.prints(
      /\rsignalbox: waiting \d+ m?s for lock\/a, next in line; held by agent:7 \(deploying\) for \d+ m?s/,
    );
    shell.write(CTRL_C);
    // A shell leaves it at that if its command died of Ctrl-C, so it is asked afterwards.
    await shell.prints(/\r\x1b\[J[^]*[$#] $/);
    type('echo code $?');
    await shell.prints(/code 130/);
    expect(shell.stdout).not.toMatch(/^ran/m);
    expect((await box.lock('a').inspect()).waiting).toEqual([]);
  });

  it('stops with its command at Ctrl-Z, and goes on with it', async () => {
    type(`box --lock a -- sh -c 'echo "pid $$"; read -r line; echo "got $line"'; echo stopped $?`);
    const child = await shell.pidOf('pid');
    shell.write(CTRL_Z);
    await shell.prints(/stopped 148/);
    // The shell is told of run, which may be the first to stop.
    while (readStat(child)?.state !== 'T') await new Promise((resolve) => setTimeout(resolve, 10));
    type('fg; echo code $?');
    type('on');
    await shell.prints(/got on\s+code 0/);
  });

  it('stops at Ctrl-Z and ends at Ctrl-C in the middle of a pipeline, where none of its descriptors is a terminal', async () => {
    type(`echo hi | box --lock a -- sh -c 'echo "pid $$" >&2; exec sleep 1000' 2>&1 | cat; echo stopped $?`);
    const child = await shell.pidOf('pid');
    shell.write(CTRL_Z);
    await shell.prints(/stopped 1\d\d/);
    // The shell is told of run, which may be the first to stop.
    while (readStat(child)?.state !== 'T') await new Promise((resolve) => setTimeout(resolve, 10));
    type('fg');
    while (readStat(child)?.state === 'T') await new Promise((resolve) => setTimeout(resolve, 10));
    shell.write(CTRL_C);
    while (isAlive(child)) await new Promise((resolve) => setTimeout(resolve, 10));
    type('echo over');
    await shell.prints(/^over/m);
  });

  it('ends at kill -9 with what a timeout inside had started', async () => {
    type(
      `box --lock a --ttl 2s -- sh -c 'timeout 1000 sh -c "echo pid \\$\\$; exec sleep 1000" & echo "run $PPID"; wait'`,
    );
    const [inner, run] = [await shell.pidOf('pid'), await shell.pidOf('run')];
    process.kill(run, 'SIGKILL');
    const { code } = await place.run(['--lock', 'a', '--', 'true']).ended;
    expect([code, isAlive(inner)]).toEqual([0, false]);
  });

  it('stops with a command that stops only itself, so that the shell is told', async () => {
    type(`box --lock a -- sh -c 'kill -STOP $$; echo awake'; echo stopped $?`);
    await shell.prints(/stopped 147/);
    type('fg; echo code $?');
    await shell.prints(/awake\s+code 0/);
  });

  it('notices after fg that it was stopped for too long: 76', async () => {
    type(`box --lock a --ttl 2s -- sh -c 'echo "pid $$"; exec sleep 1000'; echo stopped $?`);
    const child = await shell.pidOf();
    shell.write(CTRL_Z);
    await shell.prints(/stopped 148/);
    const box = await place.open();
    await box.lock('a').acquire();
    type('fg; echo code $?');
    await shell.prints(/code 76/);
    expect(isAlive(child)).toBe(false);
  });

  it('stands in line again if it was stopped for too long while it waited', async () => {
    const box = await place.open();
    const hold = await box.lock('a').acquire();
    type('box --lock a --ttl 2s -- echo ran; echo stopped $?');
    await shell.prints(/next in line/);
    shell.write(CTRL_Z);
    await shell.prints(/stopped 148/);
    while ((await box.lock('a').inspect()).waiting.length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    type('fg; echo code $?');
    while ((await box.lock('a').inspect()).waiting.length === 0)
      await new Promise((resolve) => setTimeout(resolve, 20));
    await hold.release();
    await shell.prints(/\x1b\[Jran\s+code 0/);
  });

  it('passes on a signal that was sent to it alone', async () => {
    type(
      `box --lock a -- sh -c 'trap "echo told; exit 3" TERM; echo "pid $$ $PPID"; while :; do sleep 0.02; done'; echo code $?`,
    );
    const [, , run] = await shell.prints(/^pid (\d+) (\d+)/m);
    process.kill(Number(run), 'SIGTERM');
    await shell.prints(/told\s+code 3/);
  });

  it('leaves an orphan behind at kill -9 like any other, which the next one ends with all it started', async () => {
    type(`box --lock a --ttl 2s -- sh -c 'sleep 1000 & echo "run $PPID"; echo "grandchild $!"; echo "pid $$"; wait'`);
    const [child, grandchild, run] = [
      await shell.pidOf('pid'),
      await shell.pidOf('grandchild'),
      await shell.pidOf('run'),
    ];
    process.kill(run, 'SIGKILL');
    const { code } = await place.run(['--lock', 'a', '--', 'true']).ended;
    expect([code, isAlive(child), isAlive(grandchild)]).toEqual([0, false, false]);
    expect(isAlive(shell.pid)).toBe(true);
  });
});
