/** Opens the store in its argument, waits for the lock, says when it got it, and keeps it until it is killed. */
import { open } from 'signalbox';

const box = await open(process.argv[2]);
const waiting = box.lock('bench').acquire({ onWaiting: () => process.send({ kind: 'waiting' }) });
await waiting;
process.send({ kind: 'let in', at: Number(process.hrtime.bigint()) });
process.on('disconnect', () => process.exit());
