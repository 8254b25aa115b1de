// @ts-check
// npm run test:install: the package as npm packs it, installed in every way on every Node that people run, and used there.
// npm run test:install -- --quick: one old and one new Node, as `npm test` does.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { ensure, isMain, root, tool } from './ensure.mjs';
import { ensureNode, ensureNpm, MAJORS } from './nodes.mjs';
import { argumentsFor } from './usage.mjs';

/** @typedef {import('./nodes.mjs').Major} Major */
/** @typedef {{ readonly status: number, readonly stdout: string, readonly stderr: string, readonly seconds: number }} Ended */

const FIRST_WITH_SQLITE = 22;
const EX_UNAVAILABLE = 69;
const MOST_BYTES = 1_000_000;
const MOST_FILES = 400;

const programs = join(root, 'test', 'install');
const USAGE = `Usage: npm run test:install -- [--quick]
Packs the package and installs it in every way, on every Node that it is for, which takes minutes.

  --quick   one old and one new Node, as npm test does`;
const quick = argumentsFor(USAGE, (argument) => argument === '--quick').length > 0;

/** Node before 22 cannot run npm 12. */
const CELLS = quick
  ? [cell(20, 11), cell(22, 12)]
  : MAJORS.flatMap((major) => (major < FIRST_WITH_SQLITE ? [cell(major, 11)] : [cell(major, 11), cell(major, 12)]));

function cell(/** @type {Major} */ node, /** @type {11 | 12} */ npm) {
  return { node, npm };
}

class Machine {
  /** @param {string} folder @param {string} node @param {string} npm */
  constructor(folder, node, npm) {
    this.folder = folder;
    this.node = node;
    this.npm = npm;
    mkdirSync(folder, { recursive: true });
    this.env = {
      ...process.env,
      PATH: [dirname(node), process.env['PATH']].join(delimiter),
      SIGNALBOX_URL: `file:${join(folder, 'store')}`,
      XDG_CACHE_HOME: join(folder, 'cache'),
      npm_config_fund: 'false',
      npm_config_audit: 'false',
      npm_config_update_notifier: 'false',
    };
  }

  /** @param {string} command @param {readonly string[]} args @param {NodeJS.ProcessEnv} env @returns {Ended} */
  run(command, args, cwd = this.folder, env = { ...this.env, NODE_EXTRA_CA_CERTS: undefined }) {
    const begun = performance.now();
    const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, encoding: 'utf8' });
    if (error !== undefined) throw error;
    return { status: status ?? -1, stdout, stderr, seconds: (performance.now() - begun) / 1000 };
  }

  /** @param {readonly string[]} args */
  runNpm(args, cwd = this.folder) {
    // The way to the registry may need certificates, which everything else only takes long to read.
    return this.run(this.node, [this.npm, ...args], cwd, this.env);
  }
}

/** What was found wrong; printed at the end. */
const wrong = /** @type {string[]} */ ([]);

/** @param {string} what @param {boolean} isRight @param {Ended} ended */
function expect(what, isRight, { status, stdout, stderr }) {
  if (!isRight) wrong.push(`${what}: ended with ${status}\n${stdout}${stderr}`.trimEnd());
  return isRight;
}

/** @param {string} what @param {Ended} ended */
function passes(what, ended) {
  return expect(what, ended.status === 0, ended);
}

function testInstall() {
  ensure();
  const place = mkdtempSync(join(tmpdir(), 'signalbox-install-'));
  try {
    const tarball = pack(root, place);
    examinePackage(tarball);
    if (!quick) expectReproducible(tarball, place);
    const rows = CELLS.map((each) => testCell(each, tarball, place));
    if (!quick) testSwitch(tarball, place);
    table(
      ['Node', 'npm', 'folder', 'global', 'npx', 'JavaScript', 'nodenext', 'bundler', 'vitest', 'on Node 20'],
      rows,
    );
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  for (const each of wrong) console.error(`\nx ${each}`);
  return wrong.length === 0 ? 0 : 1;
}

/** @param {string} from @param {string} to */
function pack(from, to) {
  const packed = spawnSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', to], {
    cwd: from,
    encoding: 'utf8',
  });
  if (packed.status !== 0) throw new Error(`npm pack: ${packed.stderr}`);
  return join(to, packed.stdout.trim());
}

/** Its size, its files, and that what README.md links to is there. */
function examinePackage(/** @type {string} */ tarball) {
  const { stdout } = spawnSync('tar', ['-tzf', tarball], { encoding: 'utf8' });
  const files = stdout.trim().split('\n');
  const bytes = readFileSync(tarball).length;
  console.log(`${files.length} files, ${(bytes / 1000).toFixed(0)} kB packed`);
  if (bytes > MOST_BYTES) wrong.push(`the package has ${bytes} bytes, and ${MOST_BYTES} are allowed`);
  if (files.length > MOST_FILES) wrong.push(`the package has ${files.length} files, and ${MOST_FILES} are allowed`);
  const maps = files.filter((file) => file.endsWith('.map'));
  if (maps.length > 0) wrong.push(`the package has source maps: ${maps.join(', ')}`);
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  // Pictures are for those who read it on a page, which has them from the repository.
  for (const [, link = ''] of readme.matchAll(/(?<!!\[[^\]]*)\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
    const isThere = files.some((file) => file === `package/${link}` || file.startsWith(`package/${link}/`));
    if (!isThere) wrong.push(`README.md links to ${link}, which is not in the package`);
  }
}

/** A copy in another place, built there, makes the same bytes. */
function expectReproducible(/** @type {string} */ tarball, /** @type {string} */ place) {
  const copy = join(place, 'copy');
  mkdirSync(copy);
  const left = new Set(['node_modules', 'dist', '.git', '.cache']);
  for (const name of readdirSync(root)) {
    if (!left.has(name) && !name.startsWith('.dist-')) cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const built = spawnSync(process.execPath, ['scripts/ensure.mjs', '--build'], { cwd: copy, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`the copy cannot be built: ${built.stderr}`);
  mkdirSync(join(place, 'again'));
  const again = pack(copy, join(place, 'again'));
  const [one, other] = [tarball, again].map((file) => createHash('sha256').update(readFileSync(file)).digest('hex'));
  console.log(
    one === other ? `packed twice, in two places: the same bytes (sha256 ${one?.slice(0, 16)})` : 'not the same',
  );
  if (one !== other) wrong.push(`npm pack of the same source gives ${one} and ${other}`);
}

/** @param {{ node: Major, npm: 11 | 12 }} cell @param {string} tarball @param {string} place */
function testCell({ node: major, npm: npmMajor }, tarball, place) {
  const node = ensureNode(major);
  const npm = ensureNpm(npmMajor);
  if (node === undefined || npm === undefined) return [`${major}`, `${npmMajor}`, 'not to be had'];
  const name = `Node ${major}, npm ${npmMajor}`;
  console.log(`${name} …`);
  const machine = new Machine(join(place, `${major}-${npmMajor}`), node, npm);
  const hasSqlite = major >= FIRST_WITH_SQLITE;
  const row = [`${major}`, `${npmMajor}`];

  const project = join(machine.folder, 'project');
  mkdirSync(project);
  cpSync(programs, project, { recursive: true });
  const installed = machine.runNpm(['install', '--loglevel=warn', tarball], project);
  passes(`${name}: npm install`, installed);
  const scripts = /install scripts/.test(installed.stderr);
  expect(`${name}: npm install asks for no install script`, !scripts, installed);
  const started = machine.run(join(project, 'node_modules', '.bin', 'signalbox'), RUN, project);
  expectStart(`${name}: in a folder`, started, hasSqlite, `cd ${project} && npm install better-sqlite3@`);
  row.push(seconds(installed, started));

  if (quick && !hasSqlite) row.push('-', '-');
  else row.push(...inOtherWays(name, machine, tarball, hasSqlite));

  let old = '-';
  if (!hasSqlite) {
    const helped = quick
      ? linkBetterSqlite3(project)
      : machine.run('sh', ['-c', commandIn(started.stderr)], project, machine.env);
    if (helped !== undefined) passes(`${name}: the command that it tells`, helped);
    const again = machine.run(join(project, 'node_modules', '.bin', 'signalbox'), RUN, project);
    expectStart(`${name}: with better-sqlite3`, again, true, '');
    old = helped === undefined ? seconds(again) : seconds(helped, again);
  }

  const used = machine.run(node, ['library.mjs'], project);
  passes(`${name}: the library in JavaScript`, used);
  expect(`${name}: the library prints no warning`, used.stderr === '', used);
  row.push(seconds(used));
  link(project, '@types/node', 'undici-types', 'vitest');
  // The compiler does not run on the Node of this cell.
  if (quick && hasSqlite) row.push('-', '-');
  else row.push(...inTypeScript(name, machine, project));
  if (quick && !hasSqlite) return [...row, '-', old];
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const tested = machine.run(node, [vitest, 'run', '--root', project], project);
  passes(`${name}: a test with TestClock`, tested);
  return [...row, seconds(tested), old];
}

/** @param {string} name @param {Machine} machine @param {string} project */
function inTypeScript(name, machine, project) {
  return ['nodenext', 'bundler'].map((resolution) => {
    const checked = machine.run(tool('tsc'), ['-p', `tsconfig.${resolution}.json`], project);
    passes(`${name}: strict TypeScript, ${resolution}`, checked);
    return seconds(checked);
  });
}

const RUN = ['run', '--lock', 'main', '--', 'echo', 'let in'];

/** @param {string} name @param {Machine} machine @param {string} tarball @param {boolean} hasSqlite */
function inOtherWays(name, machine, tarball, hasSqlite) {
  const prefix = join(machine.folder, 'global');
  const globally = machine.runNpm(['install', '--global', '--prefix', prefix, tarball]);
  passes(`${name}: npm install --global`, globally);
  const started = machine.run(join(prefix, 'bin', 'signalbox'), RUN);
  expectStart(`${name}: globally`, started, hasSqlite, 'npm install --global better-sqlite3@');
  const byNpx = machine.runNpm(['exec', '--yes', '--package', tarball, '--', 'signalbox', ...RUN]);
  expectStart(
    `${name}: npx`,
    { ...byNpx, stderr: withoutNpm(byNpx.stderr) },
    hasSqlite,
    'npx --package signalbox --package',
  );
  return [seconds(globally, started), seconds(byNpx)];
}

/** It either runs the command and says nothing, or tells how to get SQLite. */
function expectStart(
  /** @type {string} */ what,
  /** @type {Ended} */ ended,
  /** @type {boolean} */ hasSqlite,
  /** @type {string} */ command,
) {
  const isRight = hasSqlite
    ? ended.status === 0 && ended.stdout === 'let in\n' && ended.stderr === ''
    : ended.status === EX_UNAVAILABLE && ended.stderr.includes(command);
  expect(what, isRight, ended);
}

/** The command at the end of what signalbox says. */
function commandIn(/** @type {string} */ told) {
  return told.trim().split(': ').at(-1) ?? '';
}

function withoutNpm(/** @type {string} */ text) {
  return text.replace(/^npm (warn|notice).*\n?/gm, '');
}

/** Installed by the newest Node, and then used by all the others as it is. */
function testSwitch(/** @type {string} */ tarball, /** @type {string} */ place) {
  const [newest, npm] = [ensureNode(26), ensureNpm(12)];
  if (newest === undefined || npm === undefined) return;
  const machine = new Machine(join(place, 'switch'), newest, npm);
  passes('npm install for all', machine.runNpm(['install', '--prefix', machine.folder, tarball]));
  const command = join(machine.folder, 'node_modules', 'signalbox', 'dist', 'bin', 'signalbox.cjs');
  for (const major of [26, 24, 22, 20, 26]) {
    const node = ensureNode(/** @type {Major} */ (major));
    if (node === undefined) continue;
    const told = `cd ${machine.folder} && npm install better-sqlite3@`;
    expectStart(`Node ${major} after another`, machine.run(node, [command, ...RUN]), major >= FIRST_WITH_SQLITE, told);
  }
  console.log('one folder, used by Node 26, 24, 22, 20 and 26 in turn');
}

/** The packages that a project would have besides: they are not what is tested here. */
function link(/** @type {string} */ project, /** @type {readonly string[]} */ ...names) {
  for (const name of names) {
    const at = join(project, 'node_modules', name);
    mkdirSync(dirname(at), { recursive: true });
    if (!existsSync(at)) symlinkSync(join(root, 'node_modules', name), at);
  }
}

/** As if it had been installed, which takes a compiler and a minute. @returns {undefined} */
function linkBetterSqlite3(/** @type {string} */ project) {
  link(project, 'better-sqlite3');
}

function seconds(/** @type {readonly Ended[]} */ ...ended) {
  return `${ended.reduce((sum, each) => sum + each.seconds, 0).toFixed(1)} s`;
}

function table(/** @type {readonly string[]} */ head, /** @type {readonly (readonly string[])[]} */ rows) {
  const lines = [head, ...rows];
  const widths = head.map((_, i) => Math.max(...lines.map((line) => (line[i] ?? '').length)));
  const shown = lines.map((line) => `| ${widths.map((width, i) => (line[i] ?? '').padEnd(width)).join(' | ')} |`);
  shown.splice(1, 0, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`);
  console.log(`\n${shown.join('\n')}`);
}

if (isMain(import.meta)) process.exit(testInstall());
