import { type Member, type MembershipView, open, type View, type ViewChange } from 'signalbox';
import type { Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { errorOf } from '../support/outcome.ts';
import { settle } from '../../src/testing/test-clock.ts';

const ids = (members: readonly { readonly id: string }[]): string => members.map(({ id }) => id).join(' ');
const told = ({ view, joined, left, isResync }: ViewChange<Member>): string =>
  `${view.version}: ${ids(view.members)} +${ids(joined)} -${ids(left)}${isResync ? ' resync' : ''}`;

async function joined(box: Awaited<ReturnType<typeof open>>, ...args: Parameters<typeof box.members.join>) {
  const outcome = await box.members.join(...args);
  if (outcome.kind !== 'joined') throw new Error(outcome.kind);
  return outcome.membership;
}

const readsMembers = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'read' && operation.key.startsWith('s/member/'));

describe.each(transports)('the view on $transport', ({ atOnce }) => {
  it('is the same in every process, in the same order: who joins, who leaves, who dies', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other, dying] = await fleet.startAll('one', 'other', 'dying');
    const seen: string[][] = [[], []];
    const follows = await Promise.all([one!, other!].map(({ box }) => box.members.follow()));
    follows.forEach((members, place) => members.onChange((change) => void seen[place]!.push(told(change))));
    await joined(one!.box, 'b', { host: 1 });
    const leaving = await joined(other!.box, 'a');
    await joined(dying!.box, 'd');
    await joined(dying!.box, 'c');
    await leaving.leave();
    dying!.crash();
    await fleet.advance(TTL_MS + 1000);
    expect(seen[0]!.map((line) => line.replace(/^\d+: /, ''))).toEqual([
      'b +b -',
      'a b +a -',
      'a b d +d -',
      'a b c d +c -',
      'b c d + -a',
      'b + -c d',
    ]);
    expect(seen[1]).toEqual(seen[0]);
    expect(follows.map((members) => members.view())).toEqual([follows[0]!.view(), follows[0]!.view()]);
    expect(follows[0]!.view().members).toMatchObject([{ id: 'b', metadata: { host: 1 } }]);
    // Versions are revisions of the store, and only grow.
    const versions = seen[0]!.map((line) => Number.parseInt(line, 10));
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    for (const members of follows) members.stop();
  });

  it('refuses a live duplicate, and takes the same id again as a new incarnation', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const first = await joined(one!.box, 'agent');
    expect(await other!.box.members.join('agent')).toMatchObject({
      kind: 'taken',
      member: { id: 'agent', incarnation: first.incarnation },
    });
    await first.leave();
    const second = await joined(other!.box, 'agent');
    expect(second.incarnation).toBeGreaterThan(first.incarnation);
    expect(await one!.box.members.list()).toMatchObject([{ id: 'agent', incarnation: second.incarnation }]);
  });

  it('hands the coordinator over to the next in id order, and tells both names', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const [mine, theirs] = await Promise.all([one!.box.members.follow(), other!.box.members.follow()]);
    expect([mine.coordinator(), mine.isCoordinator()]).toEqual([null, false]);
    const handOvers: string[] = [];
    const events: string[] = [];
    mine.onHandOver(({ from, to }) => void handOvers.push(`${from} → ${to}`));
    await one!.box.on('coordinator:changed', (event) => {
      if (event.type === 'coordinator:changed') events.push(`${event.from} → ${event.to}`);
    });
    const later = await joined(one!.box, 'b');
    await settle();
    expect([mine.isCoordinator(), theirs.isCoordinator(), theirs.isCoordinator('b')]).toEqual([true, false, true]);
    // It joined later and comes first: the order is that of the ids.
    const first = await joined(other!.box, 'a');
    await settle();
    expect([mine.coordinator(), theirs.coordinator(), mine.isCoordinator()]).toEqual(['a', 'a', false]);
    await first.leave();
    await later.leave();
    await settle();
    const expected = ['null → b', 'b → a', 'a → b', 'b → null'];
    expect([handOvers, events]).toEqual([expected, expected]);
  });

  it('comes as an async iterator too, from the call on, and ends with stop', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    const members = await one!.box.members.follow();
    const changes = members.changes();
    const membership = await joined(one!.box, 'a');
    await membership.leave();
    const seen: string[] = [];
    for await (const change of changes) {
      seen.push(told(change).replace(/^\d+: /, ''));
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(['a +a -', ' + -a']);
    const rest = members.changes()[Symbol.asyncIterator]();
    const next = rest.next();
    members.stop();
    expect(await next).toMatchObject({ done: true });
    expect(await errorOf(Promise.resolve().then(() => members.onChange(() => undefined)))).toMatchObject({
      code: 'closed',
    });
  });

  it('tells a listener that fell far behind the difference, as a resync', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    await using members = await one!.box.members.follow();
    let goOn = (): void => undefined;
    const seen: string[] = [];
    members.onChange(async (change) => {
      seen.push(`+${ids(change.joined)} -${ids(change.left)}${change.isResync ? ' resync' : ''}`);
      if (seen.length === 1) await new Promise<void>((resolve) => (goOn = resolve));
    });
    await joined(one!.box, 'first');
    for (let n = 0; n < 501; n++) await (await joined(one!.box, 'again')).leave();
    await joined(one!.box, 'last');
    goOn();
    await settle();
    await settle();
    expect(seen).toEqual(['+first -', '+last - resync']);
  });

  it('tells this process that it is no longer a member when it cannot renew its session', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const membership = await joined(one!.box, 'agent');
    let isAliveThen: boolean | undefined;
    membership.signal.addEventListener('abort', () => {
      void other!.box.members.isAlive('agent').then((alive) => (isAliveThen = alive));
    });
    one!.link.cutOff('silent');
    await fleet.advance(TTL_MS + 1000);
    expect(membership.isValid).toBe(false);
    expect(membership.signal.aborted).toBe(true);
    // It hears of it before the others see it gone.
    expect(isAliveThen).toBe(true);
    expect(await other!.box.members.isAlive('agent')).toBe(false);
    expect(await membership.addAssets(['x'])).toEqual({ kind: 'lost' });
  });

  it('says that it skipped something when the history it needed was compacted', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    await using members = await other!.box.members.follow();
    const seen: ViewChange<Member>[] = [];
    members.onChange((change) => void seen.push(change));
    await joined(one!.box, 'gone', null);
    await settle();
    other!.link.cutOff('refusing');
    const kept = await joined(one!.box, 'kept');
    await one!.box.members.join('unseen').then(async (outcome) => {
      if (outcome.kind === 'joined') await outcome.membership.leave();
    });
    await fleet.store.compact(await fleet.revision());
    other!.link.reconnect();
    await fleet.advance(5000);
    expect(seen.at(-1)).toMatchObject({ isResync: true, joined: [{ id: 'kept', incarnation: kept.incarnation }] });
    expect(ids(members.view().members)).toBe('gone kept');
  });

  // A store that answers at once does not answer late.
  const whereAnswersTakeTime = atOnce === true ? undefined : it;
  whereAnswersTakeTime?.('does not bring back a member that left before a late answer came', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const leaving = await joined(one!.box, 'a');
    await joined(one!.box, 'b');
    other!.link.next('transaction', 'held', readsMembers);
    const following = other!.box.members.follow();
    await settle();
    other!.link.cutOff('refusing');
    await leaving.leave();
    await fleet.store.compact(await fleet.revision());
    other!.link.reconnect();
    await fleet.advance(1000);
    other!.link.answerHeld();
    await using members = await following;
    expect(ids(members.view().members)).toBe('b');
    expect(members.coordinator()).toBe('b');
  });
});

describe.each(transports)('the registry on $transport', ({ atOnce }) => {
  it('knows what each member owns, and loses it with the member in the same revision', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other, dying] = await fleet.startAll('one', 'other', 'dying');
    await using members = await one!.box.members.follow();
    const versions: [number, string][] = [];
    members.onChange(({ view }) => void versions.push([view.version, members.ownersOf('x').join()]));
    const a = await joined(one!.box, 'a', undefined, { assets: ['x', 'y'] });
    const b = await joined(dying!.box, 'b');
    await b.addAssets(['x']);
    await settle();
    expect(members.ownersOf('x')).toEqual(['a', 'b']);
    expect(members.assetsOf('a').map(({ id }) => id)).toEqual(['x', 'y']);
    expect(await a.setAssets(['z', 'x'])).toEqual({ kind: 'registered', assets: ['x', 'z'] });
    expect(await a.removeAssets(['x'])).toEqual({ kind: 'registered', assets: ['z'] });
    expect(await a.addAssets(['x'])).toEqual({ kind: 'registered', assets: ['z', 'x'] });
    await settle();
    // It has registered it again, so it is the second now.
    expect(members.ownersOf('x')).toEqual(['b', 'a']);
    dying!.crash();
    await fleet.advance(TTL_MS + 1000);
    expect([members.ownersOf('x'), members.assetsOf('b')]).toEqual([['a'], []]);
    expect(await other!.box.members.list()).toMatchObject([{ id: 'a', assets: [{ id: 'z' }, { id: 'x' }] }]);
    await a.leave();
    await settle();
    expect([members.ownersOf('x'), members.ownerOf('x')]).toEqual([[], null]);
    expect(await a.addAssets(['x'])).toEqual({ kind: 'lost' });
  });

  it('gives an exclusive asset to one of many that want it at once, and refuses it to the others', async () => {
    const fleet = new Fleet(atOnce);
    const processes = await fleet.startAll('a', 'b', 'c', 'd');
    const memberships = await Promise.all(
      processes.map(({ box }, place) => joined(box, `m${place}`, undefined, { assets: [`own-${place}`] })),
    );
    const outcomes = await Promise.all(memberships.map((each) => each.addAssets(['shard'], { exclusive: true })));
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual([
      'asset-taken',
      'asset-taken',
      'asset-taken',
      'registered',
    ]);
    const winner = outcomes.findIndex(({ kind }) => kind === 'registered');
    const loser = memberships[(winner + 1) % 4]!;
    expect(await loser.addAssets(['shard'])).toEqual({ kind: 'asset-taken', asset: 'shard', owner: `m${winner}` });
    expect(await processes[0]!.box.members.join('late', null, { assets: ['shard'], exclusive: true })).toMatchObject({
      kind: 'asset-taken',
    });
    await memberships[winner]!.removeAssets(['shard']);
    // A shared one beside an exclusive one, both at once: never both.
    const both = await Promise.all([
      memberships[0]!.addAssets(['shard'], { exclusive: true }),
      memberships[1]!.addAssets(['shard']),
    ]);
    expect(both.map(({ kind }) => kind).sort()).toEqual(['asset-taken', 'registered']);
  });

  it('moves assets from one member to another in one step, although nobody answers', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other, third] = await fleet.startAll('one', 'other', 'third');
    await joined(one!.box, 'a', undefined, { assets: ['x', 'y'], exclusive: true });
    await joined(other!.box, 'b');
    await using members = await other!.box.members.follow();
    const owners: string[] = [];
    members.onChange(() => void owners.push(members.ownersOf('x').join()));
    third!.link.next('transaction', 'unanswered');
    const moving = third!.box.members.moveAssets(['x'], { from: 'a', to: 'b' });
    await fleet.advance(1000);
    expect(await moving).toEqual({ kind: 'moved', assets: ['x'] });
    expect(owners).toEqual(['b']);
    expect(members.assetsOf('b')).toMatchObject([{ id: 'x', isExclusive: true }]);
    expect(await third!.box.members.moveAssets(['y'], { from: 'b', to: 'a' })).toEqual({
      kind: 'moved',
      assets: ['y'],
    });
    expect(await third!.box.members.moveAssets(['y'], { from: 'a', to: 'nobody' })).toMatchObject({
      kind: 'no-member',
    });
    expect(await third!.box.members.moveAssets(['q'], { from: 'a', to: 'b' })).toMatchObject({ kind: 'not-owner' });
  });

  it('registers once although the answer got lost', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    const membership = await joined(one!.box, 'a');
    one!.link.next('transaction', 'unanswered');
    const adding = membership.addAssets(['x'], { exclusive: true });
    await fleet.advance(1000);
    expect(await adding).toEqual({ kind: 'registered', assets: ['x'] });
    expect((await one!.box.members.list())[0]?.assets).toHaveLength(1);
  });
});

it('bad names, assets and options are refused with what is accepted', async () => {
  await using box = await open('memory:');
  const membership = await joined(box, 'a');
  for (const bad of ['', 'a\nb', 5]) {
    expect(await errorOf(membership.addAssets([bad as string]))).toMatchObject({ code: 'invalid' });
  }
  expect(await errorOf(membership.setAssets('x' as never))).toMatchObject({ code: 'invalid' });
  expect(await errorOf(membership.addAssets(Array.from({ length: 9000 }, (_, n) => `asset-${n}`)))).toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/9000 assets take \d+ bytes/) as string,
  });
  expect(await errorOf(box.members.join('b', null, { weight: 0 }))).toMatchObject({ code: 'invalid' });
  expect(await errorOf(box.members.join('b', null, { wieght: 1 } as never))).toMatchObject({ code: 'invalid' });
  expect(await errorOf(box.members.follow({ keepAlive: 'no' as never }))).toMatchObject({ code: 'invalid' });
});

it('a member registers no more than its record can hold, however many calls it takes', async () => {
  await using box = await open('memory:');
  const assets = (from: number): string[] => Array.from({ length: 5000 }, (_, n) => `asset-${from + n}`);
  const tooMany = { code: 'invalid', message: expect.stringMatching(/10000 assets take \d+ bytes/) as string };
  const a = await joined(box, 'a', undefined, { assets: assets(0) });
  expect(await errorOf(a.addAssets(assets(5000)))).toMatchObject(tooMany);
  await joined(box, 'b', undefined, { assets: assets(5000) });
  expect(await errorOf(box.members.moveAssets(assets(5000), { from: 'b', to: 'a' }))).toMatchObject(tooMany);
  expect((await box.members.list()).map((member) => member.assets.length)).toEqual([5000, 5000]);
  expect(await a.removeAssets(assets(0))).toEqual({ kind: 'registered', assets: [] });
});

it('a view of the user takes the place of the members in the store', async () => {
  let view: View = { version: 1, members: [{ id: 'pod-2', incarnation: 1 }] };
  const listeners = new Set<(change: ViewChange) => void>();
  const membership: MembershipView = {
    view: () => view,
    onChange(listener) {
      listeners.add(listener);
      const unsubscribe = (): void => void listeners.delete(listener);
      return { unsubscribe, [Symbol.dispose]: unsubscribe };
    },
  };
  const become = (...names: readonly string[]): void => {
    view = { version: view.version + 1, members: names.map((id) => ({ id, incarnation: 1, metadata: { of: id } })) };
    for (const listener of listeners) listener({ view, joined: [], left: [], changed: [], isResync: false });
  };
  await using box = await open('memory:', { membership });
  const own = await joined(box, 'pod-1', undefined, { assets: ['x'] });
  const members = await box.members.follow();
  // It is in the store, and not in the view.
  expect([ids(members.view().members), members.ownersOf('x')]).toEqual(['pod-2', []]);
  const seen: string[] = [];
  members.onChange((change) => void seen.push(told(change)));
  become('pod-2', 'pod-1');
  expect([members.coordinator(), members.isCoordinator(), members.ownersOf('x')]).toEqual(['pod-1', true, ['pod-1']]);
  expect(members.view().members[0]?.metadata).toEqual({ of: 'pod-1' });
  await own.addAssets(['y']);
  await settle();
  expect(members.ownersOf('y')).toEqual(['pod-1']);
  become('pod-2');
  expect([members.coordinator(), members.ownersOf('y')]).toEqual(['pod-2', []]);
  await settle();
  expect(seen).toEqual(['2: pod-1 pod-2 +pod-1 -', '2: pod-1 pod-2 + -', '3: pod-2 + -pod-1']);
  members.stop();
  expect(listeners.size).toBe(0);
});
