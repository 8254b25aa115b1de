// @ts-check
// npm test: everything that must hold before a change is shared.
// npm test -- --changed [REVISION]: for daily work, what a change since REVISION (HEAD) touches, in about a minute.
// npm test -- ARGS…: only the tests, with ARGS for vitest (a path, -t NAME).

import { spawnSync } from 'node:child_process';
import { checksOf } from './check.mjs';
import {
  ensureInstalled,
  exitUnlessZero,
  installPackages,
  isNativeMissing,
  NATIVE,
  root,
  run,
  tool,
} from './ensure.mjs';
import { ensurePackages, FOR_TESTS, isHere } from './packages.mjs';
import { simulations } from './simulate.mjs';
import { runTasks } from './tasks.mjs';

const SIMULATED_SEEDS = 1000;

/** Real processes, servers and leases: what takes long, and is rarely what a change breaks unseen. */
const SLOW = [
  'end-to-end',
  'docs',
  'pitfalls',
  'pipelines',
  'tasks',
  'embedded',
  'etcd',
  'differential',
  'simulation',
  'security',
];

/** Parts of SQLite that signalbox does not use, a third of what is to be compiled. */
const UNUSED = ['FTS3', 'FTS3_PARENTHESIS', 'FTS4', 'FTS5', 'GEOPOLY', 'RTREE'].map(
  (part) => `-USQLITE_ENABLE_${part}`,
);

/** Optimised less and with less in it, because to compile all of it all the way takes more than twice as long. */
const COMPILE = /** @type {const} */ (['env', `CFLAGS=-O1 ${UNUSED.join(' ')}`, 'CXXFLAGS=-O1', ...NATIVE]);

const PROGRAMS = /** @type {const} */ ({
  name: 'programs for tests',
  command: [process.execPath, 'scripts/packages.mjs'],
});

const BUILD = /** @type {const} */ ([process.execPath, 'scripts/ensure.mjs', '--build']);

const args = process.argv.slice(2);
if (args[0] === '--changed') exitUnlessZero(await testChanged(args[1] ?? 'HEAD', args.slice(2)));
else if (args.length > 0) testSome();
else exitUnlessZero(await testAll());

async function testAll() {
  installPackages();
  // Daily work asks each law a few hundred times; this asks as often as it takes to find what they are for.
  process.env['LAW_RUNS'] ??= '7';
  return runTasks([
    // While the checks have the other core.
    ...(isNativeMissing()
      ? [{ name: 'native part of SQLite', command: COMPILE, behind: isHere('make') ? [] : [PROGRAMS.name] }]
      : []),
    ...(FOR_TESTS.every(({ command }) => isHere(command)) ? [] : [PROGRAMS]),
    { name: 'build', command: BUILD },
    // A forgotten `.only` would silently leave out the rest.
    {
      name: 'tests',
      command: [tool('vitest'), 'run', '--allowOnly=false'],
      after: ['build', 'native part of SQLite', PROGRAMS.name],
      isLive: true,
    },
    ...checksOf(),
    ...simulations(SIMULATED_SEEDS).map((task) => ({ ...task, after: ['build'] })),
  ]);
}

/** What vitest finds to depend on the change, as far as it needs no processes and no servers. */
async function testChanged(/** @type {string} */ since, /** @type {readonly string[]} */ vitestArgs) {
  ensureInstalled();
  const files = changedSince(since);
  if (files.length === 0) {
    console.log(`Nothing has changed since ${since}.`);
    return 0;
  }
  const left = SLOW.flatMap((folder) => ['--exclude', `test/${folder}/**`]);
  console.log(
    `Left to npm test: ${SLOW.map((folder) => `test/${folder}`).join(', ')}, what is told on etcd, and the simulation.`,
  );
  process.env['WITHOUT_SERVERS'] = 'true';
  return runTasks([
    ...checksOf(files),
    {
      name: 'tests',
      command: [tool('vitest'), 'run', '--changed', since, '--passWithNoTests', ...left, ...vitestArgs],
      isLive: true,
    },
  ]);
}

function testSome() {
  ensureInstalled();
  ensurePackages(FOR_TESTS);
  exitUnlessZero(run(tool('vitest'), ['run', ...args]));
}

/** Files that are there, and differ from `revision` or are new. */
function changedSince(/** @type {string} */ revision) {
  const git = (/** @type {string[]} */ ...words) => {
    const { status, stdout, stderr } = spawnSync('git', words, { cwd: root, encoding: 'utf8' });
    if (status === 0) return stdout.split('\0').filter((file) => file !== '');
    console.error(`cannot tell what has changed since ${revision}: ${stderr.trim()}`);
    process.exit(64);
  };
  const changed = git('diff', '--name-only', '--diff-filter=d', '-z', revision);
  return [...new Set([...changed, ...git('ls-files', '--others', '--exclude-standard', '-z')])];
}
