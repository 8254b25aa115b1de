// A deployment waits until nobody merges, there is room on the staging machines, and the release notes are written. The
// condition is data; judging it is pure; this program gathers what it needs to know, and looks again when an event, or
// for the file a poll, says that something may have changed.

import assert from 'node:assert/strict';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { open } from 'signalbox';
import {
  all,
  checkGuard,
  explain,
  fileExists,
  lockFree,
  polledInputs,
  renderExplanation,
  requiredInputs,
  semaphoreAvailable,
  wakesOn,
} from 'signalbox/core';

const folder = await mkdtemp(join(tmpdir(), 'signalbox-'));
const notes = join(folder, 'NOTES.md');
const box = await open('memory:');
const staging = box.semaphore('staging', { capacity: 2 });

const guard = {
  id: 'before-deploy',
  condition: all([lockFree('main-branch'), semaphoreAvailable('staging', 1), fileExists(notes)]),
};

/** One entry for each input: what was found, or why it could not be found out. */
async function gather(condition) {
  const inputs = {};
  for (const input of requiredInputs(condition)) {
    inputs[input.key] = await look(input).then(
      (value) => ({ value }),
      (error) => ({ error: error.message }),
    );
  }
  return inputs;
}

async function look(input) {
  switch (input.kind) {
    case 'lock': {
      const { holders } = await box.lock(input.name).inspect();
      return { holders: holders.map(({ holder, isStale }) => ({ holder, stale: isStale })) };
    }
    case 'semaphore': {
      const { capacity, usedSlots } = await box.semaphore(input.name).inspect();
      return { capacity, used: usedSlots };
    }
    case 'file':
      return access(input.path).then(
        () => ({ exists: true }),
        () => ({ exists: false }),
      );
    default:
      throw new Error(`this program cannot look at ${input.kind}`);
  }
}

const outcomes = [];

/** Resolves once the guard passes. */
async function passed() {
  let wake = () => {};
  const subscriptions = await Promise.all(wakesOn(guard).map((pattern) => box.on(pattern, () => wake())));
  for (;;) {
    const woken = new Promise((resolve) => (wake = resolve));
    const inputs = await gather(guard.condition);
    const outcome = checkGuard(guard, inputs);
    outcomes.push(outcome);
    console.log(`\n${renderExplanation(explain(guard.condition, inputs)).join('\n').replace(folder, '.')}`);
    if (outcome.kind === 'passed') break;
    const mustPoll = polledInputs(guard.condition).length > 0;
    await Promise.race([woken, ...(mustPoll ? [sleep(50)] : [])]);
  }
  for (const subscription of subscriptions) subscription.unsubscribe();
}

const merging = await box.lock('main-branch').acquire({ holder: 'worker:7', reason: 'merging' });
const occupied = await staging.acquire({ holder: 'job:tests', weight: 2 });
const deploying = passed().then(() => console.log('\nNow it may deploy.'));

async function looked(times) {
  while (outcomes.length < times) await sleep(5);
}

await looked(1);
await merging.release();
await looked(2);
await occupied.release();
await looked(3);
await writeFile(notes, 'All is new.\n');
await deploying;

assert.equal(outcomes[0].kind, 'failed');
assert.equal(outcomes[0].reasons.length, 3, 'every reason is told, not only the first');
assert.equal(outcomes.at(-1).kind, 'passed');
await box.close();
await rm(folder, { recursive: true });
