// A deployment waits until nobody merges, there is room on the staging machines, and the release notes are written. The
// lock and the slots announce themselves; the file is polled. A waiting deploy sees every reason.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { all, fileExists, localAdapters, lockFree, open, renderExplanation, semaphoreAvailable } from 'signalbox';

const folder = await mkdtemp(join(tmpdir(), 'signalbox-'));
const box = await open('memory:', { adapters: localAdapters({ root: folder }) });

const beforeDeploy = {
  id: 'before-deploy',
  condition: all([lockFree('main-branch'), semaphoreAvailable('staging', 1), fileExists('NOTES.md')]),
};

const merging = await box.lock('main-branch').acquire({ holder: 'worker:7', reason: 'merging' });
const occupied = await box.semaphore('staging', { capacity: 2 }).acquire({ holder: 'job:tests', weight: 2 });

/** What stands in the way is removed, one after the other, each time the guard has been looked at. */
const obstacles = [
  () => merging.release(),
  () => occupied.release(),
  () => writeFile(join(folder, 'NOTES.md'), 'All is new.\n'),
];

const outcomes = [];
const deploying = box.guards.wait(beforeDeploy, {
  pollMs: 50,
  onVerdict({ outcome, explanation }) {
    const isNews = JSON.stringify(outcome) !== JSON.stringify(outcomes.at(-1));
    if (!isNews) return;
    outcomes.push(outcome);
    console.log(`\n${renderExplanation(explanation).join('\n')}`);
    void obstacles.shift()?.();
  },
});

assert.equal((await deploying).kind, 'passed');
console.log('\nNow it may deploy.');

assert.equal(outcomes.length, 4);
assert.equal(outcomes[0].reasons.length, 3, 'every reason is told, not only the first');
await box.close();
await rm(folder, { recursive: true });
