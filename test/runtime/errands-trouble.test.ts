/** Delegation that come late, come twice, are not answered, or make no sense. */
import type { Hold, Signalbox } from 'signalbox';
import type { Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process } from '../support/fleet.ts';
import { anchorOf, putErrand, raiseEpoch, sessionOf } from '../support/letters.ts';
import { errorOf, isPending, settled } from '../support/outcome.ts';

const slotsOf = (box: Signalbox, capacity = 4) => box.semaphore('slots', { capacity });

const request = (lease: string, serial: number) => {
  const id = `${lease}.${serial}`;
  return { kind: 'acquire', id, holder: id, lease, priority: 0, weight: 1, wait: true };
};

/** The guest has just lost a race against the keeper: what it asks for next is left to that one. */
async function crowd(capacity = 4): Promise<{ fleet: Fleet; guest: Process; keeper: Process; hold: Hold }> {
  const fleet = new Fleet(false);
  const guest = await fleet.start('guest', { requestTimeoutMs: 2000 });
  const keeper = await fleet.start('keeper');
  await (await slotsOf(guest.box, capacity).acquire()).release();
  await slotsOf(keeper.box, capacity).acquire();
  const hold = await slotsOf(guest.box, capacity).acquire();
  await settled();
  return { fleet, guest, keeper, hold };
}

/** Whether a process asks another one to do something for it. */
const leavesErrand = ({ transaction }: { readonly transaction: Transaction }): boolean =>
  transaction.success.some((operation) => operation.do === 'put' && operation.value.text.includes('"delegations"'));

describe('whoever waits behind one that is served by a keeper', () => {
  it('is served too, although the keeper had not heard of it', async () => {
    const fleet = new Fleet(false);
    const [keeper, guest, late] = (await fleet.startAll('keeper', 'guest', 'late')) as [Process, Process, Process];
    const slots = slotsOf(keeper.box);
    const hold = await slots.acquire({ weight: 4 });
    const waits = [slotsOf(guest.box).acquire()];
    await settled();
    // It looks, and then writes without a look: from here on it knows of the guest, and not who else has come.
    await slots.tryAcquire();
    await guest.box.lock('other').acquire();
    await slots.configure({ onStale: 'alert' });
    const from = await sessionOf(fleet.store, 'guest');
    await putErrand(fleet.store, 'keeper', { resource: 'semaphore/slots', from, commands: [] });
    waits.push(slotsOf(late.box).acquire());
    await settled();
    await hold.release();
    await settled();
    await Promise.all(waits);
  });
});

describe('an delegated that comes after its sender has asked by itself', () => {
  it('is not carried out in the company of a newer one', async () => {
    const fleet = new Fleet(false);
    const [keeper] = (await fleet.startAll('keeper', 'guest')) as [Process, Process];
    const slots = slotsOf(keeper.box);
    await (await slots.acquire()).release();
    const from = await sessionOf(fleet.store, 'guest');
    await raiseEpoch(fleet.store, from);
    keeper.link.holdNews();
    for (const [epoch, serial] of [
      [1, 91],
      [2, 92],
    ] as const) {
      const commands = [request(from, serial)];
      await putErrand(fleet.store, 'keeper', { resource: 'semaphore/slots', from, epoch, commands });
    }
    await settled();
    keeper.link.deliverNews();
    await settled();
    expect((await slots.inspect()).holders.map(({ holder }) => holder)).toEqual([`${from}.92`]);
  });
});

describe('an delegated that is not answered', () => {
  it('is not asked for a second time meanwhile, so that it is not granted twice', async () => {
    const { fleet, guest, keeper } = await crowd();
    keeper.link.holdNews();
    const acquiring = slotsOf(guest.box).acquire();
    await settled();
    expect(leavesErrand(guest.link.asked.at(-1)!)).toBe(true);
    // Its letters may have been missed: everything that is waited for is asked for again.
    await fleet.store.compact(await fleet.revision());
    guest.link.cutWatches();
    await settled();
    await fleet.clock.advance(100);
    expect(await isPending(acquiring)).toBe(true);
    keeper.link.deliverNews();
    const releasing = acquiring.then((granted) => granted.release());
    for (let step = 0; step < 10; step++) await fleet.clock.advance(100);
    await releasing;
    expect((await slotsOf(guest.box).inspect()).holders).toHaveLength(2);
  });

  it('is told within the time that was set, also while the store cannot be reached', async () => {
    const { fleet, guest, keeper, hold } = await crowd();
    keeper.link.holdNews();
    const acquiring = slotsOf(guest.box).acquire();
    await settled();
    expect(leavesErrand(guest.link.asked.at(-1)!)).toBe(true);
    guest.link.cutOff('refusing');
    const told = errorOf(acquiring);
    void hold.release().catch(() => undefined);
    for (let step = 0; step < 30; step++) await fleet.clock.advance(100);
    expect(await isPending(told)).toBe(false);
    expect(await told).toMatchObject({ code: 'outcome-unknown' });
  });

  it('leaves nothing behind when its sender closes meanwhile', async () => {
    const { fleet, guest, keeper, hold } = await crowd();
    await hold.release();
    const slots = slotsOf(keeper.box);
    await slots.configure({ onStale: 'alert' });
    keeper.link.holdNews();
    const refused = errorOf(slotsOf(guest.box).acquire());
    await settled();
    expect(leavesErrand(guest.link.asked.at(-1)!)).toBe(true);
    const closing = guest.box.close();
    expect(await isPending(closing)).toBe(true);
    keeper.link.deliverNews();
    for (let step = 0; step < 10; step++) await fleet.clock.advance(100);
    await Promise.all([closing, refused]);
    const holders = (await slots.inspect()).holders.map(({ holder }) => holder);
    expect(holders.filter((holder) => holder.startsWith('guest'))).toEqual([]);
  });
});

describe('a keeper that is stopped', () => {
  it('does not keep those waiting who could be served', async () => {
    const fleet = new Fleet(false);
    const [guest, keeper, dying] = (await fleet.startAll('guest', 'keeper', 'dying')) as [Process, Process, Process];
    await slotsOf(dying.box, 3).acquire();
    await slotsOf(guest.box, 3).acquire();
    await slotsOf(keeper.box, 3).acquire();
    const waits = slotsOf(guest.box, 3).acquire();
    await settled();
    keeper.clock.stall();
    keeper.link.cutOff('silent');
    await fleet.store.revokeLease((await anchorOf(fleet.store, await sessionOf(fleet.store, 'dying')))?.lease ?? '');
    await settled();
    await fleet.clock.advance(700);
    expect(await isPending(waits)).toBe(false);
  });
});
