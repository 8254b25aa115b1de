// What becomes of tasks when answers get lost, processes stop and history is forgotten.

import type { TaskNotice } from 'signalbox';
import type { Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { errorOf, lossOf, refusalOf, settled } from '../support/outcome.ts';

const claims = ({ success }: Transaction): boolean =>
  success.some(
    (operation) => operation.do === 'put' && operation.key.endsWith('/owner') && operation.lease !== undefined,
  );

const ends = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'put' && operation.key.endsWith('/status')) &&
  !claims({ success } as Transaction);

const publishes = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'put' && operation.key.endsWith('/data'));

describe.each(transports)('a task on $transport', ({ atOnce }) => {
  it.each(['lost', 'unanswered', 'refused'] as const)(
    'is claimed once although the answer to the claim was %s',
    async (trouble) => {
      const fleet = new Fleet(atOnce);
      const [worker, other] = await fleet.startAll('worker', 'other');
      await other!.box.tasks.publish('a', null);
      worker!.link.next('transaction', trouble, claims);
      const claiming = worker!.box.tasks.claim('a', { holder: 'worker' });
      await fleet.advance(1000);
      const claim = await claiming;
      expect(claim.attempt).toBe(1);
      expect(await other!.box.tasks.show('a')).toMatchObject({ owner: 'worker', token: claim.token, attempts: 1 });
      expect(await claim.complete()).toEqual({ kind: 'completed' });
    },
  );

  it('that another has got meanwhile is not taken by a claim that lands late', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await other!.box.tasks.publish('a', null);
    worker!.link.next('transaction', 'late', claims);
    const claiming = worker!.box.tasks.tryClaim('a', { holder: 'worker' });
    await fleet.advance(1000);
    const first = await claiming;
    if (first.kind !== 'claimed') throw new Error('it was not claimed');
    await first.claim.release();
    worker!.link.applyLate();
    await settled();
    expect(await other!.box.tasks.status('a')).toBe('pending');
    expect((await other!.box.tasks.tryClaim('a')).kind).toBe('claimed');
  });

  it('that was claimed without anybody knowing goes back when the store is there again', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await other!.box.tasks.publish('a', null);
    worker!.link.next('transaction', 'severed', claims);
    const failing = errorOf(worker!.box.tasks.claim('a'));
    await fleet.advance(6000);
    expect(await failing).toMatchObject({ code: 'outcome-unknown' });
    expect(await other!.box.tasks.status('a')).toBe('running');
    worker!.link.reconnect();
    await fleet.advance(2000);
    expect(await other!.box.tasks.show('a')).toMatchObject({ status: 'pending', attempts: 0 });
  });

  it.each(['lost', 'unanswered'] as const)('is published once although the answer was %s', async (trouble) => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('process');
    link.next('transaction', trouble, publishes);
    const publishing = box.tasks.publish('a', 1);
    await fleet.advance(1000);
    expect(await publishing).toEqual({ kind: 'published', id: 'a' });
  });

  it.each(['lost', 'unanswered', 'refused'] as const)(
    'is ended once although the answer was %s, in whichever way',
    async (trouble) => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('process');
      for (const [id, end] of [
        ['a', 'completed'],
        ['b', 'failed'],
        ['c', 'released'],
        ['d', 'retried'],
      ] as const) {
        await box.tasks.publish(id, { retries: id === 'd' ? 1 : 0 });
        const claim = await box.tasks.claim(id);
        link.next('transaction', trouble, ends);
        const ending =
          end === 'completed' ? claim.complete(1) : end === 'released' ? claim.release() : claim.fail('broken');
        await fleet.advance(1000);
        expect((await ending).kind).toBe(end);
        if (end === 'retried') expect((await box.tasks.show(id))?.attempts).toBe(1);
      }
    },
  );

  it('that was released and claimed by another is not the matter of a release whose answer got lost', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await other!.box.tasks.publish('a', null);
    const claim = await worker!.box.tasks.claim('a');
    worker!.link.next('transaction', 'unanswered', ends);
    const releasing = claim.release();
    await settled();
    const next = await other!.box.tasks.claim('a');
    await fleet.advance(1000);
    expect(await releasing).toEqual({ kind: 'released' });
    expect(await next.complete()).toEqual({ kind: 'completed' });
  });

  it('is lost to a worker that stood still for longer than its lease, before it goes on', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await other!.box.tasks.publish('a', null);
    const claim = await worker!.box.tasks.claim('a', { holder: 'slow' });
    const { signal } = claim;
    worker!.clock.stall();
    const waiting = other!.box.tasks.claim('a', { holder: 'quick' });
    await fleet.advance(2 * TTL_MS);
    expect((await waiting).attempt).toBe(2);
    expect(claim.isValid).toBe(false);
    expect(lossOf(signal)).toBeDefined();
    expect(await claim.complete()).toMatchObject({ kind: 'not-owner', owner: 'quick' });
  });

  it('that is taken away by force is lost to its worker, with the reason, and to be had again', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await worker!.box.tasks.publish('a', null);
    const { signal } = await worker!.box.tasks.claim('a', { holder: 'worker:1' });
    const by = { holder: 'user:anna', reason: 'it hangs' };
    expect(await other!.box.tasks.forceRelease('a', by)).toEqual({ kind: 'released', owner: 'worker:1' });
    await settled();
    expect(lossOf(signal)).toMatchObject({ why: 'forced', by: 'user:anna', reason: 'it hangs' });
    expect(await other!.box.tasks.show('a')).toMatchObject({ status: 'pending', attempts: 1 });
    expect(await other!.box.tasks.forceRelease('a', by)).toEqual({ kind: 'not-claimed', status: 'pending' });
    expect(await other!.box.tasks.forceRelease('b', by)).toEqual({ kind: 'not-claimed', status: undefined });
    expect(await errorOf(other!.box.tasks.forceRelease('a', { ...by, reason: '' }))).toMatchObject({ code: 'invalid' });
  });

  it('waits for workers of a process that is closed no longer', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const refusals = Promise.all([refusalOf(box.tasks.claimNext()), refusalOf(box.tasks.claimNext())]);
    await settled();
    await box.close();
    expect(await refusals).toEqual([{ kind: 'closed' }, { kind: 'closed' }]);
    expect(await errorOf(box.tasks.publish('a', 1))).toMatchObject({ code: 'closed' });
  });

  it('claimed by a process is not kept by others once that process has stopped to renew its session', async () => {
    const fleet = new Fleet(atOnce);
    const [stuck, other] = await fleet.startAll('stuck', 'other');
    await stuck!.box.tasks.publish('a', 1);
    const { token } = await stuck!.box.tasks.claim('a');
    await stuck!.box.lock('else').acquire();
    stuck!.crash();
    const { tasks } = other!.box;
    for (let time = 0; time < 2; time++) {
      await fleet.advance(5000);
      expect(await tasks.renew('a', { token })).toEqual({ kind: 'attached', ttlMs: 15_000 });
    }
    await fleet.advance(8000);
    expect(await tasks.renew('a', { token })).toEqual({ kind: 'lost' });
    expect(await other!.box.lock('else').tryAcquire()).toMatchObject({ kind: 'reclaimed' });
  });

  it('claimed by a script outlives the process, and any process with its token renews and ends it', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    await script!.box.tasks.publish('a', { x: 1 });
    const claim = await script!.box.tasks.claimDetached('a', { holder: 'agent:7', ttlMs: 10_000 });
    expect(claim).toMatchObject({ id: 'a', holder: 'agent:7', ttlMs: 10_000, data: { x: 1 }, attempt: 1 });
    await script!.box.close();
    const { tasks } = later!.box;
    for (let time = 0; time < 3; time++) {
      await fleet.advance(9000);
      expect(await tasks.renew('a', { token: claim.token })).toMatchObject({ kind: 'refreshed', ttlMs: 10_000 });
    }
    expect(await tasks.renew('a', { holder: 'agent:8' })).toEqual({ kind: 'not-owner' });
    expect(await tasks.complete('a', { holder: 'agent:7', token: claim.token + 1 })).toMatchObject({
      kind: 'not-owner',
    });
    expect(await tasks.complete('a', { holder: 'agent:7' }, 'well')).toEqual({ kind: 'completed' });
    expect(await tasks.renew('a', { token: claim.token })).toEqual({ kind: 'lost' });
    await fleet.advance(60_000);
    expect(await tasks.show('a')).toMatchObject({ status: 'complete', result: 'well', owner: 'agent:7' });
  });

  it('claimed by a script that is not heard of again is pending when its time is over', async () => {
    const fleet = new Fleet(atOnce);
    const [script, later] = await fleet.startAll('script', 'later');
    await script!.box.tasks.publish('a', null);
    const claim = await script!.box.tasks.claimNextDetached({ holder: 'agent:7', ttlMs: 10_000 });
    await script!.box.close();
    const next = later!.box.tasks.claimNext();
    await fleet.advance(12_000);
    expect((await next).attempt).toBe(2);
    expect(await later!.box.tasks.release('a', { token: claim.token })).toMatchObject({ kind: 'not-owner' });
    expect(await refusalOf(later!.box.tasks.claimDetached('a', { holder: 'agent:7', waitMs: 0 }))).toMatchObject({
      kind: 'taken',
    });
  });
});

describe.each(transports)('a subscriber to tasks on $transport', ({ atOnce }) => {
  const told = (notices: readonly TaskNotice[]): string[] =>
    notices.map((notice) => (notice.why === 'resync' ? 'resync' : `${notice.why} ${notice.task.id}`));

  it('hears of every task in order, and again when it is pending again', async () => {
    const fleet = new Fleet(atOnce);
    const [publisher, subscriber] = await fleet.startAll('publisher', 'subscriber');
    const { tasks } = publisher!.box;
    await tasks.publish('before', null);
    const from: TaskNotice[] = [];
    const all: TaskNotice[] = [];
    await subscriber!.box.tasks.subscribe((notice) => void from.push(notice));
    await subscriber!.box.tasks.subscribe((notice) => void all.push(notice), { pending: true });
    await tasks.publish('b', {}, { dependsOn: ['a'] });
    await tasks.publish('a', { n: 1 });
    await (await tasks.claim('a')).release();
    const claim = await tasks.claim('a');
    await tasks.forceRelease('a', { holder: 'x', reason: 'y' });
    expect(claim.isValid).toBe(false);
    await (await tasks.claim('a')).complete();
    await settled();
    const later = ['published b', 'published a', 'released a', 'released a', 'unblocked b'];
    await expect.poll(() => told(from)).toEqual(later);
    expect(told(all)).toEqual(['pending before', ...later]);
    expect(from[1]).toMatchObject({ task: { id: 'a', data: { n: 1 }, status: 'pending' } });
  });

  it('misses none over connections that break', async () => {
    const fleet = new Fleet(atOnce);
    const [publisher, subscriber] = await fleet.startAll('publisher', 'subscriber');
    const notices: TaskNotice[] = [];
    await subscriber!.box.tasks.subscribe((notice) => void notices.push(notice));
    const expected = [];
    for (let n = 0; n < 20; n++) {
      if (n % 3 === 0) subscriber!.link.cutWatches();
      await publisher!.box.tasks.publish(`t${n}`, n);
      expected.push(`published t${n}`);
      if (n % 4 === 0) await fleet.advance(3000);
    }
    await fleet.advance(5000);
    expect(told(notices)).toEqual(expected);
  });

  it('learns when history was forgotten, and gets the difference', async () => {
    const fleet = new Fleet(atOnce);
    const [publisher, subscriber] = await fleet.startAll('publisher', 'subscriber');
    const { tasks } = publisher!.box;
    const notices: TaskNotice[] = [];
    await subscriber!.box.tasks.subscribe((notice) => void notices.push(notice));
    await tasks.publish('old', null);
    const claim = await tasks.claim('old');
    await settled();
    await expect.poll(() => told(notices)).toEqual(['published old']);
    subscriber!.link.cutOff('refusing');
    await tasks.publish('a', null);
    await tasks.publish('b', null);
    await claim.release();
    await (await tasks.claim('a')).complete();
    await fleet.store.compact(await fleet.revision());
    subscriber!.link.reconnect();
    await fleet.advance(5000);
    expect(told(notices)).toEqual(['published old', 'resync', 'released old', 'published a', 'published b']);
    const waiting = subscriber!.box.tasks.claimNext();
    await fleet.advance(1000);
    expect(['old', 'b']).toContain((await waiting).id);
  });

  it('that is slow delays nobody else, and gets what is pending if it falls too far behind', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const slow: string[] = [];
    const quick: string[] = [];
    let goOn = (): void => undefined;
    const blocked = new Promise<void>((resolve) => (goOn = resolve));
    await box.tasks.subscribe(async (notice) => {
      slow.push(notice.why === 'resync' ? 'resync' : notice.task.id);
      await blocked;
    });
    await box.tasks.subscribe((notice) => void quick.push(notice.why === 'resync' ? 'resync' : notice.task.id));
    const ids = Array.from({ length: 1010 }, (_, n) => `t${n}`);
    for (const id of ids) {
      await box.tasks.publish(id, null);
      if (id.endsWith('99')) await settled();
    }
    await expect.poll(() => quick.length).toBe(1010);
    expect(quick).toEqual(ids);
    expect(slow).toEqual(['t0']);
    goOn();
    await expect.poll(() => slow.length).toBeGreaterThanOrEqual(1012);
    expect(slow.slice(0, 3)).toEqual(['t0', 'resync', 't0']);
    expect(new Set(slow).size).toBe(1011);
  });
});
