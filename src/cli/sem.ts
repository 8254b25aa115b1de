/** `signalbox sem …`: slots of a semaphore by hand, for scripts and agents. */
import type { Command } from './command.ts';
import { UNUSED } from '../core/capacity.ts';
import { drainTold, requestProblem } from '../core/index.ts';
import { nearest } from '../core/nearest.ts';
import type { SurveyedSemaphore } from '../runtime/observe/survey/index.ts';
import { NotAcquired } from '../runtime/refusal.ts';
import type { DrainResult, UndrainResult } from '../runtime/holds/semaphore.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { given, numberArgument } from './arguments.ts';
import { person } from './holding.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { quoted } from './pipeline/words.ts';
import { hasRules, RULES_HELP, rulesTold } from './configuring.ts';
import { type AcquireFlags, addAcquireOptions, addHolder } from './holding.ts';
import { semaphoreName } from './names.ts';
import { plural, print } from './output.ts';
import { acquireByHand, type ResourceType, sharedSubcommands } from './resource.ts';
import { withBox } from './store.ts';
import { semaphoreJson } from '../json/survey.ts';

const SEMAPHORE: ResourceType<SurveyedSemaphore> = {
  kind: 'semaphore',
  argument: semaphoreName,
  of: (box, name) => box.semaphore(name),
  configure: async (box, name, settings, { capacity }) => {
    if (capacity !== undefined) return box.ensureSemaphore(name, { capacity, ...settings });
    const semaphore = box.semaphore(name);
    await semaphore.configure(settings);
    return semaphore;
  },
  in: ({ semaphores }) => semaphores,
  json: semaphoreJson,
  summary: ({ capacity, usedSlots, drained, holds }) => {
    const stale = holds.some(({ isStale }) => isStale) ? ', stale' : '';
    const state = `${usedSlots} of ${capacity}${stale}${drained === undefined ? '' : ', drained'}`;
    return [state, holds.map(({ holder, weight }) => (weight === 1 ? holder : `${holder} ×${weight}`)).join(', ')];
  },
  headline: (semaphore) => {
    const { resource, capacity, usedSlots, availableSlots, drained, holds, waiting } = semaphore;
    const isMade = capacity > 0;
    if (hasRules(semaphore)) print(`${resource}: ${rulesTold(semaphore, semaphore.limits)}`);
    if (isMade) print(`${resource}: ${usedSlots} of ${plural(capacity, 'slot')} in use, ${availableSlots} free`);
    else print(`${resource} has not been used.`);
    return drained !== undefined || (isMade && holds.length + waiting.length > 0);
  },
  help: {
    renew: `extend slots by their full time

Example:
  signalbox sem renew api --holder agent:7 --token "$TOKEN"

Exit codes: 76 the hold was lost, 77 not the holder.`,
    release: `release slots

Examples:
  signalbox sem release api --holder agent:7 --token "$TOKEN"
  signalbox sem release api --holder agent:7
  signalbox sem release api --ticket "$TICKET"                                   leaves the line

Without the token, release ends the only hold of this holder; if the holder has several, it ends none. With a ticket of
acquire or run, release gives up the place in line, or the turn that nobody has collected. Exit code 77: the holder has
no such hold, or the ticket keeps no place.`,
    configure: `set rules that bind every holder

Examples:
  signalbox sem configure api --max-hold 10m --ttl 60s
  signalbox sem configure api --capacity 4 --on-stale alert
  signalbox sem configure api --max-hold none

${RULES_HELP} --capacity does not change
the slots of a semaphore that exists: use resize. Exit code 64: it has another capacity.`,
    show: `show who holds slots and who waits for them

Examples:
  signalbox sem show api
  signalbox sem show api --json | jq .availableSlots`,
    break: `end every hold of a semaphore

Example:
  signalbox sem break api --reason 'agent:7 was switched off'

For administrators. A semaphore:forced event records who did it and why; --holder says who (default:
$SIGNALBOX_HOLDER, or user:NAME). The next in line get the slots. Exit code 1 if nobody holds any.`,
  },
};

const EXAMPLES = `
Examples:
  TOKEN=$(signalbox sem acquire api --capacity 4 --holder agent:7)
  signalbox sem renew api --holder agent:7 --token "$TOKEN"
  signalbox sem release api --holder agent:7 --token "$TOKEN"
  signalbox sem show api
  signalbox sem resize api --capacity 8
  signalbox sem configure api --capacity 4 --max-hold 10m
  signalbox sem drain api --reason 'the database moves'
  signalbox sem break api --reason 'agent:7 was switched off'

To hold slots just while a command runs:
  signalbox run --sem NAME=WEIGHT -- COMMAND`;

export function define(command: Command): void {
  const shared = sharedSubcommands(SEMAPHORE);
  const configure = (one: Command): Command =>
    shared
      .configure(one)
      .option('--capacity <number>', 'make the semaphore with this many slots, unless it exists', numberArgument);
  command.addHelpText('after', EXAMPLES).subcommands({ acquire, ...shared, configure, resize, drain });
}

function acquire(command: Command): void {
  command
    .about(`acquire slots and print the token

Examples:
  TOKEN=$(signalbox sem acquire api --capacity 4 --holder agent:7)
  signalbox sem acquire builds --weight 2 --holder ci:1 --wait 5m --json | jq .slots

The hold is detached: it lasts for --ttl, and then for as long again after every renew. The same
--holder again keeps its slots, and gets more if --weight is larger. Exit codes: 75 not acquired in time;
64 more than the capacity, or another capacity than the semaphore has.`)
    .argument('<name>', 'of the semaphore', (text: string) => semaphoreName(text, 'acquire'));
  addAcquireOptions(command)
    .option('--weight <number>', 'how many slots in all', numberArgument, 1)
    .option('--capacity <number>', 'the capacity; needed at the first use', numberArgument)
    .action(async (name: string, flags: AcquireFlags & { weight: number; capacity?: number }) => {
      const { weight, capacity } = flags;
      await acquireByHand(
        command,
        { kind: 'semaphore', name },
        flags,
        (box) => box.semaphore(name, given({ capacity })),
        { weight },
        (hold) => ({ weight: hold.weight, slots: hold.slots }),
      ).catch((error: unknown) => {
        throw withoutCapacity(error);
      });
    });
}

/** Says how to name the capacity where nobody has done it yet; any other error as it is. */
function withoutCapacity(error: unknown): unknown {
  if (!(error instanceof NotAcquired)) return error;
  const { message, resource, refusal } = error;
  if (refusal.kind !== 'impossible' || refusal.why !== UNUSED) return error;
  return new CliExit(EXIT.usage, `${message}: --capacity NUMBER`, { resource, refusal });
}

function resize(command: Command): void {
  command
    .about(`change the number of slots

Example:
  signalbox sem resize api --capacity 8

If more slots are in use, the change takes effect as holders release them. Exit code 64 if there is no such
semaphore: make it with sem configure --capacity.`)
    .argument('<name>', 'of the semaphore', (text: string) => semaphoreName(text))
    .requiredOption('--capacity <number>', 'the new number of slots', numberArgument)
    .inStore(async ({ box }, name: string, { capacity }: { capacity: number }) => {
      const semaphore = box.semaphore(name);
      const problem = requestProblem({ capacity });
      if (problem !== undefined) throw new CliExit(EXIT.usage, `semaphore/${name}: ${problem}`);
      await refuseUnknown(box, name, capacity);
      await semaphore.resize(capacity);
      const { resource } = semaphore;
      command.answer({ resource, capacity }, `${resource}: ${plural(capacity, 'slot')} from now on`);
    });
}

function drain(command: Command): void {
  command
    .about(`grant nothing new until --undo; holders keep what they have

Examples:
  signalbox sem drain api --reason 'the database moves'
  signalbox sem show api
  signalbox sem drain api --undo

For administrators. Requests wait, tries are refused (exit code 75), and so is --strategy force. When nothing is held
any more, change what the slots stand for. A semaphore:drained event records who did it and why, a semaphore:undrained
event who undid it. Exit codes: 1 with --undo if it is not drained, or if --revision names another drain; 64 if there
is no such semaphore.`)
    .argument('<name>', 'of the semaphore', (text: string) => semaphoreName(text))
    .option('--reason <text>', 'why; waiters get to see it')
    .option('--undo', 'grant again, to waiters first')
    .option('--revision <number>', 'with --undo: only the drain of this revision, as --json shows it', numberArgument);
  addHolder(command, 'who drains it (default: $SIGNALBOX_HOLDER, or user:NAME)').action(
    async (name: string, flags: DrainFlags) => {
      const { reason, undo, revision } = flags;
      const holder = flags.holder ?? person();
      if (undo !== true && reason === undefined) throw new CliExit(EXIT.usage, 'say why, with --reason; or --undo');
      await withBox(command, async (box) => {
        const semaphore = box.semaphore(name);
        const { resource } = semaphore;
        await refuseUnknown(box, name);
        const done =
          undo === true
            ? await semaphore.undrain({ holder, ...given({ revision }) })
            : await semaphore.drain({ holder, reason: reason ?? '' });
        const { kind } = done;
        const shown = 'drain' in done ? { ...done.drain, at: new Date(done.drain.at).toISOString() } : null;
        const told = `${resource}: ${drainAnswer(done, name)}`;
        if (kind === 'not-drained' || kind === 'another-drain') {
          throw new CliExit(EXIT.no, told, { resource, outcome: kind, drained: shown });
        }
        command.answer({ resource, outcome: kind, drained: shown }, told);
      });
    },
  );
}

interface DrainFlags {
  readonly reason?: string;
  readonly undo?: true;
  readonly revision?: number;
  readonly holder?: string;
}

function drainAnswer(done: DrainResult | UndrainResult, name: string): string {
  switch (done.kind) {
    case 'drained':
      return `grants nothing new; to undo it: signalbox sem drain ${quoted(name)} --undo`;
    case 'already-drained':
      return `was ${drainTold(done.drain)}`;
    case 'undrained':
      return 'grants slots again';
    case 'not-drained':
      return 'it is not drained, so there is nothing to undo';
    case 'another-drain':
      return `nothing was undone: meanwhile it was ${drainTold(done.drain)} (revision ${done.drain.revision})`;
  }
}

/** Resizing or draining would make the semaphore, and a misspelt name would go unnoticed. */
async function refuseUnknown(box: Signalbox, name: string, capacity?: number): Promise<void> {
  const { semaphores } = await box.survey({ leases: false });
  const names = semaphores.filter((one) => one.capacity > 0).map((one) => one.name);
  if (names.includes(name)) return;
  const near = nearest(name, names);
  const hint = near === undefined ? '' : `; did you mean ${near}?`;
  const make = `to make it: signalbox sem configure ${quoted(name)} --capacity ${capacity ?? 'NUMBER'}`;
  throw new CliExit(EXIT.usage, `semaphore/${name} does not exist${hint}\n  ${make}`);
}
