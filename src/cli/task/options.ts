/** The options that `task run` and `task work` share. Loads nothing that runs a command: `--help` has to be fast. */
import type { Command } from '../command.ts';
import { type OnLost, onLostArgument } from '../arguments.ts';

export interface CommandFlags {
  readonly holder?: string;
  readonly capability: readonly string[];
  readonly ttl: number;
  readonly grace: number;
  readonly onLost: OnLost;
}

export function addCommandOptions(command: Command): Command {
  return command
    .option('--holder <id>', 'who claims it (default: $SIGNALBOX_HOLDER, or a new name)')
    .list('--capability <name>', 'what this worker can do (repeatable)')
    .limit('--ttl', 'the lease: how long the claim outlives this process if it vanishes', '15s')
    .option('--on-lost <what>', 'when the claim is lost: term, kill or warn', onLostArgument, 'term')
    .duration('--grace', 'time between TERM and KILL, and for processes that the command leaves behind', '5s');
}

/** What stands before `--` and after it; commander drops the dashes. */
export function aroundDashes(words: readonly string[], argv = process.argv): { ids: string[]; command: string[] } {
  const dashes = argv.indexOf('--', 2);
  const after = dashes < 0 ? 0 : argv.length - dashes - 1;
  return { ids: words.slice(0, words.length - after), command: words.slice(words.length - after) };
}
