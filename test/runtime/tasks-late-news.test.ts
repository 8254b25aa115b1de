// What becomes of tasks when answers and news of the store reach a process late, or in another order than they were made.

import type { Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports } from '../support/fleet.ts';
import { lossOf, refusalOf } from '../support/outcome.ts';

const claims = ({ success }: Transaction): boolean =>
  success.some(
    (operation) => operation.do === 'put' && operation.key.endsWith('/owner') && operation.lease !== undefined,
  );

const frees = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'delete' && operation.key.endsWith('/owner'));

/** The list of all tasks, or the read of one. */
const reads =
  (key: string) =>
  ({ success }: Transaction): boolean =>
    success.some((operation) => operation.do === 'read' && operation.key.startsWith(key));

const byForce = { holder: 'user:anna', reason: 'it hangs' };

/** So long that all news that are on their way arrive: in a file, a process looks for them twenty times a second. */
const NEWS_MS = 200;

// A store that answers at once has no answers that are late.
describe.each(transports.filter(({ atOnce }) => atOnce !== true))('tasks on $transport', ({ atOnce }) => {
  it.each([
    ['by force', (other: Process) => other.box.tasks.forceRelease('a', byForce)],
    ['by its name', (other: Process) => other.box.tasks.release('a', { holder: 'worker:1' })],
    ['by force of its own process', (_: Process, own: Process) => own.box.tasks.forceRelease('a', byForce)],
  ])('a claim that was ended %s before its answer arrived is not handed out', async (_, end) => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await other!.box.tasks.publish('a', null);
    worker!.link.next('transaction', 'held', claims);
    const claiming = refusalOf(worker!.box.tasks.claim('a', { holder: 'worker:1' }));
    await fleet.advance(NEWS_MS);
    expect(await end(other!, worker!)).toMatchObject({ kind: 'released' });
    const next = await other!.box.tasks.claim('a', { holder: 'worker:2' });
    await fleet.advance(NEWS_MS);
    worker!.link.answerHeld();
    expect(await claiming).toEqual({ kind: 'lost' });
    expect(next.isValid).toBe(true);
  });

  it('a claim that another program ended before its answer arrived is not handed out, if the process follows tasks', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await worker!.box.tasks.subscribe(() => undefined);
    await other!.box.tasks.publish('a', null);
    await fleet.advance(NEWS_MS);
    worker!.link.next('transaction', 'held', claims);
    const claiming = refusalOf(worker!.box.tasks.claim('a', { holder: 'worker:1' }));
    await fleet.advance(NEWS_MS);
    await fleet.store.transaction({ compare: [], success: [{ do: 'delete', key: '//tasks/a/owner' }], failure: [] });
    await fleet.advance(NEWS_MS);
    worker!.link.answerHeld();
    expect(await claiming).toEqual({ kind: 'lost' });
  });

  it('a claim that its own process ends by force is lost although the answer of the store got lost', async () => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('process');
    await box.tasks.publish('a', null);
    const claim = await box.tasks.claim('a');
    link.next('transaction', 'unanswered', frees);
    const forcing = box.tasks.forceRelease('a', byForce);
    await fleet.advance(1000);
    expect(await forcing).toMatchObject({ kind: 'released' });
    expect(claim.isValid).toBe(false);
    expect(lossOf(claim.signal)).toMatchObject({ why: 'forced', by: 'user:anna' });
  });

  it.each([
    ['the next task', (worker: Process) => worker.box.tasks.claimNext()],
    ['this task', (worker: Process) => worker.box.tasks.claim('second')],
  ])(
    'a worker that waits for %s gets it although what it depends on was reopened and completed before the process could read it',
    async (_, claim) => {
      const fleet = new Fleet(atOnce);
      const [worker, other] = await fleet.startAll('worker', 'other');
      const { tasks } = other!.box;
      await tasks.publish('first', null);
      await (await tasks.claim('first')).complete();
      await tasks.publish('second', {}, { dependsOn: ['first'] });
      await worker!.box.tasks.subscribe(() => undefined);
      worker!.link.holdNews();
      await tasks.requeue('first');
      worker!.link.forbid((transaction) => claims(transaction) && worker!.link.asked.filter(isClaim).length > 5);
      const waiting = claim(worker!);
      await fleet.advance(NEWS_MS);
      await (await tasks.claim('first')).complete();
      worker!.link.next('transaction', 'held', reads('//tasks/first/'));
      worker!.link.deliverNews();
      await fleet.advance(NEWS_MS);
      worker!.link.answerHeld();
      await fleet.advance(NEWS_MS);
      const claimed = await Promise.race([waiting, fleet.advance(NEWS_MS).then(() => 'nothing was claimed')]);
      expect(claimed).toMatchObject({ id: 'second' });
    },
  );

  it('a process knows of a task that was published while it read the first list, although its news were forgotten', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    worker!.link.next('transaction', 'held', reads('//tasks/'));
    const waiting = worker!.box.tasks.claimNext();
    await fleet.advance(NEWS_MS);
    worker!.link.holdNews();
    await other!.box.tasks.publish('a', null);
    await fleet.store.compact(await fleet.revision());
    worker!.link.cutWatches();
    worker!.link.deliverNews();
    await fleet.advance(NEWS_MS);
    worker!.link.answerHeld();
    await fleet.advance(5000);
    const claimed = await Promise.race([waiting, fleet.advance(NEWS_MS).then(() => 'nothing was claimed')]);
    expect(claimed).toMatchObject({ id: 'a' });
  });

  it('a process knows of a task that was published while it began to follow tasks, although its news were forgotten', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    // This follows the changes of tasks, but keeps none.
    await worker!.box.on('task:*', () => undefined);
    worker!.link.holdNews();
    await other!.box.tasks.publish('before', null);
    await fleet.store.compact(await fleet.revision());
    // The process asks for the mailbox, and for tasks.
    for (let time = 0; time < 2; time++) worker!.link.next('health', 'delayed');
    worker!.link.cutWatches();
    worker!.link.deliverNews();
    await fleet.advance(NEWS_MS);
    const waiting = [worker!.box.tasks.claimNext(), worker!.box.tasks.claimNext()];
    await fleet.advance(NEWS_MS);
    await other!.box.tasks.publish('after', null);
    worker!.link.deliverDelayed();
    await fleet.advance(5000);
    const claimed = await Promise.race([
      Promise.all(waiting),
      fleet.advance(NEWS_MS).then(() => 'too few were claimed'),
    ]);
    expect(claimed).toMatchObject([{ id: 'before' }, { id: 'after' }]);
  });

  it('a task is attempted once, and not again before the process hears that it is free', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, other] = await fleet.startAll('worker', 'other');
    await other!.box.tasks.publish('a', null);
    await worker!.box.tasks.subscribe(() => undefined);
    worker!.link.holdNews();
    const claim = await other!.box.tasks.claim('a');
    // The refusal is of a later revision than the last change of a task.
    await other!.box.lock('else').acquire();
    // Attempts without a pause would never let the test go on.
    worker!.link.forbid((transaction) => claims(transaction) && worker!.link.asked.filter(isClaim).length > 5);
    const waiting = worker!.box.tasks.claim('a');
    await fleet.advance(NEWS_MS);
    expect(worker!.link.asked.filter(isClaim)).toHaveLength(1);
    worker!.link.deliverNews();
    await fleet.advance(NEWS_MS);
    expect(worker!.link.asked.filter(isClaim)).toHaveLength(1);
    await claim.release();
    await fleet.advance(NEWS_MS);
    expect(await waiting).toMatchObject({ id: 'a', attempt: 1 });
  });
});

function isClaim({ transaction }: { readonly transaction: Transaction }): boolean {
  return claims(transaction);
}
