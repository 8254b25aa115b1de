// @ts-check
// The command `run` by itself, from dist: a process for the tests of `run`.

import { Command } from 'commander';
import { define } from '../../dist/cli/run.js';
import { exitCodeOf } from '../../dist/cli/exit-code.js';

const program = new Command('signalbox').enablePositionalOptions().option('--store <url>').exitOverride();
define(program.command('run').option('--store <url>').exitOverride());
try {
  await program.parseAsync(process.argv.slice(2), { from: 'user' });
} catch (error) {
  const { code = '', message = '' } = /** @type {{ code?: string, message?: string }} */ (error);
  process.exitCode = code.startsWith('commander.') ? 64 : exitCodeOf(error);
  if (message !== '') process.stderr.write(`signalbox: ${message}\n`);
}
