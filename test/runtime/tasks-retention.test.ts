// How long finished tasks are kept: what the machine, the settings and other tasks do to that.

import type { Signalbox } from 'signalbox';
import { always, type Health, prefixed, readRange, type Store, Value } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { errorOf, isPending } from '../support/outcome.ts';

async function done({ tasks }: Signalbox, id: string): Promise<void> {
  await tasks.publish(id, null);
  await (await tasks.claim(id)).complete();
}

/** Ends the leases of all marks, as the reboot of a machine does to its embedded store. */
async function reboot(store: Store): Promise<number> {
  const { pairs } = await readRange(store, prefixed('t/mark/'));
  for (const { lease } of pairs) await store.revokeLease(lease as string);
  return pairs.length;
}

describe.each(transports)('a finished task on $transport', ({ atOnce }) => {
  it('is kept for its time although the machine is started anew, however often', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process', { maintains: false });
    await box.tasks.configure({ keepMs: 80_000 });
    await done(box, 'a');
    await box.maintain();
    for (let reboots = 0; reboots < 7; reboots++) {
      await fleet.advance(11_000);
      expect(await reboot(fleet.store)).toBeGreaterThan(0);
      expect((await box.maintain()).forgottenTasks).toBe(0);
    }
    await fleet.advance(4000);
    // Its first mark has lost its lease long ago, and the time of that mark is over now.
    expect((await box.maintain()).forgottenTasks).toBe(1);
  });

  it('is kept while a failed one depends on it, which may be tried again', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process', { maintains: false });
    const { tasks } = box;
    await tasks.configure({ keepMost: 1 });
    await done(box, 'a');
    await tasks.publish('b', {}, { dependsOn: ['a'] });
    await (await tasks.claim('b')).fail('no luck');
    expect((await box.maintain()).forgottenTasks).toBe(0);
    expect(await tasks.forget('a')).toEqual({ kind: 'needed', by: ['b'] });
    expect(await tasks.retry('b')).toEqual({ kind: 'requeued', was: 'failed' });
    await (await tasks.claim('b')).complete();
    expect((await box.maintain()).forgottenTasks).toBe(1);
    expect((await tasks.list()).map(({ id }) => id)).toEqual(['b']);
  });

  it('that was tried again is there for the next worker at once', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const { tasks } = box;
    await tasks.publish('a', { x: 1 });
    await (await tasks.claimNext()).fail('no luck');
    await tasks.retry('a');
    expect(await tasks.tryClaimNext()).toMatchObject({ kind: 'claimed', claim: { id: 'a', data: { x: 1 } } });
  });
});

describe('maintenance', () => {
  it('forgets a task that is due although more than it looks at in one round are still needed', async () => {
    const fleet = new Fleet(true);
    const { box } = await fleet.start('process', { maintains: false });
    const needed = Array.from({ length: 16 * 64 }, (_, n) => `n${n}`);
    // As another program would finish them: in one write each.
    for (const id of needed) {
      const put = (part: string, text: string) =>
        ({ do: 'put', key: `//tasks/${id}/${part}`, value: Value.text(text) }) as const;
      await fleet.store.transaction(always([put('data', '{}'), put('status', 'complete')]));
    }
    for (let n = 0; n < needed.length; n += 64) {
      await box.tasks.publish(`open${n}`, {}, { dependsOn: needed.slice(n, n + 64) });
    }
    await done(box, 'free');
    await done(box, 'latest');
    await box.tasks.configure({ keepMost: 1 });
    const maintained = box.maintain();
    // It takes turns with other work, and a turn is a timer.
    while (await isPending(maintained)) await fleet.advance(10);
    expect((await maintained).forgottenTasks).toBe(1);
    expect(await box.tasks.show('free')).toBeUndefined();
  });

  it('goes on with the rest although old tasks cannot be forgotten, and says why', async () => {
    const fleet = new Fleet(true);
    const { box, link } = await fleet.start('process', { maintains: false });
    await done(box, 'a');
    const refused = new Error('no leases today');
    link.grantLease = () => Promise.reject(refused);
    // A long history, which is the last thing that a round looks at.
    link.health = () => Promise.resolve({ revision: 100_000, compacted: 0 } as Health);
    const compacted: number[] = [];
    link.compact = (revision) => Promise.resolve(void compacted.push(revision));
    expect(await errorOf(box.maintain())).toBe(refused);
    expect(compacted).toEqual([90_000]);
  });
});

describe('the settings', () => {
  it('keep what is not named, and refuse a time that no engine can measure', async () => {
    const fleet = new Fleet(true);
    const { box } = await fleet.start('process');
    const { tasks } = box;
    await tasks.configure({ keepMs: 80_000 });
    const unset = { keepMost: 5, keepMs: undefined } as { keepMost: number };
    expect(await tasks.configure(unset)).toEqual({ keepMs: 80_000, keepMost: 5 });
    expect(await tasks.retention()).toEqual({ keepMs: 80_000, keepMost: 5 });
    expect(await errorOf(tasks.configure({ keepMs: 1e13 }))).toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/^keepMs is 10000000000000; expected .* a year/) as unknown,
    });
  });
});
