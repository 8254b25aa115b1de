// @ts-check
// npm run check: what can be said about the source without running it.

import { ensureInstalled, exitUnlessZero, isMain, tool } from './ensure.mjs';
import { runTasks } from './tasks.mjs';

/** Of the whole repository, or of these files alone; the types of one file depend on all the others. */
export function checksOf(/** @type {readonly string[]} */ files = []) {
  /** @type {import('./tasks.mjs').Task[]} */
  return [
    { name: 'types', command: [tool('tsc')], behind: ['build'] },
    { name: 'types of the dashboard', command: [tool('tsc'), '-p', 'src/dashboard'], behind: ['build'] },
    { name: 'format', command: [tool('oxfmt'), '--check', '--no-error-on-unmatched-pattern', ...files] },
    {
      name: 'lint',
      command: [tool('oxlint'), '--deny-warnings', '--no-error-on-unmatched-pattern', ...files],
      behind: ['types'],
    },
  ];
}

if (isMain(import.meta)) {
  ensureInstalled();
  exitUnlessZero(await runTasks(checksOf()));
}
