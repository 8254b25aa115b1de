// @ts-check
// node hammer.mjs STORE-DIRECTORY WORK-DIRECTORY NAME: uses one store heavily until it is killed, and leaves behind what
// its killer needs to tell whether anything went wrong:
//
//     WORK/acked-NAME     every number whose writing the store has confirmed
//     WORK/inside         who is in the section that the lock guards; whoever finds somebody alive there says so in
//     WORK/violations

import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { open } from 'signalbox';
import { openEmbedded, Value } from 'signalbox/store';

const [directory = '', work = '', name = ''] = process.argv.slice(2);
const inside = join(work, 'inside');

// Whatever goes wrong while it opens the store, too.
process.on('uncaughtException', fail);

async function hammer() {
  const box = await open(`file:${directory}`, { sessionTtlMs: 30_000, requestTimeoutMs: 60_000 });
  const store = await openEmbedded(directory, { busyMs: 60_000 });
  const lock = box.lock('section');
  const slots = box.semaphore('slots', { capacity: 3 });
  process.send?.('ready');
  await Promise.all([count(store), enter(lock, slots), enter(lock, slots)]);
}

async function count(/** @type {import('signalbox/store').Store} */ store) {
  const { results } = await store.transaction({
    compare: [],
    success: [{ do: 'read', key: `counter/${name}` }],
    failure: [],
  });
  const [read] = results;
  let n = read?.do === 'read' ? Number(read.pairs[0]?.value.text ?? 0) : 0;
  for (;;) {
    n += 1;
    const put = /** @type {const} */ ({ do: 'put', key: `counter/${name}`, value: Value.text(String(n)) });
    await store.transaction({ compare: [], success: [put], failure: [] });
    appendFileSync(join(work, `acked-${name}`), `${n}\n`);
    // Without it the others would get no time to start, and starting is what most of this costs.
    await pause(Math.random() * 4);
  }
}

async function enter(/** @type {import('signalbox').Lock} */ lock, /** @type {import('signalbox').Semaphore} */ slots) {
  for (;;) {
    await lock.run((hold) => {
      const found = readFileSync(inside, 'utf8');
      if (found !== '' && isAlive(Number(found))) report(`${process.pid} #${hold.token} found ${found} inside`);
      writeFileSync(inside, String(process.pid));
      const busyUntil = performance.now() + Math.random() * 2;
      while (performance.now() < busyUntil);
      if (readFileSync(inside, 'utf8') !== String(process.pid)) report(`${process.pid} was joined inside`);
      writeFileSync(inside, '');
      appendFileSync(join(work, 'entered'), '.');
    });
    process.send?.('entered');
    await slots.run(() => pause(Math.random() * 3));
  }
}

function isAlive(/** @type {number} */ pid) {
  try {
    // One that waits to be collected by its parent is dead.
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

function report(/** @type {string} */ what) {
  appendFileSync(join(work, 'violations'), `${what}\n`);
}

/** @returns {never} */
function fail(/** @type {any} */ error) {
  report(`${name}: ${error?.stack ?? error}`);
  process.exit(1);
}

hammer().catch(fail);
