// What is meant for things as somebody saw them changes nothing if they have changed since, and the record says who did what.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { connect } from 'signalbox/client';
import { LOCAL, TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = new TestServer(await open('memory:', { witness: true }), { allowsCommands: true });
});
afterAll(() => server.close());

const wrongState = { status: 409, body: { code: 'wrong-state' } };
const fails = { name: 'release', phases: [{ name: 'one', run: 'exit 3' }] };

describe('with what was seen', () => {
  it('a pipeline that has moved on is neither cancelled nor resumed nor started again', async () => {
    const { box } = server;
    const path = '/v1/pipelines/seen';
    await box.pipelines.start(fails, { id: 'seen' });
    const { body: seen } = await server.get(path);
    expect([seen.state, seen.phase]).toEqual(['pending', null]);
    const others = [
      { state: 'blocked' },
      { state: 'pending', phase: 'one' },
      { startedAt: new Date(Date.parse(seen.startedAt) - 1).toISOString() },
    ];
    for (const expected of others) {
      expect(await server.post(`${path}/cancel`, { expected }), JSON.stringify(expected)).toMatchObject(wrongState);
      expect(await server.post(`${path}/resume`, { expected }), JSON.stringify(expected)).toMatchObject({
        ...{ status: 409, body: { code: 'wrong-state', outcome: 'moved-on' } },
      });
    }
    expect((await server.get(path)).body).toMatchObject({ state: 'pending', isDriven: false });
    const expected = { state: seen.state, phase: seen.phase, startedAt: seen.startedAt };
    expect(await server.post(`${path}/resume`, { expected })).toMatchObject({ status: 202 });
    await expect.poll(async () => (await server.get(path)).body.state).toBe('failed');
    expect(await server.post(`${path}/resume`, { from: 'one', expected })).toMatchObject({
      ...{ status: 409, body: { outcome: 'moved-on', detail: expect.stringContaining('it is failed now') } },
    });
    expect(await server.post(`${path}/cancel`, { expected })).toMatchObject(wrongState);
    await box.pipelines.start(fails, { id: 'unseen' });
    const { startedAt } = (await server.get('/v1/pipelines/unseen')).body;
    expect(await server.post('/v1/pipelines/unseen/cancel', { expected: { startedAt } })).toMatchObject({
      ...{ status: 202, body: { outcome: 'cancelled' } },
    });
    // The one that was cancelled is not the one that was seen.
    const earlier = new Date(Date.parse(startedAt) - 1).toISOString();
    expect(await server.post('/v1/pipelines/unseen/cancel', { expected: { startedAt: earlier } })).toMatchObject(
      wrongState,
    );
  });

  it('a semaphore that has another capacity meanwhile keeps it, over HTTP and in the library', async () => {
    const path = '/v1/semaphores/seen/settings';
    const put = (body: object) => server.ask('PUT', path, body);
    expect(await put({ capacity: 2, fromCapacity: 0 })).toMatchObject({ status: 200, body: { capacity: 2 } });
    expect(await put({ capacity: 5, fromCapacity: 3 })).toMatchObject({
      ...{ status: 409, body: { code: 'wrong-state', outcome: 'capacity-mismatch', capacity: 2 } },
    });
    expect(await put({ fromCapacity: 3, ttlMs: 1000 })).toMatchObject({ status: 400, body: { code: 'invalid-input' } });
    const mismatch = { kind: 'capacity-mismatch', capacity: 2, asked: 3 };
    expect(await server.box.semaphore('seen').resize(5, { from: 3 })).toEqual(mismatch);
    const remote = connect('http://127.0.0.1:7300', {
      token: LOCAL,
      fetch: (input, init) => server.server.fetch(new Request(String(input), init)),
    });
    expect(await remote.semaphore('seen').resize(5, { from: 3 })).toEqual(mismatch);
    expect(await remote.semaphore('seen').resize(4, { from: 2 })).toEqual({ kind: 'resized', capacity: 4 });
    await remote.close();
    expect((await server.get('/v1/semaphores/seen')).body.capacity).toBe(4);
  });
});

describe('the record names the token that', () => {
  /** Who the record says has done this. */
  async function actorOf(resource: string, command: string): Promise<string | undefined> {
    for await (const { commands } of server.box.witness.entries({ resource })) {
      const found = commands.find((one) => one.command === command);
      if (found !== undefined) return found.actor;
    }
    return undefined;
  }

  it('configured and resized', async () => {
    await server.ask('PUT', '/v1/locks/who/settings', { maxHoldMs: 1000 });
    await server.ask('PUT', '/v1/semaphores/who/settings', { capacity: 2, maxHoldMs: 1000 });
    expect(await actorOf('lock/who', 'configure')).toBe('token:local');
    expect(await actorOf('semaphore/who', 'configure')).toBe('token:local');
    expect(await actorOf('semaphore/who', 'resize')).toBe('token:local');
  });

  it('made and revoked a token', async () => {
    const { body } = await server.post('/v1/tokens', { name: 'ci', role: 'viewer' });
    await server.ask('DELETE', `/v1/tokens/${body.token.id}`);
    expect(await actorOf(`token/${body.token.id}`, 'create')).toBe('token:local');
    expect(await actorOf(`token/${body.token.id}`, 'revoke')).toBe('token:local');
  });

  it('forgot a task', async () => {
    await server.post('/v1/tasks', { id: 'who' });
    await server.ask('DELETE', '/v1/tasks/who');
    expect(await actorOf('task/who', 'forget')).toBe('token:local');
  });
});

describe('a token that is bound to holders', () => {
  it('forgets only what one of them has published', async () => {
    const token = await server.token('worker', { holders: ['agent:*'] });
    const forget = (task: string) => server.ask('DELETE', `/v1/tasks/${task}`, undefined, { token });
    await server.post('/v1/tasks', { id: 'theirs', by: 'ann' });
    await server.post('/v1/tasks', { id: 'own', by: 'agent:1' });
    await server.box.tasks.publish('nobodys', {});
    const foreign = { status: 403, body: { code: 'foreign-holder' } };
    expect(await forget('theirs')).toMatchObject(foreign);
    expect(await forget('nobodys')).toMatchObject(foreign);
    expect((await server.get('/v1/tasks/theirs')).status).toBe(200);
    expect((await server.get('/v1/tasks/nobodys')).status).toBe(200);
    expect(await forget('own')).toMatchObject({ status: 200, body: { outcome: 'forgotten' } });
    expect(await forget('own')).toMatchObject({ status: 404 });
    // One that somebody else has published under this id since is not the one that was meant.
    expect(await server.box.tasks.forget('theirs', { publishedBy: 'agent:1' })).toEqual({ kind: 'missing' });
    expect((await server.get('/v1/tasks/theirs')).status).toBe(200);
  });
});

describe('a token that is bound to holders, and the results of others', () => {
  it('does again only what one of them has published, and tries any failed task again', async () => {
    const token = await server.token('worker', { holders: ['agent:*'] });
    const again = (task: string, how: string) => server.post(`/v1/tasks/${task}/${how}`, { by: 'agent:1' }, { token });
    await server.post('/v1/tasks', { id: 'result-of-ann', by: 'ann' });
    await server.post('/v1/tasks', { id: 'result-of-agent', by: 'agent:1' });
    await server.box.tasks.publish('result-of-nobody', {});
    await server.post('/v1/tasks', { id: 'failure-of-ann', by: 'ann' });
    for (const task of ['result-of-ann', 'result-of-agent', 'result-of-nobody']) {
      await server.post(`/v1/tasks/${task}/claim`, { holder: 'w' });
      await server.post(`/v1/tasks/${task}/complete`, { holder: 'w', result: 7 });
    }
    await server.post('/v1/tasks/failure-of-ann/claim', { holder: 'w' });
    await server.post('/v1/tasks/failure-of-ann/fail', { holder: 'w', reason: 'no disk', retry: false });
    for (const task of ['result-of-ann', 'result-of-nobody']) {
      expect(await again(task, 'requeue')).toMatchObject({ status: 403, body: { code: 'foreign-holder' } });
      expect((await server.get(`/v1/tasks/${task}`)).body).toMatchObject({ status: 'complete', result: 7 });
    }
    expect(await again('result-of-agent', 'requeue')).toMatchObject({ status: 200, body: { outcome: 'requeued' } });
    expect(await again('failure-of-ann', 'retry')).toMatchObject({ status: 200, body: { outcome: 'requeued' } });
    expect(await again('nothing', 'requeue')).toMatchObject({ status: 404 });
  });
});

describe('the name of a token', () => {
  it('leaves room for what it is entered under', async () => {
    const longest = 'n'.repeat(194);
    expect(await server.post('/v1/tokens', { name: `${longest}n`, role: 'administrator' })).toMatchObject({
      ...{ status: 400, body: { code: 'invalid-input' } },
    });
    const { body } = await server.post('/v1/tokens', { name: longest, role: 'administrator' });
    const token = body.secret as string;
    await server.post('/v1/locks/named/acquire', { holder: 'a' });
    expect(await server.post('/v1/locks/named/break', { reason: 'x' }, { token })).toMatchObject({
      ...{ status: 200, body: { by: `token:${longest}` } },
    });
    expect((await server.post('/v1/semaphores/named/drain', { reason: 'x' }, { token })).status).toBe(200);
  });
});
