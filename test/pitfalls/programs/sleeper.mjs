// @ts-check
// node sleeper.mjs STORE: takes the lock and blocks its event loop for longer than its lease.
import { open } from 'signalbox';

const box = await open(process.argv[2], { sessionTtlMs: 1000 });
const hold = await box.lock('db').acquire({ holder: 'sleeper' });
process.send?.('held');
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
const { isValid } = hold;
const released = await hold.release();
process.send?.({ isValid, released: released.kind, why: hold.lost?.why });
await box.close();
process.disconnect?.();
