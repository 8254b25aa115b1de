// @ts-check
// node resident.cjs MARK: runs one command line of signalbox after the other, as the parent sends them. Each is the built file,
// evaluated anew, with the arguments, environment and directory of its own; only the process is shared. A command is over
// when a process of its own would end: when nothing is left to wait for.

const { readFileSync, writeSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');
const { Script } = require('node:vm');

const MAIN = join(__dirname, '..', '..', 'dist', 'bin', 'main.cjs');
const mark = process.argv[2] ?? '';
const { channel } = process;
if (channel === undefined) throw new Error('resident.cjs is to be forked');

const evaluate = new Script(`(function (exports, require, module, __filename) {${readFileSync(MAIN, 'latin1')}\n})`, {
  filename: MAIN,
}).runInThisContext();
let isBusy = false;

process.on(
  'message',
  (/** @type {{ args: string[], env: Record<string, string>, cwd: string }} */ { args, env, cwd }) => {
    isBusy = true;
    process.chdir(cwd);
    for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name];
    Object.assign(process.env, env);
    process.argv.splice(1, Infinity, MAIN, ...args);
    process.exitCode = undefined;
    // From here on only the command keeps the process alive.
    channel.unref();
    const module_ = { exports: {} };
    evaluate(module_.exports, createRequire(MAIN), module_, MAIN);
  },
);

process.on('beforeExit', () => {
  if (!isBusy) return;
  isBusy = false;
  const said = `${mark}${process.exitCode ?? 0}\n`;
  writeSync(1, said);
  writeSync(2, said);
  process.exitCode = undefined;
  channel.ref();
});

// Its parent has ended.
process.on('disconnect', () => process.exit());
