/** `signalbox maintain`: does one round of the maintenance that long-lived processes do every 30 s. */
import type { Command } from './command.ts';
import { pause } from '../clock.ts';
import type { Swept } from '../runtime/upkeep/sweep.ts';
import { plural, print, printable, printJson, warnOf } from './output.ts';
import { withBox } from './store.ts';

interface Flags {
  readonly watch?: true;
  readonly every: number;
  readonly reclaim: boolean;
}

const EXAMPLES = `
Examples:
  signalbox maintain                    one round
  signalbox maintain --no-reclaim       warn of stale holds, free none
  signalbox maintain --watch            a round every 30 s, until Ctrl-C

An acquire takes a lock from a stale holder anyway. Maintenance is for locks that no one asks for: it
announces stale holds, frees them (except where a person must decide), deletes the records of unused locks
and tasks that ended long ago (signalbox task configure says when), and drops old history. Programs that
use the library do it by themselves.`;

export function define(command: Command): void {
  command
    .option('--watch', 'repeat until interrupted')
    .duration('--every', 'with --watch: how often', '30s')
    .option('--no-reclaim', 'warn of stale holds, but free none')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: Flags) => {
      await withBox(
        command,
        async (box, signal) => {
          for (let round = 1; !signal.aborted; round++) {
            tellSwept(command, await box.maintain(), flags.watch !== true || round === 1);
            if (flags.watch !== true) return;
            await pause(flags.every, signal);
          }
        },
        { reclaim: flags.reclaim },
      );
    });
}

/** `always`: prints also when there was nothing to do. */
function tellSwept(command: Command, swept: Swept, always: boolean): void {
  const { records, forgotten, requeued, forgottenTasks, stale, malformed } = swept;
  if (!always && stale.length === 0 && forgotten + requeued + forgottenTasks === 0) return;
  const freed = stale.filter(({ isFreed }) => isFreed).length;
  if (command.isJson) {
    const counts = { resources: records, stale, freed, forgotten, requeued, forgottenTasks, malformed };
    return printJson({ at: new Date().toISOString(), ...counts });
  }
  warnOf(malformed);
  for (const { resource, holder, token, isFreed } of stale)
    print(printable(`${resource}: the hold of ${holder} (token ${token}) is stale; ${isFreed ? '' : 'not '}freed`));
  const left = stale.length - freed;
  print(
    `checked ${plural(records, 'resource')}: freed ${plural(freed, 'stale hold')}` +
      `${left > 0 ? `, left ${left} alone` : ''}, forgot ${plural(forgotten, 'unused lock')}` +
      (requeued > 0 ? `, found ${plural(requeued, 'task')} without an owner` : '') +
      (forgottenTasks > 0 ? `, forgot ${plural(forgottenTasks, 'finished task')}` : ''),
  );
}
