// @ts-check
// Makes a clone ready: packages installed, dist built from the source as it is now. Every other script begins here, so
// that each command works on a fresh clone; hence no imports but Node's own.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
/** How every command of these scripts is run. */
const INSIDE = { cwd: root, shell: process.platform === 'win32' };

export function ensure() {
  ensureInstalled();
  ensureBuilt();
}

export function ensureInstalled() {
  installPackages();
  if (!isNativeMissing()) return;
  say('Node before 22.16 has no SQLite of its own: fetching or compiling it (a minute or two)');
  const { status, printed } = withSignsOfLife(() => runQuietly(NATIVE[0], NATIVE.slice(1)));
  if (status === 0) return;
  process.stderr.write(printed);
  say(`SQLite could be neither fetched from github.com nor compiled; npm says why above. Two ways out:
  - install what compiling takes: a C++ compiler, make, python3, and the headers of Node
  - use Node 22.16 or later, which has SQLite of its own`);
  process.exit(status);
}

/** All but what has to be compiled, which takes longer than everything else: `npm test` does that while other work runs. */
export function installPackages() {
  if (isInstalled()) return;
  // npm ci empties what the link leads to, which belongs to another checkout.
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) {
    say('node_modules is a link to packages that are not those of package-lock.json; install them where it leads to');
    process.exit(1);
  }
  say('installing packages (npm ci)');
  // Without --include=dev, NODE_ENV=production would leave out the compiler.
  exitUnlessZero(run('npm', ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund']));
}

// node-gyp compiles one file after the other unless it gets a number of jobs.
process.env['JOBS'] ??= 'max';
// It fetches the headers of Node from nodejs.org, although most installations of Node have them.
const prefix = dirname(dirname(process.execPath));
if (hasHeaders(prefix)) process.env['npm_package_config_node_gyp_nodedir'] ??= prefix;

/** Whether the headers of the Node that is running are installed there, and not those of another one. */
function hasHeaders(/** @type {string} */ folder) {
  const header = join(folder, 'include', 'node', 'node_version.h');
  const text = existsSync(header) ? readFileSync(header, 'utf8') : '';
  const version = ['MAJOR', 'MINOR', 'PATCH'].map((part) => text.match(`NODE_${part}_VERSION (\\d+)`)?.[1]);
  return version.join('.') === process.versions.node;
}

/**
 * Fetches or compiles the native part of better-sqlite3, the one package that has one, and says what it does: npm says
 * nothing otherwise, not even why it failed. What `.npmrc` says of install scripts does not count, since without this one nothing would work.
 */
export const NATIVE = /** @type {[string, ...string[]]} */ ([
  'npm',
  'rebuild',
  'better-sqlite3',
  '--ignore-scripts=false',
  '--foreground-scripts',
]);

/** Whether this Node needs it and cannot load it: it is not there, or was built for another Node. */
export function isNativeMissing() {
  return !hasOwnSqlite() && !canLoadNative(process.execPath);
}

export function canLoadNative(/** @type {string} */ node) {
  const native = join(root, 'node_modules', 'better-sqlite3', 'build', 'Release', 'better_sqlite3.node');
  if (!existsSync(native)) return false;
  const load = `process.dlopen({ exports: {} }, ${JSON.stringify(native)})`;
  return spawnSync(node, ['-e', load], { stdio: 'ignore' }).status === 0;
}

/** As src/sqlite/node-sqlite.ts has it. */
export function hasOwnSqlite() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major >= 24 || (major === 22 && minor >= 16);
}

/**
 * Compiling SQLite takes a minute or two in which nothing is printed.
 *
 * @template T
 * @param {() => T} work
 * @returns {T}
 */
function withSignsOfLife(work) {
  const script = 'setInterval(() => console.log(`signalbox: … ${Math.round(performance.now() / 1000)} s`), 10_000)';
  const clock = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'inherit', 'ignore'] });
  try {
    return work();
  } finally {
    clock.kill();
  }
}

export function ensureBuilt() {
  exitUnlessZero(build());
}

/** Set while another command checks the types anyway, which takes longer than to write the declarations. */
export const TYPES_CHECKED = 'TYPES_CHECKED_ELSEWHERE';

/** Builds dist unless it is of the source as it is now, and answers the compiler's exit code. */
export function build() {
  const checksTypes = process.env[TYPES_CHECKED] === undefined;
  const source = sourceFingerprint();
  // A build for good must not take over one whose types nobody has checked yet.
  const fingerprint = checksTypes ? source : `${source} unchecked`;
  if (isBuiltFrom(fingerprint) || (!checksTypes && isBuiltFrom(source))) return 0;
  say('building dist');
  // Built in another folder and then moved into place: a failed build leaves the last good one, a file that is gone from src
  // leaves nothing behind in dist, and a process that is running from dist is disturbed for a moment only.
  const fresh = join(root, `.dist-${process.pid}`);
  const status =
    run(tool('tsc'), ['-p', 'tsconfig.build.json', '--outDir', fresh, ...(checksTypes ? [] : ['--noCheck'])]) ||
    run(process.execPath, ['scripts/bundle.mjs', fresh]);
  if (status === 0) {
    writeFileSync(join(fresh, '.built-from'), fingerprint);
    replaceDist(fresh, fingerprint);
  }
  rmSync(fresh, { recursive: true, force: true });
  return status;
}

/** Runs a command in the repository with our terminal and answers its exit code. */
export function run(/** @type {string} */ command, /** @type {readonly string[]} */ args) {
  return statusOf(command, spawnSync(command, args, { ...INSIDE, stdio: 'inherit' }));
}

/**
 * Runs a command whose output is of interest only if it fails: a compiler prints pages of warnings about code that is not ours.
 *
 * @param {string} command
 * @param {readonly string[]} args
 */
function runQuietly(command, args) {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-'));
  const file = join(folder, 'printed');
  const both = openSync(file, 'a');
  try {
    const result = spawnSync(command, args, { ...INSIDE, stdio: ['ignore', both, both] });
    return { status: statusOf(command, result), printed: readFileSync(file, 'utf8') };
  } finally {
    closeSync(both);
    rmSync(folder, { recursive: true, force: true });
  }
}

function statusOf(
  /** @type {string} */ command,
  /** @type {import('node:child_process').SpawnSyncReturns<any>} */ { error, status, signal },
) {
  if (error) {
    console.error(`cannot run ${command}: ${error.message}`);
    return 127;
  }
  return status ?? 128 + (signal ? constants.signals[signal] : 0);
}

/** An installed package's command, found without npx, which would look for it elsewhere. */
export function tool(/** @type {string} */ name) {
  return join(root, 'node_modules', '.bin', name);
}

export function exitUnlessZero(/** @type {number} */ status) {
  if (status !== 0) process.exit(status);
}

/** Whether a script was started, rather than imported by another. Through a link, Node names it by its real path. */
export function isMain(/** @type {ImportMeta} */ meta) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(meta.url);
}

/**
 * Compares what the lock file wants with what npm noted down when it installed. Contents, not dates: a checkout touches
 * the lock file without changing it, and `npm ci` under a running process takes its modules away.
 */
export function isInstalled() {
  const installedFile = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return false;
  const wanted = packagesIn(join(root, 'package-lock.json'));
  const installed = packagesIn(installedFile);
  return Object.entries(wanted).every(([path, { integrity, optional }]) => {
    const isRootItself = path === '';
    const isForAnotherPlatform = optional === true && installed[path] === undefined;
    return isRootItself || isForAnotherPlatform || installed[path]?.integrity === integrity;
  });
}

/** @returns {Record<string, { integrity?: string, optional?: boolean }>} */
function packagesIn(/** @type {string} */ lockFile) {
  return JSON.parse(readFileSync(lockFile, 'utf8')).packages;
}

function isBuiltFrom(/** @type {string} */ fingerprint) {
  const note = join(dist, '.built-from');
  return existsSync(note) && readFileSync(note, 'utf8') === fingerprint;
}

/** A hash over everything the build depends on. */
function sourceFingerprint() {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(ts|tsx|css|html)$/.test(path) && !path.endsWith('.test.ts'))
    .map((path) => join('src', path))
    .sort();
  const hash = createHash('sha256');
  const settings = ['tsconfig.json', 'tsconfig.build.json', 'package-lock.json'];
  for (const path of [...sources, ...settings, 'scripts/bundle.mjs', 'scripts/common-code.mjs']) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0');
  }
  return hash.digest('hex');
}

function replaceDist(/** @type {string} */ fresh, /** @type {string} */ fingerprint) {
  const old = `${fresh}-old`;
  try {
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(fresh, dist);
  } catch (error) {
    // Two commands built at the same time; the other one's result serves as well, if it is of the same source.
    if (!isBuiltFrom(fingerprint)) throw error;
  } finally {
    rmSync(old, { recursive: true, force: true });
  }
}

function say(/** @type {string} */ what) {
  console.log(`signalbox: ${what}`);
}

if (isMain(import.meta)) {
  if (process.argv[2] === '--build') ensureBuilt();
  else if (process.argv[2] === '--packages') installPackages();
  else ensure();
}
