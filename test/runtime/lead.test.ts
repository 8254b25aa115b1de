import type { Term, Topology } from 'signalbox';
import { Failure, open } from 'signalbox';
import type { Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports, TTL_MS } from '../support/fleet.ts';
import { changesRecord } from '../support/link.ts';
import { errorOf } from '../support/outcome.ts';
import { settle } from '../../src/testing/test-clock.ts';

/** Leads until its signal aborts, and notes when it begins and ends. */
function leading(log: string[], name: string): (term: Term) => Promise<void> {
  return async ({ epoch, signal }) => {
    log.push(`${name} leads with ${epoch}`);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    log.push(`${name} stops`);
  };
}

describe.each(transports)('lead on $transport', ({ atOnce }) => {
  it('runs in one process at a time; when it dies the next one leads, with a larger epoch', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const log: string[] = [];
    void one!.box.lead('shop', leading(log, 'one')).catch(() => undefined);
    await settle();
    void other!.box.lead('shop', leading(log, 'other')).catch(() => undefined);
    await settle();
    expect(log).toEqual([expect.stringMatching(/^one leads with \d+$/)]);
    one!.crash();
    await fleet.advance(TTL_MS + 1000);
    expect(log).toHaveLength(2);
    const [first, second] = log.map((line) => Number(/\d+$/.exec(line)?.[0]));
    expect(second!).toBeGreaterThan(first!);
    await other!.box.close();
  });

  it('stops the work of a leader that is cut off before the next one begins, and lets it lead again later', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const log: string[] = [];
    const stop = new AbortController();
    void one!.box.lead('shop', leading(log, 'one')).catch(() => undefined);
    await settle();
    void other!.box.lead('shop', leading(log, 'other'), { signal: stop.signal }).catch(() => undefined);
    await settle();
    one!.link.cutOff('silent');
    await fleet.advance(TTL_MS + 1000);
    one!.link.reconnect();
    await fleet.advance(TTL_MS);
    expect(log.map((line) => line.replace(/ with \d+/, ''))).toEqual(['one leads', 'one stops', 'other leads']);
    // It waits again, and takes over when the other one resigns.
    stop.abort();
    await fleet.advance(1000);
    expect(log.slice(3).map((line) => line.replace(/ with \d+/, ''))).toEqual(['other stops', 'one leads']);
    await Promise.all([one!.box.close(), other!.box.close()]);
  });

  it('runs in one process at a time, even if all candidates have the same name', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const log: string[] = [];
    const holder = '👑'.repeat(200);
    const stop = new AbortController();
    const first = one!.box.lead('shop', leading(log, 'one'), { holder, signal: stop.signal });
    await settle();
    for (const { box } of [one!, other!])
      void box.lead('shop', leading(log, 'next'), { holder }).catch(() => undefined);
    await settle();
    expect(log).toEqual([expect.stringMatching(/^one leads/)]);
    const { holders } = await other!.box.lock('lead:shop').inspect();
    expect(holders.map((leader) => leader.holder)).toEqual([expect.stringMatching(/^👑+:one\d+$/u)]);
    stop.abort();
    await first;
    await settle();
    expect(log.map((line) => line.replace(/ with \d+/, ''))).toEqual(['one leads', 'one stops', 'next leads']);
    await Promise.all([one!.box.close(), other!.box.close()]);
  });

  it('gives what the work returns, throws what it throws, and is then free for others', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    expect(await one!.box.lead('shop', ({ name, hold }) => `${name} ${hold.resource}`)).toBe('shop lock/lead:shop');
    const failing = one!.box.lead('shop', () => {
      throw new RangeError('no');
    });
    expect(await errorOf(failing)).toBeInstanceOf(RangeError);
    expect(await one!.box.lock('lead:shop').isFree()).toBe(true);
    const never = one!.box.lead('shop', () => 1, { signal: AbortSignal.abort() });
    expect(await errorOf(never)).toMatchObject({ code: 'not-acquired' });
  });
});

describe.each(transports)('the topology on $transport', ({ atOnce }) => {
  const COOLDOWN_MS = 1000;
  const shown = ({ members, coordinator }: Topology): string =>
    `${coordinator}: ${members.map(({ id, assets }) => `${id}[${assets.join()}]`).join(' ')}`;

  async function join({ box }: Process, id: string, assets: readonly string[] = []) {
    const outcome = await box.members.join(id, undefined, { assets });
    if (outcome.kind !== 'joined') throw new Error(outcome.kind);
    return outcome.membership;
  }

  it('is sent at once after quiet, then once per cooldown with the last change, by one process for all', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const heard: string[] = [];
    const events: string[] = [];
    await other!.box.members.onTopology((topology) => void heard.push(shown(topology)));
    await other!.box.on('topology:changed', (event) => {
      if (event.type === 'topology:changed') events.push(shown(event.topology));
    });
    const broadcasts = [one!, other!].map(({ box }) => box.members.broadcastTopology({ cooldownMs: COOLDOWN_MS }));
    await settle();
    // The first one is the empty one.
    expect(heard).toEqual(['null: ']);
    await fleet.advance(COOLDOWN_MS);
    const b = await join(one!, 'b');
    await settle();
    expect(heard.slice(1)).toEqual(['b: b[]']);
    const a = await join(other!, 'a', ['x']);
    await b.addAssets(['y']);
    await settle();
    expect(heard).toHaveLength(2);
    await fleet.advance(COOLDOWN_MS);
    expect(heard.slice(2)).toEqual(['a: a[x] b[y]']);
    // A change that is undone within the cooldown is none.
    await a.addAssets(['z']);
    await a.removeAssets(['z']);
    await fleet.advance(3 * COOLDOWN_MS);
    expect(heard).toHaveLength(3);
    expect(events).toEqual(heard);
    expect(broadcasts.map(({ isSending }) => isSending).sort()).toEqual([false, true]);
    // A late joiner reads it first.
    const late = await fleet.start('late');
    const first: string[] = [];
    await late.box.members.onTopology((topology) => void first.push(shown(topology)));
    await settle();
    expect(first).toEqual(['a: a[x] b[y]']);
    expect(shown((await late.box.members.topology()) as Topology)).toBe('a: a[x] b[y]');
    await Promise.all([one!, other!, late].map(({ box }) => box.close()));
  });

  it('is sent by the next process when the sender dies, the change of its death included', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const heard: string[] = [];
    await other!.box.members.onTopology((topology) => void heard.push(shown(topology)));
    await join(one!, 'a', ['x']);
    await join(other!, 'b');
    one!.box.members.broadcastTopology();
    await settle();
    const next = other!.box.members.broadcastTopology();
    await settle();
    expect(heard).toEqual(['a: a[x] b[]']);
    one!.crash();
    await fleet.advance(TTL_MS + 3000);
    expect(next.isSending).toBe(true);
    expect(heard.slice(1)).toEqual(['b: b[]']);
    await next.stop();
    expect(await other!.box.lock('lead:topology').isFree()).toBe(true);
    await other!.box.close();
  });
});

describe.each(transports)('a topology that the store refuses, on $transport', ({ atOnce }) => {
  const isLarge = ({ success }: Transaction): boolean =>
    success.some((put) => put.do === 'put' && put.key === 's/topology/current' && put.value.text.length > 2000);

  it('is reported, and the next change is sent', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    one!.link.forbid(isLarge, () => new Failure('invalid', 'too large'));
    const heard: number[] = [];
    await one!.box.members.onTopology(({ members }) => void heard.push(members[0]?.assets.length ?? -1));
    const failed: unknown[] = [];
    const joined = await one!.box.members.join('a', null, { assets: ['x'] });
    if (joined.kind !== 'joined') throw new Error(joined.kind);
    const broadcast = one!.box.members.broadcastTopology({ onFailed: (error) => void failed.push(error) });
    await settle();
    await fleet.advance(1000);
    await joined.membership.addAssets(Array.from({ length: 500 }, (_, place) => `shard/${place}`));
    await settle();
    await fleet.advance(5000);
    expect(failed).toEqual([expect.objectContaining({ code: 'invalid', message: 'too large' })]);
    expect([heard, broadcast.isSending]).toEqual([[1], true]);
    await joined.membership.setAssets(['x', 'y']);
    await settle();
    expect(heard).toEqual([1, 2]);
    await broadcast.stop();
    await one!.box.close();
  });

  it('is no reason to end the process if it cannot even lead: that is reported, and it takes no part any more', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    one!.link.forbid(changesRecord);
    const failed: unknown[] = [];
    const broadcast = one!.box.members.broadcastTopology({ onFailed: (error) => void failed.push(error) });
    await broadcast.ended;
    await settle();
    expect(failed).toEqual([expect.objectContaining({ code: 'forbidden' })]);
    await one!.box.close();
  });
});

it('an earlier sender cannot overwrite the topology of a later one', async () => {
  const fleet = new Fleet(true);
  const [one, other] = await fleet.startAll('one', 'other');
  const { sendTopology } = await import('../../src/runtime/members/topology-key.ts');
  const topology = (version: number): Topology => ({ version, members: [], coordinator: null });
  const runtimeOf = ({ box, link }: Process): Parameters<typeof sendTopology>[0] =>
    ({
      store: link,
      clock: fleet.clock,
      stopped: new AbortController().signal,
      options: { newId: () => String(Math.random()) },
      witness: {
        isOn: false,
        know: (done: () => void) => done(),
        unlessSwitchedOn: (transaction: unknown) => transaction,
        switchedOn: () => false,
      },
      commit: (transaction: never, done: (result: unknown) => void, failed: (error: unknown) => void) =>
        void link.transaction(transaction).then(done, failed),
      box,
    }) as never;
  const { signal } = new AbortController();
  expect(await sendTopology(runtimeOf(one!), 7, topology(2), signal)).toBe(true);
  expect(await sendTopology(runtimeOf(other!), 6, topology(1), signal)).toBe(false);
  expect(await other!.box.members.topology()).toMatchObject({ version: 2 });
});

it('lead refuses what it cannot use', async () => {
  await using box = await open('memory:');
  expect(await errorOf(box.lead('shop', 5 as never))).toMatchObject({ code: 'invalid' });
  expect(await errorOf(box.lead('shop', () => 1, { sginal: 1 } as never))).toMatchObject({ code: 'invalid' });
  expect(await errorOf(Promise.resolve().then(() => box.lead('', () => 1)))).toMatchObject({ code: 'invalid' });
  expect(await errorOf(Promise.resolve().then(() => box.members.broadcastTopology({ cooldownMs: -1 })))).toMatchObject({
    code: 'invalid',
  });
});
