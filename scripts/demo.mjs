// @ts-check
// npm run demo: the server and its page with a fleet of real processes, in a store of their own. Everything happens: locks that
// many want, readers and writers, slots by weight, tasks that wait for others, a release that is blocked, a deadlock that is
// resolved, and a worker that is killed every few seconds. Ctrl-C ends all of it and removes the store.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensure, root } from './ensure.mjs';
import { isPort, linkFor, onStop, portIn, startServer } from './serving.mjs';
import { argumentsFor } from './usage.mjs';

const args = argumentsFor(
  `Usage: npm run demo [-- --port N]

Serves a store in a temporary directory, with a page, and starts a fleet of workers on it, one of which is killed every few
seconds. Ctrl-C ends them and removes the store. Without --port: 7300, or the next one that is free.

Example: npm run demo -- --port 8080`,
  isPort,
);
const port = portIn(args);

/** The last one is not killed: it drives the releases, and a release whose driver is killed waits for a person. */
const FLEET = /** @type {const} */ ([
  ['agent-1', 'merge', 'left', 'lead'],
  ['agent-2', 'merge', 'right', 'lead'],
  ['agent-3', 'merge', 'read', 'work'],
  ['builder-1', 'build', 'work', 'read'],
  ['builder-2', 'build', 'work', 'read'],
  ['planner', 'plan', 'release'],
]);
/** Tests are faster than people. */
const PACE = Number(process.env['DEMO_PACE'] ?? 1);
const CRASH_MS = 6_000 * PACE;
const AWAY_MS = 1_500 * PACE;
const PATIENCE_MS = 5_000;

ensure();
const directory = mkdtempSync(join(tmpdir(), 'signalbox-demo-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
const ended = new AbortController();
onStop(() => ended.abort());

const served = await startServer({ store: `file:${join(directory, 'store')}?witness=on`, port });
void served.ended.then(() => ended.abort());
/** @type {Map<string, import('node:child_process').ChildProcess>} */
const fleet = new Map();
let number = 40;
for (const [name, ...roles] of FLEET) startWorker(name, roles);

console.log(`
A busy signalbox, until Ctrl-C. ${FLEET.length} processes work, and every few seconds one of them is killed with kill -9.

  page     ${linkFor(served)}
  board    dist/bin/signalbox.cjs top --store ${served.store}
  store    ${served.store}, removed at the end

Look at main-branch, which three agents want; at builds, whose eight slots are taken by weight; at the release that waits until
the code is no longer frozen; every 15 seconds at left-rail and right-rail, where a deadlock is resolved.
`);

try {
  await crashes();
} finally {
  await end();
}

function startWorker(/** @type {string} */ name, /** @type {readonly string[]} */ roles) {
  number += 10;
  const child = spawn(process.execPath, [join(root, 'scripts', 'demo', 'worker.mjs'), name, ...roles], {
    cwd: root,
    env: { ...process.env, SIGNALBOX_URL: served.store, DEMO_FIRST_NUMBER: String(number) },
    // A worker whose demonstration is gone ends by itself: the channel closes.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  fleet.set(name, child);
}

async function crashes() {
  const { signal } = ended;
  for (let turn = 0; !signal.aborted; turn++) {
    const [name, ...roles] = FLEET[turn % (FLEET.length - 1)] ?? FLEET[0];
    const isOver = () => true;
    if (await sleep(CRASH_MS, false, { signal }).catch(isOver)) return;
    const child = fleet.get(name);
    child?.kill('SIGKILL');
    console.log(
      `${new Date().toLocaleTimeString('en-GB')}  kill -9 ${name} (pid ${child?.pid}): its locks go to the next in line`,
    );
    if (await sleep(AWAY_MS, false, { signal }).catch(isOver)) return;
    startWorker(name, roles);
  }
}

/** The workers first, so that they release what they hold and leave. */
async function end() {
  console.log('\nEnding the fleet, and removing its store.');
  await stop([...fleet.values()]);
  await stop([served.child]);
  process.exit(0);
}

async function stop(/** @type {readonly import('node:child_process').ChildProcess[]} */ children) {
  const living = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  const exits = living.map((child) => once(child, 'exit'));
  for (const child of living) child.kill('SIGTERM');
  const patience = setTimeout(() => {
    for (const child of living) child.kill('SIGKILL');
  }, PATIENCE_MS);
  await Promise.all(exits);
  clearTimeout(patience);
}
