/** `signalbox sem …`: slots of a semaphore by hand, for scripts and agents. */
import type { Command } from 'commander';
import { durationArgument, given, numberArgument } from './arguments.ts';
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
import { listLines, semaphoreSummary } from './list-table.ts';
import { look } from './looking.ts';
import { warnOf } from './malformed.ts';
import { semaphoreName } from './names.ts';
import { paintFor, print, printable, printJson, printName, screen } from './output.ts';
import { isJson, withBox } from './store.ts';
import { semaphoreJson } from './survey-json.ts';
import { layoutFor } from './table.ts';
import { whoLines } from './who-table.ts';

const EXAMPLES = `
Examples:
  TOKEN=$(signalbox sem acquire api --capacity 4 --holder agent:7)
  signalbox sem renew api --holder agent:7 --token "$TOKEN"
  signalbox sem release api --holder agent:7 --token "$TOKEN"
  signalbox sem show api
  signalbox sem resize api --capacity 8
  signalbox sem break api --reason 'agent:7 was switched off'

To hold slots just while a command runs, use: signalbox run --sem NAME=WEIGHT -- COMMAND`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES);
  acquire(command.command('acquire'));
  renew(command.command('renew'));
  release(command.command('release'));
  show(command.command('show'));
  list(command.command('list'));
  resize(command.command('resize'));
  breakSemaphore(command.command('break'));
}

function acquire(command: Command): void {
  addAcquireOptions(
    command.description('acquire slots and print the token').argument('<name>', 'of the semaphore', semaphoreName),
  )
    .option('--weight <number>', 'how many slots in all', numberArgument, 1)
    .option('--capacity <number>', 'the capacity; needed at the first use', numberArgument)
    .addHelpText(
      'after',
      `
Examples:
  TOKEN=$(signalbox sem acquire api --capacity 4 --holder agent:7)
  signalbox sem acquire builds --weight 2 --holder ci:1 --wait 5m --json | jq .slots

The hold is detached: it lasts for --ttl, and then for as long again after every renew. The same
--holder again keeps its slots, and gets more if --weight is larger. Exit codes: 75 not acquired in time;
64 more than the capacity, or another capacity than the semaphore has.`,
    )
    .action(async (name: string, flags: AcquireFlags & { weight: number; capacity?: number }) => {
      await withBox(command, async (box, signal) => {
        const semaphore = box.semaphore(name, given({ capacity: flags.capacity }));
        const { weight } = flags;
        const options = { ...detachedOptions(flags, semaphore.resource, signal), weight };
        const hold = await patiently(flags, semaphore.acquireDetached(options));
        const details = { weight: hold.weight, slots: hold.slots };
        await handOut(command, hold, details, signal, async (claim) => {
          if (!(await isAttached(box, { kind: 'semaphore', name }, claim))) await semaphore.release(claim);
        });
      });
    });
}

function renew(command: Command): void {
  addClaimOptions(
    command.description('extend slots by their full time').argument('<name>', 'of the semaphore', semaphoreName),
  )
    .option('--ttl <duration>', 'a new time after which they are stale without a renewal', durationArgument)
    .addHelpText(
      'after',
      `
Example:
  signalbox sem renew api --holder agent:7 --token "$TOKEN"

Exit codes: 76 the hold was lost, 77 not the holder.`,
    )
    .action(async (name: string, flags: ClaimFlags) => {
      await withBox(command, async (box) => {
        const claim = { holder: holderOf(flags), token: flags.token };
        const semaphore = box.semaphore(name);
        if (flags.ttl !== undefined) await refuseAttached(box, { kind: 'semaphore', name }, claim);
        const outcome =
          flags.ttl === undefined ? await semaphore.renew(claim) : await semaphore.extend(claim, flags.ttl);
        tellRenewed(command, semaphore.resource, claim, outcome);
      });
    });
}

function release(command: Command): void {
  addClaimOptions(command.description('release slots').argument('<name>', 'of the semaphore', semaphoreName))
    .addHelpText('after', '\nExample:\n  signalbox sem release api --holder agent:7 --token "$TOKEN"')
    .action(async (name: string, flags: ClaimFlags) => {
      await withBox(command, async (box) => {
        const claim = { holder: holderOf(flags), token: flags.token };
        const semaphore = box.semaphore(name);
        await refuseAttached(box, { kind: 'semaphore', name }, claim);
        tellReleased(command, semaphore.resource, claim, await semaphore.release(claim));
      });
    });
}

function show(command: Command): void {
  command
    .description('show who holds slots and who waits for them')
    .argument('<name>', 'of the semaphore', semaphoreName)
    .addHelpText('after', '\nExamples:\n  signalbox sem show api\n  signalbox sem show api --json | jq .availableSlots')
    .action(async (name: string) => {
      const { found: survey, missing } = await look(command, (box) => {
        const { name: checked } = box.semaphore(name);
        return box.survey({ resource: { kind: 'semaphore', name: checked } });
      });
      const [semaphore] = survey.semaphores;
      if (semaphore === undefined) return;
      if (isJson(command)) return printJson(semaphoreJson(semaphore, survey.at));
      if (missing !== undefined) return print(printable(missing));
      const { resource, capacity, usedSlots, availableSlots, holds, waiting } = semaphore;
      if (capacity === 0) return print(`${resource} has not been used.`);
      print(`${resource}: ${usedSlots} of ${slotsTold(capacity)} in use, ${availableSlots} free`);
      if (holds.length + waiting.length === 0) return;
      for (const line of whoLines(survey, layoutFor(screen(), paintFor(screen())))) print(line);
    });
}

function list(command: Command): void {
  command
    .description('list all semaphores in the store')
    .option('--names', 'print only the names, one per line')
    .addHelpText('after', '\nExamples:\n  signalbox sem list\n  signalbox sem list --names')
    .action(async ({ names }: { names?: true }) => {
      const { found, missing } = await look(command, (box) => box.survey({ leases: false }));
      const { semaphores, at } = found;
      const malformed = found.malformed.filter(({ key }) => !/^.\/lock\//.test(key));
      if (isJson(command)) return printJson({ semaphores: semaphores.map((one) => semaphoreJson(one, at)), malformed });
      warnOf(malformed);
      if (names) return semaphores.forEach(({ name }) => printName(name));
      if (missing !== undefined) return print(printable(missing));
      const layout = layoutFor(screen(), paintFor(screen()));
      for (const line of listLines('semaphore', semaphores.map(semaphoreSummary), layout)) print(line);
    });
}

function resize(command: Command): void {
  command
    .description('change the number of slots')
    .argument('<name>', 'of the semaphore', semaphoreName)
    .requiredOption('--capacity <number>', 'the new number of slots', numberArgument)
    .addHelpText(
      'after',
      `
Example:
  signalbox sem resize api --capacity 8

If fewer than are in use, it takes effect as holders release.`,
    )
    .action(async (name: string, { capacity }: { capacity: number }) => {
      await withBox(command, async (box) => {
        const semaphore = box.semaphore(name);
        await semaphore.resize(capacity);
        if (isJson(command)) printJson({ resource: semaphore.resource, capacity });
        else print(`${semaphore.resource}: ${slotsTold(capacity)} from now on`);
      });
    });
}

function breakSemaphore(command: Command): void {
  command.description('end every hold of a semaphore').argument('<name>', 'of the semaphore', semaphoreName);
  addBreaking(command, (box, name) => box.semaphore(name));
  command.addHelpText(
    'after',
    `
Example:
  signalbox sem break api --reason 'agent:7 was switched off'

For administrators. Who did it and why is recorded in a semaphore:forced event; --holder says who (default:
$SIGNALBOX_HOLDER, or user:NAME). The next in line get the slots. Exit code 1 if nobody holds any.`,
  );
}

function slotsTold(count: number): string {
  return `${count} slot${count === 1 ? '' : 's'}`;
}
