// Programs that know nothing of the store but a URL and a token.

import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Member, ViewChange } from 'signalbox';
import { connect, Failure, HoldLost, NotAcquired, ServerRefusal } from 'signalbox/client';
import { LOCAL } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, type Wired, wired } from '../support/wire.ts';

let { clock, server, wire, box } = {} as Wired;

beforeEach(async () => {
  const all = await wired();
  ({ clock, server, wire, box } = all);
  return all.close;
});

const inTime = <T>(promise: Promise<T>): Promise<T> => settledIn(clock, promise);

describe('a hold of a client', () => {
  it('renews itself for as long as the program works, and is free after its release', async () => {
    const hold = await box.lock('main').acquire({ holder: 'agent:7', reason: 'trying' });
    await clock.advance(600_000);
    expect(hold.isValid).toBe(true);
    expect(await server.box.lock('main').isHeldBy('agent:7')).toBe(true);
    expect((await box.lock('main').tryAcquire()).ok).toBe(false);
    expect(await hold.release()).toEqual({ kind: 'released' });
    expect(await box.lock('main').isFree()).toBe(true);
  });

  it('aborts its signal before another can have the lock, when no server can be reached', async () => {
    const hold = await box.lock('main').acquire({ ttlMs: 30_000 });
    const waiting = server.box.lock('main').acquire({ holder: 'next' });
    wire.isCut = true;
    const order: string[] = [];
    hold.signal.addEventListener('abort', () => order.push('lost'));
    void waiting.then(() => order.push('next'));
    await clock.advance(60_000);
    await waiting;
    expect(order).toEqual(['lost', 'next']);
    expect(hold.lost).toBeInstanceOf(HoldLost);
    expect(hold.lost?.why).toBe('disconnected');
    expect(() => hold.check()).toThrow(HoldLost);
    expect(await hold.release()).toEqual({ kind: 'already-lost', why: 'disconnected' });
  });

  it('survives a server that is away for less than its time', async () => {
    const hold = await box.lock('main').acquire({ ttlMs: 30_000 });
    wire.isCut = true;
    await clock.advance(20_000);
    wire.isCut = false;
    await clock.advance(60_000);
    expect(hold.isValid).toBe(true);
  });

  it('notices at its next renewal that an administrator took it', async () => {
    const hold = await box.lock('main').acquire({ ttlMs: 30_000 });
    await server.box.lock('main').break({ holder: 'ann', reason: 'maintenance' });
    await clock.advance(15_000);
    expect(hold.signal.aborted).toBe(true);
    await expect(box.lock('main').run(() => 'free again')).resolves.toBe('free again');
  });

  it('is handed out once although the answer got lost, and the same holder re-enters', async () => {
    wire.losesAnswer = (path) => path.endsWith('/acquire');
    const hold = await inTime(box.lock('main').acquire({ holder: 'agent:7' }));
    expect(hold.isReentry).toBe(false);
    const keys = wire.sent.filter(({ path }) => path.endsWith('/acquire')).map(({ key }) => key);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    const inner = await box.lock('main').acquire({ holder: 'agent:7' });
    expect([inner.isReentry, inner.token]).toEqual([true, hold.token]);
    expect(await inner.release()).toEqual({ kind: 'still-held' });
    expect(await box.lock('main').isFree()).toBe(false);
    wire.losesAnswer = (path) => path.endsWith('/release');
    expect(await inTime(hold.release())).toEqual({ kind: 'released' });
    expect(await box.lock('main').isFree()).toBe(true);
  });

  it('counts as released although the server was killed before it kept its answer; a hold that was taken does not', async () => {
    const { once } = server.box;
    const hold = await box.lock('main').acquire({ holder: 'agent:7' });
    const killed = { kind: 'first', done: () => Promise.resolve(false), failed: () => Promise.resolve(false) } as const;
    vi.spyOn(once, 'begin').mockResolvedValueOnce(killed);
    wire.losesAnswer = (path) => path.endsWith('/release');
    expect(await inTime(hold.release())).toEqual({ kind: 'released' });
    expect(wire.sent.filter(({ path }) => path.endsWith('/release'))).toHaveLength(2);
    const taken = await box.lock('main').acquire();
    await server.box.lock('main').break({ holder: 'ann', reason: 'maintenance' });
    expect(await taken.release()).toEqual({ kind: 'already-lost', why: 'expired' });
  });

  it('of a reader becomes the writer under a new token, and is renewed under it', async () => {
    const hold = await box.lock('docs').acquire({ mode: 'shared' });
    const { token } = hold;
    await hold.upgrade();
    expect([hold.mode, hold.token > token]).toEqual(['exclusive', true]);
    await clock.advance(120_000);
    expect(hold.isValid).toBe(true);
    await hold.downgrade();
    expect(await box.lock('docs').inspect()).toMatchObject({ holds: [{ mode: 'shared', token: hold.token }] });
  });

  it('of several things is all or nothing', async () => {
    const other = await server.box.lock('b').acquire({ holder: 'other' });
    const wants = [{ lock: 'b' }, { semaphore: 'a', weight: 2, capacity: 3 }];
    await expect(box.acquireAll(wants, { waitMs: 0 })).rejects.toThrow(NotAcquired);
    expect((await box.semaphore('a').inspect()).usedSlots).toBe(0);
    await other.release();
    const all = await box.acquireAll(wants);
    expect(all.holds.map(({ resource }) => resource)).toEqual(['lock/b', 'semaphore/a']);
    expect(await box.semaphore('a').inspect()).toMatchObject({ usedSlots: 2, availableSlots: 1 });
    await all.release();
    expect((await box.survey()).locks.flatMap(({ holds }) => holds)).toEqual([]);
  });
});

describe('a wait of a client', () => {
  it('keeps its place although its connections break, and is granted in its turn', async () => {
    const held = await server.box.lock('main').acquire({ holder: 'first' });
    let told = 0;
    const second = box.lock('main').acquire({ holder: 'second', onWaiting: () => void (told += 1) });
    await expect.poll(() => told).toBe(1);
    const third = box.lock('main').acquire({ holder: 'third' });
    await expect.poll(async () => (await box.lock('main').inspect()).waiting.length).toBe(2);
    const { cut } = wire;
    wire.cut = new AbortController();
    wire.isCut = true;
    cut.abort(new TypeError('terminated'));
    await clock.advance(5_000);
    wire.isCut = false;
    await clock.advance(2_000);
    await held.release();
    const hold = await inTime(second);
    expect((await box.lock('main').inspect()).waiting.map(({ holder }) => holder)).toEqual(['third']);
    await hold.release();
    await (await inTime(third)).release();
  });

  it.each([
    ['is short', 15_000, 20_000],
    ['is that of a hold that renews itself', undefined, 29_000],
  ])('ends with a hold that lasts, also if its time %s and it waited long', async (_, ttlMs, waitedMs) => {
    const held = await server.box.lock('main').acquire({ holder: 'first' });
    let told = 0;
    const waiting = box.lock('main').acquire({ ...(ttlMs && { ttlMs }), onWaiting: () => void (told += 1) });
    await expect.poll(() => told).toBe(1);
    await clock.advance(waitedMs);
    await held.release();
    const hold = await inTime(waiting);
    expect(hold.isValid).toBe(true);
    await clock.advance(60_000);
    expect(hold.isValid).toBe(true);
    expect(await hold.release()).toEqual({ kind: 'released' });
  });

  it('ends with a hold that lasts, although its grant was old when a server could be reached again', async () => {
    const held = await server.box.lock('main').acquire({ holder: 'first' });
    let told = 0;
    const waiting = box.lock('main').acquire({ ttlMs: 30_000, onWaiting: () => void (told += 1) });
    await expect.poll(() => told).toBe(1);
    await clock.advance(9_000);
    const { cut } = wire;
    wire.cut = new AbortController();
    wire.isCut = true;
    cut.abort(new TypeError('terminated'));
    await clock.advance(24_000);
    await held.release();
    wire.isCut = false;
    const hold = await inTime(waiting);
    expect(hold.isValid).toBe(true);
    await clock.advance(5_000);
    expect(hold.isValid).toBe(true);
    expect(await hold.release()).toEqual({ kind: 'released' });
  });

  it('with a ticket that is given up answers the ticket, as the library does, and can go on', async () => {
    const first = await server.box.lock('main').acquire({ holder: 'first' });
    const asked = await box.lock('main').askDetached({ holder: 'second' });
    if (asked.kind !== 'waiting') throw new Error(asked.kind);
    const claim = { ticket: asked.ticket, holder: 'second' };
    const leaving = new AbortController();
    const waiting = box.lock('main').collect(claim, { waitMs: 60_000, signal: leaving.signal });
    await expect.poll(() => wire.sent.length).toBe(2);
    // As with every request that its sender cuts off.
    wire.losesAnswer = () => true;
    leaving.abort();
    expect(await waiting).toMatchObject({ kind: 'waiting', ticket: asked.ticket });
    await first.release();
    expect(await box.lock('main').collect(claim)).toMatchObject({ kind: 'acquired' });
  });

  it('that is over or given up leaves the queue', async () => {
    await server.box.lock('main').acquire({ holder: 'first' });
    const late = await inTime(
      box
        .lock('main')
        .acquire({ waitMs: 1_000 })
        .catch((error: unknown) => error),
    );
    expect(late).toBeInstanceOf(NotAcquired);
    expect((late as NotAcquired).refusal).toMatchObject({ kind: 'timed-out', waitedMs: 1_000 });
    expect((late as NotAcquired).message).toContain('held by first');
    const leaving = new AbortController();
    const given = box.lock('main').acquire({ signal: leaving.signal, onWaiting: () => leaving.abort('enough') });
    await expect(given).rejects.toMatchObject({ refusal: { kind: 'aborted', reason: 'enough' } });
    await expect.poll(async () => (await box.lock('main').inspect()).waiting).toEqual([]);
  });

  it('tells what stands in its way as the library does', async () => {
    await server.box.lock('main').acquire({ holder: 'first', reason: 'a release' });
    const attempt = await box.lock('main').tryAcquire({ holder: 'second' });
    expect(attempt).toMatchObject({ ok: false, kind: 'busy', holders: [{ holder: 'first', reason: 'a release' }] });
    const full = await box.semaphore('api', { capacity: 2 }).tryAcquire({ weight: 3 });
    expect(full).toMatchObject({ ok: false, kind: 'impossible' });
  });
});

describe('tasks of a client', () => {
  it('are published once and claimed once although answers get lost', async () => {
    wire.losesAnswer = (path) => path === '/v1/tasks';
    expect(await inTime(box.tasks.publish('build-7', { commit: '1a2b3c' }))).toEqual({
      kind: 'published',
      id: 'build-7',
    });
    await box.tasks.publish('build-8', {});
    expect(await box.tasks.publish('build-7', {})).toEqual({ kind: 'exists', id: 'build-7', status: 'pending' });
    wire.losesAnswer = (path) => path.endsWith('/claim');
    const claim = await inTime(box.tasks.claimNext<{ commit: string }>({ holder: 'worker:1' }));
    expect([claim.id, claim.data.commit]).toEqual(['build-7', '1a2b3c']);
    expect(await box.tasks.status('build-8')).toBe('pending');
    await clock.advance(300_000);
    expect(claim.isValid).toBe(true);
    wire.losesAnswer = (path) => path.endsWith('/complete');
    expect(await inTime(claim.complete({ image: 'app:7' }))).toMatchObject({ kind: 'completed' });
    expect(await box.tasks.show('build-7')).toMatchObject({ status: 'complete', result: { image: 'app:7' } });
    expect(await box.tasks.tryClaim('build-7')).toMatchObject({ ok: false, kind: 'finished' });
    expect(await box.tasks.complete('build-7', { holder: 'worker:2' })).toMatchObject({ kind: 'not-owner' });
    expect(await box.tasks.requeue('build-7')).toMatchObject({ kind: 'requeued', was: 'complete' });
    expect(await box.tasks.retry('build-7')).toEqual({ kind: 'unchanged', status: 'pending' });
    expect(await box.tasks.forget('nothing')).toEqual({ kind: 'missing' });
    expect((await box.tasks.list()).map(({ id }) => id)).toEqual(['build-7', 'build-8']);
  });

  it('are waited for, and a wait that was given up takes none', async () => {
    const leaving = new AbortController();
    const given = box.tasks.claimNext({ signal: leaving.signal });
    await expect.poll(() => wire.sent.length).toBe(1);
    leaving.abort();
    await expect(given).rejects.toMatchObject({ refusal: { kind: 'aborted' } });
    const waiting = box.tasks.claimNext({ holder: 'worker:1' });
    await expect.poll(() => wire.sent.length).toBe(2);
    await server.box.tasks.publish('a', {});
    await server.box.tasks.publish('b', {});
    const claim = await waiting;
    await expect.poll(async () => (await box.tasks.list({ status: 'running' })).length).toBe(1);
    expect((await box.tasks.list({ status: 'running' }))[0]?.owner).toBe('worker:1');
    await claim.release();
  });
});

describe('a member of a client', () => {
  it('renews itself, owns assets, is lost with its connection, and leaves when the connection is closed', async () => {
    const outcome = await box.members.join('agent:7', { host: 'a' }, { assets: ['gpu'], exclusive: true });
    if (outcome.kind !== 'joined') throw new Error('it joins');
    const { membership } = outcome;
    expect(await box.members.join('agent:7')).toEqual({ kind: 'taken' });
    const taken = { kind: 'asset-taken', asset: 'gpu', owner: 'agent:7' };
    expect(await box.members.join('agent:8', {}, { assets: ['gpu'] })).toEqual(taken);
    await clock.advance(600_000);
    expect([membership.isValid, await box.members.isAlive('agent:7')]).toEqual([true, true]);
    expect(await membership.addAssets(['disk'])).toEqual({ kind: 'registered', assets: ['gpu', 'disk'] });
    expect(await membership.setAssets(['disk'])).toEqual({ kind: 'registered', assets: ['disk'] });
    const other = await box.members.join('agent:8', { host: 'b' });
    if (other.kind !== 'joined') throw new Error('it joins');
    expect(await other.membership.addAssets(['tape'], { exclusive: true })).toMatchObject({ kind: 'registered' });
    expect(await membership.addAssets(['tape'])).toEqual({ kind: 'asset-taken', asset: 'tape', owner: 'agent:8' });
    const move = { from: 'agent:7', to: 'agent:8' };
    expect(await box.members.moveAssets(['disk'], move)).toEqual({ kind: 'moved', assets: ['disk'] });
    expect(await box.members.moveAssets(['disk'], { ...move, to: 'x' })).toEqual({ kind: 'no-member', member: 'x' });
    expect(await box.members.list()).toEqual(await server.box.members.list());
    await other.membership.leave();
    await other.membership.leave();
    wire.isCut = true;
    await clock.advance(40_000);
    expect([membership.isValid, membership.signal.aborted, membership.lost?.why]).toEqual([
      false,
      true,
      'disconnected',
    ]);
    wire.isCut = false;
    expect(await membership.setAssets(['x'])).toEqual({ kind: 'lost' });
    expect(await server.box.members.list()).toEqual([]);
    expect((await box.members.join('agent:9')).kind).toBe('joined');
    await box.close();
    expect(await server.box.members.list()).toEqual([]);
  });

  it('is followed by others, who hear after a lost connection that they may have missed something', async () => {
    await server.box.members.join('m-1');
    const followed = await box.members.follow();
    expect([followed.coordinator(), followed.view().members.map(({ id }) => id)]).toEqual(['m-1', ['m-1']]);
    const changes = followed.changes();
    const next = async (): Promise<unknown> => {
      const { value } = (await settledIn(clock, changes.next())) as { value: ViewChange<Member> };
      const names = (members: readonly Member[]): readonly string[] => members.map(({ id }) => id);
      const { view, joined, left, isResync } = value;
      return { view: names(view.members), joined: names(joined), left: names(left), isResync };
    };
    const two = await server.box.members.join('m-2');
    expect(await next()).toEqual({ view: ['m-1', 'm-2'], joined: ['m-2'], left: [], isResync: false });
    wire.isCut = true;
    wire.cut.abort(new TypeError('terminated'));
    if (two.kind === 'joined') await two.membership.leave();
    await server.box.members.join('a-3');
    wire.cut = new AbortController();
    wire.isCut = false;
    expect(await next()).toEqual({ view: ['a-3', 'm-1'], joined: ['a-3'], left: ['m-2'], isResync: true });
    expect(followed.coordinator()).toBe('a-3');
    followed.stop();
    expect(await changes.next()).toMatchObject({ done: true });
  });
});

describe('events of a client', () => {
  it('go on where the stream was cut off, without a gap or a repeat', async () => {
    const seen: string[] = [];
    const events = box.events(['lock:acquired', 'task:*'], { since: 0 });
    const reading = (async () => {
      for await (const event of events) {
        seen.push(event.resource);
        // Records and tasks each have an order of their own.
        if (seen.includes('lock/end') && seen.includes('task/one')) break;
      }
    })();
    for (let n = 0; n < 5; n++) await server.box.lock(`n-${n}`).tryAcquire();
    await expect.poll(() => seen.length).toBe(5);
    const { cut } = wire;
    wire.cut = new AbortController();
    cut.abort(new TypeError('terminated'));
    for (let n = 5; n < 10; n++) await server.box.lock(`n-${n}`).tryAcquire();
    await server.box.tasks.publish('one', {});
    await server.box.lock('end').tryAcquire();
    await inTime(reading);
    const all = Array.from({ length: 10 }, (_, n) => `lock/n-${n}`);
    expect(seen.filter((resource) => resource.startsWith('lock/n-'))).toEqual(all);
    expect(seen.filter((resource) => resource === 'task/one')).toHaveLength(1);
    await server.box.lock('after').tryAcquire();
    for await (const event of box.events('lock:acquired', { since: events.place ?? '' })) {
      expect(event.resource).toBe('lock/after');
      break;
    }
  });

  it('of the past are read page by page, to the last that the server has', async () => {
    for (let n = 0; n < 7; n++) await server.box.lock(`n-${n}`).tryAcquire();
    const asked: string[] = [];
    // As if a page had room for no more: a page that ends early names the next one, whatever the reason.
    const inPages: typeof fetch = (input, init) => {
      const url = new URL(String(input));
      asked.push(url.searchParams.get('limit') ?? '');
      url.searchParams.set('limit', '3');
      return server.server.fetch(new Request(url, init));
    };
    const reader = connect(URL_OF_TESTS, { token: LOCAL, fetch: inPages, clock });
    const { events, isWhole } = await reader.history({ patterns: ['lock:acquired'] });
    expect(events.map(({ resource }) => resource)).toEqual(Array.from({ length: 7 }, (_, n) => `lock/n-${n}`));
    expect(isWhole).toBe(true);
    // No more than a thousand in all.
    expect(asked).toEqual(['1000', '997', '994']);
  });
});

/**
 * Ids, by which requests of others could be withdrawn, what sessions say of themselves, and whether a grant was handed out,
 * which only those need who hand it out.
 */
const HIDDEN = ['about', 'id', 'isCollected'];

describe('what a client reads', () => {
  it('is what the library gives', async () => {
    await server.box.lock('main').acquireDetached({ holder: 'a', reason: 'why', metadata: { x: 1 }, ttlMs: 60_000 });
    await server.box.lock('main').askDetached({ holder: 'b' });
    await server.box.semaphore('api', { capacity: 3 }).acquire({ holder: 'c', weight: 2 });
    await server.box.lock('rules').configure({ maxHoldMs: 1000, onStale: 'alert' });
    await server.box.tasks.publish('t', { n: 1 }, { retries: 2 });
    const [theirs, ours] = [await server.box.survey(), await box.survey()];
    const plain = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value, (key, one) => (HIDDEN.includes(key) ? undefined : one)));
    expect(plain(ours.locks)).toMatchObject(plain(theirs.locks) as object);
    expect(plain(ours.semaphores)).toMatchObject(plain(theirs.semaphores) as object);
    expect(plain(await box.tasks.list())).toEqual(plain(await server.box.tasks.list()));
    await server.box.members.join('m-1', { metadata: { zone: 'a' } });
    expect(plain(await box.members.list())).toEqual(plain(await server.box.members.list()));
    expect(await box.check({ lockFree: 'main' })).toMatchObject({ kind: 'failed' });
    expect(await box.explain({ lockFree: 'other' })).toMatchObject({ verdict: { kind: 'passed' } });
    await box.bus.put('config/colour', 'red');
    expect(await box.bus.get('config/colour')).toBe('red');
    expect(await box.bus.delete('config/colour')).toEqual({ deleted: 1 });
    expect(await box.bus.get('config/colour')).toBeNull();
    expect(await box.pipelines.list()).toEqual([]);
    expect(await box.pipelines.show('no-such')).toBeUndefined();
    expect(await box.token()).toMatchObject({ role: 'administrator' });
  });

  it('is refused with the code of the library, and with what the server said', async () => {
    const stranger = connect(URL_OF_TESTS, { token: 'wrong', fetch: wire.fetch, clock });
    const error = await stranger.survey().catch((one: unknown) => one);
    expect(error).toBeInstanceOf(ServerRefusal);
    expect([(error as ServerRefusal).code, (error as ServerRefusal).problem.code]).toEqual([
      'forbidden',
      'unauthenticated',
    ]);
    const viewer = connect(URL_OF_TESTS, { token: await server.token('viewer'), fetch: wire.fetch, clock });
    await expect(viewer.lock('x').acquire()).rejects.toMatchObject({
      code: 'forbidden',
      problem: { code: 'wrong-role' },
    });
    expect(() => connect('etcd://x:1', { token: 'x' })).toThrow(Failure);
    expect(() => connect('http://user:secret@x:1', { token: 'x' })).toThrow(/expected http/);
    expect(() => connect(URL_OF_TESTS, { token: '' })).toThrow(/token is missing/);
    for (const name of ['.', '..']) expect(() => box.lock(name)).toThrow(/cannot be part of a URL/);
  });

  it.each([undefined, 15_000])(
    'is renewed at another server when the first is silent: a hold of %s ms',
    async (ttlMs) => {
      const [silent, other] = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
      let isSilent = false;
      const through: typeof fetch = (input, init) => {
        if (!isSilent || !String(input).startsWith(silent))
          return server.server.fetch(new Request(String(input), init));
        return new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))));
      };
      const both = connect([silent, other], { token: LOCAL, fetch: through, clock });
      const hold = await both.lock('main').acquire(ttlMs === undefined ? {} : { ttlMs });
      isSilent = true;
      await clock.advance(60_000);
      expect(hold.isValid).toBe(true);
      await hold.release();
      await both.close();
    },
  );

  it('comes from another server of the store when the first is gone', async () => {
    wire.isCut = true;
    const [down, up] = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
    const through: typeof fetch = (input, init) => {
      if (String(input).startsWith(down)) return Promise.reject(new TypeError('fetch failed'));
      return server.server.fetch(new Request(String(input), init));
    };
    const both = connect([down, up], { token: LOCAL, fetch: through, clock });
    await (await inTime(both.lock('main').acquire())).release();
    const none = connect(down, { token: LOCAL, fetch: through, clock, retryMs: 1_000 });
    await expect(inTime(none.survey())).rejects.toMatchObject({ code: 'unavailable' });
    await expect(inTime(none.lock('x').acquire())).rejects.toMatchObject({ code: 'outcome-unknown' });
  });
});
