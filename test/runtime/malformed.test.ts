// Keys of ours that hold what no signalbox wrote: everything else goes on, and they are named.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Malformed, Signalbox } from 'signalbox';
import { prefixed, type ReadResult, Value } from 'signalbox/store';
import { Fleet, transports } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

const hold = { id: 'x.1', holder: 'h', token: 1, lease: 'x', acquiredAt: 0, mode: 'exclusive' };
const record = { v: 1, kind: 'lock', token: 1, onStale: 'reclaim', passed: null, holds: [hold] };
const stored = (changed: object): string => JSON.stringify({ record: { ...record, ...changed }, events: [] });

/** Each alone made a survey fail. */
const RECORDS: Readonly<Record<string, string>> = {
  'r/lock/no-json': '{"record":',
  'r/lock/null': 'null',
  'r/lock/list': '[]',
  'r/lock/text': '"held"',
  'r/lock/empty': '{}',
  'r/lock/no-record': '{"record":null}',
  'r/lock/newer': stored({ v: 2 }),
  'r/lock/no-holds': stored({ holds: undefined }),
  'r/lock/odd-holds': stored({ holds: [null] }),
  'r/lock/no-mode': stored({ holds: [{ ...hold, mode: 'write' }] }),
  'r/lock/no-time': stored({ holds: [{ ...hold, acquiredAt: 1e300 }] }),
  'r/lock/no-token': stored({ token: 'x' }),
  'r/lock/semaphore': stored({ kind: 'semaphore' }),
  'r/lock/%zz': stored({}),
  'r/lock/a b': stored({}),
  'r/lock/': stored({}),
  'r/lock/%00': stored({}),
  'r/barrier/x': stored({}),
  'r/semaphore/no-capacity': stored({ kind: 'semaphore', holds: [] }),
};
const TICKETS: Readonly<Record<string, string>> = {
  'q/lock/queue/100/x.1': 'no JSON',
  'q/lock/queue/100/x.2': '{"request":{"id":"x.2"},"at":0}',
  'q/lock/%zz/100/x.3': '{"request":null}',
};
const ANCHORS: Readonly<Record<string, string>> = { 'a/stranger': 'no JSON', 'a/!maintainer': '{' };
const STATES: Readonly<Record<string, string>> = {
  's/pipeline/no-json': 'x',
  's/pipeline/null': 'null',
  's/pipeline/empty': '{"record":{}}',
  's/pipeline/%zz': '{"record":{}}',
  's/member/no-json': 'x',
  's/member/null': '{"record":null}',
};

const planted = { ...RECORDS, ...TICKETS, ...ANCHORS, ...STATES };
const keys = (found: readonly Malformed[]): readonly string[] => found.map(({ key }) => key).sort();

async function plant(fleet: Fleet, found: Readonly<Record<string, string>>): Promise<void> {
  const success = Object.entries(found).map(([key, text]) => ({ do: 'put' as const, key, value: Value.text(text) }));
  await fleet.store.transaction({ compare: [], success, failure: [] });
}

describe.each(transports)('keys that hold what nobody wrote, on $transport', ({ atOnce }) => {
  async function withStrangers(): Promise<{ fleet: Fleet; box: Signalbox }> {
    const fleet = new Fleet(atOnce);
    await plant(fleet, planted);
    const { box } = await fleet.start('p');
    return { fleet, box };
  }

  it('are passed over and named by a survey, which tells about all the rest', async () => {
    const { box } = await withStrangers();
    await box.lock('main').acquire({ holder: 'h' });
    await box.semaphore('slots', { capacity: 2 }).acquire({ holder: 'h' });
    const survey = await box.survey();
    expect(survey.locks.filter(({ holds }) => holds.length > 0).map(({ name }) => name)).toEqual(['main']);
    expect(survey.semaphores.map(({ name }) => name)).toEqual(['slots']);
    expect(keys(survey.malformed)).toEqual(Object.keys({ ...RECORDS, ...TICKETS, ...ANCHORS }).sort());
    for (const { key, why } of survey.malformed) expect(why).toContain(key);
  });

  it('are passed over and named by maintenance, which frees what is stale all the same', async () => {
    const { fleet, box } = await withStrangers();
    await box.lock('zebra').acquireDetached({ holder: 'h', ttlMs: 1_000 });
    await fleet.advance(5_000);
    const swept = await box.maintain();
    expect(swept.stale).toMatchObject([{ resource: 'lock/zebra', isFreed: true }]);
    expect(keys(swept.malformed)).toEqual(Object.keys(RECORDS).sort());
  });

  it('are passed over and named where pipelines and members are listed', async () => {
    const { box } = await withStrangers();
    await box.members.join('ana');
    const found: Malformed[] = [];
    const onMalformed = (one: Malformed): void => void found.push(one);
    expect((await box.members.list({ onMalformed })).map(({ id }) => id)).toEqual(['ana']);
    expect(await box.pipelines.list({ onMalformed })).toEqual([]);
    expect(keys(found)).toEqual(Object.keys(STATES).sort());
  });

  it('are passed over and named in a saved state: as pending, somebody would claim them in the other store', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('p');
    for (const id of ['good', 'on-hold', 'no-json']) await box.tasks.publish(id, { id });
    const odd = { '//tasks/no-json/data': '{', '//tasks/on-hold/status': 'on hold' };
    await plant(fleet, odd);
    const dir = mkdtempSync(join(tmpdir(), 'signalbox-malformed-'));
    try {
      const { state, malformed } = await box.saveState(dir);
      expect(state.tasks.map(({ id }) => id)).toEqual(['good']);
      expect(keys(malformed)).toEqual(Object.keys(odd));
      expect(malformed.map(({ why }) => why)).toContainEqual(expect.stringContaining('on hold'));
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('hide no deadlock and no event of others', async () => {
    const { fleet, box } = await withStrangers();
    const other = await fleet.start('q');
    const heard: string[] = [];
    await other.box.on('*', ({ type }) => void heard.push(type));
    await box.lock('a').acquire({ holder: 'one' });
    await box.lock('b').acquire({ holder: 'two' });
    await plant(fleet, {
      'r/lock/another': 'x',
      's/member/another': '{"record":{},"events":7}',
      'q/lock/c/100/z.1': 'x',
    });
    const waiting = box.lock('b').acquire({ holder: 'one' });
    waiting.catch(() => undefined);
    await settled();
    await expect(box.lock('a').acquire({ holder: 'two' })).rejects.toMatchObject({ refusal: { kind: 'deadlock' } });
    await fleet.advance(1_000);
    expect(heard.filter((type) => type === 'lock:acquired').length).toBeGreaterThanOrEqual(2);
  });

  it('are a corrupt store to who wants just that, and nobody is left waiting', async () => {
    const { fleet, box } = await withStrangers();
    for (const key of Object.keys(RECORDS).filter((one) => /^r\/(lock|semaphore)\/[\w-]+$/.test(one))) {
      const [, kind = '', name = ''] = key.split('/');
      const resource = kind === 'lock' ? box.lock(name) : box.semaphore(name, { capacity: 1 });
      const corrupt = { code: 'corrupt', message: expect.stringContaining(key) };
      await expect(resource.acquire(), key).rejects.toMatchObject(corrupt);
      await expect(resource.acquire({ holder: 'h' }), key).rejects.toMatchObject(corrupt);
      await expect(resource.tryAcquire(), key).rejects.toMatchObject(corrupt);
      await expect(resource.inspect(), key).rejects.toMatchObject(corrupt);
      await expect(box.survey({ resource: { kind: kind as 'lock', name } }), key).rejects.toMatchObject(corrupt);
    }
    const [read] = (
      await fleet.store.transaction({
        compare: [],
        success: [{ do: 'read', ...prefixed('q/') }],
        failure: [],
      })
    ).results as readonly ReadResult[];
    expect(read?.pairs.map(({ key }) => key).sort()).toEqual(Object.keys(TICKETS).sort());
  });

  it('are a corrupt store to who would have to wait behind them', async () => {
    const { box } = await withStrangers();
    const corrupt = { code: 'corrupt', message: expect.stringContaining('q/lock/queue/100/x.') };
    await expect(box.lock('queue').acquire()).rejects.toMatchObject(corrupt);
  });

  it('are a corrupt store also where a pipeline or a member is asked for by name', async () => {
    const { box } = await withStrangers();
    await expect(box.pipelines.show('null')).rejects.toMatchObject({ code: 'corrupt' });
    await expect(box.members.join('null')).rejects.toMatchObject({ code: 'corrupt' });
  });
});
