// @ts-check
// What the command line and the library are both made of is in the package once (docs/decisions/0051): it is a chunk of the
// library, and `bin/signalbox.cjs` takes its text, edited as `editsOf` says, for a script that it loads before `bin/main.cjs`.
//
// More than half of it is for what `run` does not do if all goes well: that is a second chunk, which is loaded when something of it is used.
//
//     1. findCommon     which modules those are, and which of them are seldom used
//     2. insteadOf      a plugin for `main.cjs`: it gets them from `require('./common')`, under the names of `namesOf`
//     3. entryOf        an entry of the library that exports what `main.cjs` uses, so that nothing of it is left out
//     4. editsOf        what has to change in a chunk for it to be a script

import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { root } from './ensure.mjs';

const src = join(root, 'src');
const requireNow = createRequire(import.meta.url);
/** What opening a store needs, which is all but a few modules of what `signalbox run` needs. */
const ROOT = join(src, 'runtime', 'open.ts');

/** What the help and the version need too. Both have a copy, so that those do not load all the rest. */
const COPIED = [join(src, 'core', 'redacted.ts')];

/** What `run` uses nothing of if all goes well and it need not wait. */
const SELDOM = new RegExp(
  [
    'core/(?:access|deadlock|guard|manager|members|pipeline|task|witness)/.*',
    'runtime/(?:access|bus|guards|members|observe/survey|pipelines|tasks|upkeep|witness)/.*',
    'runtime/holds/(?:acquisition|detached|detached-change|hold-ends|semaphore|tickets)',
    'runtime/observe/(?:deadlocks|event-log|events|past-events)',
    'runtime/(?:slices|subscriber-iterator|subscriber-queue|subscription)',
    'store/(?:etcd|memory)/.*',
    'store/embedded/(?:blockers|reach|read-only|sqlite-failure)',
    'host/(?:exec-size|foreign-file|kept-output|permission|printed-text|signing|tie)',
    'sqlite/(?:remedy|sqlite-missing)',
  ]
    .map((names) => `^${names}$`)
    .join('|'),
);
/** The modules of these rooms that every store begins with. */
const BEGUN = new Set(['runtime/upkeep/maintenance', 'store/etcd/url']);

/** How `main.cjs` names it. */
const COMMON = './common';
const INSTEAD = '\0common:';
export const ENTRY = 'chunks/names';

/** Parts of Node that only some commands use; each takes time to load, so it is loaded when it is used. */
export const RARELY_USED = [
  ...[
    'node:child_process',
    'node:crypto',
    'node:fs/promises',
    'node:http',
    'node:net',
    'node:stream',
    'node:stream/promises',
  ],
  ...['node:timers/promises', 'node:tty', 'node:worker_threads', 'node:zlib'],
];

/**
 * What the command line knows without a part of Node: it is always a process of its own, and its `require` finds the same packages as
 * one of the chunk would.
 */
const KNOWN = /** @type {Record<string, string>} */ ({ isMainThread: 'true', createRequire: '$createRequire' });

/** @typedef {{ readonly exports: readonly string[], readonly imported: readonly string[], readonly later: readonly string[] }} Module */
/** Modules by their ids, each with what it exports, and the modules that they import when they first need them. */
/** @typedef {{ readonly modules: ReadonlyMap<string, readonly string[]>, readonly later: ReadonlySet<string>, readonly seldom: ReadonlySet<string> }} Common */
/** @typedef {readonly [from: number, to: number, instead: string]} Edit */
/** @typedef {import('rolldown').OutputChunk} Chunk */

/** @returns {Promise<Common>} */
export async function findCommon() {
  const found = /** @type {Map<string, Module>} */ (new Map());
  const made = await rolldown({
    input: ROOT,
    platform: 'node',
    external: isOutside,
    plugins: [
      {
        name: 'modules',
        moduleParsed({ id, exports, importedIds, dynamicallyImportedIds }) {
          found.set(id, { exports, imported: importedIds, later: dynamicallyImportedIds });
        },
      },
    ],
  });
  await made.generate({ format: 'esm' });
  await made.close();
  const modules = /** @type {Map<string, readonly string[]>} */ (new Map());
  const later = /** @type {Set<string>} */ (new Set());
  const visit = (/** @type {string} */ id) => {
    const module = found.get(id);
    if (module === undefined || modules.has(id)) return;
    modules.set(id, module.exports);
    module.imported.forEach(visit);
    for (const target of module.later) {
      if (!found.has(target)) continue;
      later.add(target);
      // These are small, and most of what they need is common anyway.
      if (/runtime.witness/.test(target)) visit(target);
    }
  };
  visit(ROOT);
  const asked = [...modules.keys()].filter((id) => SELDOM.test(moduleName(id)) && !BEGUN.has(moduleName(id)));
  return { modules, later, seldom: await seldomAmong(modules, new Set(asked)) };
}

/** Where the chunks of the library come from: `seldom` is loaded when something of it is called. */
export function groupsOf(
  /** @type {ReadonlyMap<string, unknown>} */ modules,
  /** @type {ReadonlySet<string>} */ seldom,
) {
  // Otherwise each chunk would take along all that its modules import.
  const includeDependenciesRecursively = false;
  return [
    { name: 'seldom', test: (/** @type {string} */ id) => seldom.has(id), includeDependenciesRecursively },
    {
      name: 'common',
      test: (/** @type {string} */ id) => modules.has(id) && !seldom.has(id),
      includeDependenciesRecursively,
    },
  ];
}

/**
 * Leaves out the modules that the others need at once: values that are no functions, and classes that they extend. The others
 * get functions that stand for those of the seldom used modules.
 *
 * @param {ReadonlyMap<string, unknown>} modules @param {Set<string>} seldom
 */
async function seldomAmong(modules, seldom) {
  for (;;) {
    const made = await rolldown({
      ...{ input: join(src, 'index.ts'), cwd: root, platform: 'node', external: isOutside, treeshake: false },
      preserveEntrySignatures: 'allow-extension',
      checks: { ineffectiveDynamicImport: false },
    });
    const { output } = await made.generate({
      ...{ format: 'esm', chunkFileNames: '[name].js', minifyInternalExports: false },
      codeSplitting: { groups: groupsOf(modules, seldom) },
    });
    await made.close();
    const [common, other] = ['common', 'seldom'].map((wanted) =>
      output.find((file) => file.type === 'chunk' && file.name === wanted),
    );
    if (common?.type !== 'chunk' || other?.type !== 'chunk') throw new Error('the common code is not in two chunks');
    const regions = [...other.code.matchAll(/^\/\/#region (.*)$/gm)];
    const wanted = neededAtOnce(common.code, other.code, other.fileName).map(({ at }) => {
      const [, path = ''] = regions.findLast(({ index }) => index <= at) ?? [];
      return resolve(root, path);
    });
    const before = seldom.size;
    wanted.forEach((id) => seldom.delete(id));
    if (wanted.length === 0) return seldom;
    if (seldom.size === before) throw new Error(`not seldom used: ${wanted.join(', ')}`);
  }
}

/**
 * What `code` imports from `other`, a chunk of that name, and cannot get later.
 *
 * @param {string} code @param {string} other @param {string} name
 * @returns {readonly { readonly name: string, readonly at: number }[]}
 */
function neededAtOnce(code, other, name) {
  const { body } = /** @type {any} */ (parseAst(code));
  const imported = /** @type {Map<string, string>} */ (new Map());
  for (const { type, source, specifiers } of body) {
    if (type !== 'ImportDeclaration' || !source.value.endsWith(`/${basename(name)}`)) continue;
    for (const specifier of specifiers) imported.set(specifier.local.name, specifier.imported.name);
  }
  const used = new Set([...namesUsedAtOnce(body)].map((local) => imported.get(local)));
  const declared = declaredIn(other);
  return [...imported.values()].flatMap((exported) => {
    const { at, isFunction } = declared.get(exported) ?? { at: 0, isFunction: false };
    return isFunction && !used.has(exported) ? [] : [{ name: exported, at }];
  });
}

/** What `seldomAmong` saw in a build of its own must be true of the chunks that were made. */
export function checkOrder(/** @type {Chunk} */ common, /** @type {Chunk} */ seldom) {
  const needed = neededAtOnce(common.code, seldom.code, seldom.fileName);
  if (needed.length > 0)
    throw new Error(`the common code needs at once what is seldom used: ${needed.map(({ name }) => name).join(', ')}`);
}

/** What the chunk exports, each with its place, and whether it is a function or a class. */
function declaredIn(/** @type {string} */ code) {
  const { body } = /** @type {any} */ (parseAst(code));
  const found = /** @type {Map<string, { at: number, isFunction: boolean }>} */ (new Map());
  const isOne = (/** @type {any} */ node) => /^(?:Function|Class|ArrowFunction)/.test(node?.type ?? '');
  for (const node of body) {
    if (isOne(node)) found.set(node.id.name, { at: node.start, isFunction: true });
    for (const { id, init, start: at } of node.declarations ?? [])
      if (id.type === 'Identifier') found.set(id.name, { at, isFunction: isOne(init) });
  }
  const exported = body.filter((/** @type {any} */ { type }) => type === 'ExportNamedDeclaration');
  const specifiers = exported.flatMap((/** @type {any} */ node) => node.specifiers);
  return new Map(specifiers.map((/** @type {any} */ { local, exported: as }) => [as.name, found.get(local.name)]));
}

/** The names that are used while the statements are evaluated: anywhere but in functions. */
function namesUsedAtOnce(/** @type {any} */ body) {
  const names = /** @type {Set<string>} */ (new Set());
  const visit = (/** @type {any} */ node) => {
    if (typeof node !== 'object' || node === null || /^(?:Import|Export)/.test(node.type ?? '')) return;
    if (node.type === 'Identifier') return void names.add(node.name);
    const isLater = /^(?:FunctionD|FunctionE|ArrowFunction)/.test(node.type ?? '');
    if (isLater || (node.type === 'PropertyDefinition' && !node.static)) return visit(node.computed ? node.key : null);
    for (const [name, value] of Object.entries(node))
      if (node.computed !== false || (name !== 'key' && name !== 'property')) visit(value);
  };
  visit(body);
  return names;
}

function isOutside(/** @type {string} */ id) {
  return !id.startsWith('.') && !id.startsWith('/') && !/^[A-Za-z]:/.test(id);
}

/** @param {Common} common @returns {import('rolldown').Plugin} */
export function insteadOf(common) {
  const names = namesOf(common);
  return {
    name: 'common-code',
    moduleParsed({ id, dynamicallyImportedIds }) {
      if (!id.startsWith(src)) return;
      const rare = dynamicallyImportedIds.find((one) => RARELY_USED.includes(one));
      // `import()` would copy the names of the stand-in, which has none.
      if (rare !== undefined)
        throw new Error(`${moduleName(id)} imports ${rare} by import(): it is loaded later anyway`);
    },
    resolveId(source, importer) {
      if (source === COMMON) return { id: COMMON, external: true };
      if (importer === undefined) return undefined;
      const id = resolve(dirname(importer), source);
      return common.modules.has(id) && !COPIED.includes(id) ? `${INSTEAD}${id}` : undefined;
    },
    load(id) {
      if (!id.startsWith(INSTEAD)) return undefined;
      const module = id.slice(INSTEAD.length);
      const given = (common.modules.get(module) ?? []).map((name) => `${names.get(`${module} ${name}`)} as ${name}`);
      return { code: `export {${given.join(', ')}} from '${COMMON}';`, moduleType: 'js', moduleSideEffects: false };
    },
  };
}

/** The first module of `main.cjs`: it tells the common code how to import what only `main.cjs` has. */
export function offerOf(/** @type {Common} */ { later }) {
  const loaders = [...later].map((id) => `${JSON.stringify(moduleName(id))}: () => import(${JSON.stringify(id)})`);
  return `import { $offer } from '${COMMON}'; $offer({ ${loaders.join(', ')} });`;
}

/** Exports what `main.cjs` uses. */
export function entryOf(/** @type {Common} */ common, /** @type {string} */ main) {
  const used = new Set([...main.matchAll(/\.(\$\d+)\b/g)].map(([, name]) => name));
  const exported = [...namesOf(common)].filter(([, name]) => used.has(name));
  const lines = exported.map(([what, name]) => {
    const [, module, own] = /(.*) (.*)/.exec(what) ?? [];
    return `export { ${own} as ${name} } from ${JSON.stringify(module)};`;
  });
  return lines.join('\n');
}

/** Each export of each module has a name of its own: its number. */
function namesOf(/** @type {Common} */ { modules }) {
  const all = [...modules].flatMap(([id, names]) => names.map((name) => `${id} ${name}`));
  return new Map(all.map((what, place) => [what, `$${place}`]));
}

/**
 * What has to change in `text`, which is a chunk of the common code, for it to be the body of a function that answers what
 * `main.cjs` uses, and `$own`: what the other chunk imports. `facade` is the chunk of `entryOf`. Lines stay where they are,
 * for stack traces.
 *
 * @param {Common} common @param {string} text @param {Chunk} chunk @param {Chunk} other @param {Chunk} facade
 * @param {readonly Chunk[]} chunks @returns {readonly Edit[]}
 */
export function editsOf({ later }, text, chunk, other, facade, chunks) {
  const edits = /** @type {Edit[]} */ ([]);
  const given = namesGiven(facade, chunk);
  const own = new Set(namesGiven(other, chunk).keys());
  const offered = new Set([...later].map(moduleName));
  const loaded = (/** @type {string} */ module) => {
    if (!offered.has(module)) throw new Error(`the common code imports ${module}, which main.cjs does not offer`);
    return `$import(${JSON.stringify(module)})`;
  };
  const program = parseAst(text);
  const changing = changingIn(program);
  const edit = (/** @type {any} */ { start, end }, /** @type {string} */ instead) => {
    const lines = text.slice(start, end).split('\n').length;
    edits.push([start, end, `${instead}${'\n'.repeat(lines - 1)}`]);
  };
  const visit = (/** @type {any} */ node) => {
    if (typeof node !== 'object' || node === null) return;
    switch (node.type) {
      case 'ImportDeclaration':
        return edit(node, importOf(node, other));
      case 'ExportNamedDeclaration':
        return edit(node, answerOf(node, given, own, changing));
      case 'ImportExpression':
        return edit(node, loaded(moduleOf(node.source, chunk, chunks)));
      case 'MetaProperty':
        return node.meta.name === 'import' && edit(node, '$meta');
      default:
        for (const value of Object.values(node)) visit(value);
    }
  };
  visit(program);
  if (/\$(?:createRequire|import|meta|require|names|other|own)\b/.test(text))
    throw new Error('the common code uses a name of its own script');
  return edits.sort(([one], [other]) => one - other);
}

/**
 * What a chunk takes from `from`, each with the names under which it exports it. The facade has
 * `export {a as $12, a as $20} from …`: what the chunk exports as `a` is both to `main.cjs`.
 */
function namesGiven(/** @type {Chunk} */ { code }, /** @type {Chunk} */ from) {
  const given = /** @type {Map<string, string[]>} */ (new Map());
  const imported = /** @type {Map<string, string>} */ (new Map());
  const add = (/** @type {string} */ name, /** @type {readonly string[]} */ as) =>
    void given.set(name, [...(given.get(name) ?? []), ...as]);
  for (const { type, source, specifiers = [] } of /** @type {any[]} */ (parseAst(code).body)) {
    const isFrom = source !== null && source?.value.endsWith(`/${basename(from.fileName)}`);
    for (const { local, imported: name, exported } of specifiers) {
      if (type === 'ImportDeclaration' && isFrom) {
        imported.set(local.name, name.name);
        add(name.name, []);
      } else if (type === 'ExportNamedDeclaration') {
        const own = isFrom ? local.name : source === null ? imported.get(local.name) : undefined;
        if (own !== undefined) add(own, [exported.name]);
      }
    }
  }
  return given;
}

function importOf(/** @type {any} */ { source: { value: from }, specifiers }, /** @type {Chunk} */ other) {
  if (from === `./${basename(other.fileName)}`) {
    const taken = specifiers.map((/** @type {any} */ { imported, local }) => `${imported.name}:${local.name}`);
    return `const {${taken.join(',')}}=$other;`;
  }
  if (!from.startsWith('node:')) throw new Error(`the common code imports ${from}, which is not a part of Node`);
  const isLater = RARELY_USED.includes(from);
  const names = /** @type {string[]} */ ([]);
  const others = /** @type {string[]} */ ([]);
  for (const { type, imported, local } of specifiers) {
    const name = imported?.name ?? '';
    if (type !== 'ImportSpecifier') others.push(`${local.name}=$require(${JSON.stringify(from)})`);
    else if (name in KNOWN) others.push(`${local.name}=${KNOWN[name]}`);
    else if (isLater && typeof requireNow(from)[name] !== 'function' && typeof requireNow(from)[name] !== 'object')
      throw new Error(`${name} of ${from} is neither a function nor an object: import * as … from '${from}'`);
    else names.push(`${name}:${local.name}`);
  }
  const parts = names.length > 0 ? [`{${names.join(',')}}=$names(${JSON.stringify(from)})`, ...others] : others;
  return `const ${parts.join(',')};`;
}

/** What may have another value later is looked up each time. */
function answerOf(
  /** @type {any} */ { specifiers },
  /** @type {ReadonlyMap<string, readonly string[]>} */ given,
  /** @type {ReadonlySet<string>} */ own,
  /** @type {ReadonlySet<string>} */ changing,
) {
  const property = (/** @type {string} */ name, /** @type {any} */ local) =>
    changing.has(local.name) ? `get ${name}(){return ${local.name}}` : `${name}:${local.name}`;
  const properties = specifiers.flatMap((/** @type {any} */ { local, exported }) =>
    (given.get(exported.name) ?? []).map((name) => property(name, local)),
  );
  const others = specifiers
    .filter((/** @type {any} */ { exported }) => own.has(exported.name))
    .map((/** @type {any} */ { local, exported }) => property(exported.name, local));
  return `return{$own:{${others.join(',')}},${properties.join(',')}};`;
}

/** The variables of the chunk itself that are assigned to; a few more, because a function may have its own of the same name. */
function changingIn(/** @type {any} */ program) {
  const assigned = /** @type {string[]} */ ([]);
  const visit = (/** @type {any} */ node) => {
    if (typeof node !== 'object' || node === null) return;
    if (node.type === 'UpdateExpression') assigned.push(...namesIn(node.argument));
    if (['AssignmentExpression', 'ForInStatement', 'ForOfStatement'].includes(node.type))
      assigned.push(...namesIn(node.left));
    for (const value of Object.values(node)) visit(value);
  };
  visit(program);
  const variables = program.body
    .filter((/** @type {any} */ { type, kind }) => type === 'VariableDeclaration' && kind !== 'const')
    .flatMap((/** @type {any} */ { declarations }) => declarations.map((/** @type {any} */ { id }) => id))
    .flatMap(namesIn);
  return new Set(assigned.filter((name) => variables.includes(name)));
}

/** @returns {readonly string[]} */
function namesIn(/** @type {any} */ pattern) {
  if (typeof pattern !== 'object' || pattern === null) return [];
  return pattern.type === 'Identifier' ? [pattern.name] : Object.values(pattern).flatMap(namesIn);
}

/** The module that the chunk of an `import()` is there for. */
function moduleOf(
  /** @type {any} */ { value, quasis },
  /** @type {Chunk} */ chunk,
  /** @type {readonly Chunk[]} */ chunks,
) {
  const source = value ?? quasis[0].value.cooked;
  const file = join(dirname(chunk.fileName), source);
  const module = chunks.find(({ fileName }) => fileName === file)?.facadeModuleId;
  if (module === undefined || module === null)
    throw new Error(`the common code imports ${source}, which is no module of ours`);
  return moduleName(module);
}

function moduleName(/** @type {string} */ id) {
  return relative(src, id).replaceAll('\\', '/').replace(/\.ts$/, '');
}
