// @ts-check
// node worker.mjs NAME ROLE…: one process of the fleet of `npm run demo`, on the store that SIGNALBOX_URL names. What it does is
// made up; how it does it is what a program of yours would do. It may be killed at any time.

import { setTimeout as sleep } from 'node:timers/promises';
import { HoldLost, lockFree, NotAcquired, open } from 'signalbox';

const [name = 'worker', ...roles] = process.argv.slice(2);
const ended = new AbortController();
const { signal } = ended;
for (const event of /** @type {const} */ (['SIGINT', 'SIGTERM', 'disconnect']))
  process.once(event, () => ended.abort());

const box = await open();
const pace = Number(process.env['DEMO_PACE'] ?? 1);
let changes = Number(process.env['DEMO_FIRST_NUMBER'] ?? 40);

/** @type {Record<string, () => Promise<void>>} */
const ROLES = {
  /** Wants the main branch for itself, as everybody else does. */
  async merge() {
    const reason = `merging change ${++changes}`;
    await box.lock('main-branch').run(() => about(2_500), { holder: `agent:${name}`, reason, signal });
    await about(2_500);
  },

  /** Many read the documentation at once, and now and then one writes it. */
  async read() {
    const isWriter = Math.random() < 0.25;
    const terms = isWriter
      ? /** @type {const} */ ({ mode: 'exclusive', reason: 'rewriting the introduction' })
      : /** @type {const} */ ({ mode: 'shared', reason: 'building the site' });
    await box.lock('docs').run(() => about(3_500), { holder: `reader:${name}`, signal, ...terms });
    await about(1_500);
  },

  /** Builds take one to five of eight slots. */
  async build() {
    const weight = 1 + Math.floor(Math.random() * 5);
    const builds = box.semaphore('builds', { capacity: 8 });
    await builds.run(() => about(4_000), { holder: `job:${name}`, weight, reason: `make -j${weight}`, signal });
    await about(1_000);
  },

  /** Does the tasks that are there, one after the other. One in ten attempts fails, and is repeated. */
  async work() {
    const claim = await box.tasks.claimNext({ holder: `worker:${name}`, signal });
    await about(2_000);
    if (Math.random() < 0.1) await claim.fail('the tests found a bug');
    else await claim.complete({ by: name });
  },

  /** Takes the two locks in one order, another process in the other: a deadlock, which signalbox resolves. */
  left: () => bothLocks(['left-rail', 'right-rail']),
  right: () => bothLocks(['right-rail', 'left-rail']),

  /** Publishes three tasks, each of which waits for the one before. */
  async plan() {
    const open_ = await box.tasks.list({ status: 'pending' });
    const id = ++changes;
    if (open_.length < 12) {
      const terms = { by: 'planner', retries: 2 };
      await box.tasks.publish(`build-${id}`, { change: id }, terms);
      await box.tasks.publish(`test-${id}`, { change: id }, { ...terms, dependsOn: [`build-${id}`] });
      await box.tasks.publish(`ship-${id}`, { change: id }, { ...terms, dependsOn: [`test-${id}`], priority: 5 });
    }
    await about(5_000);
  },

  /** A release is blocked while a person has frozen the code. */
  async release() {
    const freeze = box.lock('code-freeze');
    const hold = await freeze.acquire({ holder: 'user:ada', reason: 'the demo for the customer is running', signal });
    const id = `release-${++changes}`;
    const release = box.pipelines.run(
      {
        name: 'release',
        phases: [
          { name: 'plan', run: 'sleep 1; echo planned' },
          { name: 'merge', pre: { id: 'not-frozen', condition: lockFree('code-freeze') }, run: 'sleep 2; echo merged' },
          { name: 'deploy', run: 'sleep 3; echo deployed' },
        ],
      },
      { id, by: name, signal },
    );
    const thaw = async () => {
      try {
        await about(9_000);
      } finally {
        await hold.release();
      }
    };
    await Promise.all([release, thaw()]);
    for (const { id: old, endedAt } of (await box.pipelines.list()).slice(0, -4)) {
      if (endedAt !== undefined) await box.pipelines.forget(old);
    }
    await about(4_000);
  },

  /** One process leads at a time. */
  async lead() {
    await box.lead('scheduler', ({ signal: lost }) => sleep(20_000, undefined, { signal: lost }), {
      holder: name,
      signal,
    });
    await about(1_000);
  },
};

/** Both processes begin at the same time of the clock, so that they meet. */
async function bothLocks(/** @type {readonly [string, string]} */ [first, second]) {
  const everyMs = 15_000 * pace;
  await sleep(everyMs - (Date.now() % everyMs), undefined, { signal });
  const terms = { holder: `shunter:${name}`, reason: 'moving a train across', signal };
  await box.lock(first).run(async () => {
    // The other process may be slower, or be starting again.
    for (let look = 0; look < 40 && (await box.lock(second).isFree()); look++) await sleep(100, undefined, { signal });
    await sleep(1_500 * pace, undefined, { signal });
    await box.lock(second).run(() => about(1_500), terms);
  }, terms);
}

function about(/** @type {number} */ ms) {
  return sleep(pace * ms * (0.5 + Math.random()), undefined, { signal });
}

async function play(/** @type {string} */ role) {
  while (!signal.aborted) {
    try {
      await ROLES[role]?.();
    } catch (error) {
      if (signal.aborted) return;
      const isUsual = error instanceof NotAcquired || error instanceof HoldLost;
      if (!isUsual) console.error(`${name}: ${role}: ${/** @type {Error} */ (error).message}`);
      await about(1_000).catch(() => undefined);
    }
  }
}

try {
  await box.tasks.configure({ keepMost: 30, keepMs: 300_000 });
  await box.members.join(name, { roles }, { assets: roles.includes('build') ? [`machine/${name}`] : [] });
  await Promise.all(roles.map(play));
} finally {
  await box.close();
}
process.exit(0);
