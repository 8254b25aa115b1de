// @ts-check
// node stopped-writer.mjs FILE: stops itself in the middle of a write.
import Database from 'better-sqlite3';

const database = new Database(process.argv[2]);
database.exec('BEGIN IMMEDIATE');
process.send?.('writing');
setTimeout(() => process.kill(process.pid, 'SIGSTOP'), 0);
