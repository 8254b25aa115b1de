// Signals to a run are meant for its command (PITFALLS 14); before that has begun, they are meant for the run.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readStat } from '../../src/host/index.ts';
import { built, exitCodeFor, isAlive, Place } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

describe.each(stores)('a signal to run, on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let place: Place;
  beforeAll(built);
  beforeEach(() => {
    place = new Place(newStore);
  });
  afterEach(() => place.leave());

  const sh = (script: string, ...options: string[]): ReturnType<Place['run']> =>
    place.run([...options, '--', 'sh', '-c', script]);

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGALRM', 'SIGUSR1', 'SIGUSR2'] as const)(
    'reaches the command: %s, which ends as it likes',
    async (signal) => {
      const started = sh(
        `trap 'echo got ${signal}; exit 7' ${signal.slice(3)}; echo "pid $$"; while :; do sleep 0.02; done`,
        ...['--lock', 'a'],
      );
      await started.pidOf();
      started.kill(signal);
      expect(await started.ended).toMatchObject({ code: 7, signal: null });
      expect(started.stdout).toContain(`got ${signal}`);
    },
  );

  it('reaches the whole process group, not just its leader', async () => {
    const started = sh('sleep 1000 & echo "pid $!"; wait', '--lock', 'a');
    const grandchild = await started.pidOf();
    started.kill('SIGTERM');
    expect((await started.ended).code).toBe(exitCodeFor('SIGTERM'));
    expect(isAlive(grandchild)).toBe(false);
  });

  it('stops the command and lets it go on, while run keeps the lock', async () => {
    const started = sh('echo "pid $$"; read -r line; echo "got $line"', '--lock', 'a', '--ttl', '2s');
    const child = await started.pidOf();
    const lock = (await place.open()).lock('a');
    const lastHeartbeat = async (): Promise<number> => (await lock.inspect()).holders[0]?.lastHeartbeat ?? 0;
    started.kill('SIGTSTP');
    while (readStat(child)?.state !== 'T') await new Promise((resolve) => setTimeout(resolve, 10));
    // Renewed when the lease that it had then would have ended.
    const later = (await lastHeartbeat()) + 2000;
    await expect.poll(lastHeartbeat).toBeGreaterThan(later);
    expect(await lock.isStale()).toBe(false);
    started.kill('SIGCONT');
    started.write('on\n');
    expect(await started.ended).toMatchObject({ code: 0 });
    expect(started.stdout).toContain('got on');
  });

  it('is heard by a command that was stopped', async () => {
    const started = sh(`trap 'echo told; exit 7' TERM; echo "pid $$"; kill -STOP $$; sleep 1000`, '--lock', 'a');
    const child = await started.pidOf();
    while (readStat(child)?.state !== 'T') await new Promise((resolve) => setTimeout(resolve, 10));
    started.kill('SIGTERM');
    expect(await started.ended).toMatchObject({ code: 7 });
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'while it waits takes it out of the queue, and the command never begins: %s',
    async (signal) => {
      const box = await place.open();
      const hold = await box.lock('a').acquire();
      const started = sh('echo ran', '--lock', 'a', '--verbose');
      await started.prints(/waiting for lock\/a/, 'stderr');
      started.kill(signal);
      expect(await started.ended).toMatchObject({ code: exitCodeFor(signal), signal: null, stdout: '' });
      expect((await box.lock('a').inspect()).waiting).toEqual([]);
      await hold.release();
      expect(await box.lock('a').isFree()).toBe(true);
    },
  );

  it('that races the grant leaves nothing held, whoever wins', async () => {
    const box = await place.open();
    for (let round = 0; round < 5; round++) {
      const hold = await box.lock('a').acquire();
      const started = sh('echo ran', '--lock', 'a', '--verbose');
      await started.prints(/waiting for lock\/a/, 'stderr');
      const released = hold.release();
      started.kill('SIGTERM');
      await released;
      const { code, stdout } = await started.ended;
      expect([
        [exitCodeFor('SIGTERM'), ''],
        [0, 'ran\n'],
        [exitCodeFor('SIGTERM'), 'ran\n'],
      ]).toContainEqual([code, stdout]);
      expect(await box.lock('a').isFree()).toBe(true);
    }
  });
});
