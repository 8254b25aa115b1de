// Builds share a machine with four cores. A build says how many it needs, and the numbers of the slots it gets are its
// own while it runs: here they choose the ports that it listens on.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { jobHolder, open } from 'signalbox';

const CORES = 4;
const FIRST_PORT = 9000;

const box = await open('memory:');
const cores = box.semaphore('cores', { capacity: CORES });
const portsInUse = new Set();
const finished = [];

async function build(id, weight) {
  await cores.run(
    async ({ slots }) => {
      const ports = slots.map((slot) => FIRST_PORT + slot);
      for (const port of ports) {
        assert(!portsInUse.has(port), `port ${port} is used by one build at a time`);
        portsInUse.add(port);
      }
      assert(portsInUse.size <= CORES);
      console.log(`${id} runs on ${weight} of ${CORES} cores, ports ${ports.join(' ')}`);
      await sleep(10 * weight);
      for (const port of ports) portsInUse.delete(port);
      finished.push(id);
    },
    { holder: jobHolder(id), weight },
  );
}

// Light builds keep coming, and one that needs the whole machine is among them.
const builds = [];
for (let i = 1; i <= 6; i++) builds.push(build(`light-${i}`, 1));
builds.push(build('whole-machine', CORES));
for (let i = 7; i <= 12; i++) builds.push(build(`light-${i}`, 1));
await Promise.all(builds);

assert.equal(finished.indexOf('whole-machine'), 6, 'the light ones that came later did not pass the heavy one');

const attempt = await cores.tryAcquire({ weight: CORES + 1 });
assert.equal(attempt.kind, 'impossible', 'what could never be had is refused at once, and not waited for');
console.log(`A build for ${CORES + 1} cores is refused: ${attempt.why}.`);
await box.close();
