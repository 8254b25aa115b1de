/** `signalbox export DIR`: writes the state as JSON files. */
import type { Command } from 'commander';
import { look } from './looking.ts';
import { warnOf } from './malformed.ts';
import { complain, counted, print, printable, printJson } from './output.ts';
import { isJson } from './store.ts';

const EXAMPLES = `
Examples:
  signalbox export backup/
  signalbox export /tmp/state && signalbox import /tmp/state --store file:/srv/signalbox

Writes locks.json and semaphores.json, each whole or not at all. Waiters are not in them: a
waiter is a process, and asks again.`;

export function define(command: Command): void {
  command
    .argument('<dir>', 'the directory to write to; created if it does not exist')
    .addHelpText('after', EXAMPLES)
    .action(async (dir: string) => {
      const { found, missing } = await look(command, (box) => box.saveState(dir));
      if (missing !== undefined) complain(`signalbox: ${printable(missing)}`);
      const { files, state, malformed } = found;
      const { locks, semaphores } = state;
      const holds = [...locks, ...semaphores].reduce((sum, one) => sum + one.holds.length, 0);
      if (isJson(command)) printJson({ files, locks: locks.length, semaphores: semaphores.length, holds, malformed });
      else {
        warnOf(malformed);
        print(`wrote ${counted(locks.length, semaphores.length, holds)} to ${dir}`);
      }
    });
}
