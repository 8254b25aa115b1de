import type { SignalboxEvent } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { isForgotten } from '../support/memory.ts';
import { errorOf, isPending, lossOf, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('a task on $transport', ({ atOnce }) => {
  it('is published, claimed and completed, and all that shows', async () => {
    const fleet = new Fleet(atOnce);
    const [publisher, worker] = await fleet.startAll('publisher', 'worker');
    const { tasks } = publisher!.box;
    expect(await tasks.publish('build-7', { commit: 'abc' }, { by: 'user:anna' })).toEqual({
      kind: 'published',
      id: 'build-7',
    });
    expect(await tasks.show('build-7')).toMatchObject({
      status: 'pending',
      data: { commit: 'abc' },
      publishedBy: 'user:anna',
      attempts: 0,
      blockedBy: [],
    });
    const claim = await worker!.box.tasks.claim('build-7', { holder: 'worker:1' });
    expect(claim).toMatchObject({ id: 'build-7', data: { commit: 'abc' }, holder: 'worker:1', attempt: 1 });
    expect(await tasks.show('build-7')).toMatchObject({ status: 'running', owner: 'worker:1', token: claim.token });
    expect(await claim.complete({ ok: true })).toEqual({ kind: 'completed' });
    expect(await tasks.show('build-7')).toMatchObject({
      status: 'complete',
      owner: 'worker:1',
      result: { ok: true },
      publishedBy: 'user:anna',
      attempts: 1,
    });
    expect(await tasks.status('build-7')).toBe('complete');
    expect(await tasks.ownerOf('build-7')).toBe('worker:1');
  });

  it('that exists is not published again, and nothing of it changes', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await box.tasks.publish('a', 1);
    const claim = await box.tasks.claim('a');
    const before = await fleet.revision();
    expect(await box.tasks.publish('a', 2)).toEqual({ kind: 'exists', id: 'a', status: 'running' });
    expect(await fleet.revision()).toBe(before);
    await claim.complete();
    expect(await box.tasks.publish('a', 2)).toEqual({ kind: 'exists', id: 'a', status: 'complete' });
    expect((await box.tasks.show('a'))?.data).toBe(1);
  });

  it('goes to one of many claimers; the others learn who has it, and write nothing', async () => {
    const fleet = new Fleet(atOnce);
    const processes = await fleet.startAll(...Array.from({ length: 10 }, (_, n) => `p${n}_`));
    await processes[0]!.box.tasks.publish('a', null);
    const before = await fleet.revision();
    const answers = await Promise.all(
      processes.map(({ box }, n) => box.tasks.tryClaim('a', { holder: `worker:${n}` })),
    );
    const won = answers.filter(({ kind }) => kind === 'claimed');
    expect(won).toHaveLength(1);
    const owner = await processes[0]!.box.tasks.ownerOf('a');
    for (const answer of answers) {
      if (answer.kind !== 'claimed') expect(answer).toMatchObject({ kind: 'taken', owner, isLeased: true });
    }
    expect(await fleet.revision()).toBe(before + 1);
  });

  it('is claimed with one transaction, also by one who has never heard of it', async () => {
    const fleet = new Fleet(atOnce);
    const [publisher, worker] = await fleet.startAll('publisher', 'worker');
    await publisher!.box.tasks.publish('a', null);
    const before = worker!.link.asked.length;
    const answer = await worker!.box.tasks.tryClaim('a');
    expect(answer.kind).toBe('claimed');
    expect(worker!.link.asked.length - before).toBe(1);
    const ended = worker!.link.asked.length;
    if (answer.kind === 'claimed') await answer.claim.complete();
    expect(worker!.link.asked.length - ended).toBe(1);
  });

  it('is finished only with the token of the claim that holds', async () => {
    const fleet = new Fleet(atOnce);
    const [first, second] = await fleet.startAll('first', 'second');
    await first!.box.tasks.publish('a', null);
    const old = await first!.box.tasks.claim('a', { holder: 'worker' });
    await first!.box.tasks.forceRelease('a', { holder: 'user:anna', reason: 'too slow' });
    // The same holder: comparing names would take the one for the other.
    const now = await second!.box.tasks.claim('a', { holder: 'worker' });
    expect(now.token).toBeGreaterThan(old.token);
    expect(await old.complete('old')).toMatchObject({ kind: 'not-owner', owner: 'worker', status: 'running' });
    expect(await first!.box.tasks.complete('a', { token: old.token })).toMatchObject({ kind: 'not-owner' });
    expect(await first!.box.tasks.fail('a', { token: old.token }, 'no')).toMatchObject({ kind: 'not-owner' });
    expect(await first!.box.tasks.release('a', { token: old.token })).toMatchObject({ kind: 'not-owner' });
    expect(now.isValid).toBe(true);
    expect(await now.complete('new')).toEqual({ kind: 'completed' });
    expect((await first!.box.tasks.show('a'))?.result).toBe('new');
  });

  it('that is finished stays so: its token ends nothing again, and nobody claims it', async () => {
    const fleet = new Fleet(atOnce);
    const [first, second] = await fleet.startAll('first', 'second');
    const { tasks } = first!.box;
    await tasks.publish('a', null);
    const claim = await tasks.claim('a', { holder: 'worker' });
    await claim.complete('done');
    const before = await fleet.revision();
    expect(await tasks.complete('a', { token: claim.token }, 'again')).toMatchObject({ kind: 'not-owner' });
    expect(await tasks.fail('a', { token: claim.token }, 'again')).toMatchObject({ kind: 'not-owner' });
    expect(await tasks.release('a', { holder: 'worker' })).toMatchObject({ kind: 'not-owner', status: 'complete' });
    expect(await second!.box.tasks.tryClaim('a')).toEqual({ ok: false, kind: 'finished', status: 'complete' });
    expect(await second!.box.tasks.tryClaimNext()).toEqual({ ok: false, kind: 'none' });
    expect(await fleet.revision()).toBe(before);
    await first!.box.close();
    await fleet.advance(2 * TTL_MS);
    expect(await second!.box.tasks.show('a')).toMatchObject({ status: 'complete', result: 'done', owner: 'worker' });
  });

  it('that is released is pending again, and was not tried', async () => {
    const fleet = new Fleet(atOnce);
    const [first, second] = await fleet.startAll('first', 'second');
    await first!.box.tasks.publish('a', null);
    {
      await using claim = await first!.box.tasks.claim('a');
      expect(claim.attempt).toBe(1);
    }
    expect(await second!.box.tasks.show('a')).toMatchObject({ status: 'pending', owner: undefined, attempts: 0 });
    const claim = await second!.box.tasks.claim('a');
    expect(claim.attempt).toBe(1);
    expect(await claim.release()).toEqual({ kind: 'released' });
    expect(await claim.release()).toEqual({ kind: 'released' });
    expect(await claim.complete()).toMatchObject({ kind: 'not-owner' });
  });

  it('that fails is tried again as often as was said, and then has failed', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await box.tasks.publish('a', {}, { retries: 2 });
    const outcomes = [];
    for (let attempt = 1; attempt <= 3; attempt++) {
      const claim = await box.tasks.claim('a');
      expect(claim.attempt).toBe(attempt);
      outcomes.push(await claim.fail(`no ${attempt}`));
    }
    expect(outcomes).toEqual([
      { kind: 'retried', attempts: 1, retriesLeft: 2, backoffMs: 0 },
      { kind: 'retried', attempts: 2, retriesLeft: 1, backoffMs: 0 },
      { kind: 'failed', attempts: 3 },
    ]);
    expect(await box.tasks.show('a')).toMatchObject({ status: 'failed', reason: 'no 3', attempts: 3 });
    expect(await box.tasks.tryClaim('a')).toEqual({ ok: false, kind: 'finished', status: 'failed' });
    await box.tasks.publish('b', {}, { retries: 2 });
    expect(await (await box.tasks.claim('b')).fail('never', { retry: false })).toEqual({ kind: 'failed', attempts: 1 });
  });

  it('that fails pauses before the next attempt, twice as long each time, and wakes its workers by itself', async () => {
    const fleet = new Fleet(atOnce);
    const [one, two] = await fleet.startAll('one', 'two');
    const { tasks } = one!.box;
    await tasks.publish('a', {}, { retries: 3, backoffMs: 4_000 });
    expect(await (await tasks.claim('a')).fail('no 1')).toMatchObject({ kind: 'retried', backoffMs: 4_000 });
    const notices: string[] = [];
    await tasks.subscribe((notice) => void notices.push(notice.why));
    expect(await tasks.show('a')).toMatchObject({
      status: 'pending',
      owner: undefined,
      failures: 1,
      retryAt: fleet.clock.now() + 4_000,
      blockedBy: [{ why: 'backoff' }],
    });
    expect(await tasks.tryClaim('a')).toMatchObject({ kind: 'blocked', by: [{ why: 'backoff' }] });
    const next = two!.box.tasks.claimNext({ holder: 'worker:2' });
    await fleet.advance(3_000);
    expect(await isPending(next)).toBe(true);
    expect(notices).toEqual([]);
    await fleet.advance(2_000);
    const claim = await next;
    expect(claim.attempt).toBe(2);
    expect(notices).toEqual(['requeued']);
    expect(await claim.fail('no 2')).toMatchObject({ backoffMs: 8_000 });
    // A person need not wait.
    expect(await tasks.retry('a', { by: 'admin' })).toEqual({ kind: 'requeued', was: 'pending' });
    expect(await tasks.show('a')).toMatchObject({ failures: 0, reason: undefined, blockedBy: [] });
    await (await tasks.claim('a')).complete();
    expect(await tasks.retry('a')).toEqual({ kind: 'unchanged', status: 'complete' });
  });

  it('that ends its workers is failed with the third and says why, though only workers look at it', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('last');
    await box.tasks.publish('a', null);
    for (const name of ['one', 'two', 'three']) {
      const dying = await fleet.start(name);
      await dying.box.tasks.claim('a', { holder: name });
      dying.crash();
      await fleet.advance(2 * TTL_MS);
    }
    expect(await box.tasks.tryClaim('a')).toMatchObject({ kind: 'finished', status: 'failed' });
    expect(await box.tasks.show('a')).toMatchObject({
      status: 'failed',
      owner: 'three',
      isLeased: false,
      losses: 3,
      reason: '3 workers died or lost the claim while working on it, the last one three',
    });
    expect(await box.tasks.retry('a')).toEqual({ kind: 'requeued', was: 'failed' });
    expect((await box.tasks.tryClaim('a')).kind).toBe('claimed');
  });

  it('is done again or forgotten only while no worker has it and no other needs it', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const { tasks } = box;
    await tasks.publish('a', { old: true });
    await tasks.publish('b', {}, { dependsOn: ['a'] });
    const claim = await tasks.claim('a', { holder: 'w' });
    expect(await tasks.requeue('a')).toEqual({ kind: 'running', owner: 'w' });
    await claim.complete(1);
    expect(await tasks.forget('a')).toEqual({ kind: 'needed', by: ['b'] });
    expect(await tasks.requeue('a', { by: 'admin' })).toEqual({ kind: 'requeued', was: 'complete' });
    expect(await tasks.show('a')).toMatchObject({ status: 'pending', result: undefined, attempts: 1 });
    const again = await tasks.claim('a', { holder: 'w' });
    expect(again.token).toBeGreaterThan(claim.token);
    await again.complete(2);
    const last = await tasks.claim('b', { holder: 'w' });
    expect(await tasks.forget('b')).toEqual({ kind: 'running', owner: 'w' });
    await last.complete();
    expect(await tasks.forget('a')).toEqual({ kind: 'forgotten' });
    expect(await tasks.forget('a')).toEqual({ kind: 'missing' });
    expect(await tasks.show('a')).toBeUndefined();
    // The id is free, and what has been claimed under it before cannot touch the new one.
    expect(await tasks.publish('a', { old: false })).toMatchObject({ kind: 'published' });
    const fresh = await tasks.claim('a', { holder: 'w' });
    expect(fresh.token).toBeGreaterThan(again.token);
    expect(await tasks.complete('a', { token: again.token })).toMatchObject({ kind: 'not-owner' });
  });

  it('is listed a page at a time, by id, also where ids are parts of others', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const ids = [
      'a',
      'a/b',
      'a/owner',
      'a-b',
      ...Array.from({ length: 70 }, (_, n) => `n${String(n).padStart(2, '0')}`),
    ];
    for (const id of ids) await box.tasks.publish(id, {}, { priority: 1 });
    await (await box.tasks.claim('a')).complete();
    const found: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await box.tasks.list({ limit: 20, ...(after !== undefined && { after }) });
      found.push(...page.map(({ id }) => id));
      after = page.at(-1)?.id;
      if (page.length < 20) break;
    }
    expect(found.toSorted()).toEqual(ids.toSorted());
    expect(await box.tasks.list({ status: 'complete', limit: 5 })).toMatchObject([{ id: 'a', status: 'complete' }]);
    expect(await errorOf(box.tasks.list({ limit: 0 }))).toMatchObject({ code: 'invalid' });
  });

  it('that is finished is forgotten after a week, or when there are too many, unless another needs it', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const { tasks } = box;
    expect(await tasks.retention()).toEqual({ keepMs: 7 * 86_400_000, keepMost: 10_000 });
    await tasks.configure({ keepMs: 80_000 });
    for (const id of ['a', 'b', 'needed']) {
      await tasks.publish(id, null);
      await (await tasks.claim(id)).complete();
    }
    await tasks.publish('open', {}, { dependsOn: ['needed', 'never'] });
    expect((await box.maintain()).forgottenTasks).toBe(0);
    await fleet.advance(40_000);
    await tasks.publish('later', null);
    await (await tasks.claim('later')).complete();
    expect((await box.maintain()).forgottenTasks).toBe(0);
    await fleet.advance(41_000);
    expect((await box.maintain()).forgottenTasks).toBe(2);
    expect((await tasks.list()).map(({ id }) => id)).toEqual(['needed', 'open', 'later']);
    await tasks.publish('last', null);
    await (await tasks.claim('last')).complete();
    await tasks.configure({ keepMost: 2 });
    expect((await box.maintain()).forgottenTasks).toBe(0);
    await tasks.configure({ keepMost: 1 });
    await box.maintain();
    expect((await tasks.list({ status: 'complete' })).map(({ id }) => id)).toEqual(['needed', 'last']);
  });

  it('of a process that dies is pending again and goes to the next; the dead one can finish nothing', async () => {
    const fleet = new Fleet(atOnce);
    const [dying, next] = await fleet.startAll('dying', 'next');
    await dying!.box.tasks.publish('a', null);
    const old = await dying!.box.tasks.claim('a', { holder: 'worker:dead' });
    const waiting = next!.box.tasks.claim('a', { holder: 'worker:next' });
    expect(await isPending(waiting)).toBe(true);
    dying!.link.cutOff('silent');
    await fleet.advance(TTL_MS * 0.9);
    expect(lossOf(old.signal)?.why).toBe('disconnected');
    expect(await isPending(waiting)).toBe(true);
    await fleet.advance(TTL_MS * 0.2);
    const claim = await waiting;
    expect(claim).toMatchObject({ holder: 'worker:next', attempt: 2 });
    dying!.link.reconnect();
    expect(await old.complete()).toMatchObject({ kind: 'not-owner', owner: 'worker:next' });
    expect(old.isValid).toBe(false);
    expect(() => old.check()).toThrow(/lost/);
    expect(await claim.complete()).toEqual({ kind: 'completed' });
  });

  it('whose owner died is written down as pending once, by one of the processes that follow it', async () => {
    const fleet = new Fleet(atOnce);
    const [dying, ...others] = await fleet.startAll('dying', 'one', 'two', 'three');
    const told: SignalboxEvent[] = [];
    await others[0]!.box.on('task:requeued', (event) => void told.push(event));
    for (const { box } of others) await box.tasks.subscribe(() => undefined);
    await dying!.box.tasks.publish('a', null);
    await dying!.box.tasks.claim('a', { holder: 'worker:dead' });
    dying!.crash();
    await fleet.advance(2 * TTL_MS);
    expect(told).toMatchObject([{ type: 'task:requeued', resource: 'task/a', holder: 'worker:dead', attempts: 1 }]);
    const [status] = (
      await fleet.store.transaction({ compare: [], success: [{ do: 'read', key: '//tasks/a/status' }], failure: [] })
    ).results;
    expect(status?.do === 'read' ? status.pairs[0]?.value.text : undefined).toBe('pending');
  });

  it('is found by maintenance if nobody else follows tasks', async () => {
    const fleet = new Fleet(atOnce);
    const [dying, other] = await fleet.startAll('dying', 'other');
    await dying!.box.tasks.publish('a', null);
    await dying!.box.tasks.claim('a');
    dying!.crash();
    await fleet.advance(TTL_MS * 1.1);
    expect(await other!.box.maintain()).toMatchObject({ requeued: 1 });
    expect(await other!.box.maintain()).toMatchObject({ requeued: 0 });
  });

  it('that was closed with its process goes back at once', async () => {
    const fleet = new Fleet(atOnce);
    const [first, second] = await fleet.startAll('first', 'second');
    await first!.box.tasks.publish('a', null);
    const claim = await first!.box.tasks.claim('a');
    const { signal } = claim;
    await first!.box.close();
    expect(lossOf(signal)?.why).toBe('released-elsewhere');
    expect((await second!.box.tasks.tryClaim('a')).kind).toBe('claimed');
  });

  it('that depends on others is claimed only when they are complete', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const { tasks } = box;
    await tasks.publish('deploy', {}, { dependsOn: ['build', 'test'] });
    await tasks.publish('build', {});
    expect(await tasks.show('deploy')).toMatchObject({
      status: 'pending',
      blockedBy: [
        { why: 'unfinished', task: 'build' },
        { why: 'missing', task: 'test' },
      ],
    });
    expect(await tasks.tryClaim('deploy')).toMatchObject({ kind: 'blocked' });
    expect((await tasks.claimNext()).id).toBe('build');
    expect(await tasks.tryClaimNext()).toEqual({ ok: false, kind: 'none' });
    await tasks.complete('build', { holder: (await tasks.ownerOf('build')) as string });
    await tasks.publish('test', {});
    await (await tasks.claim('test')).fail('red');
    expect(await tasks.tryClaim('deploy')).toEqual({
      ok: false,
      kind: 'blocked',
      by: [{ why: 'failed', task: 'test' }],
    });
  });

  it('that waits for others is claimed as soon as the last one is complete', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    await one!.box.tasks.publish('b', {}, { dependsOn: ['a'] });
    await one!.box.tasks.publish('a', {});
    const [named, next] = [other!.box.tasks.claim('b'), one!.box.tasks.claimNext()];
    const first = await next;
    expect(first.id).toBe('a');
    expect(await isPending(named)).toBe(true);
    await first.complete();
    expect((await named).id).toBe('b');
  });

  it('is for workers that can do what it asks for', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await box.tasks.publish('a', {}, { capabilities: ['code-analysis:rust', 'gpu'] });
    expect(await box.tasks.tryClaim('a', { capabilities: ['gpu'] })).toEqual({
      ok: false,
      kind: 'unfit',
      lacking: ['code-analysis:rust'],
    });
    expect(await box.tasks.tryClaimNext({ capabilities: ['gpu'] })).toEqual({ ok: false, kind: 'none' });
    const waiting = box.tasks.claimNext({ capabilities: ['gpu', 'code-analysis:rust', 'more'] });
    expect((await waiting).id).toBe('a');
  });

  it('of the highest priority goes first, and of those the oldest', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await box.tasks.publish('low', {}, { priority: -5 });
    await box.tasks.publish('one', {});
    await box.tasks.publish('two', {}, { capabilities: ['x'] });
    await box.tasks.publish('three', {});
    await box.tasks.publish('high', {}, { priority: 7 });
    const order = [];
    for (let time = 0; time < 5; time++) order.push((await box.tasks.claimNext({ capabilities: ['x'] })).id);
    expect(order).toEqual(['high', 'one', 'two', 'three', 'low']);
  });

  it('that comes while workers wait goes to one of them', async () => {
    const fleet = new Fleet(atOnce);
    const processes = await fleet.startAll('p', 'q', 'r');
    const waiting = processes.flatMap(({ box }) => [box.tasks.claimNext(), box.tasks.claimNext()]);
    await settled();
    for (let n = 0; n < 6; n++) await processes[0]!.box.tasks.publish(`t${n}`, n);
    await fleet.advance(1000);
    const claims = await Promise.all(waiting);
    expect(claims.map(({ id }) => id).sort()).toEqual(['t0', 't1', 't2', 't3', 't4', 't5']);
  });

  it('that another worker has until the time is over is refused with the name of that worker', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await box.tasks.publish('a', {});
    await box.tasks.claim('a', { holder: 'worker:1' });
    const error = errorOf(box.tasks.claim('a', { waitMs: 5000 }));
    await settled();
    await fleet.advance(5000);
    expect(await error).toMatchObject({
      message: 'task/a: not granted within 5000 ms; held by worker:1',
      refusal: { holders: [{ holder: 'worker:1' }] },
    });
  });

  it('is waited for as long as was said, and no claim is left behind', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    expect(await refusalOf(box.tasks.claimNext({ waitMs: 0 }))).toEqual({ kind: 'none' });
    const waiting = refusalOf(box.tasks.claimNext({ waitMs: 5000 }));
    const aborted = new AbortController();
    const other = refusalOf(box.tasks.claimNext({ signal: aborted.signal }));
    await fleet.advance(5000);
    expect(await waiting).toMatchObject({ kind: 'timed-out', waitedMs: 5000 });
    aborted.abort('enough');
    expect(await other).toEqual({ kind: 'aborted', reason: 'enough' });
    await box.tasks.publish('a', null);
    await settled();
    expect(await box.tasks.status('a')).toBe('pending');
    const claim = await box.tasks.claim('a');
    expect(await refusalOf(box.tasks.claim('a', { waitMs: 0 }))).toMatchObject({ kind: 'taken', owner: claim.holder });
    expect(await refusalOf(box.tasks.claim('nothing'))).toEqual({ kind: 'missing' });
    const last = refusalOf(box.tasks.claim('a'));
    await settled();
    await claim.complete();
    expect(await last).toEqual({ kind: 'finished', status: 'complete' });
  });

  it('is refused with what was wrong with it, before anything is written', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const { tasks } = box;
    const before = await fleet.revision();
    const wrong: [Promise<unknown>, RegExp][] = [
      [tasks.publish('', 1), /task is empty/],
      [tasks.publish('a\n', 1), /unprintable/],
      [tasks.publish('a', undefined as never), /data is undefined/],
      [tasks.publish('a', { x: () => 1 } as never), /JSON cannot express/],
      [tasks.publish('a', 'x'.repeat(1024 * 1024)), /1048578 bytes.*1024 KiB/],
      [tasks.publish('a', { priority: 1000 }), /priority is 1000/],
      [tasks.publish('a', {}, { dependsOn: ['b', 7] as never }), /dependsOn is 7/],
      [tasks.publish('a', {}, { retries: -1 }), /retries is -1/],
      [tasks.publish('a', 5, { priority: 1 }), /has to be an object/],
      [tasks.publish('a', { priority: 2 }, { priority: 1 }), /give it once/],
      [tasks.publish('a', {}, { urgent: true } as never), /"urgent" is not an option/],
      [tasks.claim('a', { holder: '' }), /holder is empty/],
      [tasks.claimNext({ waitMs: -1 }), /waitMs is -1/],
      [tasks.claimNext({ capabilities: 'x' as never }), /capabilities is "x"/],
      [tasks.complete('a', {}), /neither token nor holder is given/],
      [tasks.list({ status: 'done' as never }), /status is "done"/],
    ];
    for (const [promise, message] of wrong) {
      expect(await errorOf(promise)).toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(message) as unknown,
      });
    }
    expect(await fleet.revision()).toBe(before);
  });

  it('may be called anything: one id is never a part of another', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    const ids = ['a', 'a/owner', 'a/owner/data', 'data', '/', 'a%2Fb', 'a/b', 'ü 🚂', '..'];
    for (const id of ids) await box.tasks.publish(id, id);
    for (const id of ids) expect((await box.tasks.claim(id)).data).toBe(id);
    expect((await box.tasks.list({ status: 'running' })).map(({ id }) => id)).toEqual(ids);
    await box.tasks.complete('a', { holder: (await box.tasks.ownerOf('a')) as string });
    expect((await box.tasks.list({ status: 'complete' })).map(({ id }) => id)).toEqual(['a']);
  });

  it('that is never done is forgotten by those who waited for it and gave up', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('process');
    await box.tasks.publish('long', {});
    await box.tasks.claim('long');
    const gaveUp = async (): Promise<WeakRef<AbortSignal>> => {
      const { signal } = new AbortController();
      const waiting = errorOf(box.tasks.claim('long', { waitMs: 5, signal }));
      await fleet.advance(5);
      expect(await waiting).toMatchObject({ refusal: { kind: 'timed-out' } });
      return new WeakRef(signal);
    };
    expect(await isForgotten(await gaveUp())).toBe(true);
  });
});
