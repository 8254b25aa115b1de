// Bugs of others that must never be ours: tasks.

import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

describe.each(transports)('on $transport', ({ atOnce }) => {
  describe('29. "next task" reads but does not claim', () => {
    it('two workers that ask for the next task at the same moment never get the same one', async () => {
      const fleet = new Fleet(atOnce);
      const workers = await fleet.startAll('one', 'two', 'three', 'four');
      for (let round = 0; round < 5; round++) {
        await workers[0]!.box.tasks.publish(`only/${round}`, null);
        // Those who have a list already, and those who make one now, go for it together.
        const attempts = workers.map(({ box }) => box.tasks.tryClaimNext());
        await fleet.advance(100);
        const won = (await Promise.all(attempts)).filter(({ kind }) => kind === 'claimed');
        expect(won).toHaveLength(1);
        if (won[0]?.kind === 'claimed') await won[0].claim.complete();
        await settled();
      }
    });

    it('whoever is handed a task has it: nobody has to claim what it was given', async () => {
      const fleet = new Fleet(atOnce);
      const [worker, other] = await fleet.startAll('worker', 'other');
      await worker!.box.tasks.publish('a', null);
      const claim = await worker!.box.tasks.claimNext({ holder: 'worker:1' });
      expect(await other!.box.tasks.show('a')).toMatchObject({
        status: 'running',
        owner: 'worker:1',
        token: claim.token,
      });
    });
  });

  describe('30. a queue that deletes on dequeue loses the task when the worker dies', () => {
    it('a task whose worker is killed is done by another, with all that was said about it', async () => {
      const fleet = new Fleet(atOnce);
      const [dying, other] = await fleet.startAll('dying', 'other');
      await dying!.box.tasks.publish('a', { what: 'everything' }, { priority: 3 });
      await dying!.box.tasks.claimNext();
      dying!.crash();
      const next = other!.box.tasks.claimNext();
      await fleet.advance(TTL_MS + 2000);
      const claim = await next;
      expect(claim).toMatchObject({ id: 'a', data: { what: 'everything', priority: 3 }, attempt: 2 });
      expect(await claim.complete()).toEqual({ kind: 'completed' });
    });

    it('a task that is complete stays where it can be looked up', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      await box.tasks.publish('a', { n: 1 });
      await (await box.tasks.claimNext()).complete('result');
      await fleet.advance(10 * TTL_MS);
      expect(await box.tasks.show('a')).toMatchObject({ status: 'complete', data: { n: 1 }, result: 'result' });
    });
  });

  describe('31. a claim without a lease is held forever by the dead', () => {
    it('every claim of ours is on a lease: of a process, or of a script that is not heard of again', async () => {
      const fleet = new Fleet(atOnce);
      const [process, script, other] = await fleet.startAll('process', 'script', 'other');
      await other!.box.tasks.publish('attached', null);
      await other!.box.tasks.publish('detached', null);
      await process!.box.tasks.claim('attached');
      await script!.box.tasks.claimDetached('detached', { holder: 'agent:7' });
      for (const id of ['attached', 'detached']) expect((await other!.box.tasks.show(id))?.isLeased).toBe(true);
      process!.crash();
      script!.crash();
      await fleet.advance(TTL_MS + 2000);
      expect(await other!.box.tasks.status('attached')).toBe('pending');
      expect(await other!.box.tasks.status('detached')).toBe('running');
      await fleet.advance(60_000);
      expect(await other!.box.tasks.status('detached')).toBe('pending');
    });

    it('a claim of another program without one is shown as such, and freed only by a person with a reason', async () => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      await box.tasks.publish('a', null);
      await box.bus.put('/tasks/a/owner', 'py:1');
      await fleet.advance(10 * TTL_MS);
      expect(await box.tasks.show('a')).toMatchObject({ status: 'running', owner: 'py:1', isLeased: false });
      await box.tasks.forceRelease('a', { holder: 'user:anna', reason: 'py:1 was switched off' });
      expect(await box.tasks.status('a')).toBe('pending');
    });
  });
});
