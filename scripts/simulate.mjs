// @ts-check
// npm run simulate -- ARGS…: whole-system runs under a seeded clock, network and schedule. ARGS go to the simulator.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ensure, isMain, root, run } from './ensure.mjs';

export function canSimulate() {
  return existsSync(join(root, 'src', 'testing', 'simulation', 'main.ts'));
}

export function simulate(/** @type {readonly string[]} */ args) {
  return run(process.execPath, [join(root, 'dist', 'testing', 'simulation', 'main.js'), ...args]);
}

if (isMain(import.meta)) {
  ensure();
  process.exit(simulate(process.argv.slice(2)));
}
