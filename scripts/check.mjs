// @ts-check
// npm run check: what can be said about the source without running it.

import { ensureInstalled, exitUnlessZero, isMain, tool } from './ensure.mjs';
import { runTasks } from './tasks.mjs';

/**
 * Of the whole repository, or of these files alone; the types of one file depend on all the others. One after the other,
 * so that they leave a core to what `npm test` does beside them.
 */
export function checksOf(/** @type {readonly string[]} */ files = ['.']) {
  /** @type {import('./tasks.mjs').Task[]} */
  const checks = [{ name: 'types', command: [tool('tsc')], behind: ['build'] }];
  const linted = files.filter((file) => file === '.' || /\.(ts|mjs)$/.test(file));
  const format = [tool('prettier'), '--check', '--ignore-unknown', '--log-level', 'warn', ...files];
  checks.push({ name: 'format', command: /** @type {[string, ...string[]]} */ (format), behind: ['types'] });
  if (linted.length > 0) {
    checks.push({ name: 'lint', command: [tool('eslint'), '--max-warnings', '0', ...linted], behind: ['format'] });
  }
  return checks;
}

if (isMain(import.meta)) {
  ensureInstalled();
  exitUnlessZero(await runTasks(checksOf()));
}
