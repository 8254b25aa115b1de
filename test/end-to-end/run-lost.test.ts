// A hold that is lost while the command runs: the command is stopped, and the exit code says so.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readStat } from '../../src/host/index.ts';
import { built, isAlive, Place } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

const DEAF = `trap '' TERM; echo "pid $$"; while :; do sleep 0.05; done`;

describe.each(stores)('a hold that is lost while the command runs, on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let place: Place;
  beforeAll(built);
  beforeEach(() => {
    place = new Place(newStore);
  });
  afterEach(() => place.leave());

  const sh = (script: string, ...options: string[]): ReturnType<Place['run']> =>
    place.run(['--lock', 'a', ...options, '--', 'sh', '-c', script]);
  const breakLock = async (): Promise<void> => {
    const box = await place.open();
    await box.lock('a').break({ holder: 'admin', reason: 'maintenance' });
  };

  it('stops the command by TERM, and answers 76 whatever the command answers', async () => {
    const started = sh(`trap 'echo cleaned up; exit 0' TERM; echo "pid $$"; while :; do sleep 0.02; done`);
    await started.pidOf();
    await breakLock();
    const { code, stdout, stderr } = await started.ended;
    expect(code).toBe(76);
    expect(stdout).toContain('cleaned up');
    expect(stderr).toContain('lock/a: the hold was lost: it was taken by admin (maintenance); ending the command');
  });

  it('stops a command that does not listen by KILL, after the grace', async () => {
    const started = sh(DEAF, '--grace', '200ms');
    const child = await started.pidOf();
    await breakLock();
    expect((await started.ended).code).toBe(76);
    expect(isAlive(child)).toBe(false);
  });

  it('stops also what has a process group of its own, as under timeout', async () => {
    const started = sh(`timeout 1000 sh -c '${DEAF.replaceAll("'", '"')}'; exit 3`, '--grace', '200ms');
    const inner = await started.pidOf();
    await breakLock();
    expect((await started.ended).code).toBe(76);
    expect(isAlive(inner)).toBe(false);
  });

  it('stops the command by KILL at once, if that is wanted', async () => {
    const started = sh(DEAF, '--grace', '1h', '--on-lost', 'kill');
    const child = await started.pidOf();
    await breakLock();
    expect((await started.ended).code).toBe(76);
    expect(isAlive(child)).toBe(false);
  });

  it('is only told, if that is wanted; the command goes on, and the exit code still says it', async () => {
    const started = sh('echo "pid $$"; read -r line; echo "got $line"', '--on-lost', 'warn');
    await started.pidOf();
    await breakLock();
    await started.prints(/the hold was lost.*the command continues/, 'stderr');
    started.write('more\n');
    expect(await started.ended).toMatchObject({ code: 76 });
    expect(started.stdout).toContain('got more');
  });

  it('makes the next run wait until the command has been stopped', async () => {
    const started = sh(
      `trap 'sleep 0.3; echo end first >> marks; exit 0' TERM; echo "pid $$"; while :; do sleep 0.02; done`,
    );
    await started.pidOf();
    const next = sh('echo begin second >> marks');
    const box = await place.open();
    while ((await box.lock('a').inspect()).waiting.length === 0)
      await new Promise((resolve) => setTimeout(resolve, 20));
    await breakLock();
    expect((await next.ended).code).toBe(0);
    expect((await started.ended).code).toBe(76);
    expect(place.read('marks')).toBe('end first\nbegin second\n');
  });

  it('because run was stopped for longer than its lease, is noticed when it wakes: 76, and the child is stopped', async () => {
    const started = sh(`echo "pid $$"; while :; do sleep 0.05; done`, '--ttl', '2s');
    const child = await started.pidOf();
    const before = await (await place.open()).lock('a').inspect();
    started.kill('SIGSTOP');
    const box = await place.open();
    const taken = await box.lock('a').acquire();
    // Not an orphan that anybody ended: nobody who looks after processes has come yet.
    expect(isAlive(child)).toBe(true);
    expect(readStat(started.pid)?.state).toBe('T');
    started.kill('SIGCONT');
    expect((await started.ended).code).toBe(76);
    expect(isAlive(child)).toBe(false);
    // Its token is refused, and the one who has it now was not touched.
    const { holder = '', token = 0 } = before.holders[0] ?? {};
    expect(await box.lock('a').release({ holder, token })).toEqual({ kind: 'not-owner' });
    expect(taken.isValid).toBe(true);
  });

  it('because run was stopped for longer than its lease, lets the next run begin only after its child was ended', async () => {
    const started = sh(
      `trap 'echo end first >> marks; exit 0' TERM; echo "pid $$"; while :; do sleep 0.02; done`,
      ...['--ttl', '2s'],
    );
    await started.pidOf();
    started.kill('SIGSTOP');
    expect((await sh('echo begin second >> marks').ended).code).toBe(0);
    expect(place.read('marks')).toBe('end first\nbegin second\n');
    started.kill('SIGCONT');
    expect((await started.ended).code).toBe(76);
  });

  it('further out stops a run inside too', async () => {
    const started = sh(
      `"$NODE" "$ENTRY" run --lock a -- sh -c 'trap "echo inner end; exit 0" TERM; echo "pid $$"; while :; do sleep 0.02; done'; echo "inner $?"`,
      ...['--on-lost', 'warn'],
    );
    await started.pidOf();
    await breakLock();
    expect((await started.ended).code).toBe(76);
    expect(started.stdout).toMatch(/inner end\ninner 76/);
  });
});
