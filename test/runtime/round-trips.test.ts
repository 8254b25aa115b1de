/** What things cost, counted in calls to the store: on etcd each is a round trip. */
import { describe, expect, it } from 'vitest';
import { Fleet, type Process } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

/** What a process asked of the store while `act` ran. */
async function asked(process: Process, act: () => Promise<unknown>): Promise<readonly string[]> {
  const before = process.link.asked.length;
  await act();
  await settled();
  return process.link.asked.slice(before).map(({ call }) => call);
}

describe.each([
  { transport: 'a store that answers later', atOnce: false as const },
  { transport: 'the embedded engine', atOnce: 'embedded' as const },
])('on $transport', ({ atOnce }) => {
  it('a free lock is acquired with one transaction, and released with one', async () => {
    const [one] = await new Fleet(atOnce).startAll('one');
    const lock = one!.box.lock('main');
    expect(await asked(one!, async () => (await lock.acquire()).release())).toEqual(['transaction', 'transaction']);
    expect(await asked(one!, async () => (await lock.acquire()).release())).toEqual(['transaction', 'transaction']);
  });

  it('a request that has to wait is sent once, and sends nothing more until it is granted', async () => {
    const [one, other] = await new Fleet(atOnce).startAll('one', 'other');
    const hold = await one!.box.lock('main').acquire();
    const waiting: Promise<unknown>[] = [];
    expect(await asked(other!, async () => waiting.push(other!.box.lock('main').acquire()))).toEqual(['transaction']);
    expect(await asked(other!, () => hold.release())).toEqual([]);
    await Promise.all(waiting);
  });

  it('a handoff is one transaction of the process that releases, however often it was handed on before', async () => {
    const processes = await new Fleet(atOnce).startAll('one', 'other', 'third');
    const locks = processes.map(({ box }) => box.lock('main'));
    let hold = await locks[0]!.acquire();
    // Everybody waits twice, in turn.
    const turns = [1, 2, 0, 1, 2, 0];
    const waits = [];
    for (const turn of turns) {
      waits.push(locks[turn]!.acquire());
      await settled();
    }
    let releasing = processes[0]!;
    const costs: number[] = [];
    for (const [place, turn] of turns.entries()) {
      costs.push((await asked(releasing, () => hold.release())).length);
      hold = await waits[place]!;
      releasing = processes[turn]!;
    }
    // The first has to find out who waits: its own knowledge is from before they came.
    expect(costs).toEqual([2, 1, 1, 1, 1, 1]);
    await hold.release();
  });

  it('a refused try writes nothing', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    await one!.box.lock('main').acquire();
    await one!.box.semaphore('slots', { capacity: 1 }).acquire();
    const { revision } = await fleet.store.health();
    expect(await other!.box.lock('main').tryAcquire()).toMatchObject({ kind: 'busy' });
    expect(await other!.box.semaphore('slots').tryAcquire()).toMatchObject({ kind: 'full' });
    expect((await fleet.store.health()).revision).toBe(revision);
  });
});
