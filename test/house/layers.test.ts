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
  host: ['clock'],
  grpc: ['clock'],
  sqlite: ['failure'],
  store: ['failure', 'clock', 'host', 'grpc', 'sqlite'],
  adapters: ['failure', 'clock', 'core', 'host', 'sqlite'],
  document: ['failure', 'core'],
  runtime: ['failure', 'clock', 'core', 'host', 'store', 'adapters', 'document'],
  github: ['failure', 'clock', 'core', 'host', 'store', 'adapters', 'runtime'],
  client: ['failure', 'clock', 'core', 'runtime', 'json'],
  cli: [
    'client',
    'failure',
    'clock',
    'core',
    'host',
    'sqlite',
    'store',
    'adapters',
    'document',
    'runtime',
    'github',
    'json',
  ],
  json: ['core', 'runtime'],
  metrics: ['runtime'],
  opentelemetry: ['runtime'],
  server: ['failure', 'clock', 'core', 'host', 'store', 'runtime', 'json', 'github', 'metrics', 'opentelemetry'],
  mcp: ['failure', 'clock', 'core', 'host', 'runtime', 'json', 'server'],
  // The page runs in a browser, and knows the server by its HTTP API alone.
  dashboard: [],
  testing: 'all',
  index: 'all',
};

/** Whose types a layer may name besides: nothing of them is left when it runs. */
const MAY_NAME_TYPES_OF: Readonly<Record<string, readonly string[]>> = { dashboard: ['core'] };

/**
 * The rooms of `src/runtime`, from the ground up: what each may import besides itself and the files directly in
 * `src/runtime`, which all of them share. An acquire goes through `holds`, `write` and `session`, and through no other.
 */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  location: [],
  write: [],
  session: ['write'],
  holds: ['write', 'session'],
  members: ['write', 'session', 'holds'],
  tasks: ['write', 'session', 'holds'],
  bus: ['session'],
  access: ['write', 'session'],
  observe: ['write', 'session', 'members', 'tasks'],
  processes: ['write', 'session', 'holds', 'members', 'tasks'],
  guards: ['write', 'tasks', 'observe'],
  pipelines: ['write', 'session', 'holds', 'observe', 'processes', 'guards'],
  witness: ['write', 'session', 'tasks'],
  upkeep: ['write', 'session', 'holds', 'tasks', 'observe', 'pipelines', 'witness'],
};

function wrongRoomImports(source: Source): string[] {
  const from = roomOf(source.path);
  if (from === undefined) return [];
  const allowed = ROOMS[from];
  if (allowed === undefined) return [`${source.path} is in no known room: enter ${from} in ROOMS`];
  return importsOf(source)
    .filter(({ target }) => {
      const to = target === undefined ? undefined : roomOf(target);
      return to !== undefined && to !== from && !allowed.includes(to);
    })
    .map(({ specifier, line }) => `${source.path}:${line} imports ${specifier}, which runtime/${from} may not`);
}

/** `write` for `src/runtime/write/commit.ts`; undefined for a file directly in `src/runtime`, and elsewhere. */
function roomOf(path: string): string | undefined {
  return /^src\/runtime\/([^/]+)\//.exec(path)?.[1];
}

function wrongWayImports(source: Source): string[] {
  const from = layerOf(source.path);
  const allowed = MAY_IMPORT[from];
  if (allowed === undefined) return [`${source.path} is in no known layer: enter ${from} in MAY_IMPORT`];
  return importsOf(source)
    .filter(({ target, isType }) => {
      if (target === undefined) return false;
      if (!target.startsWith('src/')) return true;
      const to = layerOf(target);
      if (isType && MAY_NAME_TYPES_OF[from]?.includes(to) === true) return false;
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

  it('shows the way of an acquire: each room of the runtime imports only the rooms below it', () => {
    expect(published.flatMap(wrongRoomImports)).toEqual([]);
  });

  it('imports only packages that come with it', () => {
    const { dependencies = {}, peerDependencies = {} } = JSON.parse(
      readFileSync(join(root, 'package.json'), 'utf8'),
    ) as {
      dependencies?: Record<string, string>;
      peerDependencies?: Record<string, string>;
    };
    const declared = Object.keys({ ...dependencies, ...peerDependencies });
    // scripts/bundle.mjs puts it into the command line, the only one that has it.
    const inCommandLine = [...declared, 'commander'];
    // Likewise into the page.
    const inPage = ['preact'];
    const allowed = ({ path }: Source): string[] => {
      if (path.startsWith('src/dashboard/')) return inPage;
      return path.startsWith('src/cli/') ? inCommandLine : declared;
    };
    expect(published.flatMap((source) => undeclaredPackages(source, allowed(source)))).toEqual([]);
  });

  it('names its public things one by one in every index', () => {
    expect(published.filter(({ path }) => path.endsWith('/index.ts')).flatMap(wholesaleExports)).toEqual([]);
  });
});

describe('the check of the layers', () => {
  it.each([
    ['src/core/lock.ts', '../failure.ts'],
    ['src/failure.ts', './clock.ts'],
    ['src/grpc/connect.ts', '../store/etcd/open.ts'],
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
    ['src/store/etcd/open.ts', '../../grpc/connect.ts'],
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

  it.each([
    ['src/runtime/write/commit.ts', '../holds/hold.ts', 1],
    ['src/runtime/session/presence.ts', '../holds/hold.ts', 1],
    ['src/runtime/attic/box.ts', './other.ts', 1],
    ['src/runtime/holds/lock.ts', '../write/commit.ts', 0],
    ['src/runtime/write/commit.ts', '../layout.ts', 0],
    ['src/runtime/signalbox.ts', './holds/lock.ts', 0],
  ])('judges %s importing %s by the rooms', (path, specifier, wrong) => {
    expect(wrongRoomImports({ path, text: `import '${specifier}';` })).toHaveLength(wrong);
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
