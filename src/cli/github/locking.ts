/** `signalbox github lock` and `github unlock`: for scripts, whose lock outlives the command. */
import type { Command } from '../command.ts';
import { interruptible } from '../interrupt.ts';
import { printJson } from '../output.ts';
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

export function lock(command: Command): void {
  addAsking(command)
    .about(`lock an issue, print the token, and end; nothing renews it

Examples:
  TOKEN=$(signalbox github lock 42 --worker agent:7 --ttl 30m)
  signalbox github lock 42 --worker agent:7 --strategy steal-stale --json

Exit code 75 if it is taken, 69 if GitHub cannot be reached.`)
    .argument('<issue>', 'its number', issueNumber)
    .duration('--ttl', 'how long it is yours', '5m')
    .action(async (issue: number, options: AskOptions) => {
      const manager = managerFor(options, options.ttl);
      const result = await interruptible((signal) => manager.acquireLock(issue, askingOf(options, signal)));
      if (!result.success) throw refusal(result.error, result.reason);
      const { token, lock: hold } = result;
      const { workerId: worker, isAssigned } = hold;
      command.answer({ issue, token, worker, isAssigned, leftMs: Math.round(hold.leftMs) }, String(token));
    });
}

export function unlock(command: Command): void {
  addPlace(command)
    .about(`release an issue

Examples:
  signalbox github unlock 42 --worker agent:7
  signalbox github unlock 42 --worker agent:7 --outcome failed

Exit code 77 if another worker has it, or nobody.`)
    .argument('<issue>', 'its number', issueNumber)
    .requiredOption('--worker <id>', 'who holds it')
    .option('--outcome <text>', 'how the work ended; shown on the issue', 'completed')
    .action(async (issue: number, options: PlaceOptions & { readonly worker: string; readonly outcome: string }) => {
      const manager = managerFor(options);
      const result = await interruptible(() => manager.releaseLock(issue, options.worker, options.outcome));
      if (!result.success) throw refusal(result.error, result.reason);
      if (command.isJson) printJson({ issue, outcome: 'released' });
    });
}
