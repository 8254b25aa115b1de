// What others may do to tasks, and lost answers that come at the worst moment: nobody is to be fooled or left waiting.

import type { SignalboxEvent, TaskNotice } from 'signalbox';
import { type Operation, type Store, type Transaction, Value } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { errorOf, isPending, lossOf, settled } from '../support/outcome.ts';

const key = (id: string, part: string): string => `//tasks/${id}/${part}`;
const put = (id: string, part: string, text: string): Operation => ({
  do: 'put',
  key: key(id, part),
  value: Value.text(text),
});
const remove = (id: string, part: string): Operation => ({ do: 'delete', key: key(id, part) });

async function foreign(store: Store, ...success: readonly Operation[]): Promise<void> {
  await store.transaction({ compare: [], success, failure: [] });
  await settled();
}

const puts = (part: string, { success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'put' && operation.key.endsWith(`/${part}`));
const publishes = (transaction: Transaction): boolean => puts('data', transaction);
const claims = ({ success }: Transaction): boolean =>
  success.some(
    (operation) => operation.do === 'put' && operation.key.endsWith('/owner') && operation.lease !== undefined,
  );
const ends = (transaction: Transaction): boolean => puts('status', transaction) && !claims(transaction);

describe.each(transports)('tasks on $transport', ({ atOnce }) => {
  it.each([
    '{"events":[null]}',
    '{"events":["x",{"type":7}],"attempts":-3,"claim":"x","ended":[1],"publishedAt":"now"}',
    '{"events":{},"claim":{"id":1},"publishedAt":1e300,"endedAt":null,"reason":{}}',
    'not JSON',
  ])('are told and handed out although somebody has put %s into the book of one', async (book) => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const events: SignalboxEvent[] = [];
    await box.on('task:*', (event) => void events.push(event));
    const notices: TaskNotice[] = [];
    await box.tasks.subscribe((notice) => void notices.push(notice));
    const operations = [put('odd', 'data', '{}'), put('odd', 'signalbox', book), put('odd', 'owner', 'py:1')];
    await foreign(fleet.store, ...operations, put('odd', 'status', 'running'));
    expect(await box.tasks.show('odd')).toMatchObject({ owner: 'py:1', attempts: 0, publishedAt: undefined });
    expect(await box.tasks.forceRelease('odd', { holder: 'user:anna', reason: 'it is gone' })).toMatchObject({
      kind: 'released',
    });
    expect((await box.tasks.claimNext({ waitMs: 1000 })).id).toBe('odd');
    await box.tasks.publish('next', null);
    await expect.poll(() => notices.map((notice) => notice.why)).toEqual(['published', 'released', 'published']);
    await expect.poll(() => events.at(-1)).toMatchObject({ type: 'task:published', resource: 'task/next' });
  });

  it('that a person opens again are handed out with their data, to whom they are for, and count on', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const notices: TaskNotice[] = [];
    await box.tasks.publish('a', { x: 1 }, { capabilities: ['gpu'] });
    await box.tasks.subscribe((notice) => void notices.push(notice));
    await (await box.tasks.claim('a', { capabilities: ['gpu'] })).complete();
    await settled();
    await foreign(fleet.store, remove('a', 'owner'), put('a', 'status', 'pending'));
    await expect.poll(() => notices.at(-1)).toMatchObject({ task: { id: 'a', data: { x: 1 } } });
    expect(await box.tasks.tryClaimNext()).toEqual({ ok: false, kind: 'none' });
    const again = await box.tasks.claimNext({ capabilities: ['gpu'], waitMs: 1000 });
    expect(again).toMatchObject({ id: 'a', data: { x: 1, capabilities: ['gpu'] }, attempt: 2 });
  });

  it('that another program tried and gave up are tried again by those who saw no attempt of ours', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await foreign(fleet.store, put('a', 'data', '{}'), put('a', 'status', 'failed'));
    expect(await box.tasks.show('a')).toMatchObject({ status: 'failed', attempts: 0 });
    expect(await box.tasks.retry('a', { attempts: 0 })).toEqual({ kind: 'requeued', was: 'failed' });
    await foreign(fleet.store, put('a', 'status', 'complete'));
    expect(await box.tasks.requeue('a', { attempts: 0 })).toEqual({ kind: 'requeued', was: 'complete' });
    await expect(box.tasks.retry('a', { attempts: -1 })).rejects.toThrow('expected a whole number of at least 0');
  });

  it.each(['py:1', ''])('are lost to a worker whose name somebody has overwritten with "%s"', async (name) => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await box.tasks.subscribe(() => undefined);
    await box.tasks.publish('a', null);
    const claim = await box.tasks.claim('a', { holder: 'worker' });
    const { signal } = claim;
    await settled();
    await foreign(fleet.store, put('a', 'owner', name));
    await expect.poll(() => lossOf(signal)).toMatchObject({ why: name === '' ? 'expired' : 'reclaimed' });
    expect(await claim.complete()).toMatchObject({ kind: 'not-owner' });
    expect(await box.tasks.show('a')).toMatchObject(name === '' ? { status: 'pending' } : { owner: name });
  });

  it.each(['unanswered', 'lost'] as const)(
    'are claimed by a script once although the answer to the claim was %s',
    async (trouble) => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('process');
      const events: string[] = [];
      await box.on('task:*', ({ type }) => void events.push(type));
      await box.tasks.publish('a', null);
      link.next('transaction', trouble, claims);
      const claiming = box.tasks.claimDetached('a', { holder: 'script' });
      await fleet.advance(1000);
      expect(await claiming).toMatchObject({ attempt: 1 });
      await expect.poll(() => events).toEqual(['task:published', 'task:claimed']);
    },
  );

  it('are not said to be unchanged if the one answer that mattered got lost', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    worker!.link.next('transaction', 'severed', publishes);
    const publishing = errorOf(worker!.box.tasks.publish('a', null));
    await fleet.advance(6000);
    expect(await publishing).toMatchObject({ code: 'outcome-unknown' });
    expect(await other!.box.tasks.status('a')).toBe('pending');
    worker!.link.reconnect();

    const claim = await worker!.box.tasks.claim('a');
    worker!.link.next('transaction', 'severed', ends);
    const completing = errorOf(claim.complete(7));
    await fleet.advance(6000);
    expect(await completing).toMatchObject({ code: 'outcome-unknown' });
    worker!.link.reconnect();
    // Said again, it is as said once.
    expect(await claim.complete(7)).toEqual({ kind: 'completed' });
    expect(await other!.box.tasks.show('a')).toMatchObject({ status: 'complete', result: 7 });
  });

  it('that were published by us are not said to be those of another because somebody was quick', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    worker!.link.next('transaction', 'severed', publishes);
    const publishing = worker!.box.tasks.publish('a', { x: 1 });
    const outcome = publishing.catch((error: unknown) => error);
    await settled();
    expect((await other!.box.tasks.tryClaim('a')).kind).toBe('claimed');
    worker!.link.reconnect();
    await fleet.advance(6000);
    expect(await outcome).toMatchObject({ code: 'outcome-unknown' });
    // Of another's there is no doubt.
    worker!.link.next('transaction', 'lost', publishes);
    const again = worker!.box.tasks.publish('a', { x: 2 });
    await fleet.advance(1000);
    expect(await again).toEqual({ kind: 'exists', id: 'a', status: 'running' });
  });

  it('whose release was done but not answered are not their worker’s any more', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await worker!.box.tasks.subscribe(() => undefined);
    await worker!.box.tasks.publish('a', null);
    const claim = await worker!.box.tasks.claim('a');
    const { signal } = claim;
    worker!.link.next('transaction', 'unanswered', ends);
    worker!.link.next('transaction', 'refused', ({ success }) => success.every((operation) => operation.do === 'read'));
    const releasing = errorOf(claim.release());
    await settled();
    worker!.link.cutOff('refusing');
    await fleet.advance(6000);
    await releasing;
    worker!.link.reconnect();
    await fleet.advance(1000);
    expect((await other!.box.tasks.tryClaim('a')).kind).toBe('claimed');
    expect(claim.isValid).toBe(false);
    expect(lossOf(signal)).toBeDefined();
    expect(await claim.release()).toEqual({ kind: 'released' });
  });

  it('whose retry was counted but not answered, and that another has ended since, are told to be in doubt', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await other!.box.tasks.publish('a', { retries: 3 });
    const claim = await worker!.box.tasks.claim('a');
    worker!.link.next('transaction', 'severed', ends);
    const failing = errorOf(claim.fail('broken'));
    await settled();
    await (await other!.box.tasks.claim('a')).complete();
    worker!.link.reconnect();
    await fleet.advance(6000);
    expect(await failing).toMatchObject({ code: 'outcome-unknown' });
  });

  it('go to the next worker that waits if the first one cannot claim them', async () => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('process', { requestTimeoutMs: 10 });
    const first = errorOf(box.tasks.claimNext({ holder: 'first' }));
    await settled();
    const second = box.tasks.claimNext({ holder: 'second' });
    await settled();
    link.next('transaction', 'refused', claims);
    const { store } = fleet;
    await foreign(store, put('a', 'data', '1'));
    await fleet.advance(100);
    expect(await first).toMatchObject({ code: 'unavailable' });
    await fleet.advance(1000);
    expect(await isPending(second)).toBe(false);
    expect((await second).id).toBe('a');
  });
});

describe('a worker that waits', () => {
  it('gets a task that was given back while the answer that it was taken was under way', async () => {
    const fleet = new Fleet(false);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await other!.box.tasks.publish('a', null);
    await worker!.box.tasks.subscribe(() => undefined);
    worker!.link.holdNews();
    const taken = await other!.box.tasks.claim('a');
    worker!.link.next('transaction', 'held', claims);
    const waiting = worker!.box.tasks.claimNext();
    await settled();
    // Its claim was refused; before it hears that, the task is free again, and others write something else.
    await taken.release();
    await other!.box.lock('unrelated').acquire();
    await worker!.box.lock('other').tryAcquire();
    worker!.link.answerHeld();
    await settled();
    worker!.link.deliverNews();
    await fleet.advance(1000);
    expect(await isPending(waiting)).toBe(false);
    expect((await waiting).id).toBe('a');
  });
});
