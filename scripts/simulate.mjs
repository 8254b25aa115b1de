// @ts-check
// npm run simulate -- ARGS…: whole-system runs under a seeded clock, network and schedule. ARGS go to the simulator.

import { join } from 'node:path';
import { ensure, isMain, root, run } from './ensure.mjs';

const simulator = join(root, 'dist', 'testing', 'simulation', 'main.js');
/** Most of what a run allocates is gone when the next begins, and nobody looks at the stack of a simulated failure. */
const NODE_OPTIONS = ['--max-semi-space-size=32', '--stack-trace-limit=0'];

export function simulate(/** @type {readonly string[]} */ args) {
  return run(process.execPath, [simulator, ...args]);
}

/** Seeds 1 to `seeds`, both halves at the same time. */
export function simulations(/** @type {number} */ seeds) {
  const half = Math.ceil(seeds / 2);
  const task = (/** @type {number} */ part, /** @type {number} */ from, /** @type {number} */ count) => {
    const args = ['--jobs', '1', '--from', String(from), '--seeds', String(count)];
    /** @type {import('./tasks.mjs').Task} */
    const made = { name: `simulation ${part}`, command: [process.execPath, ...NODE_OPTIONS, simulator, ...args] };
    return made;
  };
  return [task(1, 1, half), task(2, half + 1, seeds - half)];
}

if (isMain(import.meta)) {
  ensure();
  process.exit(simulate(process.argv.slice(2)));
}
