// @ts-check
// node entrant.mjs STORE LOG: waits for the lock, writes down when it was inside, and leaves.
import { appendFileSync } from 'node:fs';
import { open } from 'signalbox';

const [store = '', log = ''] = process.argv.slice(2);
const box = await open(store, { sessionTtlMs: 60_000 });
const waiting = box.lock('db').run(
  async (hold) => {
    appendFileSync(log, `in ${process.pid} ${hold.token}\n`);
    await new Promise((resolve) => setTimeout(resolve, 5));
    appendFileSync(log, `out ${process.pid} ${hold.token}\n`);
  },
  { onWaiting: () => process.send?.('waiting') },
);
process.send?.('asked');
await waiting;
await box.close();
process.disconnect?.();
