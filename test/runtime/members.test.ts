import { memberAlive, open } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { DEADLINE_MS, Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { errorOf, refusalOf } from '../support/outcome.ts';
import { settle } from '../../src/testing/test-clock.ts';

describe.each(transports)('members on $transport', ({ atOnce }) => {
  it('are there from when they join until they leave', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const told: string[] = [];
    await other!.box.on('member:*', ({ type, resource, holder }) => void told.push(`${type} ${resource} ${holder}`));
    const joined = await one!.box.members.join('agent/7', { host: 'a' });
    expect(joined.kind).toBe('joined');
    expect(await other!.box.members.isAlive('agent/7')).toBe(true);
    expect(await other!.box.members.list()).toEqual([
      {
        id: 'agent/7',
        metadata: { host: 'a' },
        joinedAt: fleet.clock.now(),
        incarnation: expect.any(Number) as number,
        weight: 1,
        assets: [],
      },
    ]);
    if (joined.kind === 'joined') {
      expect(joined.membership.isValid).toBe(true);
      await joined.membership.leave();
      expect(joined.membership.isValid).toBe(false);
    }
    expect(await other!.box.members.isAlive('agent/7')).toBe(false);
    await settle();
    expect(told).toEqual(['member:joined member/agent/7 agent/7', 'member:left member/agent/7 agent/7']);
  });

  it('go with their process, all at once', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, other] = await fleet.startAll('dead', 'other');
    const told: (string | undefined)[] = [];
    await other!.box.on('member:left', ({ holder, id }) => void told.push(holder, id?.split('.')[0]));
    await dead!.box.members.join('a');
    await dead!.box.members.join('b');
    dead!.crash();
    await fleet.advance(TTL_MS + 1000);
    expect(await other!.box.members.list()).toEqual([]);
    expect([told[0], told[2]]).toEqual(['a', 'b']);
    expect(told[1]).toBe(told[3]);
    expect(await other!.box.check(memberAlive('a'))).toMatchObject({ kind: 'failed' });
  });

  it('have an id that nobody else has: of many who want it one gets it', async () => {
    const fleet = new Fleet(atOnce);
    const processes = await fleet.startAll('one', 'two', 'three');
    const outcomes = await Promise.all(processes.map(({ box }, place) => box.members.join('agent', place)));
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['joined', 'taken', 'taken']);
    const taken = outcomes.find((outcome) => outcome.kind === 'taken');
    expect(taken).toMatchObject({ member: { id: 'agent', joinedAt: fleet.clock.now() } });
    // Nor does the same process get it twice.
    const winner = outcomes.findIndex(({ kind }) => kind === 'joined');
    expect(await processes[winner]!.box.members.join('agent')).toMatchObject({ kind: 'taken' });
  });

  it('are not in the way of who comes after them by the same id', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const first = await one!.box.members.join('agent');
    if (first.kind !== 'joined') throw new Error(first.kind);
    await first.membership.leave();
    await other!.box.members.join('agent');
    await first.membership.leave();
    expect(await one!.box.members.isAlive('agent')).toBe(true);
  });

  it('know that they have joined although the answer got lost', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    one!.link.next('transaction', 'unanswered');
    const joining = one!.box.members.join('agent');
    await fleet.advance(1000);
    expect(await joining).toMatchObject({ kind: 'joined' });
    expect(await one!.box.members.list()).toHaveLength(1);
    one!.link.next('transaction', 'unanswered');
    const detached = one!.box.members.joinDetached('program', {}, { ttlMs: TTL_MS * 10 });
    await fleet.advance(1000);
    expect(await detached).toMatchObject({ kind: 'joined', member: { id: 'program' } });
    expect(await one!.box.members.list()).toHaveLength(2);
  });

  it('on a lease of their own outlive the process that made them, and any process renews and ends them', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, other] = await fleet.startAll('dead', 'other');
    const { members } = other!.box;
    const joined = await dead!.box.members.joinDetached('a', { host: 'a' }, { assets: ['x'], ttlMs: TTL_MS * 3 });
    if (joined.kind !== 'joined') throw new Error('it joins');
    const { incarnation } = joined.member;
    dead!.crash();
    await fleet.advance(TTL_MS * 2);
    expect(await members.renew('a', incarnation)).toMatchObject({ kind: 'refreshed', ttlMs: TTL_MS * 3 });
    await fleet.advance(TTL_MS * 2);
    expect(await members.list()).toMatchObject([{ id: 'a', assets: [{ id: 'x' }] }]);
    expect(await members.joinDetached('a')).toMatchObject({ kind: 'taken' });
    expect(await members.renew('a', incarnation + 1)).toEqual({ kind: 'lost' });
    expect(await members.changeAssets('a', incarnation, 'set', ['y'])).toEqual({ kind: 'registered', assets: ['y'] });
    expect(await members.leave('a', incarnation)).toEqual({ kind: 'left' });
    expect(await members.leave('a', incarnation)).toEqual({ kind: 'lost' });
    const own = await members.join('own');
    if (own.kind !== 'joined') throw new Error('it joins');
    expect(await members.leave('own', own.membership.incarnation)).toEqual({ kind: 'attached' });
    expect((await members.joinDetached('b', {}, { ttlMs: TTL_MS })).kind).toBe('joined');
    await fleet.advance(TTL_MS + 1000);
    expect((await members.list()).map(({ id }) => id)).toEqual(['own']);
  });

  it('join under the session of now, also when the one before has just ended', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    one!.link.cutOff('refusing');
    await fleet.advance(2 * TTL_MS);
    one!.link.reconnect();
    const joining = one!.box.members.join('agent');
    await fleet.advance(5000);
    expect(await joining).toMatchObject({ kind: 'joined' });
    expect(await other!.box.members.isAlive('agent')).toBe(true);
  });

  // A store that answers at once does not answer late.
  const whereAnswersTakeTime = atOnce === true ? undefined : it;
  whereAnswersTakeTime?.('have not joined if the answer comes after their session has ended', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    for (let time = 0; time < 100; time++) one!.link.next('keepLeaseAlive', 'refused');
    await fleet.advance(DEADLINE_MS - 1000);
    one!.link.next('transaction', 'held');
    const joining = refusalOf(one!.box.members.join('agent'));
    await fleet.advance(1100);
    one!.link.answerHeld();
    expect(await joining).toEqual({ kind: 'session-lost' });
  });

  whereAnswersTakeTime?.(
    'have not joined if the answer comes after this process has closed its signalbox',
    async () => {
      const fleet = new Fleet(atOnce);
      const [one] = await fleet.startAll('one');
      one!.link.next('transaction', 'held');
      const joining = errorOf(one!.box.members.join('agent'));
      await settle();
      await one!.box.close();
      one!.link.answerHeld();
      expect(await joining).toMatchObject({ code: 'closed' });
    },
  );
});

it('a member needs a name', async () => {
  await using box = await open('memory:');
  for (const bad of ['', 'a\nb', 5 as unknown as string]) {
    expect(await errorOf(box.members.join(bad))).toMatchObject({ code: 'invalid' });
    expect(await errorOf(box.members.isAlive(bad))).toMatchObject({ code: 'invalid' });
  }
});
