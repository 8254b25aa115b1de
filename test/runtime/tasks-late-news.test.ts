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
});
