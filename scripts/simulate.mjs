// @ts-check
// npm run simulate -- ARGS…: whole-system runs under a seeded clock, network and schedule. ARGS go to the simulator.

import { join } from 'node:path';
import { ensure, isMain, root, run } from './ensure.mjs';

const simulator = join(root, 'dist', 'testing', 'simulation', 'main.js');

export function simulate(/** @type {readonly string[]} */ args) {
  return run(process.execPath, [simulator, ...args]);
}

/** Seeds 1 to `seeds`, one half beside the other. */
export function simulations(/** @type {number} */ seeds) {
  const half = Math.ceil(seeds / 2);
  /** @type {import('./tasks.mjs').Task[]} */
  const halves = [
    { name: 'simulation 1', command: [process.execPath, simulator, '--seeds', String(half)] },
    {
      name: 'simulation 2',
      command: [process.execPath, simulator, '--from', String(half + 1), '--seeds', String(seeds - half)],
    },
  ];
  return halves;
}

if (isMain(import.meta)) {
  ensure();
  process.exit(simulate(process.argv.slice(2)));
}
