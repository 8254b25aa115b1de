// @ts-check
// node scripts/together.mjs JSON: runs several commands side by side, each a list of a program and its arguments, and ends
// with the first exit code that is not zero. Where each of them keeps one core busy, two take as long as one.

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { isMain, root, run } from './ensure.mjs';

/** @typedef {readonly [string, ...string[]]} CommandLine */

/** Answers an exit code. */
export function together(/** @type {readonly CommandLine[]} */ commands) {
  return run(process.execPath, [fileURLToPath(import.meta.url), JSON.stringify(commands)]);
}

/** @returns {Promise<number>} */
function ended(/** @type {CommandLine} */ [program, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' });
    child.once('error', (error) => {
      console.error(`cannot run ${program}: ${error.message}`);
      resolve(127);
    });
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}

if (isMain(import.meta)) {
  const commands = /** @type {readonly CommandLine[]} */ (JSON.parse(process.argv[2] ?? '[]'));
  const codes = await Promise.all(commands.map(ended));
  process.exit(codes.find((code) => code !== 0) ?? 0);
}
