// Workers that are nothing but a shell and `signalbox task work`, among workers and tasks that do not behave.

import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { built, ENTRY, Place, type Started } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

/** Does what the data says, and writes down when it begins and when it is through. */
const WORK = `
read -r data
[ "$data" = "$(cat "$SIGNALBOX_TASK_FILE")" ] || exit 9
echo "$SIGNALBOX_TASK" >> began
case $data in
  *flaky*) [ "$SIGNALBOX_TASK_ATTEMPT" -ge 3 ] || exit 3 ;;
  *murder*) kill -9 $PPID; exit 0 ;;
  *hang*) [ "$SIGNALBOX_TASK_ATTEMPT" -ge 2 ] || exec sleep 60 ;;
  *long*) sleep 10 ;;
esac
echo "$SIGNALBOX_TASK" >> done
echo "did $SIGNALBOX_TASK"
`;

/** A worker that is started again when it dies, as a supervisor would do it. */
const WORKER = `
until "$NODE" "$ENTRY" task work --ttl 3s --grace 1s --exit-when-idle -- sh ./work.sh; do
  echo died >> died
done
`;

beforeAll(built);

describe.each(stores)('five shells that work on one queue in $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let place: Place;
  afterEach(() => place.leave());

  it('do each task once or tell that it has failed, whatever tasks and workers do', async () => {
    place = new Place(newStore);
    writeFileSync(place.path('work.sh'), WORK);
    const box = await place.open();
    const { tasks } = box;
    await tasks.publish('hang', 'hang');
    await tasks.publish('murder', 'murder');
    // Several times the lease of its worker.
    await tasks.publish('long', 'long');
    await tasks.publish('flaky', { flaky: true }, { retries: 2, backoffMs: 100 });
    for (let n = 0; n < 6; n++) await tasks.publish(`plain/${n}`, { n });
    let hung = 0;
    let isHanging = (): void => undefined;
    const hanging = new Promise<void>((resolve) => (isHanging = resolve));
    // Before the first worker begins: an event that came earlier would never be told.
    await box.on('task:claimed', ({ resource, holder }) => {
      if (resource !== 'task/hang') return;
      const pid = Number(/^work:.*:(\d+):[0-9a-f]+$/.exec(holder)?.[1]);
      // Its command has begun by then, or it never does; the worker after it must do the task either way.
      if (hung++ === 0) process.kill(pid, 'SIGKILL');
      isHanging();
    });
    const shells = async (): Promise<void> => {
      const workers = Array.from({ length: 5 }, () => place.start('bash', ['-c', WORKER]));
      const ended = await Promise.all(workers.map((worker) => worker.ended));
      expect(ended.map(({ code }) => code)).toEqual(Array(5).fill(0));
    };
    await Promise.all([shells(), hanging]);
    // They leave when there is nothing to do, also while other workers still run tasks: later shells do the rest.
    const hasEnded = async (): Promise<boolean> =>
      (await tasks.list()).every(({ status }) => status === 'complete' || status === 'failed');
    while (!(await hasEnded())) await shells();

    const all = await tasks.list();
    expect(Object.fromEntries(all.map(({ id, status }) => [id, status]))).toEqual({
      ...Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`plain/${n}`, 'complete'])),
      hang: 'complete',
      long: 'complete',
      flaky: 'complete',
      murder: 'failed',
    });
    const done = place.read('done').trim().split('\n');
    for (const { id, status, attempts, failures, losses } of all) {
      const times = done.filter((name) => name === id).length;
      // On a machine that stands still for longer than a lease, a command may be through before it is ended.
      expect({ id, times }).toEqual({ id, times: status === 'failed' ? 0 : Math.max(1, Math.min(times, 1 + losses)) });
      expect({ id, attempts }).toEqual({ id, attempts: failures + losses + (status === 'complete' ? 1 : 0) });
    }
    expect(await tasks.show('long')).toMatchObject({ result: { output: 'did long' } });
    const flaky = await tasks.show('flaky');
    expect(flaky?.reason).toBeUndefined();
    // An attempt that was lost is not one that failed.
    expect((flaky?.failures ?? 0) + (flaky?.losses ?? 0)).toBeGreaterThanOrEqual(2);
    expect((await tasks.show('hang'))?.losses).toBeGreaterThan(0);
    expect(await tasks.show('murder')).toMatchObject({
      losses: 3,
      reason: expect.stringMatching(
        /^3 workers died or lost the claim while working on it, the last one work:/,
      ) as unknown,
    });
    // Three by the task that kills its workers, one by us.
    expect(place.read('died').trim().split('\n').length).toBeGreaterThanOrEqual(4);
  });
});

describe('a worker', () => {
  let place: Place;
  afterEach(() => place.leave());

  const work = (...args: readonly string[]): Started => place.start(process.execPath, [ENTRY, 'task', ...args]);

  it('finishes what runs at the first Ctrl-C, and gives it back at the second', async () => {
    place = new Place();
    const { tasks } = await place.open();
    const command = ['--', 'sh', '-c', 'echo began; while [ ! -e go ]; do sleep 0.05; done; echo through'];
    await tasks.publish('first', null);
    const patient = work('work', ...command);
    await patient.prints(/began/);
    patient.kill('SIGINT');
    await patient.prints(/finishing 1 task; Ctrl-C again to give up/, 'stderr');
    await tasks.publish('second', null);
    writeFileSync(place.path('go'), '');
    expect(await patient.ended).toMatchObject({ code: 0, stdout: 'began\nthrough\n' });
    expect(await tasks.show('first')).toMatchObject({ status: 'complete', result: { output: 'began\nthrough' } });
    expect(await tasks.status('second')).toBe('pending');

    const hurried = work('work', '--', 'sh', '-c', 'echo began; exec sleep 60');
    await hurried.prints(/began/);
    hurried.kill('SIGINT');
    await hurried.prints(/finishing 1 task/, 'stderr');
    hurried.kill('SIGINT');
    expect(await hurried.ended).toMatchObject({
      code: 130,
      stderr: expect.stringContaining('task/second: interrupted, so it was given back') as unknown,
    });
    expect(await tasks.show('second')).toMatchObject({ status: 'pending', attempts: 0 });
  });

  it('whose claim is taken away ends the command and goes on with the next task', async () => {
    place = new Place();
    const { tasks } = await place.open();
    await tasks.publish('a', { sleeps: true });
    await tasks.publish('b', {});
    const worker = work(
      'work',
      '--exit-when-idle',
      '--',
      'sh',
      '-c',
      'grep -q sleeps || exit 0; echo began; exec sleep 60',
    );
    await worker.prints(/began/);
    expect(await tasks.forceRelease('a', { holder: 'admin', reason: 'not now' })).toMatchObject({ kind: 'released' });
    expect(await tasks.publish('a', {})).toMatchObject({ kind: 'exists' });
    await worker.prints(/task\/a: the claim was lost/, 'stderr');
    // It claims the same task again, which hangs again.
    await worker.prints(/began\nbegan/);
    worker.kill('SIGINT');
    await worker.prints(/finishing 1 task/, 'stderr');
    worker.kill('SIGINT');
    expect((await worker.ended).code).toBe(130);
  });

  it('runs one task with the exit codes that scripts rely on', async () => {
    place = new Place();
    const { tasks } = await place.open();
    const run = async (...args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> =>
      work('run', ...args).ended;
    expect(await run('--', 'true')).toMatchObject({ code: 1, stderr: 'signalbox: task: there is no task to claim\n' });
    expect(await run('nothing', '--', 'true')).toMatchObject({ code: 1 });
    await tasks.publish('a', { x: 1 }, { retries: 1, backoffMs: 3_600_000 });
    expect(await run('a', '--', 'no-such-command')).toMatchObject({ code: 127 });
    expect(await run('a', 'true')).toMatchObject({ code: 64 });
    expect(await run('a', '--ttl', '60s', '--', 'sh', '-c', 'exit 3')).toMatchObject({
      code: 3,
      stderr: 'signalbox: task/a: attempt 1 failed; 1 retry is left, the next one can begin in 60 min\n',
    });
    expect(await tasks.show('a')).toMatchObject({ reason: 'sh: exit code 3', status: 'pending' });
    expect(await run('a', '--', 'true')).toMatchObject({ code: 75 });
    expect(await tasks.retry('a')).toEqual({ kind: 'requeued', was: 'pending' });
    // What it prints is its result, and JSON stays JSON.
    expect(await run('task/a', '--', 'cat')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"x":1') as unknown,
    });
    expect(await tasks.show('a')).toMatchObject({ status: 'complete', result: { x: 1 } });
    await tasks.publish('b', {});
    expect(await run('--', 'sh', '-c', 'kill -9 $$')).toMatchObject({ code: 137 });
    expect(await tasks.show('b')).toMatchObject({ status: 'failed', reason: 'sh: ended by SIGKILL' });
  });

  it('that exits when idle waits for the task of a killed worker, which is shown as such', async () => {
    place = new Place();
    const { tasks } = await place.open();
    await tasks.publish('a', {});
    const killed = work('work', '--ttl', '1h', '--', 'sh', '-c', 'echo began; exec sleep 60');
    await killed.prints(/began/);
    const gone = 'its process is gone; pending again when its lease ends';
    expect((await work('list').ended).stdout).not.toContain(gone);
    killed.kill('SIGKILL');
    await killed.exited;
    expect((await work('list').ended).stdout).toMatch(new RegExp(`^a +running .* ${gone}$`, 'm'));
    expect((await work('show', 'a').ended).stdout).toContain(`\nworker      ${gone}\n`);
    const who = await place.start(process.execPath, [ENTRY, 'who']).ended;
    expect(who.stdout).toMatch(new RegExp(`^task/a .*\n {2}${gone}$`, 'm'));
    const next = work('work', '--grace', '1s', '--exit-when-idle', '--', 'true');
    await next.prints(
      /^signalbox: task\/a: the process of its worker work:\S+ is gone; waiting until the claim ends with its lease$/m,
      'stderr',
    );
    expect(await tasks.forceRelease('a', { holder: 'admin', reason: 'it is gone' })).toMatchObject({
      kind: 'released',
    });
    expect(await next.ended).toMatchObject({ code: 0 });
    expect(await tasks.status('a')).toBe('complete');
  });

  it('that exits when idle waits also for a killed worker with a name of its own', async () => {
    place = new Place();
    const { tasks } = await place.open();
    await tasks.publish('a', {});
    const killed = work('work', '--holder', 'agent:7', '--ttl', '3s', '--', 'sh', '-c', 'echo began; exec sleep 60');
    await killed.prints(/began/);
    killed.kill('SIGKILL');
    await killed.exited;
    expect(await work('work', '--grace', '1s', '--exit-when-idle', '--', 'true').ended).toMatchObject({ code: 0 });
    expect(await tasks.status('a')).toBe('complete');
  });

  it('that exits when idle leaves tasks to other workers that live, and says how many they have', async () => {
    place = new Place();
    const { tasks } = await place.open();
    await tasks.publish('a', {});
    await tasks.claim('a', { holder: 'other' });
    expect(await work('work', '--exit-when-idle', '--', 'true').ended).toEqual({
      code: 0,
      signal: null,
      stdout: '',
      stderr: 'signalbox: nothing left to do here; 1 task is still running under other workers\n',
    });
  });

  it('that exits when idle ends with 1 if a task that it ran failed for good', async () => {
    place = new Place();
    const { tasks } = await place.open();
    await tasks.publish('good', 'good');
    await tasks.publish('bad', 'bad');
    await tasks.publish('flaky', { flaky: true }, { retries: 1 });
    const does = 'read -r data; case $data in *bad*) exit 3;; *flaky*) [ "$SIGNALBOX_TASK_ATTEMPT" -ge 2 ];; esac';
    const { code, stderr } = await work('work', '--exit-when-idle', '--', 'sh', '-c', does).ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/\nsignalbox: 1 task failed; to see why: signalbox task list --status failed\n$/);
    expect((await work('work', '--exit-when-idle', '--', 'true').ended).code).toBe(0);
  });

  it('refuses more jobs at once than it can keep alive', async () => {
    place = new Place();
    expect(await work('work', '--jobs', '257', '--exit-when-idle', '--', 'true').ended).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('--jobs is "257"; expected a whole number from 1 to 256') as unknown,
    });
    expect((await work('work', '--jobs', '256', '--exit-when-idle', '--', 'true').ended).code).toBe(0);
  });

  it('whose claim is lost while its command runs ends the command and exits with 76', async () => {
    place = new Place();
    const { tasks } = await place.open();
    await tasks.publish('a', {});
    const running = work('run', 'a', '--', 'sh', '-c', 'echo began; exec sleep 60');
    await running.prints(/began/);
    await tasks.forceRelease('a', { holder: 'admin', reason: 'not now' });
    expect(await running.ended).toMatchObject({ code: 76 });
    expect(await tasks.show('a')).toMatchObject({ status: 'pending' });
  });
});
