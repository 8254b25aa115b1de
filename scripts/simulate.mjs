// @ts-check
// npm run simulate -- ARGS…: whole-system runs under a seeded clock, network and schedule. ARGS go to the simulator.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ensure, isMain, root, run } from './ensure.mjs';
import { together } from './together.mjs';

export function canSimulate() {
  return existsSync(join(root, 'src', 'testing', 'simulation', 'main.ts'));
}

const simulator = join(root, 'dist', 'testing', 'simulation', 'main.js');

export function simulate(/** @type {readonly string[]} */ args) {
  return run(process.execPath, [simulator, ...args]);
}

/** Seeds 1 to `seeds`, one half beside the other. */
export function simulateMany(/** @type {number} */ seeds) {
  const half = Math.ceil(seeds / 2);
  return together([
    [process.execPath, simulator, '--seeds', String(half)],
    [process.execPath, simulator, '--from', String(half + 1), '--seeds', String(seeds - half)],
  ]);
}

if (isMain(import.meta)) {
  ensure();
  process.exit(simulate(process.argv.slice(2)));
}
