// @ts-check
// What the pictures of the dashboard show: a small fleet at work, and a large one.

import { setTimeout as sleep } from 'node:timers/promises';

/** @typedef {import('signalbox').Signalbox} Box */

const BOOK = {
  name: 'release',
  phases: [
    { name: 'build', run: 'true', idempotent: true },
    { name: 'test', run: 'true', idempotent: true },
    { name: 'migrate', run: 'true', holds: { locks: ['staging-db'] } },
    { name: 'canary', run: 'true', pre: { condition: { lockFree: 'deploy/eu-west' } } },
    { name: 'ship', run: 'true' },
  ],
};

/**
 * Resolves with a time at which something else was held.
 *
 * @param {Box} box
 */
export async function fillWithLittle(box) {
  for (const id of ['builder-1', 'builder-2', 'planner', 'agent-3', 'agent-7']) {
    await box.members.join(id, { host: `${id}.fleet`, role: id.split('-')[0] ?? '' });
  }
  const main = box.lock('main-branch');
  for (const holder of ['agent:3', 'agent:7', 'worker:ci-3']) {
    await main.run(() => sleep(400), { holder, reason: 'rebase and push' });
  }
  const early = await box.lock('release-notes').acquire({ holder: 'agent:3', reason: 'writing 0.9' });
  await box.semaphore('gpu', { capacity: 8 }).run(() => sleep(300), { holder: 'job:train-6', weight: 6 });
  const then = Date.now();
  await sleep(1100);
  await early.release();

  await main.acquire({ holder: 'agent:7', reason: 'rebase on main', metadata: { branch: 'fix/login', commits: 4 } });
  for (const holder of ['pipeline:release-41', 'worker:ci-3', 'agent:12']) void quietly(main.acquire({ holder }));
  for (const [name, holder] of [
    ['deploy/eu-west', 'pipeline:release-41'],
    ['staging-db', 'worker:ci-5'],
    ['schema-migrations', 'agent:12'],
    ['docs', 'agent:3'],
  ]) {
    await box.lock(name ?? '').acquire({ holder: holder ?? '', mode: name === 'docs' ? 'shared' : 'exclusive' });
  }
  await box.lock('docs').acquire({ holder: 'agent:9', mode: 'shared' });
  void quietly(box.lock('staging-db').acquire({ holder: 'agent:12' }));
  const gpu = box.semaphore('gpu');
  await gpu.acquire({ holder: 'job:train-7', weight: 4, reason: 'nightly' });
  await gpu.acquire({ holder: 'job:eval', weight: 2 });
  await gpu.acquire({ holder: 'job:notebook', weight: 1 });
  void quietly(gpu.acquire({ holder: 'job:train-8', weight: 4 }));
  void quietly(gpu.acquire({ holder: 'job:small', weight: 1 }));
  await box.semaphore('api-quota', { capacity: 20 }).acquire({ holder: 'crawler:1', weight: 9 });
  const staging = box.semaphore('staging', { capacity: 3 });
  await staging.acquire({ holder: 'worker:ci-1' });
  await staging.drain({ holder: 'user:ada', reason: 'the database moves to the new cluster' });
  void quietly(staging.acquire({ holder: 'worker:ci-9' }));

  await box.tasks.publish('lint-web', { files: 214 }, { capabilities: ['node'], by: 'planner' });
  await box.tasks.publish('build-web', { target: 'web' }, { capabilities: ['node'], dependsOn: ['lint-web'] });
  await box.tasks.publish('build-api', { target: 'api' }, { capabilities: ['rust'], priority: 5 });
  await box.tasks.publish('docs-site', {}, {});
  await box.tasks.publish('flaky-e2e', {}, {});
  await box.tasks.publish('thumbnails', {}, {});
  await box.tasks.claim('lint-web', { holder: 'builder-1', capabilities: ['node'] });
  await box.tasks.claim('build-api', { holder: 'builder-2', capabilities: ['rust'] });
  await (await box.tasks.claim('docs-site', { holder: 'agent:3' })).complete({ pages: 61 });
  await (await box.tasks.claim('flaky-e2e', { holder: 'builder-1' })).fail('timeout in checkout.spec.ts');

  await box.pipelines
    .run({ ...BOOK, phases: BOOK.phases.slice(0, 3) }, { id: 'release-40', waits: false })
    .catch(() => undefined);
  await box.pipelines.run(BOOK, { id: 'release-41', waits: false }).catch(() => undefined);
  await box.pipelines.start(BOOK, { id: 'release-42' });
  await deadlock(box);
  return then;
}

/**
 * Each of two holders has what the other wants; the second is refused.
 *
 * @param {Box} box
 */
async function deadlock(box) {
  const [fixtures, ledger] = [box.lock('fixtures'), box.lock('ledger')];
  const first = await fixtures.acquire({ holder: 'agent:9' });
  const second = await ledger.acquire({ holder: 'agent:12' });
  const waits = ledger.acquire({ holder: 'agent:9' });
  await quietly(fixtures.acquire({ holder: 'agent:12' }));
  await second.release();
  await (await waits).release();
  await first.release();
}

/** @param {Box} box */
export async function fillWithMuch(box) {
  const parts = ['billing', 'search', 'media', 'web', 'api', 'docs', 'infra', 'mobile'];
  const part = (/** @type {number} */ place) => parts[place % parts.length] ?? '';
  for (let place = 0; place < 1500; place += 50) {
    await Promise.all(
      Array.from({ length: 50 }, async (_, more) => {
        const one = place + more;
        const lock = box.lock(`${part(one)}/${(one * 7919) % 1009}/${one}`);
        const hold = await lock.acquire({ holder: `agent:${one % 97}` });
        if (one % 3 === 0) await hold.release();
        else if (one % 17 === 0)
          for (let wait = 0; wait < one % 7; wait++) void quietly(lock.acquire({ holder: `ci:${wait}` }));
      }),
    );
  }
  for (let place = 0; place < 40; place++) {
    const pool = box.semaphore(`${part(place)}-pool-${place}`, { capacity: 4 + ((place * 13) % 90) });
    for (let holder = 0; holder < 1 + (place % 5); holder++) await pool.acquire({ holder: `job:${place}-${holder}` });
  }
  for (let place = 0; place < 300; place++) {
    const id = `${part(place)}-${place}`;
    await box.tasks.publish(id, {}, { priority: place % 3 });
    if (place % 4 === 0) continue;
    const claim = await box.tasks.claim(id, { holder: `builder-${place % 20}` });
    if (place % 4 === 1) await claim.complete();
    else if (place % 12 === 2) await claim.fail('out of memory');
  }
  for (let place = 0; place < 25; place++) await box.pipelines.start(BOOK, { id: `release-${place}` });
  await fillPages(box);
  for (let place = 0; place < 70; place++) await box.members.join(`worker-${place}`, { host: `node-${place % 9}` });
}

/**
 * The things that have a page in the pictures, each with more than a page has room for.
 *
 * @param {Box} box
 */
async function fillPages(box) {
  const main = box.lock('main-branch');
  for (let turn = 0; turn < 30; turn++) await main.run(() => sleep(20 + turn), { holder: `agent:${turn % 7}` });
  await main.acquire({
    holder: 'pipeline:release-2026-11-17-eu-west-1-canary',
    reason: 'merges forty changes of the night one by one, and runs every test between two of them',
    metadata: { branch: 'release/2026-11-17/eu-west-1', commits: 40, tries: [1, 2, 3], owner: 'platform' },
  });
  for (let waiter = 0; waiter < 60; waiter++)
    void quietly(main.acquire({ holder: `agent:${waiter}`, priority: -waiter }));
  const gpu = box.semaphore('gpu', { capacity: 96 });
  for (let holder = 0; holder < 32; holder++)
    await gpu.acquire({ holder: `job:train-${holder}`, weight: 1 + (holder % 5) });
  for (let waiter = 0; waiter < 20; waiter++)
    void quietly(gpu.acquire({ holder: `job:next-${waiter}`, weight: 4 + waiter }));
  const before = Array.from({ length: 24 }, (_, place) => `prepare-${place}`);
  for (const id of before) await box.tasks.publish(id, {}, {});
  const files = Array.from({ length: 60 }, (_, place) => `src/web/pages/page-${place}.ts`);
  await box.tasks.publish('lint-web', { files }, { dependsOn: before, capabilities: ['node', 'web', 'large', 'eu'] });
  for (let place = 0; place < 16; place++)
    await box.tasks.publish(`web-part-${place}`, {}, { dependsOn: ['lint-web'] });
  const names = [
    'fetch',
    'install',
    'lint',
    'build',
    'unit',
    'browser',
    'pack',
    'sign',
    'stage',
    'migrate',
    'canary',
    'ship',
  ];
  const regions = Array.from({ length: 9 }, (_, place) => `freeze/region-${place}`);
  for (const region of regions) await box.lock(region).acquire({ holder: 'agent:ops', reason: 'closing of the books' });
  const phases = names.map((name) => ({
    ...{ name, run: `seq 1 20 | sed 's/^/${name}: step /'`, idempotent: true },
    ...(name === 'migrate' && { pre: { condition: { all: regions.map((region) => ({ lockFree: region })) } } }),
  }));
  await quietly(box.pipelines.run({ name: 'release', phases }, { id: 'release-41', waits: false }));
  await box.members.join('builder-1', { host: 'builder-1.fleet', role: 'builder' });
  for (let place = 0; place < 12; place++) await box.lock(`slice/${place}`).acquire({ holder: 'builder-1' });
  await deadlock(box);
}

/**
 * A few that take turns, now faster and now slower, so that the figures move and the charts have hills. Answers what ends it.
 *
 * @param {Box} box
 */
export function keepBusy(box) {
  let isOver = false;
  const begun = Date.now();
  /** Between 0 and 1, and back again within a minute and a half. */
  const tide = () => (1 - Math.cos(((Date.now() - begun) / 90_000) * 2 * Math.PI)) / 2;
  const turns = ['agent:4', 'agent:5', 'agent:6'].map(async (holder, place) => {
    while (!isOver) {
      await box.lock('merge-queue').run(() => sleep(120 + Math.random() * 300), { holder, reason: 'merge' });
      const tried = place === 0 ? await box.lock('merge-queue').tryAcquire({ holder: 'cron:nightly' }) : undefined;
      if (tried?.ok === true) await tried.hold.release();
      await sleep(150 + (1 - tide()) * 1500);
    }
  });
  return async () => {
    isOver = true;
    await Promise.allSettled(turns);
  };
}

/** What is still waited for when the store is closed. */
function quietly(/** @type {Promise<unknown>} */ waiting) {
  return waiting.catch(() => undefined);
}
