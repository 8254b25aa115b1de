// @ts-check
// Programs that tests and benches start besides Node: those that are missing are installed where that is possible, and
// where it is not, it is said what is missing and what that leaves out. No imports but Node's own, as in ensure.mjs.
//
// node scripts/packages.mjs: installs those for the tests.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { isMain } from './ensure.mjs';

/**
 * @typedef {{ readonly command: string, readonly debian: string, readonly leavesOut: string }} Program
 * A command, or the path of something that is no command, the Debian package that has it, and what cannot be done
 * without it.
 */

/** @type {readonly Program[]} */
export const FOR_TESTS = [
  { command: 'etcd', debian: 'etcd-server', leavesOut: 'the differential test and the contract on a real etcd' },
  { command: 'etcdctl', debian: 'etcd-client', leavesOut: 'the look at a real etcd through its own client' },
  { command: 'tmux', debian: 'tmux', leavesOut: 'the look at real tmux sessions' },
  { command: 'faketime', debian: 'faketime', leavesOut: 'processes under a clock that was set for them alone' },
  { command: 'git', debian: 'git', leavesOut: 'the look at real repositories' },
  { command: 'bash', debian: 'bash', leavesOut: 'completion in bash, and the recipes of the documentation' },
  { command: 'zsh', debian: 'zsh', leavesOut: 'completion in zsh' },
  { command: 'fish', debian: 'fish', leavesOut: 'completion in fish' },
  { command: 'script', debian: 'bsdutils', leavesOut: 'what happens on a terminal' },
  { command: 'make', debian: 'make', leavesOut: 'a run inside of make' },
  { command: 'gh', debian: 'gh', leavesOut: 'locks on GitHub Issues with the login of gh' },
  { command: 'chromium', debian: 'chromium', leavesOut: 'the dashboard in a real browser' },
  { command: 'openssl', debian: 'openssl', leavesOut: 'etcd over TLS' },
];

/** @type {readonly Program[]} */
export const FOR_BENCHES = [
  { command: 'redis-server', debian: 'redis-server', leavesOut: 'the rows of redis-semaphore' },
  { command: 'flock', debian: 'util-linux', leavesOut: 'the rows of flock(1)' },
  { command: 'etcd', debian: 'etcd-server', leavesOut: 'everything on etcd' },
  { command: 'go', debian: 'golang-go', leavesOut: "the rows of etcd's own client" },
  {
    command: '/usr/share/gocode/src/go.etcd.io/etcd',
    debian: 'golang-etcd-server-dev',
    leavesOut: "the rows of etcd's own client",
  },
];

/**
 * Installs what is missing, if we are root on a Debian. Answers what is missing still, having said so; where everything
 * must be there (CI=true), that ends the process.
 */
export function ensurePackages(/** @type {readonly Program[]} */ programs) {
  const absent = programs.filter(({ command }) => !isHere(command));
  if (absent.length === 0) return [];
  const problem = install(absent);
  const missing = absent.filter(({ command }) => !isHere(command));
  for (const { command, debian, leavesOut } of missing) {
    console.error(`signalbox: there is no ${command} (Debian package ${debian}), which leaves out ${leavesOut}`);
  }
  if (missing.length > 0) {
    console.error(`signalbox: ${problem ?? 'the packages were installed and do not have it'}`);
    if (process.env['CI'] === 'true') process.exit(1);
  }
  return missing;
}

/** Answers why it could not be done, if it could not. */
function install(/** @type {readonly Program[]} */ programs) {
  if (!isHere('apt-get')) return 'install it by the means of your system; here is no apt-get';
  const names = [...new Set(programs.map(({ debian }) => debian))];
  if (process.getuid?.() !== 0) return `only root may install packages: sudo apt-get install ${names.join(' ')}`;
  console.log(`signalbox: installing ${names.join(', ')} (apt-get)`);
  // A machine that was just made has no lists of packages yet.
  const done = aptGet(['install', ...names]) || (aptGet(['update']) && aptGet(['install', ...names]));
  return done ? undefined : 'apt-get could not install it; what it said is above';
}

function aptGet(/** @type {readonly string[]} */ [verb, ...args]) {
  const { status, stdout, stderr } = spawnSync(
    'apt-get',
    ['-y', '-q', '--no-install-recommends', String(verb), ...args],
    // Tests and benches start the servers they need; the runlevel keeps the packages from starting theirs.
    { encoding: 'utf8', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' } },
  );
  if (status !== 0) console.error([stdout, stderr].join('\n').trimEnd().split('\n').slice(-10).join('\n'));
  return status === 0;
}

/** Whether this command is on the path, or this file is there. */
export function isHere(/** @type {string} */ command) {
  if (isAbsolute(command)) return existsSync(command);
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

if (isMain(import.meta)) ensurePackages(FOR_TESTS);
