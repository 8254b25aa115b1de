/** `signalbox github lock` and `github unlock`: for scripts, whose lock outlives the command. */
import type { Command } from 'commander';
import { durationOption } from '../arguments.ts';
import { interruptible } from '../interrupt.ts';
import { print, printJson } from '../output.ts';
import { isJson } from '../store.ts';
import {
  addAsking,
  addPlace,
  type AskOptions,
  askingOf,
  issueNumber,
  managerFor,
  type PlaceOptions,
  refusal,
} from './arguments.ts';

export function addLocking(command: Command): void {
  lock(command.command('lock'));
  unlock(command.command('unlock'));
}

function lock(command: Command): void {
  addAsking(command)
    .description('lock an issue, print the token, and end; nothing renews it')
    .argument('<issue>', 'its number', issueNumber)
    .addOption(durationOption('--ttl', 'how long it is yours', 300_000, '5m'))
    .addHelpText(
      'after',
      '\nExamples:\n  TOKEN=$(signalbox github lock 42 --worker agent:7 --ttl 30m)\n  signalbox github lock 42 --worker agent:7 --strategy steal-stale --json\n\nExit code 75 if it is taken, 69 if GitHub cannot be reached.',
    )
    .action(async (issue: number, options: AskOptions) => {
      const manager = managerFor(options, options.ttl);
      const result = await interruptible((signal) => manager.acquireLock(issue, askingOf(options, signal)));
      if (!result.success) throw refusal(result.error, result.reason);
      const { token, lock: hold } = result;
      if (isJson(command))
        printJson({
          issue,
          token,
          worker: hold.workerId,
          isAssigned: hold.isAssigned,
          leftMs: Math.round(hold.leftMs),
        });
      else print(String(token));
    });
}

function unlock(command: Command): void {
  addPlace(command)
    .description('release an issue')
    .argument('<issue>', 'its number', issueNumber)
    .requiredOption('--worker <id>', 'who holds it')
    .option('--outcome <text>', 'how the work ended; shown on the issue', 'completed')
    .addHelpText(
      'after',
      '\nExamples:\n  signalbox github unlock 42 --worker agent:7\n  signalbox github unlock 42 --worker agent:7 --outcome failed\n\nExit code 77 if another worker has it, or nobody.',
    )
    .action(async (issue: number, options: PlaceOptions & { readonly worker: string; readonly outcome: string }) => {
      const manager = managerFor(options);
      const result = await interruptible(() => manager.releaseLock(issue, options.worker, options.outcome));
      if (!result.success) throw refusal(result.error, result.reason);
      if (isJson(command)) printJson({ issue, outcome: 'released' });
    });
}
