/** A re-entry is no second hold: it is the outer hold seen by another, and valid exactly as long. */
import type { Lock } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports, TTL_MS } from '../support/fleet.ts';
import { changesRecord } from '../support/link.ts';
import { isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

const lossOrRefusalOf = (asked: Promise<unknown>): Promise<unknown> => asked.catch((error: unknown) => error);

describe.each(transports)('a re-entry on $transport', ({ atOnce }) => {
  async function two(): Promise<{ fleet: Fleet; one: Process; other: Process; here: Lock; there: Lock }> {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    return { fleet, one: one!, other: other!, here: one!.box.lock('db'), there: other!.box.lock('db') };
  }

  it('never rests on a grant that was given back: the second wait of a holder is granted anew', async () => {
    const { one, here, there } = await two();
    const first = await there.acquire({ holder: 'A' });
    const giveUp = new AbortController();
    const aborted = here.acquire({ holder: 'X', signal: giveUp.signal });
    const waiting = here.acquire({ holder: 'X' });
    await settled();
    one.link.holdNews();
    await first.release();
    giveUp.abort();
    expect(await refusalOf(aborted)).toMatchObject({ kind: 'aborted' });
    one.link.deliverNews();
    const hold = await waiting;
    expect(await there.tryAcquire({ holder: 'Y' })).toMatchObject({ kind: 'busy' });
    expect(hold.isValid).toBe(true);
    await hold.release();
    await settled();
    expect(await here.isFree()).toBe(true);
  });

  it('that was asked for while the outer hold is released is a hold of its own, or none', async () => {
    const { here, there } = await two();
    const outer = await here.acquire({ holder: 'X' });
    const [inner, released] = await Promise.all([here.acquire({ holder: 'X' }), outer.release()]);
    expect(released).toEqual({ kind: 'released' });
    const other = await there.tryAcquire({ holder: 'Y' });
    expect(inner.isValid).toBe(other.kind === 'busy');
  });

  // At once there is no time between a grant and its answer.
  const whereAnswersTakeTime = atOnce === true ? undefined : it;
  whereAnswersTakeTime?.('whose answer comes after the outer hold was forced away is no hold', async () => {
    const { one, here, there } = await two();
    const outer = await here.acquire({ holder: 'X' });
    one.link.next('transaction', 'held');
    const asking = here.acquire({ holder: 'X' });
    await settled();
    const forced = await there.acquire({ holder: 'admin', strategy: 'force', reason: 'urgent' });
    await settled();
    expect(outer.lost?.why).toBe('forced');
    one.link.answerHeld();
    expect(await isPending(asking)).toBe(true);
    await forced.release();
    expect((await asking).isReentry).toBe(false);
  });

  whereAnswersTakeTime?.('that only reads does not keep the lock exclusive after the upgrade is given up', async () => {
    const { fleet, one, here, there } = await two();
    await here.acquire({ holder: 'X', mode: 'shared' });
    const giveUp = new AbortController();
    one.link.next('transaction', 'held', changesRecord);
    const upgrading = here.acquire({ holder: 'X', signal: giveUp.signal });
    await settled();
    const inner = await there.acquire({ holder: 'X', mode: 'shared' });
    giveUp.abort();
    expect(await refusalOf(upgrading)).toMatchObject({ kind: 'aborted' });
    one.link.answerHeld();
    await fleet.advance(100);
    expect((await there.inspect()).holders).toMatchObject([{ holder: 'X', mode: 'shared' }]);
    expect(inner.isValid).toBe(true);
    expect(await there.tryAcquire({ holder: 'Y', mode: 'shared' })).toMatchObject({ kind: 'acquired' });
  });

  whereAnswersTakeTime?.('that needs one slot does not keep two after the request for two is given up', async () => {
    const { fleet, one, other } = await two();
    const slots = one.box.semaphore('slots', { capacity: 2 });
    await slots.acquire({ holder: 'X' });
    const giveUp = new AbortController();
    one.link.next('transaction', 'held', changesRecord);
    const growing = slots.acquire({ holder: 'X', weight: 2, signal: giveUp.signal });
    await settled();
    await other.box.semaphore('slots').acquire({ holder: 'X' });
    giveUp.abort();
    expect(await refusalOf(growing)).toMatchObject({ kind: 'aborted' });
    one.link.answerHeld();
    await fleet.advance(100);
    expect((await slots.inspect()).holders).toMatchObject([{ holder: 'X', weight: 1 }]);
  });

  it('of a hold whose time was up waits until the store has ended it', async () => {
    const { fleet, here, there } = await two();
    const outer = await here.acquire({ holder: 'X', maxHoldMs: 10_000 });
    await fleet.advance(9_100);
    expect(outer.lost?.why).toBe('expired');
    const asking = here.acquire({ holder: 'X' });
    expect(await isPending(asking)).toBe(true);
    expect(await here.tryAcquire({ holder: 'X' })).toMatchObject({ kind: 'busy', holders: [{ holder: 'X' }] });
    await fleet.advance(3_000);
    const hold = await asking;
    expect([hold.isReentry, hold.isValid]).toEqual([false, true]);
    expect(hold.token).toBeGreaterThan(outer.token);
    expect(await there.tryAcquire()).toMatchObject({ kind: 'busy' });
  });

  whereAnswersTakeTime?.('ends with the time of the outer hold before the store hears of that time', async () => {
    const { fleet, one, here, there } = await two();
    one.link.next('transaction', 'held', ({ success }) =>
      success.some((operation) => operation.do === 'put' && operation.key.startsWith('a/one1.')),
    );
    const outer = lossOrRefusalOf(here.acquire({ holder: 'X', maxHoldMs: 1_000 }));
    await settled();
    const inner = await here.acquire({ holder: 'X' });
    await fleet.advance(1_500);
    // Now the store hears of the time limit, which is over, and this process does not hear that it did.
    one.link.holdNews();
    one.link.next('transaction', 'held', changesRecord);
    one.link.answerHeld();
    await settled();
    const next = there.acquire({ holder: 'Y' });
    for (let turn = 0; turn < 20 && (await isPending(next)); turn++) await settled();
    expect([await isPending(next), inner.isValid]).toEqual([false, false]);
    one.link.deliverNews();
    one.link.answerHeld();
    await outer;
    expect((await next).isValid).toBe(true);
  });

  it('of a semaphore hold whose time was up is refused as full where it does not wait', async () => {
    const { fleet, one } = await two();
    const slots = one.box.semaphore('slots', { capacity: 1 });
    await slots.acquire({ holder: 'X', maxHoldMs: 10_000 });
    await fleet.advance(9_100);
    expect(await slots.tryAcquire({ holder: 'X' })).toMatchObject({
      kind: 'full',
      free: 0,
      holders: [{ holder: 'X' }],
    });
  });

  it('ends with the time of the outer hold, also if nobody looked at that one after a stall', async () => {
    const { fleet, one, here } = await two();
    const outer = await here.acquire({ holder: 'X', maxHoldMs: 5_000 });
    const inner = await here.acquire({ holder: 'X' });
    const { signal } = inner;
    one.clock.stall();
    await fleet.advance(4_600);
    expect(inner.isValid).toBe(false);
    expect(lossOf(signal)?.why).toBe('expired');
    expect(outer.isValid).toBe(false);
  });

  it('never rests on a hold of a session that this process has given up', async () => {
    const { fleet, one, here, there } = await two();
    const outer = await here.acquire({ holder: 'worker:1' });
    one.clock.jumpWall(3_600_000);
    expect(outer.isValid).toBe(false);
    const asking = here.acquire({ holder: 'worker:1' });
    expect(await isPending(asking)).toBe(true);
    await fleet.advance(TTL_MS + 1_500);
    const again = await asking;
    expect([again.isReentry, again.isValid]).toEqual([false, true]);
    expect(await there.tryAcquire({ holder: 'worker:2' })).toMatchObject({ kind: 'busy' });
  });

  it('has the mode and the token of the outer hold, whichever of them is upgraded or downgraded', async () => {
    const { here } = await two();
    const outer = await here.acquire({ holder: 'X', mode: 'shared' });
    const inner = await here.acquire({ holder: 'X', mode: 'shared' });
    await inner.upgrade();
    expect([outer.mode, outer.token]).toEqual(['exclusive', inner.token]);
    await outer.downgrade();
    expect([inner.mode, inner.token]).toEqual(['shared', outer.token]);
    const third = await here.acquire({ holder: 'X' });
    for (const hold of [outer, inner, third]) expect([hold.mode, hold.token]).toEqual(['exclusive', third.token]);
  });

  whereAnswersTakeTime?.each(['late', 'lost'])(
    'reads beside a writer that was given up: the answer is %s',
    async (answer) => {
      const { fleet, one, here, there } = await two();
      await (await here.acquire()).release();
      if (answer === 'lost') one.link.next('transaction', 'unanswered', changesRecord);
      one.link.next('transaction', 'held');
      const giveUp = new AbortController();
      const outer = here.acquire({ holder: 'X', mode: 'shared' });
      const writer = here.acquire({ holder: 'X', signal: giveUp.signal });
      const inner = here.acquire({ holder: 'X', mode: 'shared' });
      await settled();
      giveUp.abort();
      expect(await refusalOf(writer)).toMatchObject({ kind: 'aborted' });
      one.link.answerHeld();
      await fleet.advance(1_000);
      expect([(await outer).mode, (await inner).mode]).toEqual(['shared', 'shared']);
      expect((await there.acquire({ holder: 'Y', mode: 'shared' })).isValid).toBe(true);
    },
  );

  whereAnswersTakeTime?.each(['late', 'lost'])(
    'writes with a writer of the same holder: the answer is %s',
    async (answer) => {
      const { fleet, one, here } = await two();
      await (await here.acquire()).release();
      if (answer === 'lost') one.link.next('transaction', 'unanswered', changesRecord);
      one.link.next('transaction', 'held');
      const asked = (['shared', 'exclusive', 'shared'] as const).map((mode) => here.acquire({ holder: 'X', mode }));
      await settled();
      one.link.answerHeld();
      await fleet.advance(1_000);
      const holds = await Promise.all(asked);
      expect(holds.map(({ mode }) => mode)).toEqual(['exclusive', 'exclusive', 'exclusive']);
      await holds[0]?.downgrade();
      expect(holds.map(({ mode }) => mode)).toEqual(['shared', 'shared', 'shared']);
    },
  );

  it('has the slots of the outer hold, however that one has grown', async () => {
    const { one } = await two();
    const slots = one.box.semaphore('slots', { capacity: 3 });
    const outer = await slots.acquire({ holder: 'X' });
    const inner = await slots.acquire({ holder: 'X' });
    await slots.acquire({ holder: 'X', weight: 2 });
    expect([inner.weight, inner.slots]).toEqual([2, outer.slots]);
  });

  it('in all-or-nothing sets is no hold either once the outer one was lost', async () => {
    const { fleet, one } = await two();
    await one.box.lock('a').acquire({ holder: 'X', maxHoldMs: 10_000 });
    await fleet.advance(9_100);
    const both = [{ lock: 'a' }, { lock: 'b' }];
    expect(await one.box.tryAcquireAll(both, { holder: 'X' })).toMatchObject({
      kind: 'refused',
      refusals: [{ resource: 'lock/a', refusal: { kind: 'busy', holders: [{ holder: 'X' }] } }],
    });
    const asking = one.box.acquireAll(both, { holder: 'X' });
    expect(await isPending(asking)).toBe(true);
    await fleet.advance(3_000);
    expect((await asking).holds.map(({ isReentry, isValid }) => [isReentry, isValid])).toEqual([
      [false, true],
      [false, true],
    ]);
  });

  describe('in another process', () => {
    it('is told when the time of the outer hold is up, and follows its mode and token', async () => {
      const { fleet, here, there } = await two();
      const outer = await here.acquire({ holder: 'job:1', mode: 'shared', maxHoldMs: 10_000 });
      const inner = await there.acquire({ holder: 'job:1', mode: 'shared' });
      await outer.upgrade();
      await settled();
      await settled();
      expect([inner.mode, inner.token]).toEqual(['exclusive', outer.token]);
      const { signal } = inner;
      await fleet.advance(10_600);
      await settled();
      expect(inner.isValid).toBe(false);
      expect(lossOf(signal)?.why).toBe('expired');
    });

    it('is not handed out if the outer hold ended before the record could be followed', async () => {
      const { other, here, there } = await two();
      const outer = await here.acquire({ holder: 'job:1' });
      other.link.next('watch', 'held');
      const asking = there.acquire({ holder: 'job:1' });
      await settled();
      await outer.release();
      const next = await here.acquire({ holder: 'next' });
      other.link.answerHeld();
      const inner = await asking.then(
        ({ isValid }) => isValid,
        () => false,
      );
      expect([inner, next.isValid]).toEqual([false, true]);
    });

    it('of a detached hold made here ends with that one', async () => {
      const { fleet, here } = await two();
      await here.acquireDetached({ holder: 'agent', ttlMs: 5_000 });
      const inner = await here.acquire({ holder: 'agent' });
      expect([inner.isReentry, inner.isValid]).toEqual([true, true]);
      await fleet.advance(5_600);
      await settled();
      expect(inner.isValid).toBe(false);
    });
  });

  it('leaves nothing behind when the grant that it waited for is never answered', async () => {
    const { fleet, one, here, there } = await two();
    const first = await there.acquire();
    one.link.holdNews();
    const waits = [here.acquire({ holder: 'X', waitMs: 1_000 }), here.acquire({ holder: 'X', waitMs: 1_000 })];
    const refusals = Promise.all(waits.map((wait) => refusalOf(wait)));
    await settled();
    await first.release();
    await fleet.advance(1_000);
    expect(await refusals).toMatchObject([{ kind: 'timed-out' }, { kind: 'timed-out' }]);
    one.link.deliverNews();
    await fleet.advance(100);
    expect(await there.isFree()).toBe(true);
  });
});
