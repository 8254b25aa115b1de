// What an entry says of its command: who asked, for which trace, and how long the request had waited.

import type { Signalbox } from 'signalbox';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { WitnessedCommand } from '../../src/core/index.ts';
import { encode, WITNESS_SETTING } from '../../src/runtime/layout.ts';
import type { WitnessFilter } from '../../src/runtime/witness/filter.ts';
import { always, openMemory } from '../../src/store/index.ts';
import { TestClock } from '../../src/testing/test-clock.ts';
import { settled } from '../support/outcome.ts';
import { opening } from './boxes.ts';

const HOUR = 3_600_000;
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;

async function commands(box: Signalbox, filter: WitnessFilter = {}): Promise<readonly WitnessedCommand[]> {
  const all: WitnessedCommand[] = [];
  for await (const entry of box.witness.entries(filter)) all.push(...entry.commands);
  return all;
}

interface Contest {
  /** How the request of the second ends. */
  readonly outcome: string;
  /** The first has what the second waits for, until `end`. */
  begin(box: Signalbox): Promise<{ readonly waiting: Promise<unknown>; end(): Promise<unknown> }>;
}

const SECOND = { holder: 'bob' };

function claimContest(wait: (box: Signalbox) => Promise<unknown>): Contest {
  return {
    outcome: 'claimed',
    async begin(box) {
      await box.tasks.publish('7', {});
      const first = await box.tasks.claim('7', { holder: 'ann' });
      return { waiting: wait(box), end: () => first.release() };
    },
  };
}

const contests: Readonly<Record<string, Contest>> = {
  lock: {
    outcome: 'acquired',
    async begin(box) {
      const first = await box.lock('main').acquire({ holder: 'ann' });
      return { waiting: box.lock('main').acquire(SECOND), end: () => first.release() };
    },
  },
  semaphore: {
    outcome: 'acquired',
    async begin(box) {
      const first = await box.semaphore('s', { capacity: 1 }).acquire({ holder: 'ann' });
      return { waiting: box.semaphore('s', { capacity: 1 }).acquire(SECOND), end: () => first.release() };
    },
  },
  upgrade: {
    outcome: 'upgraded',
    async begin(box) {
      const first = await box.lock('main').acquire({ holder: 'ann', mode: 'shared' });
      const own = await box.lock('main').acquire({ ...SECOND, mode: 'shared' });
      return { waiting: own.upgrade(), end: () => first.release() };
    },
  },
  'claim of one task': claimContest((box) => box.tasks.claim('7', SECOND)),
  'claim of the next task': claimContest((box) => box.tasks.claimNext(SECOND)),
  'detached claim': claimContest((box) => box.tasks.claimNextDetached(SECOND)),
};

describe('an entry says how long a request had waited', () => {
  it.each(Object.entries(contests))('for a %s', async (_, { outcome, begin }) => {
    const clock = new TestClock();
    const box = await opening(openMemory({ clock }), { clock });
    const { waiting, end } = await begin(box);
    await settled();
    await clock.advance(HOUR);
    await end();
    await waiting;
    const waited = (await commands(box)).filter(({ waitedMs }) => waitedMs !== undefined);
    expect(waited).toMatchObject([{ actor: 'bob', outcome, waitedMs: HOUR }]);
  });
});

describe('an origin that cannot be entered as it is', () => {
  it('keeps nobody from releasing to the process that wrote it', async () => {
    const store = openMemory();
    const ann = await opening(store, { traceId: 'build-1' });
    // Half of a character, as a text that was cut has.
    const bob = await opening(store, { traceId: '\ud83d', component: '\ud83d' });
    const hold = await ann.lock('main').acquire({ holder: 'ann' });
    const waiting = bob.lock('main').acquire(SECOND);
    await settled();
    await hold.release();
    await (await waiting).release();
    const ofBob = (await commands(ann)).filter(({ actor }) => actor === 'bob');
    expect(ofBob.map(({ outcome }) => outcome)).toEqual(['acquired', 'released']);
    expect(await ann.witness.verify()).not.toHaveProperty('finding.kind');
  });
});

describe('an entry names the trace', () => {
  afterEach(() => void vi.unstubAllEnvs());

  it.each([
    ['of the option', { traceId: 'build-12' }, { SIGNALBOX_TRACE_ID: 'other' }, 'build-12'],
    ['in a traceparent that the option is', { traceId: TRACEPARENT }, {}, TRACE],
    ['of SIGNALBOX_TRACE_ID', {}, { SIGNALBOX_TRACE_ID: 'build-13', TRACEPARENT }, 'build-13'],
    ['in a traceparent in SIGNALBOX_TRACE_ID', {}, { SIGNALBOX_TRACE_ID: TRACEPARENT }, TRACE],
    ['of TRACEPARENT', {}, { TRACEPARENT }, TRACE],
    ['of nothing if TRACEPARENT is none', {}, { TRACEPARENT: 'nonsense' }, undefined],
  ])('%s', async (_, options, environment, expected) => {
    for (const name of ['SIGNALBOX_TRACE_ID', 'TRACEPARENT']) vi.stubEnv(name, undefined);
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    const box = await opening(openMemory(), options);
    await (await box.lock('main').acquire()).release();
    await box.tasks.publish('7', {});
    await box.witness.record({ component: 'deploy', event: 'deploy:started' });
    const traces = (await commands(box)).map(({ trace }) => trace);
    expect(traces).toEqual(Array.from({ length: 4 }, () => expected));
  });
});

describe('what a holder calls sensitive', () => {
  it('is entered as salted hashes alone, granted at once, after a wait by the process that releases, or with others', async () => {
    const store = openMemory();
    const ann = await opening(store);
    const bob = await opening(store);
    const secret = { reason: 'secret reason', metadata: { key: 'secret key' }, sensitive: true } as const;
    const hold = await ann.lock('main').acquire({ holder: 'ann', ...secret });
    const waiting = [
      bob.lock('main').acquire({ holder: 'bob', ...secret }),
      bob.semaphore('s', { capacity: 1 }).acquire({ holder: 'bob', ...secret }),
    ];
    await settled();
    // The holder said it, so those who wait see it for as long as the hold lasts.
    expect(JSON.stringify(await bob.lock('main').inspect())).toContain('secret key');
    await hold.release();
    for (const one of waiting) await (await one).release();
    await (await ann.acquireAll([{ lock: 'a' }, { lock: 'b' }], { holder: 'ann', ...secret })).release();
    const all = await commands(ann);
    expect(JSON.stringify(all)).not.toContain('secret');
    const hashed = { sha256: expect.any(String), bytes: expect.any(Number), salt: expect.any(String) };
    const acquired = all.filter(({ outcome }) => outcome === 'acquired').map(({ detail }) => detail);
    expect(acquired).toHaveLength(5);
    for (const detail of acquired) expect(detail).toMatchObject({ reason: hashed, metadata: hashed });
    const salts = acquired.map((detail) => (detail?.['reason'] as { salt: string }).salt);
    expect(new Set(salts).size).toBe(salts.length);
    await expect(ann.lock('main').acquire({ sensitive: 'yes' as never })).rejects.toThrow('expected true or false');
  });

  it('stays hashed although the witness was off when the holder asked', async () => {
    const store = openMemory();
    const early = await opening(store, { witness: false });
    const hold = await early.lock('main').acquire({ holder: 'ann' });
    const waiting = early.lock('main').acquire({ holder: 'bob', reason: 'secret reason', sensitive: true });
    await settled();
    // As if another program had switched it on: signalbox does so only while nobody waits.
    await store.transaction(always([{ do: 'put', key: WITNESS_SETTING, value: encode({ on: true }) }]));
    const late = await opening(store);
    await late.lock('main').break({ holder: 'admin', reason: 'stuck' });
    await (await waiting).release();
    expect(hold.isValid).toBe(false);
    const ofBob = (await commands(late)).filter(({ actor }) => actor === 'bob');
    expect(ofBob[0]).toMatchObject({ outcome: 'acquired', detail: { reason: { salt: expect.any(String) as string } } });
  });

  it('is hashed of a member too: its metadata, and not what it owns', async () => {
    const box = await opening(openMemory());
    const terms = { assets: ['shard/3'], sensitive: true };
    await box.members.join('north', { key: 'secret key' }, terms);
    await box.members.joinDetached('south', { key: 'secret key' }, terms);
    const joined = await commands(box, { event: 'member:joined' });
    const hashed = { sha256: expect.any(String) as string, salt: expect.any(String) as string };
    expect(joined.map(({ detail }) => detail)).toEqual([
      { metadata: expect.objectContaining(hashed) as object, data: ['shard/3'] },
      { metadata: expect.objectContaining(hashed) as object, data: ['shard/3'] },
    ]);
    expect(JSON.stringify(joined)).not.toContain('secret');
  });
});

describe('entries are found', () => {
  it('by actor, resource, event, trace, component and time', async () => {
    const clock = new TestClock();
    const begun = clock.now();
    const store = openMemory({ clock });
    const ann = await opening(store, { clock, traceId: 'build-1', component: 'ci' });
    const bob = await opening(store, { clock, traceId: 'build-2' });
    const hold = await ann.lock('main').acquire({ holder: 'ann' });
    const waiting = bob.lock('main').acquire({ holder: 'bob' });
    await settled();
    await clock.advance(1_000);
    await hold.release();
    const second = await waiting;
    await clock.advance(1_000);
    await second.release();
    await ann.tasks.publish('7', {}, { by: 'ann', traceId: 'build-3' });
    const seen = async (filter: WitnessFilter): Promise<readonly string[]> => {
      const found: string[] = [];
      for await (const entry of ann.witness.entries(filter)) found.push(`${entry.resource} ${entry.time - begun}`);
      return [...new Set(found)];
    };
    expect(await seen({ actor: 'bob', event: 'lock:acquired' })).toEqual(['lock/main 1000']);
    expect(await seen({ event: 'task:*' })).toEqual(['task/7 2000']);
    expect(await seen({ trace: 'build-1', event: 'lock:*' })).toEqual(['lock/main 0', 'lock/main 1000']);
    expect(await seen({ trace: 'build-3' })).toEqual(['task/7 2000']);
    expect(await seen({ component: 'ci', resource: 'task/*' })).toEqual(['task/7 2000']);
    expect(await seen({ actor: 'bob', component: 'ci' })).toEqual([]);
    expect(await seen({ since: begun + 1_500, resource: 'lock/main' })).toEqual(['lock/main 2000']);
    expect(await seen({ until: begun + 999, event: 'lock:*' })).toEqual(['lock/main 0']);
  });
});
