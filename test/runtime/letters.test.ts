/** Letters that make no sense, are too many, or were missed. */
import { describe, expect, it } from 'vitest';
import type { Transaction } from 'signalbox/store';
import { Fleet, type Process } from '../support/fleet.ts';
import { putLetter, sessionOf } from '../support/letters.ts';
import { lossOf, settled } from '../support/outcome.ts';

const delegated = (fields: object) => ({
  delegations: [{ id: 'x!1', resource: 'semaphore/slots', from: 'x', epoch: 1, leaseId: '', commands: [], ...fields }],
});
const report = (fields: object) => ({
  reports: [{ resource: 'lock/main', record: { v: 1, holds: [] }, by: 'x', waiting: [], queueRevision: 1, ...fields }],
});
const acquire = { kind: 'acquire', id: 'x.1', holder: 'x.1', lease: 'x', priority: 0, weight: 1, wait: true };

const senseless: readonly unknown[] = [
  null,
  7,
  [],
  {},
  { answers: 7, losses: {}, reports: 'x', delegations: null, done: 1 },
  { answers: [null, 7, {}, { id: 'x.1', resource: 'lock/main' }, { id: 1, resource: 2, outcome: 3 }] },
  { losses: [null, {}, { id: 'x.1' }] },
  { done: [null, {}, { id: 'x!1', place: 'first', outcome: null }] },
  report({ record: null }),
  report({ record: { v: 1 } }),
  report({ record: { v: 1, holds: [null] } }),
  report({ record: { v: 1, holds: [{ id: 1, lease: {} }] } }),
  report({ waiting: [null, ['x']] }),
  report({ waiting: 'all' }),
  report({ resource: 'barrier/main' }),
  report({ resource: 7 }),
  delegated({ commands: [null, 7] }),
  delegated({ commands: [{ kind: 'from-a-later-version' }] }),
  delegated({ commands: [{ kind: 'break', holder: 'x', reason: 'y' }] }),
  delegated({ commands: [{ ...acquire, weight: -1 }] }),
  delegated({ commands: [{ ...acquire, weight: undefined }] }),
  delegated({ commands: [{ ...acquire, lease: 7 }] }),
  delegated({ commands: [acquire], epoch: 'now' }),
  delegated({ commands: [acquire], from: { x: 1 } }),
  delegated({ commands: [acquire], resource: 'semaphore/' }),
  delegated({ commands: 'all' }),
];

describe('a letter that makes no sense', () => {
  it.each(['no JSON', ...senseless.map((letter) => JSON.stringify(letter))])('is passed over: %s', async (text) => {
    const fleet = new Fleet(false);
    const [one, other] = (await fleet.startAll('one', 'other')) as [Process, Process];
    const slots = one.box.semaphore('slots', { capacity: 1 });
    const hold = await slots.acquire();
    await putLetter(fleet.store, await sessionOf(fleet.store, 'one'), text);
    // What is asked at the same time is none the worse for it.
    const releasing = hold.release();
    await settled();
    await fleet.clock.advance(1000);
    await releasing;
    const holds = [await slots.acquire(), await one.box.lock('main').acquire()];
    const waits = [other.box.semaphore('slots').acquire(), other.box.lock('main').acquire()];
    await settled();
    for (const held of holds) await held.release();
    for (const waiting of waits) await (await waiting).release();
    const { holders, capacity } = await slots.inspect();
    expect([holders, capacity]).toEqual([[], 1]);
  });

  it('does not take along what else is in it', async () => {
    const fleet = new Fleet(false);
    const [one] = (await fleet.startAll('one')) as [Process];
    const hold = await one.box.lock('main').acquire();
    const losses = [null, { id: hold.id, token: hold.token, why: 'forced' }];
    const text = JSON.stringify({ ...report({ record: null }), losses });
    await putLetter(fleet.store, await sessionOf(fleet.store, 'one'), text);
    await settled();
    expect(lossOf(hold.signal)).toMatchObject({ why: 'forced' });
  });
});

describe('a hold that was taken away', () => {
  it('is told to its holder, although the letter was forgotten with the history of the store', async () => {
    const fleet = new Fleet(false);
    const [one, admin] = (await fleet.startAll('one', 'admin')) as [Process, Process];
    const hold = await one.box.lock('main').acquire();
    const other = await one.box.lock('other').acquire();
    one.link.cutOff('refusing');
    await admin.box.lock('main').break({ holder: 'admin', reason: 'it takes too long' });
    await fleet.store.compact(await fleet.revision());
    one.link.reconnect();
    for (let step = 0; step < 10; step++) await fleet.clock.advance(500);
    expect(lossOf(hold.signal)).toBeDefined();
    expect(other.isValid).toBe(true);
  });

  it('is not a task: that is kept elsewhere, and its claim goes on', async () => {
    const fleet = new Fleet(false);
    const [one] = (await fleet.startAll('one')) as [Process];
    await one.box.tasks.publish('build', null);
    const claim = await one.box.tasks.claim('build');
    await fleet.store.compact(await fleet.revision());
    one.link.cutWatches();
    for (let step = 0; step < 10; step++) await fleet.clock.advance(500);
    expect(claim.isValid).toBe(true);
    expect(await claim.complete()).toEqual({ kind: 'completed' });
  });
});

describe('a write that concerns many processes', () => {
  it('stays small, however much its holders say of themselves', async () => {
    const fleet = new Fleet(false);
    const names = Array.from({ length: 12 }, (_, place) => `p${place}`);
    const processes = await fleet.startAll(...names);
    const metadata = { about: 'x'.repeat(20_000) };
    const slots = processes.map(({ box }) => box.semaphore('slots', { capacity: 12 }));
    const hold = await slots[0]!.acquire({ weight: 12 });
    const waits = slots.slice(1).map((semaphore) => semaphore.acquire({ metadata }));
    await settled();
    const before = processes[0]!.link.asked.length;
    await hold.release();
    await Promise.all(waits);
    const largest = processes[0]!.link.asked.slice(before).map(({ transaction }) => bytesOf(transaction));
    // Every one of the eleven is in the record once, and in the letter to it.
    expect(Math.max(...largest)).toBeLessThan(2 * 11 * 21_000);
  });
});

function bytesOf({ success }: Pick<Transaction, 'success'>): number {
  return success.reduce((sum, operation) => {
    if (operation.do === 'put') return sum + operation.value.text.length;
    return operation.do === 'transaction' ? sum + bytesOf(operation) : sum;
  }, 0);
}
