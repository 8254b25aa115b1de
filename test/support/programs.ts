/** Programs that tests start and that a machine may lack. `npm test` installs them where it may (scripts/packages.mjs). */
import { FOR_TESTS, isHere } from '../../scripts/packages.mjs';

/**
 * Whether a test has to be left out because this program is not here; says so, and what to install. Where everything
 * must be tested (CI=true), that is a failure.
 */
export function isMissing(command: string): boolean {
  const program = FOR_TESTS.find((one) => one.command === command);
  if (program === undefined) throw new Error(`scripts/packages.mjs does not say which package has ${command}`);
  // For daily work (`npm test -- --changed`), which starts no servers.
  if (command === 'etcd' && process.env['WITHOUT_SERVERS'] === 'true') return true;
  if (isHere(command)) return false;
  const reason = `there is no ${command} here (Debian package ${program.debian}), which leaves out ${program.leavesOut}`;
  if (process.env['CI'] === 'true') throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  return true;
}
