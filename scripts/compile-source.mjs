// @ts-check
// node scripts/compile-source.mjs: builds dist, and makes JavaScript of each module of src in `.cache/source`, for a run of all
// tests. Vitest would compile them as well, but each of its workers takes seconds to load them in its form, in which every
// use of an import reads a property of an object.

import { readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { build, exitUnlessZero, isMain, root } from './ensure.mjs';

const src = join(root, 'src');
export const compiled = join(root, '.cache', 'source');

async function compileSource() {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    // The page is for browsers, and compiled by other rules.
    .filter((path) => path.endsWith('.ts') && !/\.(test|d)\.ts$/.test(path) && !path.startsWith('dashboard/'));
  const made = await rolldown({
    input: Object.fromEntries(files.map((path) => [path.slice(0, -'.ts'.length), join(src, path)])),
    platform: 'node',
    external: (id) => !id.startsWith('.') && !id.startsWith('/') && !id.startsWith(src),
    treeshake: false,
    checks: { circularDependency: false },
    plugins: [{ name: 'as-if-in-src', transform: (code, id) => ({ code: inSource(code, id), map: null }) }],
  });
  const fresh = `${compiled}-${process.pid}`;
  await made.write({
    dir: fresh,
    format: 'esm',
    entryFileNames: '[name].js',
    preserveModules: true,
    preserveModulesRoot: src,
    sourcemap: true,
    minify: false,
  });
  await made.close();
  rmSync(compiled, { recursive: true, force: true });
  renameSync(fresh, compiled);
}

/** A module that asks where it is finds what is beside it in src. */
function inSource(/** @type {string} */ code, /** @type {string} */ id) {
  return code
    .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(id)));
}

if (isMain(import.meta)) {
  exitUnlessZero(build());
  await compileSource();
}
