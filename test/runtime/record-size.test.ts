/** Records, tickets and letters stay below what a store takes in one write, on every engine alike. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NotAcquired, open, type Signalbox } from 'signalbox';
import { openEtcdUrl, Value } from 'signalbox/store';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

const metadata = { text: 'x'.repeat(60 * 1024) };
const engines = ['memory', 'file', ...(isMissing('etcd') ? [] : ['etcd'])];

let etcd: EtcdServer | undefined;
let directory: string;
let made = 0;
const boxes: Signalbox[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox-'));
  if (engines.includes('etcd')) etcd = await startEtcd();
});
afterEach(async () => {
  await Promise.all(boxes.splice(0).map((box) => box.close()));
});
afterAll(async () => {
  await etcd?.stop();
  await rm(directory, { recursive: true });
});

function urlOf(engine: string): string {
  made += 1;
  if (engine === 'memory') return 'memory:';
  return engine === 'file' ? `file:${join(directory, String(made))}` : `etcd://127.0.0.1:${etcd?.port}/s${made}`;
}

async function opened(url: string): Promise<Signalbox> {
  const box = await open(url);
  boxes.push(box);
  return box;
}

describe.each(engines)('on %s', (engine) => {
  it('holders with large metadata are refused beyond the limit, release all of it, and others get in again', async () => {
    const box = await opened(urlOf(engine));
    const semaphore = box.semaphore('big', { capacity: 40 });
    const holds = [];
    let refusal: unknown;
    for (let i = 0; i < 40 && refusal === undefined; i++) {
      try {
        holds.push(await semaphore.acquire({ holder: `h${i}`, metadata }));
      } catch (error) {
        refusal = error;
      }
    }
    expect(holds).toHaveLength(8);
    expect(refusal).toBeInstanceOf(NotAcquired);
    expect((refusal as NotAcquired).refusal).toMatchObject({ kind: 'too-large', most: 524_288 });
    expect(String(refusal)).toMatch(/semaphore\/big: with it the record would have \d+ bytes, and at most 524288/);
    expect(await semaphore.tryAcquire({ metadata })).toMatchObject({ kind: 'too-large' });
    for (const hold of holds) expect(await hold.release()).toMatchObject({ kind: 'released' });
    await (await semaphore.acquire({ metadata })).release();
  });

  it('many who wait with large metadata at once all get their turn, or are told', async () => {
    const url = urlOf(engine);
    const box = await opened(url);
    const other = engine === 'memory' ? box : await opened(url);
    const first = await box
      .semaphore('s', { capacity: 20 })
      .acquire({ weight: 20, metadata, reason: 'r'.repeat(60_000) });
    let waiting = 0;
    const asked = Array.from({ length: 20 }, (_, i) =>
      (i % 2 === 0 ? box : other)
        .semaphore('s', { capacity: 20 })
        .run(() => 'had it', { metadata, reason: 'r'.repeat(60_000), onWaiting: () => void (waiting += 1) })
        .catch((error: NotAcquired) => error.refusal.kind),
    );
    await expect.poll(() => waiting, { interval: 20 }).toBe(20);
    await first.release();
    const outcomes = await Promise.all(asked);
    for (const outcome of outcomes) expect(['had it', 'too-large']).toContain(outcome);
    expect(outcomes.filter((outcome) => outcome === 'had it').length).toBeGreaterThanOrEqual(4);
    expect(await box.semaphore('s').inspect()).toMatchObject({ usedSlots: 0, waiting: [] });
  });

  it('everything by force, with a long reason, fits', async () => {
    const box = await opened(urlOf(engine));
    const lock = box.lock('l');
    for (let i = 0; i < 8; i++) await lock.acquire({ mode: 'shared', holder: `h${i}`, metadata });
    const reason = 'r'.repeat(60_000);
    const hold = await lock.acquire({ holder: 'chief', strategy: 'force', reason, metadata });
    expect((await lock.inspect()).holders).toHaveLength(1);
    await hold.release();
  });

  it('data of tasks, values of the bus and metadata of members are refused before anything is sent', async () => {
    const box = await opened(urlOf(engine));
    const large = 'x'.repeat(1024 * 1024 + 1);
    const invalid = (words: RegExp) => ({ code: 'invalid', message: expect.stringMatching(words) });
    await expect(box.tasks.publish('t', { large })).rejects.toMatchObject(invalid(/at most 1048576/));
    await expect(box.members.join('m', { large })).rejects.toMatchObject(invalid(/at most 65536/));
    await expect(box.bus.put('/k', large)).rejects.toMatchObject(invalid(/at most 1048576/));
    const most = 'x'.repeat(1024 * 1024 - 100);
    await box.tasks.publish('t', { most });
    const claim = await box.tasks.claim('t');
    await claim.complete({ most });
    await box.bus.put('/k', most);
  });
});

it.skipIf(isMissing('etcd'))('a transaction that etcd would not take is invalid, and the limit is named', async () => {
  const store = await openEtcdUrl(`etcd://127.0.0.1:${etcd?.port}/raw`, { requestTimeoutMs: 20_000 });
  const value = Value.text('x'.repeat(800 * 1024));
  const puts = ['a', 'b'].map((key) => ({ do: 'put', key, value }) as const);
  await expect(store.transaction({ compare: [], success: puts, failure: [] })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/a transaction of 1638\d+ bytes; etcd accepts at most 1571840 \(1.5 MiB\)/),
  });
  await store.transaction({ compare: [], success: puts.slice(1), failure: [] });
  await store.close();
});
