/** `signalbox lock …`: locks by hand, for scripts and agents. */
import type { Command } from 'commander';
import type { SurveyedLock } from '../runtime/observe/survey/index.ts';
import { addBreaking } from './breaking.ts';
import { type AcquireFlags, addAcquireOptions } from './holding.ts';
import { lockSummary } from './list-table.ts';
import { lockName } from './names.ts';
import { print } from './output.ts';
import { acquireByHand, addListing, addReleasing, addRenewing, addShowing, type ResourceType } from './resource.ts';
import { lockJson } from './survey-json.ts';

const LOCK: ResourceType<SurveyedLock> = {
  kind: 'lock',
  of: (box, name) => box.lock(name),
  in: ({ locks }) => locks,
  json: lockJson,
  summary: lockSummary,
};

const EXAMPLES = `
Examples:
  TOKEN=$(signalbox lock acquire staging --holder agent:7 --ttl 5m --reason 'trying the new build')
  signalbox lock renew staging --holder agent:7 --token "$TOKEN"
  signalbox lock release staging --holder agent:7 --token "$TOKEN"
  signalbox lock show staging
  signalbox lock break staging --reason 'agent:7 was switched off'

To hold a lock just while a command runs, use: signalbox run --lock NAME -- COMMAND`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES);
  const subcommands = { acquire, renew, release, show, list, break: breakLock };
  for (const [name, add] of Object.entries(subcommands)) add(command.command(name));
}

function acquire(command: Command): void {
  addAcquireOptions(
    command.description('acquire a lock and print its token').argument('<name>', 'of the lock', lockName),
  )
    .option('--shared', 'acquire it as a reader, together with other readers')
    .addHelpText(
      'after',
      `
Examples:
  TOKEN=$(signalbox lock acquire staging --holder agent:7)
  signalbox lock acquire docs --holder agent:7 --shared --wait 30s
  signalbox lock acquire staging --holder agent:7 --no-wait || echo "taken ($?)"    # 75

The hold is detached: it lasts for --ttl, and then for as long again after every renew. The same
--holder again gets the same token. Exit codes: 75 not acquired in time, 130 interrupted.`,
    )
    .action(async (name: string, flags: AcquireFlags & { shared?: true }) => {
      const mode = flags.shared ? 'shared' : 'exclusive';
      await acquireByHand(
        command,
        { kind: 'lock', name },
        flags,
        (box) => box.lock(name),
        (lock, options) => lock.acquireDetached({ ...options, mode }),
        (hold) => ({ mode: hold.mode }),
      );
    });
}

function renew(command: Command): void {
  command.description('extend a lock by its full time').argument('<name>', 'of the lock', lockName);
  addRenewing(command, LOCK, 'a new time after which it is stale without a renewal').addHelpText(
    'after',
    `
Examples:
  signalbox lock renew staging --holder agent:7 --token "$TOKEN"
  signalbox lock renew staging --holder agent:7 --token "$TOKEN" --ttl 30m

Exit codes: 76 the hold was lost, 77 another holder has it.`,
  );
}

function release(command: Command): void {
  command.description('release a lock').argument('<name>', 'of the lock', lockName);
  addReleasing(command, LOCK).addHelpText(
    'after',
    `
Example:
  signalbox lock release staging --holder agent:7 --token "$TOKEN"

A release that comes too late changes nothing: exit code 77, whether the lock is free or another holder has it.`,
  );
}

function show(command: Command): void {
  command
    .description('show who holds a lock and who waits for it')
    .argument('<name>', 'of the lock; a lock that was never used is free', lockName)
    .addHelpText(
      'after',
      '\nExamples:\n  signalbox lock show staging\n  signalbox lock show staging --json | jq .isFree',
    );
  addShowing(command, LOCK, ({ resource, holds, waiting }) => {
    const isUsed = holds.length + waiting.length > 0;
    if (!isUsed) print(`${resource} is free.`);
    return isUsed;
  });
}

function list(command: Command): void {
  addListing(command, LOCK).addHelpText('after', '\nExamples:\n  signalbox lock list\n  signalbox lock list --names');
}

function breakLock(command: Command): void {
  command.description('end every hold of a lock').argument('<name>', 'of the lock', lockName);
  addBreaking(command, (box, name) => box.lock(name));
  command.addHelpText(
    'after',
    `
Example:
  signalbox lock break staging --reason 'agent:7 was switched off'

For administrators. A lock:forced event records who did it and why; --holder says who (default:
$SIGNALBOX_HOLDER, or user:NAME). The next in line gets the lock. Exit code 1 if it is not held.`,
  );
}
