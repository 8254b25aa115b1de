// Writes to a few locks, a semaphore and tasks of its own until it is killed or has made its share of changes.
import { once } from 'node:events';
import { open } from 'signalbox';

const [url, name, share] = process.argv.slice(2);
// Longer than a busy machine may keep a process from renewing it: a writer that loses its session ends, and writes too little.
const box = await open(url, { requestTimeoutMs: 60_000, sessionTtlMs: 120_000, maintains: false });
const begun = once(process, 'message');
process.send?.('ready');
// All begin together, however long each of them took to start.
await begun;
const until = Number(share);
for (let i = 0; i < until; i++) {
  const lock = box.lock(`lock-${(i + Number(name)) % 4}`);
  const tried = await lock.tryAcquire({ holder: `writer:${name}` });
  if (tried.ok) await tried.hold.release();
  // Its own lock, of which it always gets the hold: so the number of changes does not depend on who wins.
  await (await box.lock(`own-${name}`).acquire()).release();
  if (i % 8 === 0) {
    const slot = await box.semaphore('slots', { capacity: 8 }).tryAcquire();
    if (slot.ok) await slot.hold.release();
  }
  if (i % 16 !== 0) continue;
  const id = `${name}-${i}`;
  await box.tasks.publish(id, { n: i });
  const claimed = await box.tasks.tryClaim(id, { holder: `writer:${name}` });
  if (claimed.ok) await claimed.claim.complete({ done: true });
}
await box.close();
process.disconnect?.();
