// Stores that other versions of signalbox have written.

import { open } from 'signalbox';
import { openMemory, Value } from 'signalbox/store';
import { expect, it } from 'vitest';

/** As it was written before questions had numbers: `pay` has failed, and a person is asked. */
const RECORD = {
  version: 1,
  id: 'p',
  name: 'pay',
  state: 'blocked',
  step: { when: 'before', phase: 0, attempt: 1 },
  phases: [
    {
      name: 'pay',
      state: 'failed',
      runs: 1,
      startedAt: 1_763_290_000_000,
      endedAt: 1_763_290_001_000,
      ended: 'exit code 1',
    },
    { name: 'ship', state: 'waiting', runs: 0 },
  ],
  lastToken: 2,
  outputs: {},
  startedBy: 'ann',
  startedAt: 1_763_290_000_000,
  last: 'c-1',
  driver: { holder: 'driver:h:1:aa', token: 2, since: 1_763_290_000_000 },
  lastDriven: 'c-4',
  blocked: { since: 1_763_290_001_000, on: 'person', why: 'phase pay: exit code 1' },
};

const PHASE = { pre: [], post: [], holds: [], retries: 0, backoffMs: 1_000, idempotent: false, env: {} };
const BOOK = {
  runbook: {
    name: 'pay',
    env: {},
    phases: [
      { ...PHASE, name: 'pay', run: { shell: 'exit 1' }, onFailure: 'block' },
      { ...PHASE, name: 'ship', run: { shell: 'true' } },
    ],
  },
  cwd: '/',
  host: 'h',
  env: {},
  pollMs: 2_000,
};

async function stored(record: object): Promise<ReturnType<typeof openMemory>> {
  const store = openMemory();
  await store.transaction({
    compare: [],
    success: [
      { do: 'put', key: 's/pipeline/p', value: Value.json({ record, events: [] }) },
      { do: 'put', key: 'b/p', value: Value.json(BOOK) },
    ],
    failure: [],
  });
  return store;
}

it('a question of version 1 can be answered, once', async () => {
  await using box = await open(await stored(RECORD));
  expect(await box.pipelines.show('p')).toMatchObject({ blocked: { on: 'person', question: 1 } });
  expect(await box.pipelines.resume('p', { decision: 'skip', question: 2 })).toMatchObject({
    kind: 'another-question',
  });
  const skipped = { kind: 'left', record: { version: 2, state: 'done', phases: [{ state: 'skipped' }, { runs: 1 }] } };
  expect(await box.pipelines.resume('p', { decision: 'skip' })).toMatchObject(skipped);
});

it('a pipeline of a newer version is not misread: it is refused, and left as it is', async () => {
  const store = await stored({ ...RECORD, version: 3 });
  const before = await store.health();
  await using box = await open(store);
  await expect(box.pipelines.show('p')).rejects.toMatchObject({ code: 'corrupt' });
  await expect(box.pipelines.resume('p', { decision: 'skip' })).rejects.toThrow(/version 3.*update signalbox/);
  await expect(box.pipelines.cancel('p')).rejects.toThrow('update signalbox');
  expect((await store.health()).revision).toBe(before.revision);
});
