// Members, waits for guards and exports over HTTP, without a port.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { connect } from 'signalbox/client';
import { TestClock } from 'signalbox/testing';
import { Verifier } from '../../src/core/index.ts';
import { sha256 } from '../../src/host/index.ts';
import { eventsOf, LOCAL, type Sent, type Told, TestServer } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, Wire } from '../support/wire.ts';

let clock: TestClock;
let server: TestServer;
beforeAll(async () => {
  clock = new TestClock();
  server = new TestServer(await open('memory:?witness=on', { clock }), { clock });
});
afterAll(() => server.close());

const join = (id: string, more: object = {}, token?: string): Promise<Told> =>
  server.post('/v1/members', { id, ...more }, { token });
const ids = async (): Promise<readonly string[]> =>
  (await server.get('/v1/members')).body.members.map(({ id }: { id: string }) => id);

describe('a member over HTTP', () => {
  it('is there for as long as it is renewed, and then others see that it left', async () => {
    const { status, body } = await join('agent:1', { metadata: { host: 'a' }, assets: ['shard/1'], ttlMs: 30_000 });
    expect([status, body]).toEqual([
      201,
      {
        outcome: 'joined',
        member: 'agent:1',
        incarnation: expect.any(Number) as number,
        ttlMs: 30_000,
        renewWithinMs: 7_500,
      },
    ]);
    const { incarnation } = body;
    for (let n = 0; n < 3; n++) {
      await clock.advance(20_000);
      expect(await server.post('/v1/members/agent:1/renew', { incarnation })).toMatchObject({
        ...{ status: 200, body: { outcome: 'refreshed', ttlMs: 30_000 } },
      });
    }
    expect((await server.get('/v1/members?id=agent:1')).body).toMatchObject({
      coordinator: 'agent:1',
      members: [{ id: 'agent:1', metadata: { host: 'a' }, incarnation, assets: [{ id: 'shard/1' }] }],
    });
    await clock.advance(31_000);
    expect((await server.get('/v1/members?id=agent:1')).body).toMatchObject({ members: [], coordinator: null });
    for (const what of ['renew', 'leave', 'assets']) {
      const asked = what === 'assets' ? { incarnation, change: 'add', assets: ['x'] } : { incarnation };
      expect(await server.post(`/v1/members/agent:1/${what}`, asked), what).toMatchObject({
        ...{ status: 410, body: { code: 'gone' } },
      });
    }
  });

  it('has its id and its exclusive assets for itself, changes what it owns, and leaves', async () => {
    const one = (await join('one', { assets: ['gpu'], exclusive: true })).body;
    expect(await join('one')).toMatchObject({ status: 409, body: { code: 'exists', incarnation: one.incarnation } });
    expect(await join('two', { assets: ['gpu'] })).toMatchObject({
      ...{ status: 409, body: { code: 'asset-taken', asset: 'gpu', owner: 'one' } },
    });
    // The lease that the refused join had is gone with it.
    const two = (await join('two')).body;
    const change = (member: { member: string; incarnation: number }, how: object): Promise<Told> =>
      server.post(`/v1/members/${member.member}/assets`, { incarnation: member.incarnation, ...how });
    expect((await change(one, { change: 'add', assets: ['disk'] })).body.assets).toEqual(['gpu', 'disk']);
    expect(await change(two, { change: 'set', assets: ['gpu'] })).toMatchObject({ body: { code: 'asset-taken' } });
    const move = { assets: ['gpu'], from: 'one', to: 'two' };
    expect(await server.post('/v1/members/move', move)).toMatchObject({ status: 200, body: { outcome: 'moved' } });
    expect(await server.post('/v1/members/move', { ...move, assets: ['disk'], from: 'two', to: 'one' })).toMatchObject({
      status: 200,
    });
    expect(await server.post('/v1/members/move', { ...move, assets: ['none'] })).toMatchObject({
      ...{ status: 409, body: { code: 'not-owner', owners: [] } },
    });
    expect(await server.post('/v1/members/move', { ...move, to: 'nobody' })).toMatchObject({ status: 404 });
    expect((await change(two, { change: 'remove', assets: ['gpu'] })).body.assets).toEqual([]);
    const old = { incarnation: one.incarnation };
    expect((await server.post('/v1/members/one/leave', old)).body).toEqual({ outcome: 'left', member: 'one' });
    const again = (await join('one')).body;
    expect(await server.post('/v1/members/one/leave', old)).toMatchObject({ status: 410 });
    expect(await ids()).toEqual(['one', 'two']);
    for (const { member, incarnation } of [again, two])
      await server.post(`/v1/members/${member}/leave`, { incarnation });
    expect(await ids()).toEqual([]);
  });

  it('that joined from its own process is neither renewed nor ended by others', async () => {
    const outcome = await server.box.members.join('process');
    if (outcome.kind !== 'joined') throw new Error('it joins');
    const { incarnation } = outcome.membership;
    expect((await server.post('/v1/members/process/renew', { incarnation })).body.outcome).toBe('attached');
    expect(await server.post('/v1/members/process/leave', { incarnation })).toMatchObject({
      ...{ status: 409, body: { code: 'attached' } },
    });
    const asked = { incarnation, change: 'add', assets: ['x'] };
    expect(await server.post('/v1/members/process/assets', asked)).toMatchObject({ body: { code: 'attached' } });
    expect(outcome.membership.isValid).toBe(true);
    await outcome.membership.leave();
  });

  it('that joined from its own process keeps its assets, unless an administrator asks for them', async () => {
    const outcome = await server.box.members.join('process', undefined, { assets: ['gpu'] });
    if (outcome.kind !== 'joined') throw new Error('it joins');
    const { incarnation } = (await join('taker', { assets: ['disk'] })).body;
    const worker = await server.token('worker');
    for (const [asset, from, to] of [
      ['gpu', 'process', 'taker'],
      ['disk', 'taker', 'process'],
    ]) {
      const move = { assets: [asset], from, to };
      for (const token of [worker, LOCAL]) {
        expect(await server.post('/v1/members/move', move, { token })).toMatchObject({
          ...{ status: 409, body: { code: 'attached', member: 'process' } },
        });
      }
      const asked = { ...move, attached: true };
      expect((await server.post('/v1/members/move', asked, { token: worker })).body.code).toBe('wrong-role');
      expect((await server.post('/v1/members/move', asked)).body.outcome).toBe('moved');
    }
    await server.post('/v1/members/taker/leave', { incarnation });
    await outcome.membership.leave();
  });

  it('loses no assets to a move that was meant for an earlier member with its id, and gets none', async () => {
    const old = { a: (await join('a')).body.incarnation, b: (await join('b')).body.incarnation };
    for (const id of ['a', 'b'] as const) await server.post(`/v1/members/${id}/leave`, { incarnation: old[id] });
    const now = {
      a: (await join('a', { assets: ['gpu'] })).body.incarnation,
      b: (await join('b')).body.incarnation,
    };
    const move = (more: object): Promise<Told> =>
      server.post('/v1/members/move', { assets: ['gpu'], from: 'a', to: 'b', ...more });
    const ended = (member: string): object => ({ status: 404, body: { code: 'no-such-thing', member } });
    expect(await move({ fromIncarnation: old.a })).toMatchObject(ended('a'));
    expect(await move({ toIncarnation: old.b })).toMatchObject(ended('b'));
    const meant = { fromIncarnation: now.a, toIncarnation: now.b };
    for (const _ of ['first', 'repeat']) expect((await move(meant)).body.outcome).toBe('moved');
    for (const id of ['a', 'b'] as const) await server.post(`/v1/members/${id}/leave`, { incarnation: now[id] });
  });

  it('has an id that its token may act for, which the record names', async () => {
    const bound = await server.token('worker', { holders: ['agent:*'] });
    const viewer = await server.token('viewer');
    expect(await join('ann', {}, bound)).toMatchObject({ status: 403, body: { code: 'foreign-holder' } });
    expect(await join('agent:2', {}, viewer)).toMatchObject({ status: 403, body: { code: 'wrong-role' } });
    const ann = (await join('ann')).body;
    const { incarnation } = (await join('agent:2', {}, bound)).body;
    for (const what of ['renew', 'leave']) {
      const asked = server.post(`/v1/members/ann/${what}`, { incarnation: ann.incarnation }, { token: bound });
      expect((await asked).body.code, what).toBe('foreign-holder');
    }
    const stolen = { assets: ['x'], from: 'ann', to: 'agent:2' };
    expect((await server.post('/v1/members/move', stolen, { token: bound })).body.code).toBe('foreign-holder');
    expect((await server.post('/v1/members/agent:2/leave', { incarnation }, { token: bound })).status).toBe(200);
    const { entries } = (await server.get('/v1/witness/entries?resource=member/agent:2')).body;
    expect(entries.flatMap(({ commands }: { commands: object[] }) => commands)).toMatchObject([
      { actor: 'agent:2', command: 'join' },
      { actor: 'agent:2', command: 'leave' },
    ]);
    await server.post('/v1/members/ann/leave', { incarnation: ann.incarnation });
  });

  it('joins once although it is sent twice', async () => {
    const headers = { 'Idempotency-Key': 'join-1' };
    const [first, second] = [
      await server.post('/v1/members', { id: 'twice' }, { headers }),
      await server.post('/v1/members', { id: 'twice' }, { headers }),
    ];
    expect([second.status, second.body]).toEqual([201, first.body]);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    await server.post('/v1/members/twice/leave', { incarnation: first.body.incarnation });
  });
});

describe('the stream of members', () => {
  it('begins with all of them, then tells who joins, changes and leaves, also by the end of a lease', async () => {
    const first = (await join('m-1')).body;
    const stream = eventsOf(await server.fetch('GET', '/v1/members/watch'));
    const next = async (): Promise<Sent> => (await stream.next()).value as Sent;
    expect((await next()).event).toBe('open');
    const whole = await next();
    expect(whole).toMatchObject({ event: 'view', data: { coordinator: 'm-1', members: [{ id: 'm-1' }] } });
    await join('a-2', { ttlMs: 20_000 });
    const joined = await next();
    expect(joined.data).toMatchObject({ coordinator: 'a-2', joined: [{ id: 'a-2' }], left: [], isResync: false });
    expect(joined.data.members).toBeUndefined();
    expect(joined.data.version).toBeGreaterThan(whole.data.version);
    const asked = { incarnation: first.incarnation, change: 'add', assets: ['shard'] };
    await server.post('/v1/members/m-1/assets', asked);
    expect((await next()).data.changed).toMatchObject([{ id: 'm-1', assets: [{ id: 'shard' }] }]);
    await clock.advance(25_000);
    expect((await next()).data).toMatchObject({ left: ['a-2'], coordinator: 'm-1' });
    await stream.return(undefined);
    await server.post('/v1/members/m-1/leave', { incarnation: first.incarnation });
    expect((await server.get('/v1/topology')).body).toEqual({ topology: null });
  });
});

describe('a guard that is waited for at the server', () => {
  const check = (more: object): Promise<Told> =>
    server.post('/v1/guards/check', { condition: { lockFree: 'guarded' }, ...more });

  it('answers when it passes, when it looks other than it was known, and when the wait is over', async () => {
    const hold = await server.box.lock('guarded').acquire({ holder: 'ann' });
    const { passed, text } = (await check({})).body;
    expect([passed, text]).toEqual([false, expect.stringContaining('ann')]);
    const over = await settledIn(clock, check({ waitMs: 500, known: text }));
    expect(over.body).toMatchObject({ passed: false, text });
    expect((await check({ waitMs: 45_000, known: 'other' })).body).toMatchObject({ passed: false, text });
    const waiting = check({ waitMs: 45_000 });
    await hold.release();
    expect((await waiting).body).toMatchObject({ passed: true });
    const never = { condition: { never: true }, waitMs: 46_000 };
    expect((await server.post('/v1/guards/check', never)).status).toBe(400);
  });

  it('answers with what it saw when the server stops', async () => {
    const own = new TestServer(await open('memory:'));
    const hold = await own.box.lock('guarded').acquire({ holder: 'ann' });
    const { guards } = own.box;
    const wait = guards.wait.bind(guards);
    const looked = new Promise<void>((resolve) => {
      guards.wait = (guard, options = {}) =>
        wait(guard, {
          ...options,
          onVerdict: (look) => {
            options.onVerdict?.(look);
            resolve();
          },
        });
    });
    const waiting = own.post('/v1/guards/check', { condition: { lockFree: 'guarded' }, waitMs: 45_000 });
    await looked;
    own.server.stop();
    expect(await waiting).toMatchObject({ status: 200, body: { passed: false } });
    await hold.release();
    await own.close();
  });
});

describe('pipelines over HTTP', () => {
  it('are forgotten once they have ended, and the record names the token', async () => {
    const phases = [{ name: 'one', run: 'true' }];
    await server.box.pipelines.start({ name: 'book', phases }, { id: 'old' });
    expect(await server.ask('DELETE', '/v1/pipelines/old')).toMatchObject({
      ...{ status: 409, body: { code: 'wrong-state', detail: expect.stringContaining('cancel it first') as string } },
    });
    await server.box.pipelines.cancel('old', { by: 'ann', reason: 'over' });
    expect((await server.ask('DELETE', '/v1/pipelines/old')).body).toEqual({ outcome: 'forgotten', pipeline: 'old' });
    expect(await server.ask('DELETE', '/v1/pipelines/old')).toMatchObject({ status: 404 });
    const { entries } = (await server.get('/v1/witness/entries?resource=pipeline/old')).body;
    expect(entries.at(-1).commands).toMatchObject([{ actor: 'token:local', command: 'forget' }]);
  });
});

describe('an export over HTTP', () => {
  it('has the entries of the resources that are named alone, and can be verified', async () => {
    for (const name of ['one', 'two', 'three']) await server.box.lock(name).tryAcquire({ holder: 'ann' });
    const wanted = ['lock/one', 'lock/three'];
    const text = await (await server.fetch('GET', '/v1/witness/export?resource=lock/one&resource=lock/three')).text();
    const lines = text.trimEnd().split('\n');
    const entries = lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === 'entry');
    expect(entries.map(({ resource }) => resource)).toEqual(wanted.toSorted());
    const verifier = new Verifier({ digest: sha256 });
    for (const line of lines) verifier.line(line);
    expect(verifier.finish()).toMatchObject({ entries: 2 });
    expect(verifier.finish().finding).toBeUndefined();
    const client = connect(URL_OF_TESTS, { token: LOCAL, fetch: new Wire(server).fetch });
    const theirs: string[] = [];
    for await (const line of client.witness.export({ only: wanted })) theirs.push(line);
    expect(theirs).toEqual(lines);
    await client.close();
    expect((await server.get('/v1/witness/export?other=1')).status).toBe(400);
  });

  it('is what the library writes', async () => {
    const theirs: string[] = [];
    for await (const line of server.box.witness.export()) theirs.push(line);
    const response = await server.fetch('GET', '/v1/witness/export');
    expect(response.headers.get('content-type')).toBe('application/jsonl');
    const ours = (await response.text()).trimEnd().split('\n');
    const plain = (lines: readonly string[]): unknown =>
      lines.map((line) => JSON.parse(line, (key, value: unknown) => (key === 'at' ? 0 : value)) as unknown);
    expect(plain(ours)).toEqual(plain(theirs));
    const off = await TestServer.on();
    expect((await off.get('/v1/witness/export?resource=lock/main')).body.code).toBe('witness-off');
    await off.close();
  });
});
