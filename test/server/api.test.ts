// The HTTP API as programs in any language use it, without a port.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { openEmbedded } from '../../src/store/embedded/index.ts';
import { openMemory, type Store } from '../../src/store/index.ts';
import { eventsOf, readEvents, TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.on();
});
afterAll(() => server.close());

describe('locks over HTTP', () => {
  it('are acquired, renewed and released by token', async () => {
    const got = await server.post('/v1/locks/main/acquire', { holder: 'a', reason: 'tests', metadata: { n: 1 } });
    expect(got).toMatchObject({ status: 200, body: { outcome: 'acquired', resource: 'lock/main', mode: 'exclusive' } });
    const { token } = got.body;
    expect(await server.post('/v1/locks/main/renew', { holder: 'a', token })).toMatchObject({
      ...{ status: 200, body: { outcome: 'refreshed', ttlMs: 60_000 } },
    });
    expect(await server.post('/v1/locks/main/renew', { holder: 'a', token, ttlMs: 5000 })).toMatchObject({
      ...{ status: 200, body: { outcome: 'refreshed', ttlMs: 5000 } },
    });
    const again = await server.post('/v1/locks/main/acquire', { holder: 'a' });
    expect(again.body.token).toBe(token);
    const shown = await server.get('/v1/locks/main');
    expect(shown.body).toMatchObject({ isFree: false, holds: [{ holder: 'a', reason: 'tests', metadata: { n: 1 } }] });
    expect((await server.get('/v1/locks')).body.locks).toHaveLength(1);
    const busy = await server.post('/v1/locks/main/acquire', { holder: 'b', wait: false });
    expect(busy).toMatchObject({ status: 409, body: { code: 'busy', refusal: { holders: [{ holder: 'a' }] } } });
    expect(JSON.stringify(busy.body)).not.toContain('lease');
    expect(await server.post('/v1/locks/main/release', { holder: 'a', token: token + 1 })).toMatchObject({
      status: 409,
    });
    expect(await server.post('/v1/locks/main/release', { holder: 'a', token })).toMatchObject({ status: 200 });
    expect(await server.post('/v1/locks/main/release', { holder: 'a', token })).toMatchObject({
      ...{ status: 409, body: { code: 'not-held' } },
    });
    expect(await server.post('/v1/locks/main/renew', { holder: 'a', token })).toMatchObject({ status: 409 });
  });

  it('have names with any characters in them', async () => {
    for (const name of ['a/b', '100%', 'ü ñ', '%2F', 'a?b#c', '日本']) {
      const path = `/v1/locks/${encodeURIComponent(name)}`;
      expect((await server.post(`${path}/acquire`, { holder: 'a' })).body.resource).toBe(`lock/${name}`);
      expect((await server.get(path)).body.name).toBe(name);
    }
  });

  it('change hands in the order of the tickets, whether the clients stay or not', async () => {
    const held = await server.post('/v1/locks/queue/acquire', { holder: 'a' });
    const first = await server.post('/v1/locks/queue/acquire', { holder: 'b', waitMs: 0 });
    const second = await server.post('/v1/locks/queue/acquire', { holder: 'c', waitMs: 0 });
    expect([first.status, first.body.position, second.status, second.body.position]).toEqual([202, 1, 202, 2]);
    const waiting = server.post('/v1/locks/queue/acquire', { holder: 'b', ticket: first.body.ticket, waitMs: 45_000 });
    await server.post('/v1/locks/queue/release', { holder: 'a', token: held.body.token });
    const got = await waiting;
    expect(got).toMatchObject({ status: 200, body: { holder: 'b' } });
    expect(got.body.token).toBeGreaterThan(held.body.token);
    expect(await server.post('/v1/locks/queue/withdraw', { holder: 'c', ticket: second.body.ticket })).toMatchObject({
      status: 200,
    });
    expect(await server.post('/v1/locks/queue/acquire', { holder: 'c', ticket: second.body.ticket })).toMatchObject({
      ...{ status: 410, body: { code: 'gone' } },
    });
  });

  it('are shared, upgraded and downgraded', async () => {
    const one = await server.post('/v1/locks/docs/acquire', { holder: 'a', mode: 'shared' });
    const other = await server.post('/v1/locks/docs/acquire', { holder: 'b', mode: 'shared' });
    const upgrade = { holder: 'a', token: one.body.token };
    expect(await server.post('/v1/locks/docs/upgrade', upgrade)).toMatchObject({ status: 409 });
    await server.post('/v1/locks/docs/release', { holder: 'b', token: other.body.token });
    const upgraded = await server.post('/v1/locks/docs/upgrade', upgrade);
    expect(upgraded).toMatchObject({ status: 200, body: { outcome: 'upgraded' } });
    const { token } = upgraded.body;
    expect(await server.post('/v1/locks/docs/downgrade', { holder: 'a', token })).toMatchObject({
      status: 200,
      body: { token },
    });
    expect(await server.post('/v1/locks/docs/downgrade', { holder: 'x', token })).toMatchObject({ status: 409 });
  });

  it('are configured and broken by administrators', async () => {
    const rules = await server.ask('PUT', '/v1/locks/ruled/settings', { maxHoldMs: 60_000, onStale: 'alert' });
    expect(rules.body).toEqual({ resource: 'lock/ruled', onStale: 'alert', maxHoldMs: 60_000, ttlMs: null });
    expect(await server.post('/v1/locks/ruled/break', { reason: 'x' })).toMatchObject({
      status: 409,
      body: { code: 'not-held' },
    });
    const { body } = await server.post('/v1/locks/ruled/acquire', { holder: 'a' });
    expect(body.maxHoldMs).toBe(60_000);
    const seen = (body.token as number) - 1;
    const changed = await server.post('/v1/locks/ruled/break', { reason: 'stuck', token: seen });
    expect(changed).toMatchObject({ status: 409, body: { code: 'not-held' } });
    const broken = await server.post('/v1/locks/ruled/break', { reason: 'stuck', token: body.token });
    expect(broken.body).toMatchObject({ outcome: 'broken', broken: 1, by: 'token:local' });
    await server.post('/v1/locks/ruled/acquire', { holder: 'a' });
    const forced = await server.post('/v1/locks/ruled/acquire', { holder: 'b', strategy: 'force', reason: 'mine' });
    expect(forced).toMatchObject({ status: 200, body: { holder: 'b' } });
    expect(await server.post('/v1/locks/ruled/acquire', { holder: 'c', strategy: 'force' })).toMatchObject({
      status: 400,
    });
  });
});

describe('semaphores over HTTP', () => {
  it('give out numbered slots, and keep the place of those who wait', async () => {
    const got = await server.post('/v1/semaphores/pool/acquire', { holder: 'a', weight: 2, capacity: 2 });
    expect(got.body).toMatchObject({ outcome: 'acquired', weight: 2, slots: [0, 1] });
    expect(await server.post('/v1/semaphores/pool/acquire', { holder: 'b', wait: false })).toMatchObject({
      status: 409,
      body: { code: 'full' },
    });
    expect(await server.post('/v1/semaphores/pool/acquire', { holder: 'b', weight: 9 })).toMatchObject({ status: 422 });
    expect(await server.post('/v1/semaphores/pool/acquire', { holder: 'b', capacity: 3 })).toMatchObject({
      status: 409,
      body: { code: 'capacity-mismatch' },
    });
    const waits = await server.post('/v1/semaphores/pool/acquire', { holder: 'b', waitMs: 0 });
    expect(waits.status).toBe(202);
    expect((await server.ask('PUT', '/v1/semaphores/pool/settings', { capacity: 3 })).body.capacity).toBe(3);
    const { ticket } = waits.body;
    expect(await server.post('/v1/semaphores/pool/acquire', { holder: 'b', ticket })).toMatchObject({
      status: 200,
      body: { slots: [2] },
    });
    expect((await server.get('/v1/semaphores/pool')).body).toMatchObject({ capacity: 3, usedSlots: 3 });
    expect((await server.get('/v1/semaphores')).body.semaphores).toHaveLength(1);
    expect(await server.post('/v1/semaphores/pool/renew', { holder: 'a', token: got.body.token })).toMatchObject({
      status: 200,
    });
    expect(await server.post('/v1/semaphores/pool/release', { holder: 'a' })).toMatchObject({ status: 200 });
    expect((await server.post('/v1/semaphores/pool/break', { reason: 'enough' })).body.broken).toBe(1);
  });
});

describe('tasks over HTTP', () => {
  it('are published, claimed by one, renewed and completed', async () => {
    const published = await server.post('/v1/tasks', {
      id: 'build',
      data: { commit: 'abc' },
      capabilities: ['gpu'],
      retries: 1,
    });
    expect(published).toMatchObject({ status: 201, body: { outcome: 'published', task: 'build' } });
    expect(await server.post('/v1/tasks', { id: 'build' })).toMatchObject({ status: 409, body: { code: 'exists' } });
    expect(await server.post('/v1/tasks/claim', { holder: 'w' })).toMatchObject({
      status: 404,
      body: { code: 'none' },
    });
    expect(await server.post('/v1/tasks/build/claim', { holder: 'w' })).toMatchObject({
      status: 409,
      body: { code: 'unfit' },
    });
    const claim = await server.post('/v1/tasks/claim', { holder: 'w', capabilities: ['gpu'] });
    expect(claim.body).toMatchObject({ outcome: 'claimed', task: 'build', attempt: 1, data: { commit: 'abc' } });
    const { token } = claim.body;
    expect(await server.post('/v1/tasks/build/claim', { holder: 'v', capabilities: ['gpu'] })).toMatchObject({
      status: 409,
      body: { code: 'taken' },
    });
    expect(await server.post('/v1/tasks/build/renew', { token })).toMatchObject({ status: 200 });
    expect(await server.post('/v1/tasks/build/complete', { token: token + 1 })).toMatchObject({
      status: 409,
      body: { code: 'not-owner' },
    });
    expect((await server.post('/v1/tasks/build/fail', { token, reason: 'flaky' })).body).toMatchObject({
      outcome: 'retried',
    });
    const second = await server.post('/v1/tasks/build/claim', { holder: 'w', capabilities: ['gpu'] });
    expect(
      (await server.post('/v1/tasks/build/complete', { token: second.body.token, result: { ok: true } })).body.outcome,
    ).toBe('completed');
    expect((await server.get('/v1/tasks/build')).body).toMatchObject({ status: 'complete', result: { ok: true } });
    expect(await server.post('/v1/tasks/build/retry', {})).toMatchObject({ status: 409 });
    expect((await server.post('/v1/tasks/build/requeue', { by: 'ann' })).body).toMatchObject({
      outcome: 'requeued',
      was: 'complete',
    });
    expect((await server.get('/v1/tasks?status=pending&limit=1')).body).toMatchObject({
      next: 'build',
      tasks: [{ task: 'build' }],
    });
    expect(await server.ask('DELETE', '/v1/tasks/build')).toMatchObject({
      status: 200,
      body: { outcome: 'forgotten' },
    });
    expect(await server.get('/v1/tasks/build')).toMatchObject({ status: 404, body: { code: 'no-such-thing' } });
    expect(await server.post('/v1/tasks/build/claim', { holder: 'w' })).toMatchObject({
      status: 404,
      body: { code: 'missing' },
    });
  });

  it('reach a worker that waits for one', async () => {
    const waiting = server.post('/v1/tasks/claim', { holder: 'w', capabilities: ['late'], waitMs: 45_000 });
    await server.post('/v1/tasks', { id: 'late-1', capabilities: ['late'] });
    const { body } = await waiting;
    expect(body.task).toBe('late-1');
    expect((await server.post('/v1/tasks/late-1/release', { holder: 'w' })).body.outcome).toBe('released');
    const again = await server.post('/v1/tasks/late-1/claim', { holder: 'w', capabilities: ['late'] });
    expect(again.status).toBe(200);
    expect((await server.post('/v1/tasks/late-1/release', { force: true, reason: 'gone' })).body).toMatchObject({
      owner: 'w',
    });
  });

  it('are taken by force, or tried again, only as they were when that was decided', async () => {
    await server.post('/v1/tasks', { id: 'handed-on' });
    const claim = async (holder: string): Promise<number> =>
      (await server.post('/v1/tasks/handed-on/claim', { holder })).body.token as number;
    const first = await claim('w1');
    await server.post('/v1/tasks/handed-on/release', { holder: 'w1' });
    const second = await claim('w2');
    const take = { force: true, reason: 'too slow' };
    expect(await server.post('/v1/tasks/handed-on/release', { ...take, token: first })).toMatchObject({
      ...{ status: 409, body: { code: 'wrong-state', taskStatus: 'running' } },
    });
    expect((await server.get('/v1/tasks/handed-on')).body).toMatchObject({ status: 'running', owner: 'w2' });
    expect(await server.post('/v1/tasks/handed-on/release', { ...take, token: second })).toMatchObject({
      ...{ status: 200, body: { owner: 'w2' } },
    });
    await server.post('/v1/tasks/handed-on/fail', { token: await claim('w3'), reason: 'no disk', retry: false });
    const { attempts } = (await server.get('/v1/tasks/handed-on')).body;
    expect(await server.post('/v1/tasks/handed-on/retry', { attempts: attempts - 1 })).toMatchObject({
      ...{ status: 409, body: { taskStatus: 'failed' } },
    });
    expect(await server.post('/v1/tasks/handed-on/retry', { attempts })).toMatchObject({ status: 200 });
  });
});

describe('guards, pipelines, members and keys over HTTP', () => {
  it('check a condition and say why it fails', async () => {
    await server.post('/v1/locks/guarded/acquire', { holder: 'a' });
    const { body } = await server.post('/v1/guards/check', {
      condition: { all: [{ lockFree: 'guarded' }, { taskDone: 'x' }] },
    });
    expect(body).toMatchObject({ passed: false, verdict: { kind: 'failed' } });
    expect(body.text).toContain('guarded');
    expect((await server.post('/v1/guards/check', { condition: { lockFree: 'other' } })).body.passed).toBe(true);
    expect(await server.post('/v1/guards/check', { condition: { lockFre: 'x' } })).toMatchObject({
      status: 400,
      body: { code: 'invalid' },
    });
  });

  it('run commands only where the server allows it', async () => {
    const check = { condition: { command: { cmd: ['true'] } } };
    expect(await server.post('/v1/guards/check', check)).toMatchObject({ status: 403, body: { code: 'commands-off' } });
    const other = new TestServer(server.box, { allowsCommands: true });
    expect((await other.post('/v1/guards/check', check)).body).toMatchObject({ passed: true });
    const worker = await server.token('worker');
    expect(await other.post('/v1/guards/check', check, { token: worker })).toMatchObject({
      status: 403,
      body: { code: 'wrong-role' },
    });
    const file = { condition: { fileContains: { path: '/etc/passwd', pattern: 'root' } } };
    expect(await other.post('/v1/guards/check', file, { token: worker })).toMatchObject({ status: 403 });
  });

  it('list, show, resume and cancel pipelines', async () => {
    await server.box.pipelines.start({ name: 'release', phases: [{ name: 'one', run: 'true' }] }, { id: 'r-1' });
    await server.box.pipelines.start({ name: 'release', phases: [{ name: 'one', run: 'true' }] }, { id: 'r-2' });
    expect((await server.get('/v1/pipelines?state=pending')).body.pipelines).toMatchObject([
      { pipeline: 'r-1' },
      { pipeline: 'r-2' },
    ]);
    expect((await server.get('/v1/pipelines/r-1')).body).toMatchObject({
      pipeline: 'r-1',
      state: 'pending',
      isDriven: false,
    });
    expect(await server.post('/v1/pipelines/r-1/cancel', { reason: 'no' })).toMatchObject({
      status: 202,
      body: { outcome: 'cancelled' },
    });
    // Once more by the same caller: it has what it wants.
    expect(await server.post('/v1/pipelines/r-1/cancel', {})).toMatchObject({ status: 202 });
    expect(await server.post('/v1/pipelines/r-1/cancel', { by: 'ann' })).toMatchObject({ status: 409 });
    expect(await server.post('/v1/pipelines/none/cancel', {})).toMatchObject({ status: 404 });
    expect(await server.post('/v1/pipelines/r-2/resume', {})).toMatchObject({
      status: 403,
      body: { code: 'commands-off' },
    });
    const other = new TestServer(server.box, { allowsCommands: true });
    expect(await other.post('/v1/pipelines/r-2/resume', {})).toMatchObject({
      status: 202,
      body: { outcome: 'resumed' },
    });
    await expect.poll(async () => (await server.get('/v1/pipelines/r-2')).body.state).toBe('done');
  });

  it('show members, and everything at a glance', async () => {
    await server.box.members.join('m-1', { role: 'x' });
    expect((await server.get('/v1/members')).body).toMatchObject({ coordinator: 'm-1', members: [{ id: 'm-1' }] });
    expect((await server.get('/v1/status')).body).toMatchObject({ coordinator: 'm-1', tasks: { counts: {} } });
    expect((await server.get('/v1/who')).body.locks.length).toBeGreaterThan(0);
  });

  it('get, put, swap and delete keys', async () => {
    const path = `/v1/bus/${encodeURIComponent('config/colour')}`;
    expect(await server.get(path)).toMatchObject({ status: 404 });
    expect((await server.ask('PUT', path, { value: 'red', ifAbsent: true })).status).toBe(200);
    expect(await server.ask('PUT', path, { value: 'blue', ifAbsent: true })).toMatchObject({
      status: 409,
      body: { code: 'condition-failed' },
    });
    expect((await server.ask('PUT', path, { value: 'blue', ifValue: 'red' })).status).toBe(200);
    expect((await server.get(path)).body).toMatchObject({ key: 'config/colour', value: 'blue', version: 2 });
    const swapped = await server.post('/v1/bus', {
      compare: [{ key: 'config/colour', target: 'value', is: '=', than: 'blue' }],
      success: [
        { do: 'put', key: 'n', value: '1' },
        { do: 'get', key: 'config/colour' },
      ],
    });
    expect(swapped.body).toMatchObject({ succeeded: true, results: [{ do: 'put' }, { pair: { value: 'blue' } }] });
    expect((await server.ask('DELETE', path)).body.deleted).toBe(1);
  });
});

describe('a request with an Idempotency-Key', () => {
  const headers = { 'Idempotency-Key': 'k-1' };

  it('is carried out once, and answered the same by another server of the store', async () => {
    const url = `memory:once-${Math.random()}`;
    const [one, two] = [await TestServer.on(url), await TestServer.on(url)];
    try {
      const body = { id: 'only', data: 1 };
      const first = await one.post('/v1/tasks', body, { headers });
      const again = await two.post('/v1/tasks', body, { headers });
      expect([first.status, again.status, again.body]).toEqual([201, 201, first.body]);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
      expect(await two.post('/v1/tasks', body)).toMatchObject({ status: 409 });
      expect(await two.post('/v1/tasks', { id: 'other' }, { headers })).toMatchObject({
        status: 422,
        body: { code: 'key-reused' },
      });
      expect(await two.get('/v1/tasks/other')).toMatchObject({ status: 404 });
      // Another token has keys of its own.
      const token = await one.token('worker');
      expect(await one.post('/v1/tasks', { id: 'other' }, { headers, token })).toMatchObject({ status: 201 });
      const same = await Promise.all(
        [1, 2, 3, 4].map((n) =>
          (n % 2 ? one : two).post('/v1/tasks', { id: 'race' }, { headers: { 'Idempotency-Key': 'k-2' } }),
        ),
      );
      const statuses = same.map(({ status, body: told }) => (status === 201 ? 'published' : told.code));
      expect(statuses).toContain('published');
      expect(statuses.every((status) => status === 'published' || status === 'key-in-use')).toBe(true);
    } finally {
      await Promise.all([one.close(), two.close()]);
    }
  });

  it('gets a refusal again, too, and the key must make sense', async () => {
    await server.post('/v1/locks/kept/acquire', { holder: 'a' });
    const once = { headers: { 'Idempotency-Key': 'k-3' } };
    const refused = await server.post('/v1/locks/kept/acquire', { holder: 'b', wait: false }, once);
    await server.post('/v1/locks/kept/release', { holder: 'a' });
    expect((await server.post('/v1/locks/kept/acquire', { holder: 'b', wait: false }, once)).body).toEqual(
      refused.body,
    );
    expect(await server.post('/v1/tasks', { id: 'z' }, { headers: { 'Idempotency-Key': 'a b' } })).toMatchObject({
      status: 400,
    });
  });

  it('never keeps the secret of a new token', async () => {
    const url = `memory:secret-${Math.random()}`;
    const one = await TestServer.on(url);
    const asked = { headers: { 'Idempotency-Key': 'k-4' } };
    const made = await one.post('/v1/tokens', { name: 't', role: 'viewer' }, asked);
    const again = await one.post('/v1/tokens', { name: 't', role: 'viewer' }, asked);
    expect(made.status).toBe(201);
    expect(again.body.secret).not.toBe(made.body.secret);
    await one.close();
  });
});

describe('the stream of events', () => {
  it('tells what happens, goes on after the last event that was read, and repeats nothing', async () => {
    const url = `memory:stream-${Math.random()}`;
    const [one, other] = [await TestServer.on(url), await TestServer.on(url)];
    try {
      const response = await one.fetch('GET', '/v1/events?pattern=lock:*&pattern=task:published');
      expect(response.headers.get('content-type')).toBe('text/event-stream');
      const { token } = (await one.post('/v1/locks/main/acquire', { holder: 'a' })).body;
      await one.post('/v1/locks/main/acquire', { holder: 'b', waitMs: 0 });
      // One write, two events: a reader may be cut off between the two.
      await one.post('/v1/locks/main/release', { holder: 'a', token });
      await one.post('/v1/tasks', { id: 't-1' });
      const all = await readEvents(response, (found) => found.length === 6);
      const told = all.map(({ event, data }) => `${event} ${data.holder ?? ''}`);
      expect(told.slice(0, 5)).toEqual([
        'open ',
        'lock:acquired a',
        'lock:queued b',
        'lock:released a',
        'lock:acquired b',
      ]);
      expect(told[5]).toContain('task:published');
      for (const [place, { id }] of all.entries()) {
        // From another server, which was not there when it happened.
        const resumed = await other.fetch('GET', '/v1/events?pattern=lock:*&pattern=task:published', undefined, {
          headers: { 'Last-Event-ID': id },
        });
        const left = all.length - 1 - place;
        const rest = await readEvents(resumed, (found) => found.length === left + 1);
        expect(rest.slice(1).map(({ data }) => data)).toEqual(all.slice(place + 1).map(({ data }) => data));
      }
    } finally {
      await Promise.all([one.close(), other.close()]);
    }
  });

  it('of one resource has nothing of others', async () => {
    const response = await server.fetch('GET', '/v1/events?resource=lock/only');
    await server.post('/v1/locks/noise/acquire', { holder: 'a' });
    await server.post('/v1/locks/only/acquire', { holder: 'a' });
    const all = await readEvents(response, (found) => found.length === 2);
    expect(all.map(({ data }) => data.resource)).toEqual([undefined, 'lock/only']);
  });

  describe.each(['memory', 'a file'])('on %s', (on) => {
    let directory: string;
    let store: Store;
    let one: TestServer;
    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'signalbox-stream-'));
      store = on === 'memory' ? openMemory() : await openEmbedded(directory);
      one = new TestServer(await open(store));
      await one.post('/v1/locks/main/acquire', { holder: 'a' });
    });
    afterAll(async () => {
      await one.close();
      rmSync(directory, { recursive: true, force: true });
    });

    /** What a reader with this place hears: `resync` for each source, and then what happens to a lock and a task. */
    async function heardAfterResync(since: number | string, name: string): Promise<readonly string[]> {
      const response = await one.fetch('GET', `/v1/events?since=${since}`);
      const heard: string[] = [];
      for await (const { event, data } of eventsOf(response)) {
        heard.push(event === 'open' || event === 'resync' ? event : `${event} ${data.resource}`);
        if (event === 'resync' && heard.filter((what) => what === 'resync').length === 2) {
          await one.post(`/v1/locks/${name}/acquire`, { holder: 'b' });
          await one.post('/v1/tasks', { id: name });
        }
        if (heard.length === 5) break;
      }
      return heard;
    }

    it('tells a reader that comes back too late to read the state anew, and then goes on', async () => {
      const { revision } = await store.health();
      await store.compact(revision);
      const heard = await heardAfterResync(1, 'late');
      expect([...heard].sort()).toEqual([
        'lock:acquired lock/late',
        'open',
        'resync',
        'resync',
        'task:published task/late',
      ]);
    });

    it('tells a reader of another life of the store to read the state anew, and then goes on', async () => {
      for (const since of [1_000_000, 'r1000000.0,t1000000']) {
        const name = `restored-${since}`;
        const heard = await heardAfterResync(since, name);
        expect([...heard].sort()).toEqual(
          [`lock:acquired lock/${name}`, 'open', 'resync', 'resync', `task:published task/${name}`].sort(),
        );
      }
    });
  });

  it('keeps a bounded amount for a slow reader, and tells it what it missed', async () => {
    const { EventStream } = await import('../../src/server/event-stream.ts');
    const { EventHub } = await import('../../src/server/event-hub.ts');
    const over = new AbortController();
    const hub = new EventHub(server.box, over.signal);
    const settings = { patterns: [], resources: [], heartbeatMs: 60_000, mostWaiting: 2_000 };
    const body = await new EventStream(settings).open(hub, undefined, over.signal);
    const last = 100;
    for (let n = 0; n <= last; n++) await server.ask('PUT', `/v1/locks/slow-${n}/settings`, { maxHoldMs: 1000 });
    for (let n = 0; n <= last; n++) await server.post(`/v1/locks/slow-${n}/acquire`, { holder: 'a' });
    const seen = [];
    for await (const event of eventsOf(new Response(body))) {
      seen.push(event.event);
      if (event.event === 'resync') break;
    }
    expect(seen.length).toBeLessThan(last);
    over.abort();
  });

  it('refuses a pattern or a place that makes no sense', async () => {
    expect(await server.get('/v1/events?pattern=lok:*')).toMatchObject({ status: 400 });
    expect(await server.get('/v1/events?since=yesterday')).toMatchObject({ status: 400 });
  });
});

describe('a drained semaphore over HTTP', () => {
  it('is drained and undone by an administrator, who undoes only the drain that was seen', async () => {
    const path = '/v1/semaphores/drained';
    const held = await server.post(`${path}/acquire`, { holder: 'a', capacity: 2 });
    const drained = await server.post(`${path}/drain`, { reason: 'the database moves', holder: 'ops' });
    expect(drained).toMatchObject({ status: 200, body: { outcome: 'drained', drained: { by: 'ops' } } });
    expect(await server.post(`${path}/acquire`, { holder: 'b', wait: false })).toMatchObject({
      ...{ status: 409, body: { code: 'full', refusal: { drained: { reason: 'the database moves' } } } },
    });
    expect((await server.get(path)).body).toMatchObject({ isDrained: true, availableSlots: 0, drained: { by: 'ops' } });
    const { revision } = drained.body.drained as { revision: number };
    expect(await server.post(`${path}/undrain`, { revision: revision + 1000 })).toMatchObject({
      ...{ status: 409, body: { code: 'wrong-state', outcome: 'another-drain', drained: { revision } } },
    });
    expect(await server.post(`${path}/undrain`, { revision })).toMatchObject({ body: { outcome: 'undrained' } });
    expect(await server.post(`${path}/undrain`, {})).toMatchObject({ status: 409, body: { outcome: 'not-drained' } });
    expect((await server.get(path)).body).toMatchObject({ isDrained: false, drained: null, availableSlots: 1 });
    await server.post(`${path}/release`, { holder: 'a', token: held.body.token });
  });
});
