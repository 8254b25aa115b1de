/** What a crowd costs: many processes that change one record at once leave their writes to one of them. */
import type { Signalbox } from 'signalbox';
import type { Store } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, TTL_MS } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

const CAPACITY = 4;
const TURNS = 40;

/** Every worker takes a slot and gives it back, again and again; never more than there are. */
class Crowd {
  most = 0;
  turns = 0;
  #inside = 0;

  async work(box: Signalbox, turns = TURNS): Promise<void> {
    const slots = box.semaphore('slots', { capacity: CAPACITY });
    for (let turn = 0; turn < turns; turn++) {
      const hold = await slots.acquire();
      this.#inside += 1;
      this.most = Math.max(this.most, this.#inside);
      await Promise.resolve();
      this.#inside -= 1;
      this.turns += 1;
      await hold.release();
    }
  }
}

/** How many writes there were, and how many found something else than they expected. */
function counted(store: Store): { writes: number; lost: number } {
  const count = { writes: 0, lost: 0 };
  const transaction = store.transaction.bind(store);
  store.transaction = async (asked, signal) => {
    const result = await transaction(asked, signal);
    if (asked.success.some((operation) => operation.do !== 'read')) count.writes += 1;
    if (!result.succeeded) count.lost += 1;
    return result;
  };
  return count;
}

async function crowdOf(names: readonly string[]): Promise<{ fleet: Fleet; processes: Process[]; crowd: Crowd }> {
  const fleet = new Fleet(false);
  return { fleet, processes: await fleet.startAll(...names), crowd: new Crowd() };
}

describe('many processes that use one semaphore at once', () => {
  it('lose few races, and nobody gets in who should not', async () => {
    const { fleet, processes, crowd } = await crowdOf(['a', 'b', 'c', 'd', 'e', 'f']);
    const count = counted(fleet.store);
    await Promise.all(processes.flatMap(({ box }) => [crowd.work(box), crowd.work(box)]));
    expect(crowd.turns).toBe(processes.length * 2 * TURNS);
    expect(crowd.most).toBeLessThanOrEqual(CAPACITY);
    expect(count.lost / count.writes).toBeLessThan(0.1);
    const { holders, waiting } = await processes[0]!.box.semaphore('slots').inspect();
    expect([holders, waiting]).toEqual([[], []]);
  });

  it('go on when the one who writes for all of them is gone, and give nothing away twice', async () => {
    const { fleet, processes, crowd } = await crowdOf(['a', 'b', 'c', 'd']);
    const working = processes.map(({ box }) => crowd.work(box));
    // Whoever of them it is by now: one after another they go, in the middle of it.
    for (const process of processes.slice(0, 3)) {
      for (let step = 0; step < 20; step++) await Promise.resolve();
      await settled();
      process.crash();
      await fleet.clock.advance(TTL_MS + 1000);
    }
    const { box } = processes[3]!;
    for (let step = 0; step < 50; step++) {
      await settled();
      await fleet.clock.advance(1000);
    }
    await working[3];
    expect(crowd.most).toBeLessThanOrEqual(CAPACITY);
    await fleet.clock.advance(TTL_MS);
    const hold = await box.semaphore('slots').acquire({ weight: CAPACITY });
    expect(hold.slots).toEqual([0, 1, 2, 3]);
  });
});
