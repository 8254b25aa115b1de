// A request that waits and is refused says so to whoever comes with its ticket next, and is never just gone.

import type { Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports } from '../support/fleet.ts';
import { changesRecord } from '../support/link.ts';
import { isPending, refusalOf, settled } from '../support/outcome.ts';

const REFUSED = { kind: 'capacity-mismatch', capacity: 1 };

const readsQueue = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'read' && operation.key.startsWith('q/'));

/** A request for two slots waits; `refuse` takes one away for good, from another process unless said otherwise. */
async function waitingForTwo(atOnce: ConstructorParameters<typeof Fleet>[0]) {
  const fleet = new Fleet(atOnce);
  const [one, other] = (await fleet.startAll('one', 'other')) as [Process, Process];
  const pool = one.box.semaphore('pool', { capacity: 2 });
  await pool.acquireDetached({ holder: 'a' });
  const asked = await pool.askDetached({ holder: 'b', weight: 2 });
  if (asked.kind !== 'waiting') throw new Error('it should wait');
  const refuse = async ({ box }: Process = other): Promise<void> => {
    await box.semaphore('pool').resize(1);
    await settled();
  };
  return { fleet, one, pool, claim: { ticket: asked.ticket, holder: 'b' }, refuse };
}

describe.each(transports)('a refused request on $transport', ({ atOnce }) => {
  it('is refused to the next who asks, if the one before had no time left to hear of it', async () => {
    const { one, pool, claim, refuse } = await waitingForTwo(atOnce);
    one.link.next('keepLeaseAlive', 'held');
    const collecting = pool.collect(claim);
    await settled();
    await refuse();
    one.link.answerHeld();
    expect((await collecting).kind).toBe('waiting');
    expect(await refusalOf(pool.collect(claim))).toMatchObject(REFUSED);
    expect(await pool.collect(claim)).toEqual({ kind: 'gone' });
  });

  it('is refused although its ticket is seen to be gone before the letter that says why has come', async () => {
    const { one, pool, claim, refuse } = await waitingForTwo(atOnce);
    one.link.holdNews();
    await refuse();
    const collecting = pool.collect(claim);
    expect(await isPending(collecting)).toBe(true);
    one.link.deliverNews();
    expect(await refusalOf(collecting)).toMatchObject(REFUSED);
  });

  it('keeps its answer for later, if the letter does not come while the caller is there', async () => {
    const { fleet, one, pool, claim, refuse } = await waitingForTwo(atOnce);
    one.link.holdNews();
    await refuse();
    const away = new AbortController();
    const collecting = pool.collect(claim, { signal: away.signal });
    expect(await isPending(collecting)).toBe(true);
    away.abort();
    expect((await collecting).kind).toBe('waiting');
    const patient = pool.collect(claim);
    await fleet.advance(5000);
    expect((await patient).kind).toBe('waiting');
    one.link.deliverNews();
    await settled();
    expect(await refusalOf(pool.collect(claim))).toMatchObject(REFUSED);
  });

  // A store that answers at once does not answer late.
  const whereAnswersTakeTime = atOnce === true ? undefined : it;
  whereAnswersTakeTime?.('is refused to the next who asks, if the one before has gone away', async () => {
    const { one, pool, claim, refuse } = await waitingForTwo(atOnce);
    const away = new AbortController();
    const collecting = pool.collect(claim, { waitMs: 60_000, signal: away.signal });
    await settled();
    one.link.next('transaction', 'held', readsQueue);
    await refuse();
    // The letter has come, and it looks at the queue.
    away.abort();
    one.link.answerHeld();
    expect((await collecting).kind).toBe('waiting');
    expect(await refusalOf(pool.collect(claim))).toMatchObject(REFUSED);
  });

  whereAnswersTakeTime?.('is refused although the write of this process that did it is not answered yet', async () => {
    const { one, pool, claim, refuse } = await waitingForTwo(atOnce);
    one.link.next('transaction', 'held', changesRecord);
    const refusing = refuse(one);
    await settled();
    const collecting = pool.collect(claim);
    expect(await isPending(collecting)).toBe(true);
    one.link.answerHeld();
    await refusing;
    expect(await refusalOf(collecting)).toMatchObject(REFUSED);
  });
});
