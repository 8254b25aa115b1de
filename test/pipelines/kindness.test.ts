// What spares people trouble: nothing is run for nothing, nothing stays behind, and nobody is misunderstood.

import { all, branchExists, command, defineRunbook, fileExists, open } from 'signalbox';
import { fakeAdapters, TestClock } from 'signalbox/testing';
import { expect, it } from 'vitest';
import { Fleet, TTL_MS } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';
import { until } from '../support/until.ts';

const POLL_MS = 5;

it('tests are not run again and again while an issue keeps the phase blocked, and once more when it is closed', async () => {
  await using box = await open('memory:');
  const world = fakeAdapters();
  let tests = 0;
  let looks = 0;
  let isOpen = true;
  const adapters = {
    ...world,
    commands: {
      run: async () => {
        tests += 1;
        return { exitCode: 0, output: '' };
      },
    },
    files: {
      text: () => Promise.resolve(null),
      file: async () => {
        looks += 1;
        return { exists: !isOpen };
      },
    },
  };
  const runbook = defineRunbook({
    name: 'merge',
    phases: [{ name: 'merge', pre: [command('make test'), fileExists('closed')], run: () => undefined }],
  });
  const driving = box.pipelines.run(runbook, { id: 'p', pollMs: POLL_MS, adapters });
  await until(() => looks > 10);
  expect(tests).toBe(1);
  isOpen = false;
  expect(await driving).toMatchObject({ kind: 'left', record: { state: 'done' } });
  expect(tests).toBe(2);
});

it('a guard says what its command printed last: why the tests are red', async () => {
  await using box = await open('memory:');
  const verdict = await box.check(command('echo "3 tests failed"; exit 1', { description: 'the tests pass' }));
  expect(verdict).toMatchObject({ kind: 'failed', reasons: [expect.stringMatching(/exited with 1.*3 tests failed$/)] });
});

it('a phase that nobody has to decide about is not run by whoever wants to skip it', async () => {
  await using box = await open('memory:');
  let runs = 0;
  const runbook = defineRunbook({
    name: 'r',
    phases: [{ name: 'a', pre: all([branchExists('x')]), run: () => void (runs += 1) }],
  });
  const adapters = fakeAdapters();
  await box.pipelines.run(runbook, { id: 'p', waits: false, adapters });
  const { functions } = runbook;
  const resumed = await box.pipelines.resume('p', { decision: 'skip', functions, waits: false, adapters });
  expect(resumed).toMatchObject({ kind: 'nothing-to-decide', record: { state: 'blocked' } });
  expect(runs).toBe(0);
});

it('what a dead driver held for its phase is free as soon as another one has taken over', async () => {
  const fleet = new Fleet(true);
  const dead = await fleet.start('dead', { maintains: false });
  const alive = await fleet.start('alive', { maintains: false });
  let begun = (): void => {};
  const began = new Promise<void>((resolve) => (begun = resolve));
  const runbook = defineRunbook({
    name: 'r',
    phases: [{ name: 'a', holds: { locks: ['db'] }, run: () => new Promise<void>(() => begun()) }],
  });
  void dead.box.pipelines.run(runbook, { id: 'p' });
  await began;
  dead.crash();
  await fleet.advance(TTL_MS);
  const { functions } = runbook;
  expect(await alive.box.pipelines.resume('p', { functions })).toMatchObject({ record: { state: 'blocked' } });
  await settled();
  expect((await alive.box.lock('db').inspect()).holders).toEqual([]);
});

it('a list has the pipelines in the order in which they were started, also within a millisecond', async () => {
  await using box = await open('memory:', { clock: new TestClock() });
  const runbook = defineRunbook({ name: 'r', phases: [{ name: 'a', run: () => undefined }] });
  for (const id of ['b', 'c', 'a']) await box.pipelines.start(runbook, { id });
  expect((await box.pipelines.list()).map(({ id }) => id)).toEqual(['b', 'c', 'a']);
});

it('a list tells which pipelines nobody drives, and whom one waits for', async () => {
  await using box = await open('memory:');
  const hold = await box.lock('main').acquire({ holder: 'boss', reason: 'release day' });
  const runbook = defineRunbook({
    name: 'r',
    phases: [{ name: 'a', holds: { locks: ['main'] }, run: () => undefined }],
  });
  await box.pipelines.run(runbook, { id: 'p', waits: false });
  expect(await box.pipelines.list()).toMatchObject([
    { id: 'p', isDriven: false, blocked: { on: 'holds', resources: ['lock/main: held by boss (release day)'] } },
  ]);
  await hold.release();
});
