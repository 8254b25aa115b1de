/** `signalbox export DIR`: writes the state as JSON files. */
import type { Command } from './command.ts';
import { look } from './read-only.ts';
import { counted, print, printJson, say, warnOf } from './output.ts';

const EXAMPLES = `
Examples:
  signalbox export backup/
  signalbox export /tmp/state && signalbox import /tmp/state --store file:/srv/signalbox

Writes locks.json, semaphores.json, tasks.json, pipelines.json and keys.json (of the bus), each whole or
not at all. Waiters are not in them: a waiter is a process, and asks again. A task that a worker has is
written as pending. What cannot be read, such as a task with an unknown status, is skipped and named on
stderr (in JSON: malformed). The keys of an etcd are left out: they belong to other programs too.`;

export function define(command: Command): void {
  command
    .argument('<dir>', 'the directory to write to; created if it does not exist')
    .addHelpText('after', EXAMPLES)
    .action(async (dir: string) => {
      const { found, missing } = await look(command, (box) => box.saveState(dir));
      if (missing !== undefined) say(`${missing} The files are empty.`);
      const { files, state, malformed } = found;
      const { locks, semaphores } = state;
      const { length: keys } = Object.keys(state.keys);
      const rest = { tasks: state.tasks.length, pipelines: state.pipelines.length, keys };
      const holds = [...locks, ...semaphores].reduce((sum, one) => sum + one.holds.length, 0);
      if (command.isJson)
        printJson({ files, locks: locks.length, semaphores: semaphores.length, holds, ...rest, malformed });
      else {
        warnOf(malformed);
        print(`wrote ${counted(locks.length, semaphores.length, holds, rest)} to ${dir}`);
      }
    });
}
