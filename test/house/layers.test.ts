// Dependencies point one way, so that a layer can be read, tested and replaced knowing only those below it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf, isTest, lineOf, parse, root, type Source, sourcesUnder, walk } from './sources.ts';

/** What each folder or file directly in `src` may import besides itself. A new one is entered here before its first import. */
const MAY_IMPORT: Readonly<Record<string, readonly string[] | 'all'>> = {
  core: [],
  failure: ['core'],
  clock: [],
  host: [],
  store: ['failure', 'clock', 'host'],
  adapters: ['failure', 'clock', 'core', 'host'],
  document: ['failure', 'core'],
  runtime: ['failure', 'clock', 'core', 'host', 'store', 'adapters', 'document'],
  github: ['failure', 'clock', 'core', 'host', 'store', 'adapters', 'runtime'],
  cli: ['failure', 'clock', 'core', 'host', 'store', 'adapters', 'document', 'runtime', 'github'],
  testing: 'all',
  index: 'all',
};

function wrongWayImports(source: Source): string[] {
  const from = layerOf(source.path);
  const allowed = MAY_IMPORT[from];
  if (allowed === undefined) return [`${source.path} is in no known layer: enter ${from} in MAY_IMPORT`];
  return importsOf(source)
    .filter(({ target }) => {
      if (target === undefined) return false;
      if (!target.startsWith('src/')) return true;
      const to = layerOf(target);
      return to !== from && allowed !== 'all' && !allowed.includes(to);
    })
    .map(({ specifier, line }) => `${source.path}:${line} imports ${specifier}, which ${from} may not`);
}

/** `core` for `src/core/lock.ts`, `failure` for `src/failure.ts`. */
function layerOf(path: string): string {
  return path.split('/')[1]?.replace(/\.ts$/, '') ?? '';
}

function undeclaredPackages(source: Source, declared: readonly string[]): string[] {
  return importsOf(source)
    .filter(({ target, specifier }) => target === undefined && !specifier.startsWith('node:'))
    .filter(({ specifier }) => !declared.some((name) => specifier === name || specifier.startsWith(`${name}/`)))
    .map(({ specifier, line }) => `${source.path}:${line} imports ${specifier}, which a user would not have`);
}

function wholesaleExports(source: Source): string[] {
  const found: string[] = [];
  walk(parse(source), (node) => {
    if (node.type !== 'ExportAllDeclaration') return;
    const statement = source.text.slice(node.start, node.end);
    found.push(`${source.path}:${lineOf(source, node)} exports without naming: ${statement}`);
  });
  return found;
}

describe('the source', () => {
  const published = sourcesUnder('src').filter((source) => !isTest(source));

  it('imports one way: testing may see all, runtime the store and the core, these nothing of ours but the basics', () => {
    expect(published.flatMap(wrongWayImports)).toEqual([]);
  });

  it('imports only packages that come with it', () => {
    const { dependencies = {}, peerDependencies = {} } = JSON.parse(
      readFileSync(join(root, 'package.json'), 'utf8'),
    ) as {
      dependencies?: Record<string, string>;
      peerDependencies?: Record<string, string>;
    };
    const declared = Object.keys({ ...dependencies, ...peerDependencies });
    expect(published.flatMap((source) => undeclaredPackages(source, declared))).toEqual([]);
  });

  it('names its public things one by one in every index', () => {
    expect(published.filter(({ path }) => path.endsWith('/index.ts')).flatMap(wholesaleExports)).toEqual([]);
  });
});

describe('the check of the layers', () => {
  it.each([
    ['src/core/lock.ts', '../failure.ts'],
    ['src/failure.ts', './clock.ts'],
    ['src/store/contract.ts', '../core/lock.ts'],
    ['src/store/memory/engine.ts', '../../runtime/session.ts'],
    ['src/store/memory/engine.ts', '../../testing/index.ts'],
    ['src/runtime/execute.ts', '../testing/clock.ts'],
    ['src/runtime/execute.ts', '../index.ts'],
    ['src/testing/index.ts', '../../test/house/sources.ts'],
  ])('finds %s importing %s', (path, specifier) => {
    for (const text of [
      `import '${specifier}';`,
      `import type { A } from '${specifier}';`,
      `export { A } from '${specifier}';`,
    ]) {
      expect(wrongWayImports({ path, text })).toHaveLength(1);
    }
  });

  it.each([
    ['src/store/memory/engine.ts', '../contract.ts'],
    ['src/store/memory/engine.ts', '../../failure.ts'],
    ['src/runtime/execute.ts', '../core/lock.ts'],
    ['src/testing/simulation/main.ts', '../../runtime/execute.ts'],
    ['src/index.ts', './runtime/open.ts'],
  ])('lets %s import %s', (path, specifier) => {
    expect(wrongWayImports({ path, text: `import '${specifier}';` })).toEqual([]);
  });

  it('finds a layer nobody has placed yet', () => {
    expect(wrongWayImports({ path: 'src/teleport/index.ts', text: '' })).toEqual([
      'src/teleport/index.ts is in no known layer: enter teleport in MAY_IMPORT',
    ]);
  });

  it('finds a package that users would not have', () => {
    const text = "import fc from 'fast-check'; import { z } from 'zod/v4'; import 'node:fs'; import 'zodiac';";
    expect(undeclaredPackages({ path: 'src/testing/index.ts', text }, ['zod'])).toEqual([
      'src/testing/index.ts:1 imports fast-check, which a user would not have',
      'src/testing/index.ts:1 imports zodiac, which a user would not have',
    ]);
  });

  it('finds an index that exports without naming', () => {
    const text = "export * from './a.ts';\nexport * as b from './b.ts';\nexport { c } from './c.ts';";
    expect(wholesaleExports({ path: 'src/index.ts', text })).toHaveLength(2);
  });
});
