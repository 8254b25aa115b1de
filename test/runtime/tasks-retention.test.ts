// How long finished tasks are kept: what the machine, the settings and other tasks do to that.

import type { Signalbox } from 'signalbox';
import { prefixed, readRange, type Store } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';

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
});
