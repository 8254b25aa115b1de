// @ts-check
// npm test: everything that must hold before a change is shared.
// npm test -- ARGS…: only the tests, with ARGS for vitest (a path, -t NAME).

import { checks } from './check.mjs';
import { build, ensureInstalled, exitUnlessZero, run, tool } from './ensure.mjs';
import { ensurePackages, FOR_TESTS } from './packages.mjs';
import { canSimulate, simulateMany } from './simulate.mjs';
import { runStages } from './stages.mjs';

const SIMULATED_SEEDS = 1000;

const vitestArgs = process.argv.slice(2);
ensureInstalled();
ensurePackages(FOR_TESTS);
if (vitestArgs.length > 0) {
  exitUnlessZero(run(tool('vitest'), ['run', ...vitestArgs]));
} else {
  const took = runStages([
    ...checks,
    { name: 'build', run: build },
    // A forgotten `.only` would silently leave out the rest.
    { name: 'tests', run: () => run(tool('vitest'), ['run', '--allowOnly=false']) },
    ...(canSimulate() ? [{ name: 'simulation', run: () => simulateMany(SIMULATED_SEEDS) }] : []),
  ]);
  console.log(`\nEverything passed in ${took}.`);
}
