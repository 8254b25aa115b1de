// The state of a store as files, and back into any store.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Failure, open, type Signalbox } from 'signalbox';
import { openMemory } from 'signalbox/store';
import { book, phase } from '../pipelines/books.ts';
import { Fleet } from '../support/fleet.ts';
import { errorOf, settled } from '../support/outcome.ts';

let dir: string;
const boxes: Signalbox[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'signalbox-state-'));
});
afterEach(async () => {
  await Promise.all(boxes.splice(0).map((box) => box.close()));
  rmSync(dir, { recursive: true, force: true });
});

async function newBox(fleet = new Fleet(true), name = 'p'): Promise<Signalbox> {
  const { box } = await fleet.start(name);
  boxes.push(box);
  return box;
}

function texts(folder = dir): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

/** One of everything. */
async function furnish(fleet: Fleet): Promise<Signalbox> {
  const box = await newBox(fleet);
  const dying = await fleet.start('dying', { sessionTtlMs: 2000 });
  await dying.box.lock('stale').acquire({ holder: 'worker:dead' });
  await box.lock('stale').configure({ onStale: 'alert' });
  dying.crash();
  await fleet.advance(3000);
  await box.lock('ümläut / slash').acquire({ holder: 'worker:1', reason: 'why', metadata: { b: 1, a: [null, 'x'] } });
  await box.lock('read').acquireDetached({ holder: 'r:1', mode: 'shared', ttlMs: 90_000 });
  await box.lock('read').acquireDetached({ holder: 'r:2', mode: 'shared', maxHoldMs: 600_000 });
  await box.semaphore('builds', { capacity: 5 }).acquire({ holder: 'ci:1', weight: 2 });
  await box.semaphore('builds').acquireDetached({ holder: 'ci:2', weight: 1 });
  await box.semaphore('later').configure({ onStale: 'alert' });
  await box.maintain();
  const { tasks } = box;
  for (const id of ['pending', 'running', 'complete', 'failed']) await tasks.publish(id, { id }, { retries: 0 });
  await tasks.claim('running', { holder: 'worker:1' });
  await (await tasks.claim('complete', { holder: 'worker:2' })).complete([1]);
  await (await tasks.claim('failed', { holder: 'worker:3' })).fail('red');
  await box.bus.put('config/colour', 'red');
  await box.pipelines.start(book(phase('build')), { id: 'release' });
  // After it: maintenance deletes the records of free locks.
  await (await box.lock('free').acquire()).release();
  return box;
}

describe('the state of a store', () => {
  it('goes through files into an empty store and out again without changing a byte', async () => {
    const box = await furnish(new Fleet(true));
    // Driven once, by a driver with a token of this store.
    const functions = new Map([['build', () => undefined]]);
    await box.pipelines.start(book(phase('build')), { id: 'done' });
    expect(await box.pipelines.resume('done', { functions })).toMatchObject({ record: { state: 'done' } });
    const { files } = await box.saveState(join(dir, 'one'));
    expect(files.map((file) => file.slice(dir.length))).toEqual(
      ['locks', 'semaphores', 'tasks', 'pipelines', 'keys'].map((name) => `/one/${name}.json`),
    );
    const other = await newBox(new Fleet(false));
    expect(await other.loadState(join(dir, 'one'))).toEqual({
      kind: 'loaded',
      ...{ locks: 5, semaphores: 2, holds: 6, tasks: 4, pipelines: 2, keys: 1 },
    });
    await other.saveState(join(dir, 'two'));
    expect(texts(join(dir, 'two'))).toEqual(texts(join(dir, 'one')));
    expect(readdirSync(join(dir, 'one')).toSorted()).toEqual(
      ['keys', 'locks', 'pipelines', 'semaphores', 'tasks'].map((name) => `${name}.json`),
    );
  });

  it('is written for its owner alone', async () => {
    const { files } = await (await newBox()).saveState(join(dir, 'new', 'one'));
    const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
    expect(files.map(modeOf)).toEqual(files.map(() => '600'));
    expect(modeOf(join(dir, 'new', 'one'))).toBe('700');
  });

  it('comes back with tasks and pipelines that go on, and overwrites none that are there', async () => {
    await (await furnish(new Fleet(true))).saveState(dir);
    const other = await newBox(new Fleet(true));
    await other.loadState(dir);
    const { tasks } = other;
    expect((await tasks.list()).map(({ id, status, owner }) => [id, status, owner])).toEqual([
      ['pending', 'pending', undefined],
      // Its worker has no lease here.
      ['running', 'pending', undefined],
      ['complete', 'complete', 'worker:2'],
      ['failed', 'failed', 'worker:3'],
    ]);
    expect(await tasks.show('complete')).toMatchObject({ result: [1], attempts: 1, isLeased: false });
    expect(await tasks.tryClaim('complete')).toMatchObject({ kind: 'finished' });
    expect((await tasks.claimNext()).id).toBe('pending');
    expect((await tasks.claimNext()).id).toBe('running');
    expect(await other.bus.get('config/colour')).toBe('red');
    const functions = new Map([['build', () => undefined]]);
    const driven = await other.pipelines.resume('release', { functions });
    expect(driven).toMatchObject({ kind: 'left', record: { state: 'done' } });

    const busy = await newBox(new Fleet(true));
    await busy.tasks.publish('failed', { mine: true });
    await busy.bus.put('config/colour', 'blue');
    expect(await busy.loadState(dir)).toEqual({
      kind: 'refused',
      loaded: 0,
      conflicts: [
        { resource: 'task/failed', why: 'there is one already' },
        { resource: 'key config/colour', why: 'there is one already' },
      ],
    });
    expect(await busy.tasks.list()).toHaveLength(1);
    expect((await busy.survey()).locks).toEqual([]);
  });

  it('comes back with holds that any process with holder and token renews and releases', async () => {
    const fleet = new Fleet(true);
    const box = await newBox(fleet);
    const { token } = await box.lock('main').acquire({ holder: 'worker:1' });
    const slots = await box.semaphore('s', { capacity: 3 }).acquire({ holder: 'worker:1', weight: 2 });
    await box.saveState(dir);
    const target = new Fleet(true);
    const other = await newBox(target);
    await other.loadState(dir);

    const lock = other.lock('main');
    expect((await lock.tryAcquire({ holder: 'x' })).kind).toBe('busy');
    await target.advance(50_000);
    expect(await lock.renew({ holder: 'worker:1', token })).toMatchObject({ kind: 'refreshed', ttlMs: 60_000 });
    expect(await lock.release({ holder: 'worker:1', token: token + 1 })).toEqual({ kind: 'not-owner' });
    expect(await lock.release({ holder: 'worker:1', token })).toEqual({ kind: 'released' });
    const [semaphore] = (await other.survey()).semaphores;
    expect(semaphore).toMatchObject({ capacity: 3, holds: [{ token: slots.token, slots: [0, 1], isAttached: false }] });
  });

  it('never lets a token go back: the next grant has a larger one than any that was imported', async () => {
    writeFileSync(
      join(dir, 'locks.json'),
      // As some editors save it, with a mark before it.
      '\uFEFF' + JSON.stringify({ version: 1, locks: [{ name: 'a', token: 500, onStale: 'reclaim', holds: [] }] }),
    );
    writeFileSync(join(dir, 'semaphores.json'), JSON.stringify({ version: 1, semaphores: [] }));
    const box = await newBox();
    await box.loadState(dir);
    const hold = await box.lock('a').acquire();
    expect(hold.token).toBeGreaterThan(500);
    await hold.release();
    await box.loadState(dir);
    expect((await box.lock('a').acquire()).token).toBeGreaterThan(hold.token);
  });

  it('brings no hold back behind a newer token, also once the record of the lock was deleted', async () => {
    const fleet = new Fleet(true);
    const box = await newBox(fleet);
    const hold = await box.lock('main').acquire({ holder: 'a' });
    await box.saveState(dir);
    await hold.release();
    const newer = await box.lock('main').acquire({ holder: 'b' });
    await newer.release();
    await box.lock('other').acquire();
    const maintained = box.maintain();
    // Before it deletes anything, it gives others on the event loop their turn: a timer on this clock.
    await fleet.advance(1);
    expect((await maintained).forgotten).toBe(1);
    expect(await box.loadState(dir)).toMatchObject({ kind: 'refused', conflicts: [{ resource: 'lock/main' }] });
    expect(await box.lock('main').isFree()).toBe(true);
  });

  it('keeps what was stale stale, and what a person has to decide undecided', async () => {
    const source = new Fleet(true);
    await (await furnish(source)).saveState(dir);
    const other = await newBox();
    await other.loadState(dir);
    expect((await other.lock('stale').tryAcquire()).kind).toBe('busy');
    expect(await other.lock('stale').isStale()).toBe(true);
    expect((await other.lock('stale').acquire({ strategy: 'steal-stale', waitMs: 0 })).token).toBeGreaterThan(0);
  });

  it('leaves out who waits: a wait is a process, and does not survive in a file', async () => {
    const box = await newBox();
    const hold = await box.lock('main').acquire({ holder: 'a' });
    const waiting = box.lock('main').acquire({ holder: 'b' });
    await settled();
    const { state } = await box.saveState(dir);
    expect(JSON.stringify(state)).not.toContain('"b"');
    await hold.release();
    await (await waiting).release();
  });

  it('is not imported over anything that is held or waited for, and then nothing of it is', async () => {
    const source = new Fleet(true);
    await (await furnish(source)).saveState(dir);
    const box = await newBox();
    const hold = await box.lock('read').acquire({ holder: 'somebody' });
    const outcome = await box.loadState(dir);
    expect(outcome).toEqual({
      kind: 'refused',
      conflicts: [{ resource: 'lock/read', why: 'it is held, by somebody' }],
      loaded: 0,
    });
    expect((await box.survey()).locks.map(({ name }) => name)).toEqual(['read']);
    await hold.release();
    expect(await box.loadState(dir)).toMatchObject({ kind: 'loaded' });
  });

  it('does not undo a drain, and tells of one that it brings', async () => {
    const from = await newBox();
    await from.semaphore('slots', { capacity: 2 }).configure({ ttlMs: 60_000 });
    await from.saveState(join(dir, 'open'));
    await from.semaphore('slots').drain({ holder: 'ops', reason: 'migration' });
    await from.saveState(join(dir, 'closed'));
    const into = await newBox();
    const told: string[] = [];
    await into.on('*', ({ type }) => void told.push(type));
    expect((await into.loadState(join(dir, 'closed'))).kind).toBe('loaded');
    await settled();
    await settled();
    expect(told).toContain('semaphore:drained');
    expect(await into.loadState(join(dir, 'open'))).toMatchObject({
      kind: 'refused',
      conflicts: [{ resource: 'semaphore/slots', why: 'it is drained, by ops; undo that first' }],
    });
  });

  it('is not imported where a hold would come back with a token that is behind one given out since', async () => {
    const source = await newBox();
    const held = await source.lock('main').acquire({ holder: 'worker:1' });
    await source.saveState(dir);
    const box = await newBox();
    const earlier = await box.lock('main').acquire();
    await earlier.release();
    expect(earlier.token).toBeGreaterThanOrEqual(held.token);
    expect(await box.loadState(dir)).toMatchObject({
      kind: 'refused',
      conflicts: [{ resource: 'lock/main', why: expect.stringContaining('go back') }],
    });
    expect(await box.lock('main').isFree()).toBe(true);
  });

  it('publishes events of the holds that came back', async () => {
    const source = await newBox();
    await source.lock('main').acquire({ holder: 'worker:1' });
    await source.saveState(dir);
    const box = await newBox();
    const told: string[] = [];
    await box.on('*', (event) => {
      told.push(`${event.type} ${event.holder} ${'imported' in event && event.imported}`);
    });
    await box.loadState(dir);
    await settled();
    await settled();
    expect(told).toEqual(['lock:acquired worker:1 true']);
  });

  it('whose load was written without an answer is there, with its holds, and can be loaded again', async () => {
    const source = await newBox();
    await source.lock('main').acquireDetached({ holder: 'worker:1' });
    await source.saveState(dir);
    const store = openMemory();
    const transaction = store.transaction.bind(store);
    let isLost = true;
    Object.assign(store, { transactionNow: undefined });
    store.transaction = async (asked, signal) => {
      const result = await transaction(asked, signal);
      if (!isLost || !asked.success.some((one) => one.do === 'put' && one.key === 'r/lock/main')) return result;
      isLost = false;
      throw new Failure('outcome-unknown', 'no answer came');
    };
    const box = await open(store);
    boxes.push(box);
    expect(await errorOf(box.loadState(dir))).toMatchObject({ code: 'outcome-unknown' });
    const { locks } = await box.survey({ resource: { kind: 'lock', name: 'main' } });
    expect(locks[0]?.holds).toMatchObject([{ holder: 'worker:1', isStale: false }]);
    expect(await box.loadState(dir)).toMatchObject({ kind: 'loaded', holds: 1 });
  });

  it('of which an interrupted load has written some can be loaded again, and the failure says how much was loaded', async () => {
    const source = await newBox();
    await source.lock('main').acquire({ holder: 'worker:1' });
    await source.tasks.publish('first', { n: 1 });
    await source.pipelines.start(book(phase('build')), { id: 'release' });
    await source.saveState(dir);
    // Together they are more than a store takes in one request.
    const pipelines = JSON.parse(readFileSync(join(dir, 'pipelines.json'), 'utf8')) as {
      pipelines: { logs: Record<string, unknown> }[];
    };
    for (const run of [1, 2, 3, 4])
      (pipelines.pipelines[0] as { logs: Record<string, unknown> }).logs[`000/00000${run}`] = 'ü'.repeat(300_000);
    writeFileSync(join(dir, 'pipelines.json'), JSON.stringify(pipelines));
    const store = openMemory();
    const sizes: number[] = [];
    let isFull = true;
    const transaction = store.transaction.bind(store);
    // All writes go the way that can be refused here.
    Object.assign(store, { transactionNow: undefined });
    store.transaction = (asked, signal) => {
      const puts = asked.success.filter((one) => one.do === 'put');
      sizes.push(puts.reduce((sum, { value }) => sum + Buffer.byteLength(value.text), 0));
      const isRefused = isFull && puts.some(({ key }) => key.startsWith('s/pipeline/'));
      return isRefused ? Promise.reject(new Failure('invalid', 'too large')) : transaction(asked, signal);
    };
    const box = await open(store);
    boxes.push(box);
    expect(await errorOf(box.loadState(dir))).toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/^pipeline\/release: too large \(1 of 2 tasks, pipelines and keys were loaded/),
    });
    isFull = false;
    expect(await box.loadState(dir)).toMatchObject({ kind: 'loaded', locks: 1, tasks: 1, pipelines: 1 });
    expect(Math.max(...sizes)).toBeLessThan(1_500_000);
    await box.saveState(join(dir, 'two'));
    const saved = readFileSync(join(dir, 'two', 'pipelines.json'), 'utf8');
    expect(JSON.parse(saved)).toEqual(pipelines);
  });

  it('may have more resources than one transaction holds', async () => {
    const box = await newBox();
    for (let place = 0; place < 150; place++) await (await box.lock(`l${place}`).acquire()).release();
    await box.saveState(join(dir, 'one'));
    const other = await newBox();
    expect(await other.loadState(join(dir, 'one'))).toMatchObject({ kind: 'loaded', locks: 150 });
    await other.saveState(join(dir, 'two'));
    expect(texts(join(dir, 'two'))).toEqual(texts(join(dir, 'one')));
  });

  it('comes back into a file: store as well', async () => {
    await (await furnish(new Fleet(true))).saveState(join(dir, 'one'));
    const box = await open(`file:${join(dir, 'store')}`);
    boxes.push(box);
    expect(await box.loadState(join(dir, 'one'))).toMatchObject({ kind: 'loaded' });
    await box.saveState(join(dir, 'two'));
    expect(texts(join(dir, 'two'))).toEqual(texts(join(dir, 'one')));
  });
});

const hold = { holder: 'a', token: 3, acquiredAt: '2026-01-01T00:00:00.000Z', mode: 'exclusive' };
const lock = { name: 'x', token: 3, onStale: 'reclaim', holds: [hold] };
const slots = { holder: 'a', token: 3, acquiredAt: '2026-01-01T00:00:00.000Z', weight: 1, slots: [0] };
const semaphore = { name: 's', capacity: 2, token: 3, onStale: 'reclaim', holds: [slots] };

describe('a file that is not as it should be', () => {
  it.each([
    ['no JSON', '{', 'locks.json is not JSON'],
    [
      'of a newer version',
      { version: 2, locks: [], somethingNew: 1 },
      'version: version 2, and this signalbox reads 1',
    ],
    ['of no version', { locks: [] }, 'version is missing'],
    ['a list', [], 'expected an object'],
    ['with an unknown key', { version: 1, locks: [], extra: 1 }, 'extra: nobody knows this key'],
    ['with a lock that is none', { version: 1, locks: [7] }, 'locks[0]: 7; expected an object'],
    [
      'with a misspelt key',
      { version: 1, locks: [{ ...lock, onstale: 1 }] },
      'locks[0].onstale: nobody knows this key',
    ],
    ['without a name', { version: 1, locks: [{ ...lock, name: undefined }] }, 'locks[0]: name is missing'],
    ['with a bad name', { version: 1, locks: [{ ...lock, name: 'a\u0007' }] }, 'locks[0]: name "a\\u0007"'],
    ['with a name twice', { version: 1, locks: [lock, lock] }, 'locks[1].name: "x" is named already, at locks[0]'],
    [
      'with a token that leaves no room for larger ones',
      { version: 1, locks: [{ ...lock, token: Number.MAX_SAFE_INTEGER - 1, holds: [] }] },
      'locks[0].token: 9007199254740990 is too large',
    ],
    ['with a bad token', { version: 1, locks: [{ ...lock, token: -1 }] }, 'locks[0].token: -1'],
    [
      'with a token above the last',
      { version: 1, locks: [{ ...lock, token: 2 }] },
      'locks[0].holds[0].token: 3, above',
    ],
    [
      'with no holder',
      { version: 1, locks: [{ ...lock, holds: [{ ...hold, holder: '' }] }] },
      'locks[0].holds[0]: holder',
    ],
    ['with a bad mode', { version: 1, locks: [{ ...lock, holds: [{ ...hold, mode: 'x' }] }] }, 'holds[0]: mode is "x"'],
    [
      'with a bad time',
      { version: 1, locks: [{ ...lock, holds: [{ ...hold, acquiredAt: 'now' }] }] },
      'acquiredAt: "now"',
    ],
    ['with a bad ttl', { version: 1, locks: [{ ...lock, holds: [{ ...hold, ttlMs: 0 }] }] }, 'ttlMs is 0'],
    [
      'with a writer beside a reader',
      { version: 1, locks: [{ ...lock, holds: [hold, { ...hold, holder: 'b', token: 2, mode: 'shared' }] }] },
      'locks[0].holds: an exclusive hold beside others',
    ],
    [
      'with one token twice',
      { version: 1, locks: [{ ...lock, holds: [hold, { ...hold, holder: 'b' }] }] },
      'holds[1].token: 3 is the token of another hold',
    ],
  ])('is refused before anything is written: %s', async (_, locks, message) => {
    await expectRefused(locks, { version: 1, semaphores: [] }, message);
  });

  it.each([
    ['with a slot twice', [slots, { ...slots, holder: 'b', token: 2 }], 'holds[1].slots: slot 0 is held already'],
    ['with fewer slots than weight', [{ ...slots, weight: 2 }], 'holds[0].slots: [0]; expected'],
    ['with a bad weight', [{ ...slots, weight: 0 }], 'weight is 0'],
    ['with a holder twice', [slots, { ...slots, token: 2, slots: [1] }], 'holds[1].holder: "a" has a hold already'],
  ])('is refused before anything is written: a semaphore %s', async (_, holds, message) => {
    const semaphores = { version: 1, semaphores: [{ ...semaphore, holds }] };
    await expectRefused({ version: 1, locks: [lock] }, semaphores, message);
  });

  it('or is not there at all is refused: a state of which half is missing is not one', async () => {
    writeFileSync(join(dir, 'locks.json'), JSON.stringify({ version: 1, locks: [lock] }));
    const box = await newBox();
    expect(await errorOf(box.loadState(dir))).toMatchObject({ message: expect.stringContaining('semaphores.json') });
    expect((await box.survey()).locks).toEqual([]);
  });

  async function expectRefused(locks: unknown, semaphores: unknown, message: string): Promise<void> {
    writeFileSync(join(dir, 'locks.json'), typeof locks === 'string' ? locks : JSON.stringify(locks));
    writeFileSync(join(dir, 'semaphores.json'), JSON.stringify(semaphores));
    const box = await newBox();
    const error = await errorOf(box.loadState(dir));
    expect(error).toMatchObject({ code: 'corrupt', message: expect.stringContaining(message) });
    expect(error).toMatchObject({ message: expect.stringMatching(/(locks|semaphores)\.json/) });
    expect(await box.survey()).toMatchObject({ locks: [], semaphores: [] });
  }
});
