/** `signalbox github status` and `github queue`. */
import type { Command } from '../command.ts';
import type { LockedIssue } from '../../github/index.ts';
import { interruptible } from '../interrupt.ts';
import { print, printJson } from '../output.ts';
import { printTable } from '../table.ts';
import { addPlace, issueNumber, managerFor, type PlaceOptions } from './arguments.ts';

export function status(command: Command): void {
  addPlace(command)
    .description('which issues are locked, by whom and since when')
    .argument('[issue]', 'just this one', issueNumber)
    .addHelpText('after', '\nExamples:\n  signalbox github status\n  signalbox github status 42 --json | jq .isLocked')
    .action(async (issue: number | undefined, options: PlaceOptions) => {
      const manager = managerFor(options);
      const locks = await interruptible(async (): Promise<readonly LockedIssue[]> => {
        if (issue === undefined) return manager.listLocks();
        return [{ issue, title: null, ...(await manager.getLockStatus(issue)) }];
      });
      const [only] = locks;
      if (command.isJson)
        return printJson(
          issue === undefined || only === undefined ? { locks: locks.map(statusJson) } : statusJson(only),
        );
      const locked = locks.filter(({ isLocked }) => isLocked);
      if (locked.length === 0)
        return print(issue === undefined ? 'No issue is locked.' : `Issue #${issue} is not locked.`);
      const rows = locked.map(({ issue: number, metadata, isStale, title }) => {
        const { worker_id = '', node_id = '', claimed_at = '' } = metadata?.lock ?? {};
        return { cells: [`#${number}`, worker_id, node_id, claimed_at, isStale ? 'stale' : 'held', title ?? ''] };
      });
      printTable(['ISSUE', 'WORKER', 'NODE', 'SINCE', 'STATE', 'TITLE'], rows);
    });
}

export function queue(command: Command): void {
  addPlace(command)
    .description('show who waits for an issue, of the workers that use the queue')
    .argument('<issue>', 'its number', issueNumber)
    .addHelpText('after', '\nExamples:\n  signalbox github queue 42')
    .action(async (issue: number, options: PlaceOptions) => {
      const manager = managerFor(options);
      const waiting = await interruptible(() => manager.getQueue(issue));
      if (command.isJson)
        return printJson({
          issue,
          waiting: waiting.map(({ sinceMs, ...one }) => ({ ...one, since: new Date(sinceMs).toISOString() })),
        });
      if (waiting.length === 0) return print(`Nobody waits in line for issue #${issue}.`);
      const rows = waiting.map(({ workerId, priority, sinceMs, isExpired }, place) => {
        const since = new Date(sinceMs).toISOString();
        return { cells: [String(place + 1), workerId, String(priority), since, isExpired ? 'expired' : ''] };
      });
      printTable(['PLACE', 'WORKER', 'PRIORITY', 'SINCE', ''], rows);
    });
}

function statusJson({ issue, title, isLocked, assignee, token, isStale, metadata }: LockedIssue): object {
  return { issue, title, isLocked, assignee, token, isStale, metadata };
}
