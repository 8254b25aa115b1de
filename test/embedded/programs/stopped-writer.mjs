// @ts-check
// node stopped-writer.mjs FILE: stops itself in the middle of a write.
import { openRaw } from './raw-database.mjs';

const database = openRaw(process.argv[2] ?? '');
database.exec('BEGIN IMMEDIATE');
process.send?.('writing');
setTimeout(() => process.kill(process.pid, 'SIGSTOP'), 0);
