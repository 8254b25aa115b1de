// @ts-check
// npm run bench -- [NAME…] [--OPTION…]: the files directly in bench/, or those named, one after the other. Each has a
// process of its own, so that none inherits another's heap or compiled code. Options go to every one of them.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ensure, root, run } from './ensure.mjs';
import { ensurePackages, FOR_BENCHES } from './packages.mjs';
import { argumentsFor } from './usage.mjs';

const folder = join(root, 'bench');
const all = readdirSync(folder)
  .filter((file) => file.endsWith('.mjs'))
  .map((file) => basename(file, '.mjs'))
  .sort();

const USAGE = `Usage: npm run bench -- [--quick] [NAME…]
Runs all benches one after the other, which takes ten minutes, or those that are named.

  --quick               shorter, and less exact, where a bench can be
${all.map((name) => `  ${name.padEnd(20)}  ${questionOf(name)}`).join('\n')}

Example: npm run bench -- --quick etcd-tasks death`;

const nameIn = (/** @type {string} */ arg) => basename(arg, '.mjs');
const args = argumentsFor(USAGE, (arg) => arg === '--quick' || all.includes(nameIn(arg)));
const options = args.filter((arg) => arg.startsWith('-'));
const named = args.filter((arg) => !arg.startsWith('-')).map(nameIn);

ensure();
ensurePackages(FOR_BENCHES);
// Where it is set, starting Node is mostly reading certificates, and everything else seems to cost little.
delete process.env['NODE_EXTRA_CA_CERTS'];
// One that fails does not keep the others from being measured.
const failed = (named.length > 0 ? named : all).filter((name) => !passes(name));
if (failed.length > 0) {
  console.error(`\nFailed: ${failed.join(', ')}`);
  process.exit(1);
}

/** Each bench begins with the question that it answers. */
function questionOf(/** @type {string} */ name) {
  const source = readFileSync(join(folder, `${name}.mjs`), 'utf8');
  const comment = source.slice(0, source.indexOf('*/')).replaceAll(/^[\s/*]+/gm, ' ');
  return comment
    .slice(0, comment.indexOf('?') + 1)
    .replaceAll(/\s+/g, ' ')
    .trim();
}

function passes(/** @type {string} */ name) {
  console.log(`\n== ${name}`);
  return run(process.execPath, [join(root, 'bench', `${name}.mjs`), ...options]) === 0;
}
