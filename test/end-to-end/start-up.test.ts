// What a start costs: every part of Node takes time to load, and each start pays for it anew.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { hasNodeSqlite } from '../../src/sqlite/node-sqlite.ts';
import { CLI, Scratch, startProgram } from '../support/cli.ts';
import { built } from '../support/run-processes.ts';

let scratch: Scratch;
beforeAll(built);
beforeEach(() => void (scratch = new Scratch()));
afterEach(() => scratch.remove());

/** Writes what the process has loaded when it ends: parts of Node, files of JavaScript, and scripts of ours. */
const SPY = `
  const { appendFileSync } = require('fs');
  const vm = require('vm');
  const list = process.env.LOADED_LIST;
  const { Script } = vm;
  vm.Script = class extends Script {
    constructor(text, options) {
      super(text, options);
      if (options?.filename !== undefined) appendFileSync(list, 'script ' + options.filename + '\\n');
    }
  };
  process.on('exit', () =>
    appendFileSync(list, [...process.moduleLoadList, ...Object.keys(require.cache).map((file) => 'file ' + file)].join('\\n')));`;

async function loadedBy(...args: readonly string[]): Promise<readonly string[]> {
  const [spy, list] = [scratch.path('spy.cjs'), scratch.path('loaded')];
  writeFileSync(spy, SPY);
  const program = startProgram(process.execPath, ['--require', spy, CLI, ...args], { env: { LOADED_LIST: list } });
  expect(await program.ended).toMatchObject({ code: 0, stderr: '' });
  return readFileSync(list, 'utf8')
    .split('\n')
    .filter((line) => !line.endsWith('spy.cjs'));
}

const filesIn = (loaded: readonly string[], kind: 'file' | 'script'): readonly string[] =>
  loaded
    .filter((line) => line.startsWith(`${kind} `))
    .map((line) => basename(line).replace(/-[\w-]+\.js$/, '.js'))
    .sort();

it('run loads none of the parts of Node that it has no use for', async () => {
  const loaded = await loadedBy('--store', scratch.store, 'run', '--lock', 'x', '--', 'true');
  expect(loaded).toContain('NativeModule child_process');
  const heavy = ['crypto', 'fs/promises', 'perf_hooks', 'timers/promises', 'readline', 'http', 'tls', 'http2', 'zlib'];
  expect(loaded.filter((name) => heavy.some((one) => name === `NativeModule ${one}`))).toEqual([]);
});

it('run loads the frame, itself and the part of the library that it uses, and of a driver of SQLite no more than its native part', async () => {
  const loaded = await loadedBy('--store', scratch.store, 'run', '--lock', 'x', '--', 'true');
  expect(filesIn(loaded, 'script')).toEqual(['common.js', 'main.cjs']);
  const driver = hasNodeSqlite(process.versions.node) ? [] : ['better_sqlite3.node', 'package.json'];
  expect(filesIn(loaded, 'file')).toEqual([...driver, 'signalbox.cjs']);
});

it.each([['--version'], ['--help'], ['help'], ['run', '--help']])(
  '%s %s loads neither the library nor another command, and no part of Node to start processes',
  async (...args) => {
    const loaded = await loadedBy(...args);
    expect(filesIn(loaded, 'script')).toEqual(['main.cjs']);
    expect(filesIn(loaded, 'file')).toEqual(['signalbox.cjs']);
    expect(loaded).not.toContain('NativeModule child_process');
  },
);

it('the frame and run are less than a quarter of the code of the command line', () => {
  const [main = 0, rest = 0] = ['main.cjs', 'rest.cjs'].map((name) => statSync(join(dirname(CLI), name)).size);
  expect(main).toBeLessThan((main + rest) / 4);
});
