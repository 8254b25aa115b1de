// @ts-check
// node resident.cjs MARK: runs one command line of signalbox after the other, as the parent sends them. Each is the built entry
// point, evaluated anew, with the arguments, environment and directory of its own; only the process is shared. A command is
// over when a process of its own would end: when nothing is left to wait for.

const { writeSync } = require('node:fs');
const { join } = require('node:path');

const BIN = join(__dirname, '..', '..', 'dist', 'bin');
const ENTRY = join(BIN, 'signalbox.cjs');
const mark = process.argv[2] ?? '';
const { channel } = process;
if (channel === undefined) throw new Error('resident.cjs is to be forked');
let isBusy = false;

process.on('message', (/** @type {{ args: string[], env: Record<string, string>, cwd: string }} */ message) => {
  const { args, env, cwd } = message;
  isBusy = true;
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name];
  Object.assign(process.env, env);
  process.argv.splice(1, Infinity, ENTRY, ...args);
  process.exitCode = undefined;
  // From here on only the command keeps the process alive.
  channel.unref();
  // The parent runs a command elsewhere if this process ended before the command began.
  say(1, mark);
  for (const file of Object.keys(require.cache)) if (file.startsWith(BIN)) delete require.cache[file];
  require(ENTRY);
});

process.on('beforeExit', () => {
  if (!isBusy) return;
  isBusy = false;
  // What the command does at its end it does now: in a process of its own this would be the end.
  process.emit('exit', Number(process.exitCode ?? 0));
  process.removeAllListeners('exit');
  const said = `${mark}${process.exitCode ?? 0}\n`;
  say(1, said);
  say(2, said);
  process.exitCode = undefined;
  channel.ref();
});

/** The pipe may be full, and a command may have made it one that does not wait. */
function say(/** @type {number} */ descriptor, /** @type {string} */ text) {
  for (let rest = Buffer.from(text); rest.length > 0;) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

// Its parent has ended.
process.on('disconnect', () => process.exit());
