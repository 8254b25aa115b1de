// @ts-check
// node writer.mjs FILE: writes from when it says so until its input ends.
import { openRaw } from './raw-database.mjs';

const database = openRaw(process.argv[2] ?? '');
database.exec('BEGIN IMMEDIATE');
console.log('writing');
process.stdin.on('end', () => database.close()).resume();
