/** `signalbox lock …`: locks by hand, for scripts and agents. */
import type { Command } from 'commander';
import { durationArgument } from './arguments.ts';
import { isAttached, refuseAttached } from './attached.ts';
import { addBreaking } from './breaking.ts';
import {
  type AcquireFlags,
  addAcquireOptions,
  addClaimOptions,
  type ClaimFlags,
  detachedOptions,
  handOut,
  holderOf,
  patiently,
  tellReleased,
  tellRenewed,
} from './holding.ts';
import { listLines, lockSummary } from './list-table.ts';
import { look } from './looking.ts';
import { warnOf } from './malformed.ts';
import { lockName } from './names.ts';
import { paintFor, print, printable, printJson, printName, screen } from './output.ts';
import { isJson, withBox } from './store.ts';
import { lockJson } from './survey-json.ts';
import { layoutFor } from './table.ts';
import { whoLines } from './who-table.ts';

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
  acquire(command.command('acquire'));
  renew(command.command('renew'));
  release(command.command('release'));
  show(command.command('show'));
  list(command.command('list'));
  breakLock(command.command('break'));
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
      await withBox(command, async (box, signal) => {
        const lock = box.lock(name);
        const mode = flags.shared ? 'shared' : 'exclusive';
        const options = { ...detachedOptions(flags, lock.resource, signal), mode } as const;
        const hold = await patiently(flags, lock.acquireDetached(options));
        await handOut(command, hold, { mode: hold.mode }, signal, async (claim) => {
          if (!(await isAttached(box, { kind: 'lock', name }, claim))) await lock.release(claim);
        });
      });
    });
}

function renew(command: Command): void {
  addClaimOptions(command.description('extend a lock by its full time').argument('<name>', 'of the lock', lockName))
    .option('--ttl <duration>', 'a new time after which it is stale without a renewal', durationArgument)
    .addHelpText(
      'after',
      `
Examples:
  signalbox lock renew staging --holder agent:7 --token "$TOKEN"
  signalbox lock renew staging --holder agent:7 --token "$TOKEN" --ttl 30m

Exit codes: 76 the hold was lost, 77 another holder has it.`,
    )
    .action(async (name: string, flags: ClaimFlags) => {
      await withBox(command, async (box) => {
        const claim = { holder: holderOf(flags), token: flags.token };
        const lock = box.lock(name);
        if (flags.ttl !== undefined) await refuseAttached(box, { kind: 'lock', name }, claim);
        const outcome = flags.ttl === undefined ? await lock.renew(claim) : await lock.extend(claim, flags.ttl);
        tellRenewed(command, lock.resource, claim, outcome);
      });
    });
}

function release(command: Command): void {
  addClaimOptions(command.description('release a lock').argument('<name>', 'of the lock', lockName))
    .addHelpText(
      'after',
      `
Example:
  signalbox lock release staging --holder agent:7 --token "$TOKEN"

A release that comes too late changes nothing: exit code 77, whether the lock is free or another holder has it.`,
    )
    .action(async (name: string, flags: ClaimFlags) => {
      await withBox(command, async (box) => {
        const claim = { holder: holderOf(flags), token: flags.token };
        const lock = box.lock(name);
        await refuseAttached(box, { kind: 'lock', name }, claim);
        tellReleased(command, lock.resource, claim, await lock.release(claim));
      });
    });
}

function show(command: Command): void {
  command
    .description('show who holds a lock and who waits for it')
    .argument('<name>', 'of the lock; a lock that was never used is free', lockName)
    .addHelpText(
      'after',
      '\nExamples:\n  signalbox lock show staging\n  signalbox lock show staging --json | jq .isFree',
    )
    .action(async (name: string) => {
      const { found: survey, missing } = await look(command, (box) => {
        const { name: checked } = box.lock(name);
        return box.survey({ resource: { kind: 'lock', name: checked } });
      });
      const [lock] = survey.locks;
      if (lock === undefined) return;
      if (isJson(command)) return printJson(lockJson(lock, survey.at));
      if (missing !== undefined) return print(printable(missing));
      if (lock.holds.length + lock.waiting.length === 0) return print(`${lock.resource} is free.`);
      for (const line of whoLines(survey, layoutFor(screen(), paintFor(screen())))) print(line);
    });
}

function list(command: Command): void {
  command
    .description('list all locks in the store')
    .option('--names', 'print only the names, one per line')
    .addHelpText('after', '\nExamples:\n  signalbox lock list\n  signalbox lock list --names')
    .action(async ({ names }: { names?: true }) => {
      const { found, missing } = await look(command, (box) => box.survey({ leases: false }));
      const { locks, at } = found;
      const malformed = found.malformed.filter(({ key }) => !/^.\/semaphore\//.test(key));
      if (isJson(command)) return printJson({ locks: locks.map((lock) => lockJson(lock, at)), malformed });
      warnOf(malformed);
      if (names) return locks.forEach(({ name }) => printName(name));
      if (missing !== undefined) return print(printable(missing));
      const layout = layoutFor(screen(), paintFor(screen()));
      for (const line of listLines('lock', locks.map(lockSummary), layout)) print(line);
    });
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
