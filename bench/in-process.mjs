/** How much does a lock cost in one process, with tokens, events and loss signals, compared with a bare mutex? */
import { Mutex } from 'async-mutex';
import { open } from 'signalbox';
import { inTurns, row } from './measure/rounds.mjs';

const box = await open('memory:');
const lock = box.lock('bench');
const mutex = new Mutex();

async function ours(operations) {
  for (let i = 0; i < operations; i++) {
    const hold = await lock.acquire();
    await hold.release();
  }
}

async function peer(operations) {
  for (let i = 0; i < operations; i++) {
    const release = await mutex.acquire();
    release();
  }
}

const by = (workers, work) => (operations) =>
  Promise.all(Array.from({ length: workers }, () => work(operations / workers)));

row(
  'acquire+release, uncontended',
  await inTurns({ signalbox: ours, 'async-mutex': peer }),
  'signalbox',
  'async-mutex',
);
row(
  'acquire+release, 64 workers',
  await inTurns({ signalbox: by(64, ours), 'async-mutex': by(64, peer) }, { operations: 6400 }),
  'signalbox',
  'async-mutex',
);

// Cost must not grow with the number of resources: one lock among ten, and one among a hundred thousand.
const many = Array.from({ length: 100_000 }, (_, number) => box.lock(`many-${number}`));
const few = await open('memory:');
const ten = Array.from({ length: 10 }, (_, number) => few.lock(`few-${number}`));
for (const each of [...many, ...ten]) await (await each.acquire()).release();
const among = (locks) => async (operations) => {
  for (let i = 0; i < operations; i++) {
    const hold = await locks[(i * 7919) % locks.length].acquire();
    await hold.release();
  }
};
row(
  'acquire+release among 100,000 locks',
  await inTurns({ 'of 100,000': among(many), 'of 10': among(ten) }),
  'of 100,000',
  'of 10',
);
await Promise.all([box.close(), few.close()]);
