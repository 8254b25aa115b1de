// @ts-check
// A run of named stages: each says its name and how long it took, and the first that fails ends the run.

import { exitUnlessZero } from './ensure.mjs';

/** @typedef {{ readonly name: string, readonly run: () => number }} Stage `run` answers an exit code. */

export function runStages(/** @type {readonly Stage[]} */ stages) {
  const begun = performance.now();
  for (const { name, run } of stages) {
    console.log(`\n== ${name}`);
    const stageBegun = performance.now();
    const status = run();
    console.log(`-- ${name}: ${status === 0 ? 'passed' : `failed with ${status}`} in ${secondsSince(stageBegun)}`);
    exitUnlessZero(status);
  }
  return secondsSince(begun);
}

function secondsSince(/** @type {number} */ begun) {
  return `${((performance.now() - begun) / 1000).toFixed(1)} s`;
}
