// @ts-check
// npm test: everything that must hold before a change is shared. USAGE says what else there is.

import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { checksOf } from './check.mjs';
import {
  ensureInstalled,
  exitUnlessZero,
  canLoadNative,
  hasOwnSqlite,
  isInstalled,
  NATIVE,
  root,
  run,
  tool,
  TYPES_CHECKED,
} from './ensure.mjs';
import { ensureOtherNode, otherNode } from './nodes.mjs';
import { ensurePackages, FOR_TESTS, isHere } from './packages.mjs';
import { simulation } from './simulate.mjs';
import { runTasks } from './tasks.mjs';
import { argumentsFor } from './usage.mjs';

const USAGE = `Usage: npm test                            everything: format, lint, types, build, tests, a thousand simulated runs
       npm test -- --changed [REVISION]   what a change since REVISION (HEAD) touches, in about a minute: format, lint, types,
                                          and the tests that depend on it, without the slow ones, which it lists
       npm test -- ARGS…                  only the tests, with ARGS for vitest: a path, -t NAME (npx vitest --help)

Examples: npm test -- src/core/lock.test.ts
          npm test -- -t 'slept past its lease'
          npm test -- --changed main`;

const SIMULATED_SEEDS = 1000;

/** Real processes, servers and leases, or a great many of something: what takes long, and is rarely what a change breaks unseen. */
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
  'runtime/queue.test.ts',
  'runtime/maintenance.test.ts',
  'runtime/forgotten-records.test.ts',
  'runtime/guards-waking.test.ts',
  'runtime/slices.test.ts',
];

/** What looks at the built package: to build it takes longer than to run them. */
const OF_THE_PACKAGE = ['telemetry/log.test.ts', 'house/declarations.test.ts', 'client/for-browsers.test.ts'];

/** Likewise, but a change of what they are about, which is in these folders, is not tested without them. */
const SLOW_UNLESS_CHANGED = {
  github: 'github',
  adapters: 'adapters',
  grpc: 'grpc',
  contract: 'store',
  members: 'members',
  dashboard: 'dashboard',
  mcp: 'mcp',
  server: 'server',
  witness: 'witness',
  '../src/document': 'document',
};

/** What is to hold on both drivers of SQLite. */
const ON_BOTH_DRIVERS = [
  'test/contract/embedded.test.ts',
  'test/differential/differential.test.ts',
  'test/embedded/kill.test.ts',
  'test/embedded/files.test.ts',
  'test/embedded/drivers.test.ts',
];

const NATIVE_PART = 'native part of SQLite';

/** Parts of SQLite that signalbox does not use, a third of what is to be compiled. */
const UNUSED = ['FTS3', 'FTS3_PARENTHESIS', 'FTS4', 'FTS5', 'GEOPOLY', 'RTREE'].map(
  (part) => `-USQLITE_ENABLE_${part}`,
);

/** Optimised less and with less in it, because to compile all of it all the way takes more than four times as long. */
const COMPILE = /** @type {const} */ ([`CFLAGS=-Og ${UNUSED.join(' ')}`, 'CXXFLAGS=-O0', ...NATIVE]);

const PACKAGES = /** @type {const} */ ({
  name: 'packages',
  command: [process.execPath, 'scripts/ensure.mjs', '--packages'],
  isLive: true,
});

const OTHER_NODE = /** @type {const} */ ({
  name: 'the other Node',
  command: [process.execPath, 'scripts/nodes.mjs'],
});

const PROGRAMS = /** @type {const} */ ({
  name: 'programs for tests',
  command: [process.execPath, 'scripts/packages.mjs'],
});

/** The package, and its source as the tests import it. */
const BUILD = /** @type {const} */ ([process.execPath, 'scripts/compile-source.mjs']);

/**
 * Compiles better-sqlite3 for the Node that needs it, while the checks have the other core.
 *
 * @type {import('./tasks.mjs').Task}
 */
const NATIVE_TASK = {
  name: NATIVE_PART,
  command: () => {
    const node = hasOwnSqlite() ? otherNode() : process.execPath;
    if (node === undefined || canLoadNative(node)) return undefined;
    return ['env', `PATH=${dirname(node)}:${process.env['PATH']}`, ...COMPILE];
  },
  after: [PACKAGES.name, OTHER_NODE.name],
  behind: isHere('make') ? [] : [PROGRAMS.name],
  isLive: true,
};

/**
 * The same once more by the other Node, and so on the other driver. Processes of both Nodes are killed on one file.
 *
 * @type {import('./tasks.mjs').Task}
 */
const TESTS_ON_OTHER_DRIVER = {
  name: 'tests on the other driver',
  command: () => {
    const node = otherNode();
    if (node === undefined) return undefined;
    const settings = [`OTHER_NODE=${process.execPath}`, 'KILLS=30', 'DIFFERENTIAL_PART=10'];
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    // One worker, because to load the source once more costs more than some of these tests.
    return ['env', ...settings, node, vitest, 'run', '--allowOnly=false', '--maxWorkers=1', ...ON_BOTH_DRIVERS];
  },
  after: ['build', NATIVE_PART, PROGRAMS.name],
};

const args = argumentsFor(USAGE, () => true);
if (args[0] === '--changed') exitUnlessZero(await testChanged(args[1] ?? 'HEAD', args.slice(2)));
else if (args.length > 0) testSome();
else exitUnlessZero(await testAll());

async function testAll() {
  // Daily work asks each law a few hundred times; this asks as often as it takes to find what they are for.
  process.env['LAW_RUNS'] ??= '7';
  process.env['COMPILED_SOURCE'] ??= 'true';
  process.env[TYPES_CHECKED] = 'true';
  // What is fetched comes from several places, so none of it waits for the rest.
  return runTasks([
    ...(isInstalled() ? [] : [PACKAGES]),
    ...(otherNode() === undefined ? [OTHER_NODE] : []),
    ...(FOR_TESTS.every(({ command }) => isHere(command)) ? [] : [PROGRAMS]),
    NATIVE_TASK,
    TESTS_ON_OTHER_DRIVER,
    { name: 'build', command: BUILD, after: [PACKAGES.name] },
    // A forgotten `.only` would silently leave out the rest.
    {
      name: 'tests',
      command: [tool('vitest'), 'run', '--allowOnly=false'],
      after: ['build', NATIVE_PART, PROGRAMS.name],
      isLive: true,
    },
    {
      name: 'installation',
      command: [process.execPath, 'scripts/test-install.mjs', '--quick'],
      after: ['build', NATIVE_PART],
    },
    // Behind what the tests wait for, and then behind the tests.
    ...checksOf().map((check) => ({ ...check, after: [PACKAGES.name], yields: true })),
    { ...simulation(SIMULATED_SEEDS), after: ['build'] },
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
  const isUntouched = (/** @type {string} */ folder) => !files.some((file) => file.includes(`${folder}/`));
  const untouched = Object.entries(SLOW_UNLESS_CHANGED).filter(([, folder]) => isUntouched(folder));
  const slow = [...SLOW, ...OF_THE_PACKAGE, ...untouched.map(([tests]) => tests)]
    .map((tests) => join('test', tests))
    // A test that was itself changed is what its author wants to see.
    .filter((tests) => !files.includes(tests));
  const left = slow.flatMap((tests) => ['--exclude', tests.endsWith('.ts') ? tests : `${tests}/**`]);
  console.log(
    `Left to npm test: ${slow.join(', ')}; what needs etcd; the simulation; and six of seven runs of each law.`,
  );
  process.env['WITHOUT_SERVERS'] = 'true';
  // What else starts processes of the package is among what is slow unless changed.
  const needsPackage =
    untouched.length < Object.keys(SLOW_UNLESS_CHANGED).length ||
    OF_THE_PACKAGE.some((tests) => !slow.includes(join('test', tests)));
  if (!needsPackage) process.env['WITHOUT_BUILD'] = 'true';
  // Tests without processes compute more than they wait, and each worker loads the whole source.
  const workers = needsPackage ? [] : [`--maxWorkers=${availableParallelism()}`];
  return runTasks([
    ...checksOf(files),
    {
      name: 'tests',
      command: [tool('vitest'), 'run', '--changed', since, '--passWithNoTests', ...workers, ...left, ...vitestArgs],
      isLive: true,
    },
  ]);
}

function testSome() {
  ensureInstalled();
  ensurePackages(FOR_TESTS);
  ensureOtherNode();
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
