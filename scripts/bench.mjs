// @ts-check
// npm run bench -- [NAME…] [--OPTION…]: the files directly in bench/, or those named, one after the other. Each has a
// process of its own, so that none inherits another's heap or compiled code. Options go to every one of them.

import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ensure, root, run } from './ensure.mjs';
import { ensurePackages, FOR_BENCHES } from './packages.mjs';

const args = process.argv.slice(2);
const options = args.filter((arg) => arg.startsWith('-'));
const named = args.filter((arg) => !arg.startsWith('-')).map((arg) => basename(arg, '.mjs'));

const all = benchNames();
const unknown = named.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`no such bench: ${unknown.join(', ')}; there are: ${all.join(', ') || 'none'}`);
  process.exit(64);
}

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

function benchNames() {
  const folder = join(root, 'bench');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith('.mjs'))
    .map((file) => basename(file, '.mjs'))
    .sort();
}

function passes(/** @type {string} */ name) {
  console.log(`\n== ${name}`);
  return run(process.execPath, [join(root, 'bench', `${name}.mjs`), ...options]) === 0;
}
