// What the dashboard reads: its own files without a token, everything at once, some resources again, what happened.

import { open } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storeName } from '../../src/server/store-name.ts';
import { always, openMemory, Value } from '../../src/store/index.ts';
import { eventsOf, TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.on();
});
afterAll(() => server.close());

describe('the files of the dashboard', () => {
  it('need no token, run nothing but their own script, and are kept by browsers as long as they are the same', async () => {
    const page = await server.fetch('GET', '/', undefined, { token: '' });
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('cache-control')).toBe('no-cache');
    expect(page.headers.get('content-security-policy')).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'",
    );
    const html = await page.text();
    // What the policy forbids, and what would ask another server.
    expect(html).not.toMatch(/<style|style=|onload=|<script(?![^>]*src="\/?app-)|https?:\/\/(?!www\.w3\.org)/);
    const files = [...html.matchAll(/(?:src|href)="\/?(app-[\w-]+\.(?:js|css))"/g)].map(([, name]) => `/${name ?? ''}`);
    expect(files).toHaveLength(2);
    let bytes = 0;
    for (const file of files) {
      const zipped = { 'Accept-Encoding': 'gzip' };
      const answer = await server.fetch('GET', file, undefined, { token: '', headers: zipped });
      expect([answer.status, answer.headers.get('content-encoding')]).toEqual([200, 'gzip']);
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      bytes += (await answer.arrayBuffer()).byteLength;
      const known = { 'If-None-Match': answer.headers.get('etag') ?? '' };
      expect((await server.fetch('GET', file, undefined, { token: '', headers: known })).status).toBe(304);
    }
    expect(bytes).toBeLessThan(150 * 1024);
  });

  it('are all that is handed out', async () => {
    for (const path of ['/files.json', '/app.js', '/..%2fpackage.json', '/index.html']) {
      expect((await server.fetch('GET', path, undefined, { token: '' })).status).toBe(404);
    }
  });
});

describe('the board', () => {
  it('has everything, what the token allows, and the place from which events follow without a gap', async () => {
    const token = await server.token('viewer');
    await server.post('/v1/locks/main/acquire', { holder: 'a' });
    await server.post('/v1/locks/main/acquire', { holder: 'b', waitMs: 0 });
    await server.post('/v1/semaphores/gpu/acquire', { holder: 'a', weight: 2, capacity: 4 });
    await server.post('/v1/tasks', { id: 't', data: { secret: 'not for the board' } });
    const { status, body } = await server.get('/v1/board', { token });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      token: { name: 'a viewer', role: 'viewer', holders: null },
      store: { engine: 'memory', name: 'in memory' },
      counts: { pending: 1, running: 0, complete: 0, failed: 0 },
      locks: [{ name: 'main', holds: [{ holder: 'a' }], waiting: [{ holder: 'b' }] }],
      semaphores: [{ name: 'gpu', capacity: 4, usedSlots: 2 }],
      tasks: [{ task: 't', status: 'pending', data: null }],
      allowsCommands: false,
    });
    expect(body.since).toBeLessThanOrEqual(body.revision);
    const stream = await server.fetch('GET', `/v1/events?since=${body.since}`, undefined, { token });
    await server.post('/v1/locks/next/acquire', { holder: 'c' });
    for await (const { event, data } of eventsOf(stream)) {
      if (event === 'open') continue;
      expect([event, data.resource]).toEqual(['lock:acquired', 'lock/next']);
      break;
    }
  });

  it('comes in lines too, so that a reader can do something else between two of them', async () => {
    for (let place = 0; place < 60; place++) await server.box.lock(`many/${place}`).acquire({ holder: 'a' });
    await server.box.semaphore('many', { capacity: 2 }).acquire({ holder: 'a' });
    const response = await server.fetch('GET', '/v1/board/lines');
    expect(response.headers.get('content-type')).toBe('application/jsonl');
    const [first, ...rest] = (await response.text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, { name: string }[]>);
    const { body } = await server.get('/v1/board');
    const { locks, semaphores, ...others } = body;
    expect(Object.keys(first ?? {})).toEqual(Object.keys(others));
    expect(rest.pop()).toEqual({ isWhole: true });
    const named = (what: string): readonly string[] => rest.flatMap((line) => line[what] ?? []).map(({ name }) => name);
    const names = (all: readonly { name: string }[]): readonly string[] => all.map(({ name }) => name);
    expect([named('locks'), named('semaphores')]).toEqual([names(locks), names(semaphores)]);
    expect(Math.max(...rest.map((line) => (line['locks'] ?? line['semaphores'] ?? []).length))).toBe(50);
  });

  it('is asked again for some resources by name, each with its revision', async () => {
    const { body } = await server.get('/v1/resources?resource=lock/main&resource=semaphore/gpu&resource=lock/never');
    expect(body.locks).toMatchObject([{ name: 'main' }, { name: 'never', isFree: true }]);
    expect(body.semaphores).toMatchObject([{ name: 'gpu', capacity: 4 }]);
    for (const one of [...body.locks, ...body.semaphores]) expect(one.revision).toBeGreaterThan(0);
    expect(await server.get('/v1/resources?resource=main')).toMatchObject({ status: 400 });
    const many = Array.from({ length: 101 }, (_, place) => `resource=lock/${place}`).join('&');
    expect(await server.get(`/v1/resources?${many}`)).toMatchObject({ status: 400 });
  });

  it('is asked again for others although one of them cannot be read', async () => {
    const store = openMemory();
    const other = new TestServer(await open(store));
    const ticket = { do: 'put', key: 'q/lock/damaged/100/x.1', value: Value.text('no JSON') } as const;
    await store.transaction(always([ticket]));
    const { status, body } = await other.get('/v1/resources?resource=lock/damaged&resource=lock/main');
    expect([status, body.locks.map(({ name }: { name: string }) => name)]).toEqual([200, ['main']]);
    expect(body.malformed).toEqual([{ resource: 'lock/damaged', why: expect.stringContaining(ticket.key) as string }]);
    await other.close();
  });

  it('is followed by what happened to one resource', async () => {
    const { body } = await server.get('/v1/history?resource=lock/main&pattern=lock:acquired&pattern=lock:queued');
    expect(body.events.map(({ type, holder }: { type: string; holder: string }) => `${type} ${holder}`)).toEqual([
      'lock:acquired a',
      'lock:queued b',
    ]);
    expect(body).toMatchObject({ isWhole: true, next: null });
    expect(await server.get('/v1/history?pattern=nonsense')).toMatchObject({ status: 400 });
  });
});

type Told = { readonly id: string; readonly type: string; readonly resource: string };

describe('history', () => {
  it('comes in the order of the store, tasks and the rest in one, page by page from the newest back', async () => {
    for (let turn = 0; turn < 3; turn++) {
      await server.post('/v1/tasks', { id: `ordered-${turn}` });
      await server.post(`/v1/locks/ordered-${turn}/acquire`, { holder: 'a' });
    }
    const { body: all } = await server.get('/v1/history');
    const revisions = all.events.map(({ id }: Told) => Number(id.split('.')[0]));
    expect(revisions).toEqual([...revisions].sort((one, other) => one - other));
    const pages: Told[][] = [];
    for (let before = ''; ;) {
      const { body } = await server.get(`/v1/history?limit=4${before}`);
      expect(body.events.length).toBeLessThanOrEqual(4);
      pages.unshift(body.events);
      if (body.next === null) break;
      before = `&before=${body.next}`;
    }
    expect(pages.length).toBeGreaterThan(2);
    expect(pages.flat()).toEqual(all.events);
    expect(await server.get('/v1/history?before=999999999.0')).toMatchObject({ status: 400 });
  });
});

describe('what is read again', () => {
  it('is as of a revision, so that a reader can leave out an answer that events have overtaken', async () => {
    const { body: published } = await server.post('/v1/tasks', { id: 'dated' });
    expect(published.outcome).toBe('published');
    const { revision } = await server.box.health();
    for (const path of ['/v1/tasks/dated', '/v1/members', '/v1/tasks/nothing', '/v1/pipelines/nothing']) {
      expect((await server.get(path)).body.revision).toBeGreaterThanOrEqual(revision);
    }
  });

  it('has all but the holds of the board, which are many', async () => {
    const { body } = await server.get('/v1/board?holds=false');
    expect(body).toMatchObject({ troubles: [], malformed: [] });
    expect(body.tasks.length).toBeGreaterThan(0);
    expect([body.locks, body.semaphores]).toEqual([undefined, undefined]);
  });
});

describe('the name of a store', () => {
  it('says what it is, and not where it lies or how to get in', () => {
    expect(
      ['file:/home/ann/shop/.git/signalbox', 'file:/var/lib/box', 'etcd://ann:secret@a:2379,b:2379', 'memory:'].map(
        storeName,
      ),
    ).toEqual([
      { engine: 'embedded', name: 'shop' },
      { engine: 'embedded', name: 'box' },
      { engine: 'etcd', name: 'a:2379,b:2379' },
      { engine: 'memory', name: 'in memory' },
    ]);
  });
});
