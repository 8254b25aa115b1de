// A standing driver, as it is started on a machine where pipelines have to go on whatever becomes of their drivers.

import { readFileSync, writeFileSync } from 'node:fs';
import { defineRunbook, open, type Signalbox } from 'signalbox';
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../pipelines/stage.ts';
import { Scratch, type Started } from '../support/cli.ts';
import { built, isAlive } from '../support/run-processes.ts';

describe('signalbox pipeline drive --all', () => {
  let scratch: Scratch;
  let box: Signalbox;
  beforeAll(built);
  beforeEach(async () => {
    scratch = new Scratch();
    box = await open(scratch.store, { maintains: false });
  });
  afterEach(async () => {
    await box.close();
    scratch.remove();
  });

  /** Ends with the test, also if that fails. */
  const started = (...args: readonly string[]): Started => {
    const process = scratch.start('pipeline', ...args);
    onTestFinished(() => void process.child.kill('SIGKILL'));
    return process;
  };
  const lines = (name: string): readonly string[] => readFileSync(scratch.path(name), 'utf8').trim().split('\n');
  const start = (id: string, run: string, idempotent = false): Promise<unknown> =>
    box.pipelines.start(defineRunbook({ name: id, phases: [{ name: 'only', run, idempotent }] }), {
      id,
      cwd: scratch.dir,
    });

  it('takes over from a driver that is killed, drives what was only started, and leaves the rest alone', async () => {
    await start('before', 'echo hello');
    await box.pipelines.start(defineRunbook({ name: 'f', phases: [{ name: 'own', run: () => undefined }] }), {
      id: 'f',
      cwd: scratch.dir,
    });
    await box.pipelines.start(defineRunbook({ name: 'away', phases: [{ name: 'a', run: 'exit 0' }] }), {
      id: 'away',
      cwd: scratch.path('nowhere'),
    });
    await box.pipelines.run(
      defineRunbook({ name: 'asks', phases: [{ name: 'a', run: 'exit 1', onFailure: 'block' }] }),
      { id: 'asks', cwd: scratch.dir },
    );
    const asked = await box.pipelines.show('asks');
    expect(asked?.blocked?.on).toBe('person');
    writeFileSync(
      scratch.path('release.yaml'),
      `
name: release
phases:
  - { name: one, run: 'echo one >> did' }
  - { name: two, idempotent: true, run: 'echo two >> did; echo $$ >> pids; echo begun; [ $(wc -l < pids) -ge 2 ] || exec sleep 1000' }
  - { name: three, run: 'echo three >> did' }
`,
    );
    const first = started('run', 'release.yaml', '--id', 'r7');
    await first.printed('two | begun');
    const standing = started('drive', '--all');
    await standing.complained('pipeline/f: not driven here, because its phase own is a function of the program');
    await standing.complained('pipeline/away: not driven here, because its directory');
    await standing.printed('before: only | hello\n');
    await standing.printed('pipeline/before: done');
    await until(async () => (await box.lock('pipeline:r7').inspect()).waiting.length === 1);
    first.child.kill('SIGKILL');
    await first.ended;
    // What still runs of its command would keep it until its lease ends.
    process.kill(Number(lines('pids')[0]), 'SIGKILL');
    await standing.printed('r7: two: begins (run 2)');
    await standing.printed('pipeline/r7: done');
    expect(lines('did')).toEqual(['one', 'two', 'two', 'three']);
    // Who adopts the command of a killed driver may take a moment to bury it.
    await until(() => lines('pids').every((pid) => !isAlive(Number(pid))));
    expect(lines('pids')).toHaveLength(2);
    // What comes later is driven too; what a process runs itself stays with that process.
    await start('later', 'echo later >> did');
    await standing.printed('pipeline/later: done');
    const own = await scratch.run('pipeline', 'run', 'release.yaml', '--id', 'own');
    expect(own).toMatchObject({ code: 0, stdout: expect.stringContaining('two | begun') as string });
    expect(await box.pipelines.show('asks')).toEqual(asked);
    standing.child.kill('SIGTERM');
    const { code, stdout } = await standing.ended;
    expect(code).toBe(0);
    expect(stdout).not.toContain('own');
    expect((await box.pipelines.list()).map(({ id, state }) => `${id} ${state}`)).toEqual([
      ...['before done', 'f pending', 'away pending', 'asks blocked', 'r7 done', 'later done', 'own done'],
    ]);
  });

  it('stops its commands at Ctrl-C, and leaves the pipelines for the next standing driver', async () => {
    const run = `trap 'echo end >> did; exit 1' TERM; echo begin >> did; test -e again && exit 0; touch again; echo waits; while :; do sleep 0.05; done`;
    await start('long', run, true);
    const first = started('drive', '--all', '--json');
    await first.printed('"type":"output","pipeline":"long","phase":"only","text":"waits');
    const second = started('drive', '--all');
    await until(async () => (await box.lock('pipeline:long').inspect()).waiting.length === 1);
    first.child.kill('SIGINT');
    expect((await first.ended).code).toBe(0);
    await second.printed('pipeline/long: done');
    expect(lines('did')).toEqual(['begin', 'end', 'begin']);
    second.child.kill('SIGINT');
    expect((await second.ended).code).toBe(0);
  });

  it('wants to be told that all pipelines are meant', async () => {
    expect(await scratch.run('pipeline', 'drive')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('--all') as string,
    });
  });
});
