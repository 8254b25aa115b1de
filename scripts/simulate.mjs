// @ts-check
// npm run simulate -- ARGS…: whole-system runs under a seeded clock, network and schedule. ARGS go to the simulator.

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ensure, isMain, root, run } from './ensure.mjs';

const simulator = join(root, 'dist', 'testing', 'simulation', 'main.js');
/** Most of what a run allocates is gone when the next begins, and nobody looks at the stack of a simulated failure. */
const NODE_OPTIONS = ['--max-semi-space-size=32', '--stack-trace-limit=0'];

export function simulate(/** @type {readonly string[]} */ args) {
  return run(process.execPath, [simulator, ...args]);
}

/**
 * Seeds 1 to `seeds`, on all cores, and behind what else runs: what only computes fills the gaps that tests leave while they wait.
 *
 * @returns {import('./tasks.mjs').Task}
 */
export function simulation(/** @type {number} */ seeds) {
  const args = ['--jobs', String(availableParallelism()), '--seeds', String(seeds)];
  return { name: 'simulation', command: [process.execPath, ...NODE_OPTIONS, simulator, ...args], yields: true };
}

if (isMain(import.meta)) {
  ensure();
  process.exit(simulate(process.argv.slice(2)));
}
