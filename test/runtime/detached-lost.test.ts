// A detached hold that was taken away before its caller heard of it is refused as lost, if this process knows.

import type { Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports } from '../support/fleet.ts';
import { changesRecord } from '../support/link.ts';
import { refusalOf, settled } from '../support/outcome.ts';

const BY_FORCE = { holder: 'admin', strategy: 'force', reason: 'stuck' } as const;

const readsAnchor = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'read' && operation.key.startsWith('a/') && operation.end === undefined);

/** The second call of a kind, and no other. */
const second = (): (() => boolean) => {
  let calls = 0;
  return () => ++calls === 2;
};

/** What the process does once its delayed answer is there shares a write with one that takes the lock by force. */
async function forceInSameWrite({ box, link }: Process): Promise<void> {
  await settled();
  link.next('transaction', 'held', changesRecord);
  // While this write has no answer, the commands for the lock gather.
  const writing = box.lock('db').configure({ onStale: 'alert' });
  await settled();
  link.deliverDelayed();
  await settled();
  await settled();
  const forcing = box.lock('db').acquire(BY_FORCE);
  link.answerHeld();
  await writing;
  expect((await forcing).isValid).toBe(true);
}

describe.each(transports)('a detached hold on $transport', ({ atOnce }) => {
  it('that is taken away by force while its first lease is ended is not handed out', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    one!.link.next('revokeLease', 'held');
    const asking = refusalOf(
      one!.box.lock('db').acquireDetached({ holder: 'agent:1', ticketMs: 20_000, ttlMs: 60_000 }),
    );
    await settled();
    await other!.box.lock('db').acquire(BY_FORCE);
    await settled();
    one!.link.answerHeld();
    expect(await asking).toEqual({ kind: 'lost' });
  });

  it('that its holder had, and that is taken away by force while it is renewed, is not handed out', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const lock = one!.box.lock('db');
    await lock.acquireDetached({ holder: 'agent:1' });
    one!.link.next('keepLeaseAlive', 'held');
    const asking = refusalOf(lock.acquireDetached({ holder: 'agent:1' }));
    await settled();
    await other!.box.lock('db').acquire(BY_FORCE);
    await settled();
    one!.link.answerHeld();
    expect(await asking).toEqual({ kind: 'lost' });
  });

  it('that is taken away by force while its ticket is collected is gone', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const lock = one!.box.lock('db');
    const before = await lock.acquireDetached({ holder: 'agent:0' });
    const asked = await lock.askDetached({ holder: 'agent:1' });
    if (asked.kind !== 'waiting') throw new Error('it should wait');
    await lock.release(before);
    one!.link.next('keepLeaseAlive', 'held');
    const collecting = lock.collect({ ticket: asked.ticket, holder: 'agent:1' });
    await settled();
    await other!.box.lock('db').acquire(BY_FORCE);
    await settled();
    one!.link.answerHeld();
    expect(await collecting).toEqual({ kind: 'gone' });
  });

  it('that an attached hold of this process stands for is not handed out after that is taken away', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const lock = one!.box.lock('db');
    const attached = await lock.acquire({ holder: 'agent:1' });
    one!.link.next('leaseState', 'held');
    const asking = refusalOf(lock.acquireDetached({ holder: 'agent:1' }));
    await settled();
    await other!.box.lock('db').acquire(BY_FORCE);
    await settled();
    expect(attached.isValid).toBe(false);
    one!.link.answerHeld();
    expect(await asking).toEqual({ kind: 'lost' });
  });

  // A store that answers at once has one command in each write, and no answer that comes late.
  const whereAnswersTakeTime = atOnce === true ? undefined : it;
  whereAnswersTakeTime?.('that the write which limits its time gives to another is not handed out', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    const lock = one!.box.lock('db');
    one!.link.next('grantLease', 'delayed', second());
    const asking = refusalOf(lock.acquireDetached({ holder: 'agent:1', maxHoldMs: 60_000 }));
    await forceInSameWrite(one!);
    expect(await asking).toEqual({ kind: 'lost' });
  });

  whereAnswersTakeTime?.('that the write which upgrades it gives to another is lost', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    const lock = one!.box.lock('db');
    const claim = await lock.acquireDetached({ holder: 'agent:1', mode: 'shared' });
    one!.link.next('transaction', 'delayed', readsAnchor);
    const upgrading = lock.upgrade(claim);
    await forceInSameWrite(one!);
    expect(await upgrading).toEqual({ kind: 'lost' });
  });

  whereAnswersTakeTime?.('that the write which downgrades it gives to another is lost', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    const lock = one!.box.lock('db');
    const claim = await lock.acquireDetached({ holder: 'agent:1' });
    // The read that finds the hold: the downgrade follows it.
    one!.link.next('transaction', 'delayed');
    const downgrading = lock.downgrade(claim);
    await forceInSameWrite(one!);
    expect(await downgrading).toEqual({ kind: 'lost' });
  });

  whereAnswersTakeTime?.('whose upgrade is answered only after its lease may have ended is lost', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    const lock = one!.box.lock('db');
    const claim = await lock.acquireDetached({ holder: 'agent:1', mode: 'shared', ttlMs: 3000 });
    one!.link.next('transaction', 'held', changesRecord);
    const upgrading = lock.upgrade(claim);
    await settled();
    for (let time = 0; time < 3; time++) one!.link.next('keepLeaseAlive', 'refused');
    await fleet.advance(2900);
    one!.link.answerHeld();
    expect(await upgrading).toEqual({ kind: 'lost' });
  });
});
