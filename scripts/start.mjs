// @ts-check
// npm start: the server and its page, on the store of this clone. It stays until Ctrl-C.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ensure, root } from './ensure.mjs';
import { isPort, linkFor, onStop, portIn, startServer } from './serving.mjs';
import { argumentsFor } from './usage.mjs';

const args = argumentsFor(
  `Usage: npm start [-- --port N]

Installs and builds what is missing, and serves the store of this clone with its page. The store is the one that every
signalbox in this clone uses, or the one that SIGNALBOX_URL names. Without --port: 7300, or the next one that is free.

Example: npm start -- --port 8080`,
  isPort,
);
const port = portIn(args);
ensure();

const served = await startServer({ store: storeOfClone(), port });
let isAsked = false;
onStop(() => {
  // On a terminal Ctrl-C reaches the server as well, which does no harm twice.
  isAsked = true;
  served.child.kill('SIGTERM');
});
const { url, store } = served;
console.log(`
signalbox is up, until Ctrl-C.

  page     ${linkFor(served)}
  store    ${store}
  API      ${url}/docs

Try it in another terminal, here. The page shows each of them at once:

  dist/bin/signalbox.cjs run --lock main --reason 'a first try' -- sleep 30     run it twice: the second one waits
  dist/bin/signalbox.cjs run --sem builds=3/8 -- sleep 30                       three of eight slots
  dist/bin/signalbox.cjs task publish hello && dist/bin/signalbox.cjs task run hello -- sleep 10
  dist/bin/signalbox.cjs top                                                    the same board in the terminal

Or see a busy one: npm run demo. After npm install --global . the command is just: signalbox`);
const code = await served.ended;
console.log(
  isAsked
    ? '\nThe server has stopped. What was held stays held; the store is where it was.'
    : '\nThe server has ended.',
);
process.exit(isAsked ? 0 : code);

/** A new store gets a witness, so that the page has a timeline. One that is there stays as it is. */
function storeOfClone() {
  if ((process.env['SIGNALBOX_URL'] ?? '') !== '' || isOnEtcd()) return undefined;
  const directory = join(commonDirectory() ?? '', 'signalbox');
  const isNew = directory !== 'signalbox' && !directory.includes('?') && !existsSync(join(directory, 'store.db'));
  return isNew ? `file:${directory}?witness=on` : undefined;
}

function isOnEtcd() {
  return process.env['IF_ETCD_HOST'] !== undefined || process.env['IF_ETCD_PORT'] !== undefined;
}

/** Of git; undefined if this is no clone, or not one that git trusts. */
function commonDirectory() {
  try {
    const printed = execFileSync('git', ['rev-parse', '--git-common-dir'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return resolve(root, printed.trim());
  } catch {
    return undefined;
  }
}
