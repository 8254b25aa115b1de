// @ts-check
// node crew.mjs URL LOG: hands a lock on and uses slots of a semaphore, again and again, until it is told to stop. Into
// LOG goes when it was inside; it says how often it was there, and what the store refused it.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure, open } from 'signalbox';

const [url = '', log = ''] = process.argv.slice(2);
const box = await open(url, { sessionTtlMs: 10_000 });
const lock = box.lock('baton');
const semaphore = box.semaphore('slots', { capacity: 2 });
let isOver = false;
process.on('message', () => (isOver = true));
process.on('disconnect', () => process.exit());

/** @param {'lock' | 'slot'} kind @param {() => Promise<import('signalbox').LockHold | import('signalbox').SemaphoreHold>} take */
async function work(kind, take) {
  while (!isOver) {
    try {
      const hold = await take();
      const slot = 'slots' in hold ? hold.slots[0] : '-';
      const note = (/** @type {string} */ what) => appendFileSync(log, `${what} ${kind} ${slot} ${hold.token}\n`);
      const lost = () => note('lost');
      hold.signal.addEventListener('abort', lost);
      if (hold.isValid) {
        note('in');
        await sleep(2);
        if (hold.isValid) note('out');
      }
      hold.signal.removeEventListener('abort', lost);
      await hold.release();
      process.send?.({ kind });
    } catch (error) {
      // A cluster without a leader is told as such; whoever wants to go on asks again.
      if (!(error instanceof Failure) || !['unavailable', 'outcome-unknown', 'not-acquired'].includes(error.code))
        throw error;
      process.send?.({ kind: 'failure', code: error.code, message: error.message });
    }
  }
}

process.send?.({ kind: 'ready' });
await Promise.all([work('lock', () => lock.acquire()), work('slot', () => semaphore.acquire())]);
await box.close();
process.disconnect?.();
