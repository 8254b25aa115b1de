// @ts-check
// node resident.cjs MARK: runs one command line of signalbox after the other, as the parent sends them. Each is the built file,
// evaluated anew, with the arguments, environment and directory of its own; only the process is shared. A command is over
// when a process of its own would end: when nothing is left to wait for.

const { readFileSync, writeSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { Script } = require('node:vm');

const ENTRY = join(__dirname, '..', '..', 'dist', 'bin', 'signalbox.cjs');
const mark = process.argv[2] ?? '';
const { channel } = process;
if (channel === undefined) throw new Error('resident.cjs is to be forked');

/**
 * What the entry would run, the common code and then the command line (docs/decisions/0051), each with what it gets.
 * @type {{ make: Function, scope: unknown[], answer: object }[]}
 */
const steps = [];

class Noted extends Script {
  /** @returns {any} */
  runInThisContext() {
    const make = super.runInThisContext();
    return (/** @type {unknown[]} */ ...scope) => {
      const answer = {};
      steps.push({ make, scope, answer });
      return answer;
    };
  }
}

// It keeps no compiled code: that would be written when this process ends.
process.env['XDG_CACHE_HOME'] = 'nowhere';
const entry = readFileSync(ENTRY, 'utf8').replace(/^#!.*/, '');
new Script(`(function (require, __filename, __dirname) {${entry}\n})`, { filename: ENTRY }).runInThisContext()(
  (/** @type {string} */ name) => (name === 'node:vm' ? { Script: Noted } : require(name)),
  ENTRY,
  dirname(ENTRY),
);
let isBusy = false;

process.on(
  'message',
  (/** @type {{ args: string[], env: Record<string, string>, cwd: string }} */ { args, env, cwd }) => {
    isBusy = true;
    process.chdir(cwd);
    for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name];
    Object.assign(process.env, env);
    process.argv.splice(1, Infinity, ENTRY, ...args);
    process.exitCode = undefined;
    // From here on only the command keeps the process alive.
    channel.unref();
    // The command line has the answer of the common code by reference.
    for (const { make, scope, answer } of steps) Object.assign(answer, make(...scope));
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
