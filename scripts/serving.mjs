// @ts-check
// The server for `npm start` and `npm run demo`: a process of `signalbox serve`, as users start it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './ensure.mjs';

export const CLI = join(root, 'dist', 'bin', 'signalbox.cjs');
export const FIRST_PORT = 7300;
const MOST_TRIED = 20;

/**
 * @typedef {object} Served
 * @property {string} url
 * @property {string} store
 * @property {string} link the page, for the administrator of this machine
 * @property {import('node:child_process').ChildProcess} child
 * @property {Promise<number>} ended the exit code
 */

/**
 * Resolves once the server listens. `port`: that one and no other; else the first that is free.
 *
 * @param {{ store?: string | undefined, port?: number | undefined }} options
 * @returns {Promise<Served>}
 */
export async function startServer({ store, port }) {
  if (port !== undefined) return started(store, port, false);
  // A page that was left open finds the server again if it has the same port, so the usual one is tried first.
  for (let next = FIRST_PORT; next < FIRST_PORT + MOST_TRIED; next++) {
    const served = await started(store, next, true);
    if (served !== undefined) return served;
  }
  return started(store, 0, false);
}

/**
 * Undefined if the port is taken and there are others. Ends this process, with the server's own words, if it cannot start.
 *
 * @template {boolean} HasOthers
 * @param {string | undefined} store
 * @param {number} port
 * @param {HasOthers} hasOthers
 * @returns {Promise<HasOthers extends true ? Served | undefined : Served>}
 */
async function started(store, port, hasOthers) {
  const args = [CLI, 'serve', '--json', '--port', String(port), ...(store === undefined ? [] : ['--store', store])];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit').then(([code]) => Number(code ?? 1));
  let printed = '';
  let complaints = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (printed += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (complaints += text));
  while (!printed.includes('\n')) {
    const code = await Promise.race([once(child.stdout, 'data').then(() => undefined), ended]);
    if (code === undefined) continue;
    if (hasOthers && complaints.includes('EADDRINUSE')) return /** @type {any} */ (undefined);
    process.stderr.write(inWords(complaints));
    process.exit(code);
  }
  child.stderr.pipe(process.stderr);
  const { url, store: place, tokenFile } = JSON.parse(printed);
  const token = readFileSync(tokenFile, 'utf8').trim();
  return { url, store: place, link: `${url}/#token=${token}`, child, ended };
}

/** A server with --json complains in JSON, which is for programs. */
function inWords(/** @type {string} */ complaints) {
  return complaints.replace(/^\{"error":.*\}$/gm, (line) => {
    try {
      return `signalbox: ${JSON.parse(line).error.message}`;
    } catch {
      return line;
    }
  });
}

/**
 * Calls back for Ctrl-C and for a signal that ends. npm passes SIGTERM to the shell in which it runs this script, and the shell ends
 * without passing it on: then this script has another parent. Without npm, a script may outlive its parent on purpose.
 */
export function onStop(/** @type {() => void} */ stop) {
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, stop);
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  const look = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(look);
    stop();
  }, 500).unref();
}

/** The number after `--port`; undefined if there is none. */
export function portIn(/** @type {readonly string[]} */ args) {
  const at = args.indexOf('--port');
  if (at < 0) return undefined;
  const port = Number(args[at + 1]);
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port;
  console.error(`--port is ${JSON.stringify(args[at + 1] ?? '')}; expected a number from 0 to 65535`);
  return process.exit(64);
}

/** A link with a token is for the user's eyes; a log is no place for it. */
export function linkFor(/** @type {Served} */ { link, url }) {
  return process.stdout.isTTY ? link : `${url}/ (its token: ${join('dist', 'bin', 'signalbox.cjs')} token local)`;
}

/** Whether an argument is `--port` or its number, for `argumentsFor`. */
export function isPort(/** @type {string} */ argument) {
  return argument === '--port' || /^\d+$/.test(argument);
}
