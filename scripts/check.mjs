// @ts-check
// npm run check: what can be said about the source without running it.

import { ensureInstalled, exitUnlessZero, isMain, tool } from './ensure.mjs';
import { runTasks } from './tasks.mjs';

/** Of the whole repository, or of these files alone. The types of one file depend on all the others. */
export function checksOf(/** @type {readonly string[]} */ files = ['.']) {
  /** @type {import('./tasks.mjs').Task[]} */
  const checks = [{ name: 'types', command: [tool('tsc')] }];
  const linted = files.filter((file) => file === '.' || /\.(ts|mjs)$/.test(file));
  if (linted.length > 0) checks.push({ name: 'lint', command: [tool('eslint'), '--max-warnings', '0', ...linted] });
  const format = [tool('prettier'), '--check', '--ignore-unknown', '--log-level', 'warn', ...files];
  checks.push({ name: 'format', command: /** @type {[string, ...string[]]} */ (format) });
  return checks;
}

if (isMain(import.meta)) {
  ensureInstalled();
  exitUnlessZero(await runTasks(checksOf()));
}
