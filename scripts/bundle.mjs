// @ts-check
// node scripts/bundle.mjs DIST: makes the JavaScript of DIST of src; the compiler makes its declarations. A hundred modules
// take longer to be found than Node takes to start (docs/decisions/0010); a few files do not.
//
//     index.js, core/, store/, testing/, server/, mcp/    what programs import, and chunks/, which they share; two of these, `common`
//                          and `seldom`, the command line takes its code out of
//     dashboard/           the page that the server hands out
//     client/index.js      what browsers import too, by itself: it shares nothing that needs Node
//     client/node.js       the same for Node, with what finds the token
//     bin/signalbox.cjs    what is started: loads main.cjs with the code that V8 made of it the last time
//     bin/main.cjs         the frame of the command line and `run`, the packages they need included; what they share with the
//                          library they have from there
//     bin/rest.cjs         the other commands, likewise
//     bin/etcd.cjs         what only a store on etcd needs, which the other loads when it opens one
//     bin/yaml.cjs         what reads YAML, likewise
//     bin/octokit.cjs      what talks to GitHub, likewise
//     bin/import.cjs       imports a runbook that is a program

import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { dts } from 'rolldown-plugin-dts';
import {
  checkOrder,
  editsOf,
  ENTRY,
  entryOf,
  findCommon,
  groupsOf,
  insteadOf,
  offerOf,
  RARELY_USED,
} from './common-code.mjs';
import { root } from './ensure.mjs';

const dist = process.argv[2] ?? '';
if (dist === '') throw new Error('say which dist');
const src = join(root, 'src');

/** What package.json exports, the processes of a `TestCluster`, and the simulator. */
const IMPORTED = [
  ...['index', 'core/index', 'store/index', 'github/index', 'metrics/index', 'opentelemetry/index', 'server/index'],
  ...['mcp/index', 'testing/index', 'github/local/serve', 'client/node'],
  ...['testing/cluster-member', 'testing/simulation/main'],
];

/** Imports no module of Node, nor anything that does. */
const FOR_BROWSERS = 'client/index';

/** Programs, and what only the command line imports. */
const NOT_DECLARED = [
  ...['server/index', 'mcp/index', 'github/local/serve', 'testing/cluster-member', 'testing/simulation/main'],
];

/** Their licences want to be where their code is. */
const INCLUDED = [
  ...['commander', '@octokit/core', '@octokit/auth-token', '@octokit/endpoint'],
  ...['@octokit/graphql', '@octokit/request', '@octokit/request-error', 'before-after-hook', 'fast-content-type-parse'],
  'universal-user-agent',
];

/** `yaml` is installed with the package, is large, and few commands read YAML. Those who need `undici` install it themselves. */
const NOT_INCLUDED = ['undici', 'yaml', 'protobufjs/minimal.js'];

/** What is imported in one place, where it is first needed, is a file of its own: who does not need it does not load it. */
const APART = {
  'store/etcd/open': 'etcd',
  'document/yaml': 'yaml',
  'github/octokit': 'octokit',
  'cli/pipeline/import-file': 'import',
};

const apart = {
  name: 'apart',
  resolveId(/** @type {string} */ source, /** @type {string | undefined} */ importer) {
    if (importer === undefined || isPackage(source)) return undefined;
    const module = relative(src, resolve(dirname(importer), source)).replace(/\.ts$/, '');
    const name = Object.hasOwn(APART, module) ? APART[/** @type {keyof typeof APART} */ (module)] : undefined;
    return name === undefined ? undefined : { id: `./${name}.cjs`, external: true };
  },
};

/** What browsers import is made by itself, and is there for Node too. */
const clientApart = {
  name: 'client-apart',
  resolveId(/** @type {string} */ source, /** @type {string | undefined} */ importer) {
    const isOfClient = source === './index.ts' && importer === join(src, 'client', 'node.ts');
    return isOfClient ? { id: './index.js', external: true } : undefined;
  },
};

/** @type {import('rolldown').OutputOptions} */
const READABLE = {
  comments: false,
  // The names of functions, classes and members stay, so that a stack trace can be read.
  minify: {
    compress: true,
    mangle: { toplevel: true, keepNames: { function: false, class: true } },
    codegen: { removeWhitespace: true },
  },
};

/** What `signalbox run` loads when it is called, besides what the frame imports. Everything else is in a file that it does not read. */
const RUN = ['cli/run', 'cli/run/request', 'cli/run/run', 'cli/run/ended'];
const MAIN = ['main', 'rest'].map((name) => join('bin', `${name}.cjs`));

const common = await findCommon();
await bundleMain();
await bundleStart(await bundleLibrary());
await bundleDashboard();
await bundleForBrowsers();
for (const [entry, name] of Object.entries(APART))
  await bundle(name, { input: join(src, `${entry}.ts`), plugins: [apart] });
writeFileSync(join(dist, 'bin', 'LICENSES'), INCLUDED.map(licenceOf).join('\n'));
await bundleDeclarations();

/** The command line, but for the common code. */
async function bundleMain() {
  const modules = {
    '\0main': `import '\0offer'; import ${JSON.stringify(join(src, 'cli', 'main.ts'))};`,
    '\0offer': offerOf(common),
  };
  const imported = /** @type {Map<string, readonly string[]>} */ (new Map());
  const spy = {
    name: 'imported',
    moduleParsed: (/** @type {{ id: string, importedIds: readonly string[] }} */ { id, importedIds }) =>
      void imported.set(id, importedIds),
  };
  const first = /** @type {Set<string>} */ (new Set());
  const visit = (/** @type {string} */ id) => {
    if (first.has(id)) return;
    first.add(id);
    imported.get(id)?.forEach(visit);
  };
  const isRest = (/** @type {string} */ id) => {
    if (first.size === 0) ['\0main', ...RUN.map((name) => join(src, `${name}.ts`))].forEach(visit);
    return !first.has(id) && !id.includes('rolldown/runtime');
  };
  const groups = [
    { name: 'main', test: (/** @type {string} */ id) => !isRest(id) },
    { name: 'rest', test: isRest },
  ];
  const plugins = [virtual(modules), apart, insteadOf(common), spy];
  const checks = { ineffectiveDynamicImport: false };
  await bundle(
    'begin',
    { input: '\0main', plugins, checks },
    {
      chunkFileNames: ({ moduleIds }) => (moduleIds.includes(join(src, 'cli', 'main.ts')) ? 'main.cjs' : '[name].cjs'),
      codeSplitting: { groups },
      // Each module begins when it is first imported, as if it were a file: a command needs few of them.
      strictExecutionOrder: true,
    },
  );
  joinToMain();
}

/** Two of the files are a line or two: what begins `main.cjs`, and the bundler's own functions. They would be two more to read. */
function joinToMain() {
  const at = (/** @type {string} */ name) => join(dist, 'bin', `${name}.cjs`);
  const [main, rest, begin, runtime] = ['main', 'rest', 'begin', 'rolldown-runtime'].map((name) =>
    readFileSync(at(name), 'utf8').trimEnd(),
  );
  const call = begin?.replace('require("./main.cjs")', 'exports') ?? '';
  const wanted = 'require("./rolldown-runtime.cjs")';
  if (!/^exports\.\w+\(\);?$/.test(call) || !main?.includes(wanted))
    throw new Error('the bundler joins in another way');
  const functions = `(exports.$runtime=(exports=>{${runtime};return exports})({}))`;
  writeFileSync(at('main'), `${main.replace(wanted, () => functions)};${call}\n`);
  writeFileSync(at('rest'), `${rest?.replace(wanted, 'require("./main.cjs").$runtime')}\n`);
  for (const name of ['begin', 'rolldown-runtime']) rmSync(at(name));
}

/** @typedef {{ readonly file: string, readonly length: number, readonly edits: unknown }} LibraryScript */
/** What loads the common code and the command line, and names what it keeps of them by a hash. */
async function bundleStart(/** @type {Record<'common' | 'seldom', LibraryScript>} */ { common: often, seldom }) {
  const texts = [...MAIN, often.file, seldom.file].map((name) => readFileSync(join(dist, name), 'utf8'));
  const given = (/** @type {LibraryScript} */ { file, length, edits }) =>
    JSON.stringify({ file: `../${file}`, length, edits });
  const define = {
    BUILD: JSON.stringify(hashOf(...texts, given(often), given(seldom))),
    COMMON: given(often),
    SELDOM: given(seldom),
    RARELY_USED: JSON.stringify(RARELY_USED),
  };
  await bundle('signalbox', { input: join(src, 'cli', 'start.ts'), transform: { define } });
  chmodSync(join(dist, 'bin', 'signalbox.cjs'), 0o755);
}

/** Modules that are in no file. */
function virtual(/** @type {Readonly<Record<string, string>>} */ modules) {
  return {
    name: 'virtual',
    resolveId: (/** @type {string} */ id) => (Object.hasOwn(modules, id) ? id : undefined),
    load: (/** @type {string} */ id) => modules[id],
  };
}

/**
 * Readable, and without the packages that it needs: those are the user's to choose and to share. What people read are the
 * declarations, which have the comments; in the code they would be a quarter of the package.
 */
async function bundleLibrary() {
  const made = await rolldown({
    input: { ...Object.fromEntries(IMPORTED.map((name) => [name, join(src, `${name}.ts`)])), [ENTRY]: '\0names' },
    platform: 'node',
    external: isPackage,
    plugins: [
      virtual({ '\0names': entryOf(common, MAIN.map((name) => readFileSync(join(dist, name), 'utf8')).join('\n')) }),
      clientApart,
    ],
    experimental: { attachDebugInfo: 'none' },
    // The groups want it. Nothing is added to an entry, since all that several of them share is in chunks.
    preserveEntrySignatures: 'allow-extension',
    checks: { ineffectiveDynamicImport: false },
  });
  const { output } = await made.write({
    dir: dist,
    format: 'esm',
    entryFileNames: '[name].js',
    codeSplitting: {
      groups: [
        ...groupsOf(common.modules, common.seldom),
        { name: 'github', test: /src\/github\/(octokit-client|github-client)/ },
      ],
    },
    chunkFileNames: 'chunks/[name]-[hash].js',
    ...READABLE,
  });
  await made.close();
  for (const { fileName } of output) breakLines(join(dist, fileName));
  const chunks = output.filter((file) => file.type === 'chunk');
  const [chunk, seldom, facade] = ['common', 'seldom', ENTRY].map((wanted) =>
    chunks.find(({ name }) => name === wanted),
  );
  if (chunk === undefined || seldom === undefined || facade === undefined)
    throw new Error('the common code is not in chunks of its own');
  rmSync(join(dist, facade.fileName));
  checkOrder(chunk, seldom);
  for (const file of chunks) if (![chunk, seldom, facade].includes(file)) beginAfter(seldom, file);
  const scriptOf = (/** @type {typeof chunk} */ one, /** @type {typeof chunk} */ other) => {
    const text = readFileSync(join(dist, one.fileName), 'latin1');
    return { file: one.fileName, length: text.length, edits: editsOf(common, text, one, other, facade, chunks) };
  };
  return { common: scriptOf(chunk, seldom), seldom: scriptOf(seldom, chunk) };
}

/**
 * The two chunks of the common code import each other, and the other one needs what `common` declares while it begins. The
 * file that is imported first begins last.
 *
 * @param {import('rolldown').OutputChunk} chunk @param {import('rolldown').OutputChunk} file
 */
function beginAfter(chunk, { fileName, imports }) {
  if (!imports.some((name) => name === chunk.fileName || /(?:^|\/)common-[\w-]+\.js$/.test(name))) return;
  const path = relative(dirname(fileName), chunk.fileName).replaceAll('\\', '/');
  const at = join(dist, fileName);
  writeFileSync(at, `import"${path.startsWith('.') ? path : `./${path}`}";\n${readFileSync(at, 'utf8')}`);
}

/**
 * Puts each statement on a line of its own. Where a program does not catch an error, Node prints the line that threw it, which
 * would be the whole file.
 */
function breakLines(/** @type {string} */ file) {
  const code = readFileSync(file, 'utf8');
  /** @type {Set<number>} */
  const starts = new Set();
  const visit = (/** @type {unknown} */ node) => {
    if (typeof node !== 'object' || node === null) return;
    for (const [name, value] of Object.entries(node)) {
      if (Array.isArray(value) && (name === 'body' || name === 'consequent'))
        for (const { start: at } of value) starts.add(at);
      visit(value);
    }
  };
  visit(parseAst(code));
  const places = [0, ...[...starts].sort((one, other) => one - other), code.length];
  const lines = places.slice(1).map((end, place) => code.slice(places[place], end).trimEnd());
  writeFileSync(file, asAscii(`${lines.filter((line) => line !== '').join('\n')}\n`));
}

/**
 * The page: one script, one style sheet and the HTML that names them by a hash of their content, so that a browser keeps
 * them for ever. `files.json` lists what the server may hand out.
 */
async function bundleDashboard() {
  const source = join(src, 'dashboard');
  const folder = join(dist, 'dashboard');
  const made = await rolldown({
    input: { app: join(source, 'main.tsx') },
    platform: 'browser',
    experimental: { attachDebugInfo: 'none' },
  });
  const { output } = await made.write({
    dir: folder,
    format: 'esm',
    entryFileNames: 'app-[hash].js',
    codeSplitting: false,
    comments: false,
    minify: true,
  });
  await made.close();
  const script = output[0].fileName;
  const css = readdirSync(join(source, 'style'))
    .sort()
    .map((name) => readFileSync(join(source, 'style', name), 'utf8'))
    .join('\n')
    .replace(/\/\*[^]*?\*\//g, '')
    .replace(/\s*([{};,])\s*/g, '$1')
    .replace(/:\s+/g, ':');
  const style = `app-${createHash('sha256').update(css).digest('hex').slice(0, 12)}.css`;
  writeFileSync(join(folder, style), css);
  const html = readFileSync(join(source, 'index.html'), 'utf8').replace('app.css', style).replace('app.js', script);
  writeFileSync(join(folder, 'index.html'), html);
  const licences = ['preact'].map(licenceOf).join('\n');
  writeFileSync(join(folder, 'licences.txt'), licences);
  writeFileSync(join(folder, 'files.json'), JSON.stringify(['index.html', script, style, 'licences.txt']));
}

async function bundleForBrowsers() {
  const input = { [FOR_BROWSERS]: join(src, `${FOR_BROWSERS}.ts`) };
  const made = await rolldown({
    ...{ input, platform: 'browser' },
    // Nothing in the source does anything by being imported.
    treeshake: { moduleSideEffects: false },
    experimental: { attachDebugInfo: 'none' },
  });
  await made.write({ dir: dist, format: 'esm', entryFileNames: '[name].js', codeSplitting: false, ...READABLE });
  await made.close();
  breakLines(join(dist, `${FOR_BROWSERS}.js`));
}

/**
 * @param {string} name @param {import('rolldown').InputOptions & { input: string }} options
 * @param {import('rolldown').OutputOptions} split
 */
async function bundle(name, { input, ...options }, split = { codeSplitting: false }) {
  const made = await rolldown({ ...options, input: { [name]: input }, platform: 'node', external: NOT_INCLUDED });
  const { output } = await made.write({
    dir: join(dist, 'bin'),
    // Node takes CommonJS up several milliseconds faster than modules.
    format: 'cjs',
    // They are not loaded by Node's own means, and then can only `require`; all but one.
    dynamicImportInCjs: name === 'import',
    entryFileNames: '[name].cjs',
    minify: true,
    ...split,
  });
  await made.close();
  for (const file of output) {
    if (file.type !== 'chunk') continue;
    refuseForeign(file);
    const path = join(dist, 'bin', file.fileName);
    writeFileSync(path, asAscii(readFileSync(path, 'utf8')));
  }
}

function refuseForeign(/** @type {import('rolldown').OutputChunk} */ { fileName, moduleIds }) {
  for (const id of moduleIds) {
    const [, within] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll('\\', '/')) ?? [];
    if (within !== undefined && !INCLUDED.includes(within))
      throw new Error(`${fileName} would have ${within} in it: import less, or add it to INCLUDED with its licence`);
  }
}

/** A file with a single other character in it is kept in memory at twice the size. */
function asAscii(/** @type {string} */ code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * The compiler makes a file of declarations of each module, most of which nobody who imports the package can see. What they
 * can see is put together, a file for each entry and a few that these share.
 */
async function bundleDeclarations() {
  // `signalbox serve` imports the server by its path, and nobody else does.
  const declared = [...IMPORTED, FOR_BROWSERS].filter((name) => !NOT_DECLARED.includes(name));
  const made = await rolldown({
    input: Object.fromEntries(declared.map((name) => [name, join(dist, `${name}.d.ts`)])),
    external: isPackage,
    plugins: [dts({ dtsInput: true, tsconfig: false })],
    // It would name the directory of this build, and with it the files: they are named by a hash of their content.
    experimental: { attachDebugInfo: 'none' },
    checks: { pluginTimings: false },
  });
  const { output } = await made.generate({
    format: 'esm',
    entryFileNames: '[name].ts',
    chunkFileNames: 'chunks/[name]-[hash].d.ts',
    minifyInternalExports: false,
  });
  await made.close();
  // What is in a directory comes before the directory.
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true }).toReversed()) {
    const path = join(entry.parentPath, entry.name);
    if (entry.name.endsWith('.d.ts')) rmSync(path);
    else if (entry.isDirectory() && readdirSync(path).length === 0) rmdirSync(path);
  }
  const chunks = output.filter((file) => file.type === 'chunk');
  const inside = chunks.find(({ moduleIds }) => moduleIds.some((id) => id === join(dist, 'core', 'lock.d.ts')));
  const entries = chunks.filter(({ isEntry, name }) => isEntry && name !== 'core/index');
  for (const file of chunks) {
    const text = file === inside ? withoutCommentsOnInside(file.code, entries) : file.code;
    // They name each other as they are named at run time (`.js`), which every version of the compiler understands.
    const code = text.replace(/(from "\.[^"]*)\.d\.ts"/g, '$1.js"');
    writeFileSync(join(dist, file.fileName), code);
  }
}

/**
 * `signalbox/core` exports whatever the other entries are made of. Comments stay on what users of those meet, which is an
 * eighth of it.
 */
function withoutCommentsOnInside(/** @type {string} */ code, /** @type {readonly { code: string }[]} */ entries) {
  const met = new Set(
    entries.flatMap((entry) =>
      [...entry.code.matchAll(/^import \{([^}]*)\}/gm)].flatMap(([, names = '']) => names.split(/,\s*|\s+as\s+|\s+/)),
    ),
  );
  const declaration =
    /^(?:\/\*\*(?:(?!\*\/)[^])*\*\/\n)?(?:declare |interface |type )[^]*?(?=^(?:\/\*\*|declare |interface |type |export ))/gm;
  return code.replace(declaration, (text) => {
    const [, name = ''] =
      /^(?:declare )?(?:abstract )?(?:class|interface|type|function|const) ([\w$]+)/m.exec(text) ?? [];
    return met.has(name) ? text : text.replace(/^[ ]*\/\*\*(?:(?!\*\/)[^])*\*\/\n/gm, '');
  });
}

function isPackage(/** @type {string} */ id) {
  return !id.startsWith('.') && !id.startsWith('/') && !/^[A-Za-z]:/.test(id);
}

function hashOf(/** @type {readonly string[]} */ ...texts) {
  return createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 16);
}

function licenceOf(/** @type {string} */ name) {
  const folder = join(root, 'node_modules', name);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = ['LICENSE', 'LICENSE.md'].map((one) => join(folder, one)).find((one) => existsSync(one)) ?? '';
  const text = readFileSync(file, 'utf8');
  return `${name} ${version}\n\n${text}`;
}
