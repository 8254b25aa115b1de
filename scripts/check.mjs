// @ts-check
// npm run check: what can be said about the source without running it.

import { ensureInstalled, isMain, run, tool } from './ensure.mjs';
import { runStages } from './stages.mjs';

/** @type {readonly import('./stages.mjs').Stage[]} */
export const checks = [
  { name: 'format', run: () => run(tool('prettier'), ['--check', '--log-level', 'warn', '.']) },
  { name: 'lint', run: () => run(tool('eslint'), ['--max-warnings', '0', '.']) },
  { name: 'types', run: () => run(tool('tsc'), []) },
];

if (isMain(import.meta)) {
  ensureInstalled();
  console.log(`\nChecked in ${runStages(checks)}; all is well.`);
}
