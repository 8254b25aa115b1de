// Five workers merge into one branch. Each reads its head, works for a while, and writes a new head on top: without a
// lock they would overwrite each other's merges.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { open, workerHolder } from 'signalbox';

const branch = { head: 'start' };
const box = await open('memory:');
const order = [];

async function merge(id) {
  const holder = workerHolder(id);
  await box.lock('main-branch').run(
    async ({ token }) => {
      const base = branch.head;
      await sleep(20);
      branch.head = `${base} ${id}`;
      order.push({ id, token });
      console.log(`${holder} has merged on top of "${base}", token ${token}`);
    },
    {
      holder,
      reason: `merging change ${id}`,
      onWaiting: ({ position, holders = [] }) => {
        const others = holders.map((hold) => `${hold.holder}, ${hold.reason}`).join('; ');
        console.log(`${holder} waits at place ${position} (it is held by ${others})`);
      },
    },
  );
}

await Promise.all(['a', 'b', 'c', 'd', 'e'].map(merge));
await box.close();

assert.equal(
  branch.head,
  'start a b c d e',
  'no merge was lost, and they came in the order in which they were asked for',
);
assert.deepEqual(
  order.map(({ token }) => token),
  order.map(({ token }) => token).sort((one, other) => one - other),
  'every grant has a larger token than the one before',
);
console.log(`The branch is "${branch.head}": nothing was lost.`);
