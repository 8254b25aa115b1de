// A hold can end before its holder is done. Its signal says so, before another holder gets in, and can stop the work: here
// a copy in many small steps that may take half a second, and takes longer.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { HoldLost, open, workerHolder } from 'signalbox';

const box = await open('memory:');
const lock = box.lock('backup');
const told = [];

async function copy(signal) {
  for (let step = 1; ; step++) {
    await sleep(20, undefined, { signal });
    console.log(`copied block ${step}`);
  }
}

const first = lock.run(
  async (hold) => {
    hold.signal.addEventListener('abort', () => told.push('the first is told'));
    await copy(hold.signal);
  },
  { holder: workerHolder('first'), maxHoldMs: 500 },
);
const second = lock.run(() => void told.push('the second gets in'), { holder: workerHolder('second') });

// Node's timers throw an AbortError that has the signal's reason as its cause.
const error = await first.then(
  () => assert.fail('the copy cannot have finished'),
  (thrown) => thrown,
);
assert(error.cause instanceof HoldLost);
assert.equal(error.cause.why, 'expired');
console.log(`stopped: ${error.cause.message}`);

await second;
assert.deepEqual(told, ['the first is told', 'the second gets in']);
console.log(told.join(', then '));
await box.close();
