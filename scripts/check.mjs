// @ts-check
// npm run check: what can be said about the source without running it.

import { ensureInstalled, isMain, tool } from './ensure.mjs';
import { runStages } from './stages.mjs';
import { together } from './together.mjs';

/** @type {readonly import('./stages.mjs').Stage[]} */
export const checks = [
  {
    name: 'format, lint and types',
    run: () =>
      together([
        [tool('eslint'), '--max-warnings', '0', '.'],
        [tool('prettier'), '--check', '--log-level', 'warn', '.'],
        [tool('tsc')],
      ]),
  },
];

if (isMain(import.meta)) {
  ensureInstalled();
  console.log(`\nChecked in ${runStages(checks)}; all is well.`);
}
