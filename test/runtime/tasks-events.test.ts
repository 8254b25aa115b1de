// What is told of tasks, also of what workers do that are not signalbox and only write the plain keys.

import type { SignalboxEvent } from 'signalbox';
import { type Operation, type Store, Value } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

const told = (events: readonly SignalboxEvent[]): string[] =>
  events.map(({ type, resource, holder }) => `${type} ${resource} ${holder}`.trim());

const put = (id: string, part: string, text: string, lease?: string): Operation => ({
  do: 'put',
  key: `//tasks/${id}/${part}`,
  value: Value.text(text),
  lease,
});
const remove = (id: string, part: string): Operation => ({ do: 'delete', key: `//tasks/${id}/${part}` });

async function foreign(store: Store, ...success: readonly Operation[]): Promise<void> {
  await store.transaction({ compare: [], success, failure: [] });
}

describe.each(transports)('events of tasks on $transport', ({ atOnce }) => {
  it('tell what was done, the same for everyone, once', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const [here, there]: [SignalboxEvent[], SignalboxEvent[]] = [[], []];
    await one!.box.on('task:*', (event) => void here.push(event));
    await other!.box.on('*', (event) => void there.push(event));
    const { tasks } = one!.box;
    await tasks.publish('a', {}, { by: 'user:anna', retries: 1 });
    const first = await tasks.claim('a', { holder: 'w1' });
    await first.release();
    const second = await other!.box.tasks.claim('a', { holder: 'w2' });
    await second.fail('no');
    const third = await tasks.claim('a', { holder: 'w3' });
    await third.complete();
    await tasks.publish('b', {});
    await (await tasks.claim('b', { holder: 'w4' })).fail('never');
    await expect
      .poll(() => told(here))
      .toEqual([
        'task:published task/a user:anna',
        'task:claimed task/a w1',
        'task:released task/a w1',
        'task:claimed task/a w2',
        'task:requeued task/a w2',
        'task:claimed task/a w3',
        'task:completed task/a w3',
        'task:published task/b',
        'task:claimed task/b w4',
        'task:failed task/b w4',
      ]);
    await expect.poll(() => there.filter(({ type }) => type.startsWith('task:'))).toEqual(here);
    expect(new Set(here.map(({ id }) => id)).size).toBe(10);
    expect(here[1]).toMatchObject({ token: first.token, attempts: 1, at: fleet.clock.now() });
    expect(here[4]).toMatchObject({ token: second.token, reason: 'no', attempts: 1 });
    expect(here[6]).toMatchObject({ token: third.token });
  });

  it('of a task that is taken over from a dead owner tell both', async () => {
    const fleet = new Fleet(atOnce);
    const [dying, other] = await fleet.startAll('dying', 'other');
    const events: SignalboxEvent[] = [];
    await other!.box.on('task:*', (event) => void events.push(event));
    await dying!.box.tasks.publish('a', null);
    await dying!.box.tasks.claim('a', { holder: 'dead' });
    dying!.crash();
    const claim = other!.box.tasks.claimNext({ holder: 'next' });
    await fleet.advance(2 * TTL_MS);
    await (await claim).complete();
    await expect
      .poll(() => told(events))
      .toEqual([
        'task:published task/a',
        'task:claimed task/a dead',
        'task:requeued task/a dead',
        'task:claimed task/a next',
        'task:completed task/a next',
      ]);
  });

  it('are read off the plain keys of workers that are not signalbox', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const events: SignalboxEvent[] = [];
    await box.on('task:*', (event) => void events.push(event));
    await foreign(fleet.store, put('a', 'data', '{"x":1}'));
    await foreign(fleet.store, put('a', 'owner', 'py:1'), put('a', 'status', 'running'));
    await foreign(fleet.store, remove('a', 'owner'), put('a', 'status', 'pending'));
    await foreign(fleet.store, put('a', 'owner', 'py:2'));
    await foreign(fleet.store, put('a', 'status', 'running'));
    await foreign(fleet.store, put('a', 'owner', 'py:2'), put('a', 'status', 'complete'));
    await foreign(fleet.store, put('b', 'data', '1'), put('b', 'owner', 'py:3'));
    await foreign(fleet.store, put('b', 'status', 'failed'));
    await foreign(
      fleet.store,
      ...['a', 'b'].flatMap((id) => ['data', 'owner', 'status'].map((part) => remove(id, part))),
    );
    await expect
      .poll(() => told(events))
      .toEqual([
        'task:published task/a',
        'task:claimed task/a py:1',
        'task:released task/a py:1',
        'task:claimed task/a py:2',
        'task:completed task/a py:2',
        'task:published task/b',
        'task:claimed task/b py:3',
        'task:failed task/b py:3',
      ]);
  });

  it('of a worker that is not signalbox and dies are told by whoever finds its task', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const events: SignalboxEvent[] = [];
    await box.on('task:*', (event) => void events.push(event));
    await box.tasks.subscribe(() => undefined);
    const lease = await fleet.store.grantLease(5000);
    await box.tasks.publish('a', null);
    await foreign(fleet.store, put('a', 'owner', 'py:1', lease.id), put('a', 'status', 'running'));
    expect(await box.tasks.show('a')).toMatchObject({ status: 'running', owner: 'py:1', isLeased: true });
    await fleet.advance(10_000);
    expect(await box.tasks.show('a')).toMatchObject({ status: 'pending', owner: undefined });
    await expect.poll(() => told(events).slice(1)).toEqual(['task:claimed task/a py:1', 'task:requeued task/a']);
  });
});

describe.each(transports)('a worker that is not signalbox on $transport', ({ atOnce }) => {
  it('is not robbed although it has no lease; only by force, with a reason', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await foreign(fleet.store, put('a', 'data', '{}'), put('a', 'owner', 'py:1'), put('a', 'status', 'running'));
    await fleet.advance(10 * TTL_MS);
    await box.maintain();
    expect(await box.tasks.show('a')).toMatchObject({ status: 'running', owner: 'py:1', isLeased: false });
    expect(await box.tasks.tryClaim('a')).toMatchObject({ kind: 'taken', owner: 'py:1', isLeased: false });
    expect(await box.tasks.tryClaimNext()).toEqual({ ok: false, kind: 'none' });
    expect(await box.tasks.forceRelease('a', { holder: 'user:anna', reason: 'it is gone' })).toEqual({
      kind: 'released',
      owner: 'py:1',
    });
    expect((await box.tasks.tryClaimNext()).kind).toBe('claimed');
  });

  it('may leave an empty owner: that is nobody, and the next claim has a token of its own', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await foreign(fleet.store, put('a', 'data', '{}'), put('a', 'owner', 'py:1'), put('a', 'status', 'running'));
    const before = (await box.tasks.show('a'))?.token as number;
    await foreign(fleet.store, put('a', 'owner', ''), put('a', 'status', 'pending'));
    expect(await box.tasks.show('a')).toMatchObject({ status: 'pending', owner: undefined, token: undefined });
    const claim = await box.tasks.claim('a');
    expect(claim.token).toBeGreaterThan(before);
    expect(await claim.complete()).toEqual({ kind: 'completed' });
  });

  it('finishes for good, even if its owner key goes with its lease', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await foreign(fleet.store, put('a', 'data', '{}'));
    const lease = await fleet.store.grantLease(5000);
    await foreign(fleet.store, put('a', 'owner', 'py:1', lease.id), put('a', 'status', 'complete'));
    await fleet.advance(10_000);
    expect(await box.tasks.show('a')).toMatchObject({ status: 'complete' });
    expect(await box.tasks.tryClaim('a')).toEqual({ ok: false, kind: 'finished', status: 'complete' });
    expect(await box.tasks.tryClaimNext()).toEqual({ ok: false, kind: 'none' });
  });

  it('takes no task from one that claimed it by the rules', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await box.tasks.publish('a', null);
    const claim = await box.tasks.claim('a', { holder: 'ours' });
    const { succeeded } = await fleet.store.transaction({
      compare: [{ key: '//tasks/a/owner', target: 'version', is: '=', than: 0 }],
      success: [put('a', 'owner', 'py:1')],
      failure: [],
    });
    expect(succeeded).toBe(false);
    expect(claim.isValid).toBe(true);
    // Whoever keeps to no rule is noticed where tasks are followed.
    await box.tasks.subscribe(() => undefined);
    await foreign(fleet.store, remove('a', 'owner'));
    await expect.poll(() => claim.lost?.why).toBe('expired');
    expect(await claim.complete()).toMatchObject({ kind: 'not-owner' });
  });

  it.each([
    ['{not json', 'its data is not JSON'],
    ['{"dependsOn":"b"}', 'dependsOn is "b", not a list of names'],
    ['{"priority":"high"}', 'priority is "high"; expected a whole number from -100 to 100'],
  ])('that publishes %s is told what is wrong with it, and nobody claims it', async (data, problem) => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await foreign(fleet.store, put('a', 'data', data), put('a', 'status', 'pending'), put('a', 'signalbox', '[]'));
    const blocked = [{ why: 'unreadable', problem }];
    expect(await box.tasks.show('a')).toMatchObject({ status: 'pending', blockedBy: blocked });
    expect(await box.tasks.tryClaim('a')).toEqual({ ok: false, kind: 'blocked', by: blocked });
    expect(await box.tasks.tryClaimNext()).toEqual({ ok: false, kind: 'none' });
    const waiting = box.tasks.claimNext();
    await settled();
    await foreign(fleet.store, put('a', 'data', '{"priority":3}'));
    await fleet.advance(100);
    expect((await waiting).data).toEqual({ priority: 3 });
  });

  it.each(['cancelled', 'complete\n'])(
    'that puts the status %j reads that it means nothing, and nobody claims the task until it is queued again',
    async (word) => {
      const fleet = new Fleet(atOnce);
      const { box } = await fleet.start('process');
      await foreign(fleet.store, put('a', 'data', '{}'), put('a', 'status', word));
      const problem = `its status is ${JSON.stringify(word)}; expected pending, running, complete or failed`;
      const blocked = [{ why: 'unreadable', problem }];
      expect(await box.tasks.show('a')).toMatchObject({ status: 'pending', blockedBy: blocked });
      expect(await box.tasks.tryClaim('a')).toEqual({ ok: false, kind: 'blocked', by: blocked });
      expect(await box.tasks.tryClaimNext()).toEqual({ ok: false, kind: 'none' });
      expect(await box.tasks.retry('a')).toEqual({ kind: 'unchanged', status: 'pending' });
      expect(await box.tasks.requeue('a')).toEqual({ kind: 'requeued', was: 'pending' });
      expect((await box.tasks.claimNext({ waitMs: 1000 })).id).toBe('a');
    },
  );

  it('may put anything beside tasks: it is not taken for one', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await foreign(fleet.store, put('a', 'log', 'x'), put('a\nb', 'data', '1'), {
      do: 'put',
      key: '//tasks/data',
      value: Value.text('1'),
    });
    expect(await box.tasks.list()).toEqual([]);
    expect(await box.tasks.tryClaimNext()).toEqual({ ok: false, kind: 'none' });
  });
});
