/** Answers that get lost, come late, or take long: every command is done once, and what became of it is told. */
import type { Lock, LockHold, LockMode, Signalbox } from 'signalbox';
import { readRange, type Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports, TTL_MS } from '../support/fleet.ts';
import { changesRecord, queuesTicket } from '../support/link.ts';
import { errorOf, isPending, refusalOf, settled } from '../support/outcome.ts';

const onlyReads = ({ success }: Transaction): boolean =>
  success.length > 0 && success.every((operation) => operation.do === 'read');

/** What it was answered with, and `still waiting` instead of a test that hangs. */
async function answerOf<T>(asked: Promise<T>): Promise<T | 'still waiting'> {
  return (await isPending(asked)) ? 'still waiting' : asked;
}

describe.each(transports)('on $transport', ({ atOnce }) => {
  async function two(): Promise<{ fleet: Fleet; one: Process; other: Process; here: Lock; there: Lock }> {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    return { fleet, one: one!, other: other!, here: one!.box.lock('db'), there: other!.box.lock('db') };
  }

  describe('a command whose answer gets lost', () => {
    it('is not done again over what another did since: a resize', async () => {
      const { fleet, one, other } = await two();
      await (await one.box.semaphore('s', { capacity: 3 }).acquire()).release();
      one.link.next('transaction', 'severed', changesRecord);
      const resizing = one.box.semaphore('s').resize(5);
      await settled();
      expect((await other.box.semaphore('s').inspect()).capacity).toBe(5);
      await other.box.semaphore('s').resize(7);
      one.link.reconnect();
      await fleet.advance(1_000);
      await resizing;
      expect((await other.box.semaphore('s').inspect()).capacity).toBe(7);
    });

    it('is done once although it never arrived and another has written since: a resize', async () => {
      const { fleet, one, other } = await two();
      await (await one.box.semaphore('s', { capacity: 3 }).acquire()).release();
      one.link.next('transaction', 'lost', changesRecord);
      one.link.next('transaction', 'refused');
      const resizing = one.box.semaphore('s').resize(5);
      await settled();
      await other.box.semaphore('s').acquire();
      await fleet.advance(1_000);
      await resizing;
      expect((await other.box.semaphore('s').inspect()).capacity).toBe(5);
    });

    it('leaves a reader behind, and no writer beside others: a downgrade', async () => {
      const { fleet, one, here, there } = await two();
      const hold = await here.acquire();
      one.link.next('transaction', 'severed', changesRecord);
      const reading = hold.downgrade();
      await settled();
      const beside = await there.acquire({ mode: 'shared' });
      expect([hold.mode, hold.isValid, beside.mode]).toEqual(['shared', true, 'shared']);
      one.link.reconnect();
      await fleet.advance(1_000);
      await reading;
      const writing = hold.upgrade();
      expect(await isPending(writing)).toBe(true);
      await beside.release();
      expect((await writing).mode).toBe('exclusive');
    });

    describe('is completed before its holder asks to write again: a downgrade', () => {
      const ways: readonly [string, (here: Lock, box: Signalbox, hold: LockHold) => Promise<LockMode | undefined>][] = [
        ['acquire', async (here) => (await here.acquire({ holder: 'h' })).mode],
        ['tryAcquire', async (here) => ((await here.tryAcquire({ holder: 'h' })) as { hold: LockHold }).hold.mode],
        ['upgrade', async (_here, _box, hold) => (await hold.upgrade()).mode],
        [
          'acquireAll',
          async (_here, box) => {
            const { holds } = await box.acquireAll([{ lock: 'db' }, { lock: 'other' }], { holder: 'h' });
            return (holds.find(({ resource }) => resource === 'lock/db') as LockHold | undefined)?.mode;
          },
        ],
      ];

      it.each(ways)('by %s after the caller gave up', async (_, write) => {
        const { fleet, there } = await two();
        const one = await fleet.start('hasty', { requestTimeoutMs: 2_000 });
        const here = one.box.lock('db');
        const first = await here.acquire({ holder: 'h' });
        one.link.cutOff('refusing');
        const downgrading = errorOf(first.downgrade());
        for (let second = 0; second < 5; second++) await fleet.advance(1_000);
        expect(await downgrading).toMatchObject({ code: 'unavailable' });
        one.link.reconnect();
        const writing = write(here, one.box, first);
        await fleet.advance(1_500);
        expect(await answerOf(writing)).toBe('exclusive');
        expect(first.mode).toBe('exclusive');
        expect((await there.inspect()).holders).toMatchObject([{ holder: 'h', mode: 'exclusive' }]);
        expect(await refusalOf(there.acquire({ mode: 'shared', waitMs: 0 }))).toMatchObject({ kind: 'timed-out' });
      });

      it.each(ways)('by %s while it is on its way', async (_, write) => {
        const { fleet, one, there, here } = await two();
        const first = await here.acquire({ holder: 'h' });
        one.link.next('transaction', 'lost', changesRecord);
        const downgrading = first.downgrade().catch(() => undefined);
        const writing = write(here, one.box, first);
        await fleet.advance(1_500);
        expect(await answerOf(writing)).toBe('exclusive');
        await downgrading;
        expect(first.mode).toBe('exclusive');
        expect((await there.inspect()).holders).toMatchObject([{ holder: 'h', mode: 'exclusive' }]);
      });
    });

    it('is not done again over what another did since: a setting', async () => {
      const { fleet, one, here, there } = await two();
      one.link.next('transaction', 'severed', changesRecord);
      const configuring = here.configure({ onStale: 'alert' });
      await settled();
      await there.configure({ onStale: 'reclaim' });
      one.link.reconnect();
      await fleet.advance(1_000);
      await configuring;
      expect((await there.inspect()).onStale).toBe('reclaim');
    });

    it('does not end the hold of one who came since: a break', async () => {
      const { fleet, one, here, there } = await two();
      await there.acquire({ holder: 'stuck' });
      one.link.next('transaction', 'severed', changesRecord);
      const breaking = here.break({ holder: 'admin', reason: 'stuck' });
      await settled();
      const next = await there.acquire({ holder: 'next' });
      one.link.reconnect();
      await fleet.advance(1_000);
      expect(await breaking).toEqual({ broken: 1 });
      expect(next.isValid).toBe(true);
    });

    it.each(['lost', 'unanswered'] as const)(
      'is told as done: the release of a detached hold that was %s',
      async (how) => {
        const { fleet, one, here } = await two();
        const claim = await here.acquireDetached({ holder: 'agent:7' });
        const before = (await one.box.survey()).sessions?.length;
        one.link.next('transaction', how, changesRecord);
        const releasing = here.release(claim);
        await fleet.advance(1_000);
        expect(await releasing).toEqual({ kind: 'released' });
        expect(await here.isFree()).toBe(true);
        expect(await here.release(claim)).toEqual({ kind: 'already-free' });
        expect((await one.box.survey()).sessions?.length).toBe(before);
      },
    );

    it.each(['the process that acquired it', 'another process, without a session'])(
      'does not count as done if another process took the hold before: the release of a detached hold by %s',
      async (who) => {
        const { fleet, one, here, there } = await two();
        const claim = await here.acquireDetached({ holder: 'agent:7' });
        const releaser = who === 'the process that acquired it' ? one : await fleet.start('late');
        const lock = releaser.box.lock('db');
        // It knows the hold, and hears of nothing that happens now.
        expect(await lock.renew(claim)).toMatchObject({ kind: 'refreshed' });
        releaser.link.holdNews();
        await there.acquire({ holder: 'admin', strategy: 'force', reason: 'stuck' });
        releaser.link.next('transaction', 'lost', changesRecord);
        const releasing = lock.release(claim);
        await fleet.advance(1_000);
        releaser.link.deliverNews();
        await fleet.advance(1_000);
        expect(await releasing).toEqual({ kind: 'not-owner' });
      },
    );

    it.each(['does not answer', 'has forgotten it'])(
      'fails as unknown if the store %s: the release of a detached hold of another process that is gone',
      async (why) => {
        const { fleet, here, there } = await two();
        const claim = await here.acquireDetached({ holder: 'agent:7' });
        const late = await fleet.start('late');
        expect(await late.box.lock('db').renew(claim)).toMatchObject({ kind: 'refreshed' });
        await there.acquire({ holder: 'admin', strategy: 'force', reason: 'stuck' });
        if (why === 'has forgotten it') await fleet.store.compact(await fleet.revision());
        else for (let time = 0; time < 40; time++) late.link.next('watch', 'refused');
        late.link.next('transaction', 'lost', changesRecord);
        const releasing = late.box
          .lock('db')
          .release(claim)
          .catch((error: unknown) => error);
        for (let second = 0; second < 12; second++) await fleet.advance(1_000);
        expect(await releasing).toMatchObject({ code: 'outcome-unknown' });
      },
    );

    it('is known although the store has forgotten the time before: the release of a detached hold', async () => {
      const { fleet, one, here } = await two();
      const claim = await here.acquireDetached({ holder: 'agent:7' });
      one.link.next('transaction', 'severed', changesRecord);
      const releasing = here.release(claim);
      await settled();
      one.link.reconnect();
      await fleet.store.compact(await fleet.revision());
      for (let second = 0; second < 3; second++) await fleet.advance(1_000);
      expect(await answerOf(releasing)).toEqual({ kind: 'released' });
    });

    it('takes no lease from under one who waits: an anchor that lands after it was asked for again', async () => {
      const { fleet, one, here, there } = await two();
      const before = await there.acquire({ holder: 'before' });
      await one.box.lock('other').acquire();
      const makesAnchor = ({ success }: Transaction): boolean =>
        success.some((each) => each.do === 'put' && each.key.startsWith('a/'));
      one.link.next('transaction', 'late', makesAnchor);
      const asking = here.acquireDetached({ holder: 'agent:7', ttlMs: 3_000 });
      await fleet.advance(1_000);
      one.link.applyLate();
      await fleet.advance(6_000);
      await before.release();
      await fleet.advance(100);
      expect(await asking).toMatchObject({ holder: 'agent:7' });
      expect((await there.inspect()).holders).toMatchObject([{ holder: 'agent:7', isStale: false }]);
      expect(await there.tryAcquire({ holder: 'after' })).toMatchObject({ kind: 'busy' });
    });

    it('says of a release by a wrong token that it changed nothing, although another answer got lost with it', async () => {
      const { fleet, one, here } = await two();
      const hold = await here.acquire({ holder: 'A' });
      one.link.next('transaction', 'unanswered', changesRecord);
      const wrong = here.release({ holder: 'A', token: hold.token + 100 });
      const right = hold.release();
      await fleet.advance(1_000);
      expect((await wrong).kind).not.toBe('released');
      expect(await right).toEqual({ kind: 'released' });
    });

    it('ends no later hold of the same holder: a release by the name of the holder alone', async () => {
      const { fleet, one, here, there } = await two();
      await here.acquireDetached({ holder: 'job' });
      one.link.next('transaction', 'severed', changesRecord);
      const releasing = here.release({ holder: 'job' });
      await settled();
      const later = await there.acquireDetached({ holder: 'job' });
      one.link.reconnect();
      await fleet.advance(1_000);
      expect(await releasing).toEqual({ kind: 'released' });
      expect((await there.inspect()).holders).toMatchObject([{ holder: 'job', token: later.token }]);
    });

    it('does not end what the same holder has meanwhile: a release that was given up and lands late', async () => {
      const { fleet, one, here } = await two();
      const claim = await here.acquireDetached({ holder: 'job', ttlMs: 60_000 });
      one.link.next('transaction', 'late', changesRecord);
      one.link.next('transaction', 'refused');
      const releasing = errorOf(here.release(claim));
      await settled();
      // The store is away until the caller gives up, so nothing keeps the release from landing later.
      one.link.cutOff('refusing');
      await fleet.advance(12_000);
      expect(await answerOf(releasing)).toMatchObject({ code: 'outcome-unknown' });
      one.link.reconnect();
      const asking = here.acquireDetached({ holder: 'job', ttlMs: 60_000 });
      await fleet.advance(3_000);
      const held = await asking;
      one.link.applyLate();
      await settled();
      expect(await here.renew(held)).toMatchObject({ kind: 'refreshed' });
    });

    it('does not end what the same holder got more time for meanwhile: a release that was given up', async () => {
      const { fleet, one, here, there } = await two();
      const claim = await here.acquireDetached({ holder: 'job', ttlMs: 60_000 });
      one.link.next('transaction', 'lost', changesRecord);
      one.link.next('transaction', 'refused');
      const releasing = errorOf(here.release(claim));
      await settled();
      one.link.cutOff('refusing');
      await fleet.advance(12_000);
      expect(await answerOf(releasing)).toMatchObject({ code: 'outcome-unknown' });
      expect(await there.extend(claim, 90_000)).toMatchObject({ kind: 'refreshed' });
      one.link.reconnect();
      await fleet.advance(5_000);
      expect((await there.inspect()).holders).toMatchObject([{ holder: 'job', token: claim.token, isStale: false }]);
    });

    it('does not end a later hold of a holder that had none: a release that was given up', async () => {
      const { fleet, one, here, there } = await two();
      await (await here.acquire()).release();
      one.link.next('transaction', 'lost', changesRecord);
      one.link.next('transaction', 'refused');
      // Both are decided in one write where answers take time; the release changes nothing.
      const reading = errorOf(here.acquire({ mode: 'shared', holder: 'ann' }));
      const releasing = here.release({ holder: 'bob' }).catch((error: unknown) => error);
      await settled();
      one.link.cutOff('refusing');
      await fleet.advance(12_000);
      await answerOf(reading);
      const later = await there.acquireDetached({ holder: 'bob', mode: 'shared', ttlMs: 60_000 });
      one.link.reconnect();
      await fleet.advance(5_000);
      await answerOf(releasing);
      expect((await there.inspect()).holders).toMatchObject([{ holder: 'bob', token: later.token }]);
    });

    it('is no release of a hold that another process renewed and then took away', async () => {
      const { fleet, one, here, there } = await two();
      const claim = await here.acquireDetached({ holder: 'job', ttlMs: 60_000 });
      one.link.next('transaction', 'cut', changesRecord);
      const releasing = here.release(claim);
      await settled();
      // The hold moves to a lease of the other process, so no letter about it comes here.
      expect(await there.extend(claim, 90_000)).toMatchObject({ kind: 'refreshed' });
      await there.break({ holder: 'admin', reason: 'a test' });
      one.link.reconnect();
      await fleet.advance(2_000);
      expect((await releasing).kind).not.toBe('released');
    });

    it('is no release of what the same holder has got elsewhere since, which was released there', async () => {
      const { fleet, one, here, there } = await two();
      const claim = await here.acquireDetached({ holder: 'job', ttlMs: 60_000, mode: 'shared' });
      one.link.next('transaction', 'cut', changesRecord);
      const releasing = here.release(claim);
      await settled();
      const more = await there.acquireDetached({ holder: 'job', ttlMs: 60_000, mode: 'exclusive' });
      expect(more.token).toBeGreaterThan(claim.token);
      expect(await there.release(more)).toEqual({ kind: 'released' });
      await (await there.acquire()).release();
      one.link.reconnect();
      await fleet.advance(2_000);
      expect(await releasing).toEqual({ kind: 'already-free' });
    });

    it('is a grant still if another process of the same holder has renewed it since: a detached acquire', async () => {
      const { fleet, one, here, there } = await two();
      await (await here.acquire()).release();
      one.link.next('transaction', 'severed', changesRecord);
      const acquiring = here.acquireDetached({ holder: 'job', ttlMs: 60_000 });
      await settled();
      // The hold moves to a lease of the other process.
      const [held] = (await there.inspect()).holders;
      expect(await there.extend({ holder: 'job', token: held!.token }, 90_000)).toMatchObject({ kind: 'refreshed' });
      one.link.reconnect();
      await fleet.advance(2_000);
      expect(await acquiring).toMatchObject({ holder: 'job', token: held!.token });
      expect((await there.inspect()).holders).toMatchObject([{ holder: 'job', isStale: false }]);
    });

    it('is lost if another process of the same holder has made it shared since: a detached acquire', async () => {
      const { fleet, one, here, there } = await two();
      await (await here.acquire()).release();
      one.link.next('transaction', 'severed', changesRecord);
      const acquiring = refusalOf(here.acquireDetached({ holder: 'job', ttlMs: 60_000 }));
      await settled();
      const [held] = (await there.inspect()).holders;
      expect(await there.downgrade({ holder: 'job', token: held!.token })).toMatchObject({ kind: 'downgraded' });
      one.link.reconnect();
      await fleet.advance(2_000);
      expect(await acquiring).toEqual({ kind: 'lost' });
      // The process that made it shared still relies on it.
      expect((await there.inspect()).holders).toMatchObject([{ holder: 'job', mode: 'shared', isStale: false }]);
    });

    it('tells that nobody knows where the store cannot be read any more, not that it certainly was not done', async () => {
      const { fleet, one, here } = await two();
      one.link.next('transaction', 'unanswered', changesRecord);
      for (let time = 0; time < 40; time++) one.link.next('transaction', 'refused', onlyReads);
      const acquiring = errorOf(here.acquire());
      await fleet.advance(10_000);
      expect(await acquiring).toMatchObject({ code: 'outcome-unknown' });
    });

    // At once there is no time in which the session could end.
    const whereAnswersTakeTime = atOnce === true ? undefined : it;
    whereAnswersTakeTime?.('ends although its session has ended meanwhile: an acquire that does not wait', async () => {
      const { fleet, one, here } = await two();
      await (await here.acquire()).release();
      one.link.next('transaction', 'lost', changesRecord);
      one.link.next('transaction', 'held');
      const asking = here.acquire({ waitMs: 0 });
      const refusal = refusalOf(asking);
      await settled();
      one.link.holdNews();
      const { pairs } = await readRange(fleet.store, { key: 'a/one1' });
      await fleet.store.revokeLease(pairs[0]?.lease ?? '');
      // A request that never ends would ask for ever.
      let calls = 0;
      one.link.forbid(() => ++calls > 20);
      one.link.answerHeld();
      await settled();
      expect(await answerOf(refusal)).toMatchObject({ kind: 'lost' });
    });

    it('is not asked for without a pause while no write is ever answered', async () => {
      const { fleet, one, here } = await two();
      for (let time = 0; time < 2_000; time++) one.link.next('transaction', 'lost', changesRecord);
      const before = one.link.asked.length;
      const acquiring = errorOf(here.acquire());
      await fleet.advance(6_000);
      expect(await acquiring).toMatchObject({ code: 'outcome-unknown' });
      expect(one.link.asked.length - before).toBeLessThan(200);
    });
  });

  describe('a store that is away for one call is asked again', () => {
    const wants = [{ lock: 'a' }, { lock: 'b' }];
    const calls: readonly [string, (box: Signalbox) => Promise<unknown>][] = [
      ['acquireAll', (box) => box.acquireAll(wants)],
      ['tryAcquireAll', (box) => box.tryAcquireAll(wants)],
      ['inspect', (box) => box.lock('a').inspect()],
      ['acquire with a longest time', (box) => box.lock('a').acquire({ maxHoldMs: 5_000 })],
      ['a detached hold', (box) => box.lock('a').acquireDetached({ holder: 'x' })],
    ];
    it.each(calls)('%s, at whichever of its calls', async (_, call) => {
      for (const name of ['transaction', 'grantLease', 'leaseState'] as const) {
        for (let place = 0; place < 4; place++) {
          const fleet = new Fleet(atOnce);
          const [process] = await fleet.startAll('one');
          let seen = 0;
          process!.link.next(name, 'refused', () => seen++ === place);
          const calling = call(process!.box);
          await fleet.advance(2_000);
          expect(await isPending(calling)).toBe(false);
          await calling;
        }
      }
    });

    it('release and extend of a detached hold, and renew', async () => {
      for (let place = 0; place < 5; place++) {
        const { fleet, one, here } = await two();
        const claim = await here.acquireDetached({ holder: 'x' });
        let seen = 0;
        one.link.next('transaction', 'refused', () => seen++ === place);
        const extending = here.extend(claim, 120_000);
        await fleet.advance(2_000);
        expect(await extending).toMatchObject({ kind: 'refreshed', ttlMs: 120_000 });
        one.link.next('keepLeaseAlive', 'refused');
        const renewing = here.renew(claim);
        await fleet.advance(2_000);
        expect(await renewing).toMatchObject({ kind: 'refreshed', ttlMs: 120_000 });
        seen = 0;
        one.link.next('transaction', 'refused', () => seen++ === place);
        const releasing = here.release(claim);
        await fleet.advance(2_000);
        expect(await releasing).toEqual({ kind: 'released' });
      }
    });
  });

  describe('several at once', () => {
    const both = [{ lock: 'a' }, { semaphore: 's', capacity: 2 }];
    it.each(['lost', 'unanswered'] as const)('are held once although the answer was %s', async (how) => {
      const { fleet, one, other } = await two();
      one.link.next('transaction', how, changesRecord);
      const asking = one.box.acquireAll(both);
      await fleet.advance(1_000);
      const set = await asking;
      expect(set.isValid).toBe(true);
      expect((await other.box.semaphore('s').inspect()).usedSlots).toBe(1);
      await set.release();
      expect(await other.box.lock('a').isFree()).toBe(true);
      expect((await other.box.semaphore('s').inspect()).usedSlots).toBe(0);
    });

    it('that nobody could be told of go back when the store is there again', async () => {
      const { fleet, one, other } = await two();
      one.link.next('transaction', 'severed', changesRecord);
      const asking = errorOf(one.box.acquireAll(both));
      await fleet.advance(6_000);
      expect(await asking).toMatchObject({ code: 'outcome-unknown' });
      one.link.reconnect();
      await fleet.advance(2_000);
      expect(await other.box.lock('a').isFree()).toBe(true);
      expect((await other.box.semaphore('s').inspect()).usedSlots).toBe(0);
    });
  });

  describe('an upgrade that is given up leaves no trace', () => {
    it('if it was an acquire of a reader that asked to write', async () => {
      const { fleet, one, here, there } = await two();
      const reader = await here.acquire({ mode: 'shared', holder: 'A' });
      const beside = await there.acquire({ mode: 'shared', holder: 'B' });
      const refusal = refusalOf(here.acquire({ holder: 'A', waitMs: 100 }));
      await fleet.advance(200);
      expect(await refusal).toMatchObject({ kind: 'timed-out' });
      expect((await here.inspect()).waiting).toEqual([]);
      expect((await there.tryAcquire({ mode: 'shared', holder: 'C' })).kind).toBe('acquired');
      await beside.release();
      await settled();
      expect((await here.inspect()).holders.find(({ holder }) => holder === 'A')?.mode).toBe('shared');
      expect([reader.mode, one.box.lock('db').name]).toEqual(['shared', 'db']);
    });

    it('if nobody knows whether it was asked', async () => {
      const { fleet, one, here, there } = await two();
      const reader = await here.acquire({ mode: 'shared', holder: 'A' });
      const beside = await there.acquire({ mode: 'shared', holder: 'B' });
      one.link.next('transaction', 'severed', queuesTicket);
      const upgrading = errorOf(reader.upgrade());
      await fleet.advance(6_000);
      expect(await upgrading).toMatchObject({ code: 'outcome-unknown' });
      one.link.reconnect();
      await fleet.advance(2_000);
      expect((await there.inspect()).waiting).toEqual([]);
      await beside.release();
      await settled();
      expect((await there.inspect()).holders).toMatchObject([{ holder: 'A', mode: 'shared' }]);
    });
  });

  it('a grant that was missed is found although the store is away for longer than anybody is to wait for it', async () => {
    const fleet = new Fleet(atOnce);
    // Without the back-stop: nothing else asks for it.
    const settings = { maintenanceMs: 1e9, sessionTtlMs: 600_000 };
    const one = await fleet.start('one', settings);
    const other = await fleet.start('other', settings);
    const hold = await one.box.lock('main').acquire();
    const waiting = other.box.lock('main').acquire();
    await settled();
    other.link.holdNews();
    await hold.release();
    await settled();
    await (await one.box.lock('else').acquire()).release();
    await fleet.store.compact(await fleet.revision());
    // The letter is gone with the history. The look that follows arrives; nothing does after it.
    const looks = ({ success }: Transaction): boolean =>
      success.some((operation) => operation.do === 'read' && operation.key === 'r/lock/main');
    other.link.next('transaction', atOnce === true ? 'refused' : 'delayed', looks);
    other.link.deliverNews();
    other.link.cutWatches();
    await fleet.advance(1000);
    other.link.deliverDelayed();
    other.link.cutOff('refusing');
    await fleet.advance(60_000);
    other.link.reconnect();
    await fleet.advance(5000);
    expect((await waiting).isValid).toBe(true);
  });

  it('whoever waits elsewhere behind a stale hold has it as soon as the setting lets it', async () => {
    const { fleet, here, there } = await two();
    await here.configure({ onStale: 'alert' });
    await here.acquireDetached({ holder: 'dead', ttlMs: 500 });
    await fleet.advance(1_100);
    const waiting = there.acquire({ holder: 'B' });
    expect(await isPending(waiting)).toBe(true);
    await here.configure({ onStale: 'reclaim' });
    await settled();
    await settled();
    expect(await isPending(waiting)).toBe(false);
  });

  it('a dead holder is found behind more living ones than are looked up at once', async () => {
    const { fleet, one } = await two();
    const slots = one.box.semaphore('many', { capacity: 66 });
    for (let nth = 0; nth < 65; nth++) await slots.acquireDetached({ holder: `live:${nth}` });
    await slots.acquireDetached({ holder: 'dead', ttlMs: 1_000 });
    await fleet.advance(2_000);
    const late = await fleet.start('late', { maintains: false });
    expect((await late.box.semaphore('many').tryAcquire({ holder: 'new' })).kind).toBe('reclaimed');
  });

  // At once there is no time to be slow in.
  const whereAnswersTakeTime = atOnce === true ? undefined : it;
  whereAnswersTakeTime?.('not to wait is not to queue: a free lock is had however long the store takes', async () => {
    const { fleet, one, here, there } = await two();
    one.link.next('transaction', 'held');
    const acquiring = here.acquire({ waitMs: 0 });
    await fleet.advance(50);
    one.link.answerHeld();
    const hold = await acquiring;
    expect(await refusalOf(there.acquire({ waitMs: 0 }))).toMatchObject({ kind: 'timed-out' });
    await hold.release();
  });

  describe('a hold of a session', () => {
    it('stays on its session when it is extended', async () => {
      const { fleet, here, there } = await two();
      const hold = await here.acquire({ holder: 'A' });
      expect(await here.extend(hold, 1_000)).toEqual({ kind: 'attached', ttlMs: TTL_MS });
      await fleet.advance(5_000);
      expect(hold.isValid).toBe(true);
      expect(await there.tryAcquire({ holder: 'B' })).toMatchObject({ kind: 'busy' });
    });

    it('is not kept alive by another process that renews it: that would keep all of a stuck process alive', async () => {
      const { fleet, one, here, there } = await two();
      const hold = await here.acquire({ holder: 'A' });
      one.crash();
      for (let time = 0; time < 4; time++) {
        await fleet.advance(TTL_MS / 3);
        await there.renew({ holder: 'A', token: hold.token });
      }
      expect(await there.renew({ holder: 'A', token: hold.token })).toEqual({ kind: 'lost' });
    });
  });
});
