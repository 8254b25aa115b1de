/** `signalbox lock …`: locks by hand, for scripts and agents. */
import type { Command } from './command.ts';
import type { LockMode } from '../core/index.ts';
import type { HoldClaim, ModeOutcome } from '../runtime/holds/terms.ts';
import type { SurveyedLock } from '../runtime/observe/survey/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { given } from './arguments.ts';
import { hasRules, RULES_HELP, rulesTold } from './configuring.ts';
import {
  type AcquireFlags,
  addAcquireOptions,
  addClaimOptions,
  addWaitOptions,
  type ClaimFlags,
  holderOf,
  limitOf,
  lostHold,
  notOwner,
  patiently,
  refuseAttached,
  waitOptions,
} from './holding.ts';
import { lockName } from './names.ts';
import { print } from './output.ts';
import { acquireByHand, type ResourceType, sharedSubcommands } from './resource.ts';
import { withBox } from './store.ts';
import { lockJson } from '../json/survey.ts';

const LOCK: ResourceType<SurveyedLock> = {
  kind: 'lock',
  argument: lockName,
  of: (box, name) => box.lock(name),
  in: ({ locks }) => locks,
  json: lockJson,
  summary: ({ holds }) => [
    holds.some(({ isStale }) => isStale) ? 'stale' : (holds[0]?.mode ?? 'free'),
    holds.map(({ holder }) => holder).join(', '),
  ],
  configure: async (box, name, settings) => box.ensureLock(name, settings),
  headline: (lock) => {
    const { resource, holds, waiting } = lock;
    const isUsed = holds.length + waiting.length > 0;
    if (hasRules(lock)) print(`${resource}: ${rulesTold(lock, lock.limits)}`);
    if (!isUsed) print(`${resource} is free.`);
    return isUsed;
  },
  help: {
    renew: `extend a lock by its full time

Examples:
  signalbox lock renew staging --holder agent:7 --token "$TOKEN"
  signalbox lock renew staging --holder agent:7 --token "$TOKEN" --ttl 30m

Exit codes: 76 the hold was lost, 77 another holder has it.`,
    release: `release a lock

Examples:
  signalbox lock release staging --holder agent:7 --token "$TOKEN"
  signalbox lock release staging --holder agent:7
  signalbox lock release staging --ticket "$TICKET"                                   leaves the line

With the token, a release that comes too late changes nothing: exit code 77, whether the lock is free or another
holder has it. Without it, release ends the only hold of this holder; if the holder has several, it ends none.
With a ticket of acquire or run, release gives up the place in line, or the turn that nobody has collected; if a run
wants several locks, at this one.`,
    configure: `set rules that bind every holder

Examples:
  signalbox lock configure staging --max-hold 10m --ttl 60s
  signalbox lock configure production --on-stale alert
  signalbox lock configure staging --max-hold none

${RULES_HELP}`,
    show: `show who holds a lock and who waits for it

Examples:
  signalbox lock show staging
  signalbox lock show staging --json | jq .isFree

A lock that was never used is free.`,
    break: `end every hold of a lock

Examples:
  signalbox lock break staging --reason 'agent:7 was switched off'
  signalbox lock break staging --reason 'agent:7 was switched off' --token 41      not if it has changed hands since

For administrators. A lock:forced event records who did it and why; --holder says who (default:
$SIGNALBOX_HOLDER, or user:NAME). The next in line gets the lock. Exit code 1 if it is not held.`,
  },
};

const EXAMPLES = `
Examples:
  TOKEN=$(signalbox lock acquire staging --holder agent:7 --ttl 5m --reason 'trying the new build')
  signalbox lock renew staging --holder agent:7 --token "$TOKEN"
  signalbox lock release staging --holder agent:7 --token "$TOKEN"
  signalbox lock show staging
  signalbox lock configure staging --max-hold 10m --on-stale alert
  signalbox lock break staging --reason 'agent:7 was switched off'

To hold a lock just while a command runs:
  signalbox run --lock NAME -- COMMAND`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ acquire, ...sharedSubcommands(LOCK), upgrade, downgrade });
}

function acquire(command: Command): void {
  command
    .about(`acquire a lock and print its token

Examples:
  TOKEN=$(signalbox lock acquire staging --holder agent:7)
  signalbox lock acquire docs --holder agent:7 --shared --wait 30s
  signalbox lock acquire staging --holder agent:7 --no-wait                        75 if it is taken
  signalbox lock acquire staging --holder agent:7 --metadata '{"ticket":"OPS-7"}' --max-hold 10m
  signalbox lock acquire staging --holder agent:7 --pid $PPID --ttl 30m            free as soon as $PPID has ended
  signalbox lock acquire staging --holder agent:7 --wait 90s --ticket              75: prints a ticket
  signalbox lock acquire staging --holder agent:7 --wait 90s --ticket "$TICKET"    goes on in the same place
  signalbox lock acquire staging --holder ann --force --reason 'agent:7 is stuck'

The hold is detached: it lasts for --ttl, and then for as long again after every renew. The same
--holder again gets the same token. --pid ends it sooner: on a store in a file it is free as soon as that process has
ended; on etcd only --ttl counts. Exit codes: 75 not acquired in time, 130 interrupted.`)
    .argument('<name>', 'of the lock', (text: string) => lockName(text, 'acquire'));
  addAcquireOptions(command)
    .option('--shared', 'acquire it as a reader, together with other readers')
    .action(async (name: string, flags: AcquireFlags & { shared?: true }) => {
      const mode = flags.shared ? 'shared' : 'exclusive';
      await acquireByHand(
        command,
        { kind: 'lock', name },
        flags,
        (box) => box.lock(name),
        { mode },
        (hold) => ({ mode: hold.mode }),
      );
    });
}

function upgrade(command: Command): void {
  command
    .about(`turn a shared hold into an exclusive one

Examples:
  TOKEN=$(signalbox lock upgrade docs --holder agent:7 --token "$TOKEN")
  signalbox lock upgrade docs --holder agent:7 --token "$TOKEN" --no-wait

Waits until the other readers have left, ahead of waiting writers, and keeps the hold alive meanwhile. Prints the new
token; the old one is no longer valid. If another reader already waits to become the writer, it is refused: release
the lock and acquire it. Exit codes: 75 not upgraded, 76 the hold was lost, 77 another holder has it.`)
    .argument('<name>', 'of the lock', (text: string) => lockName(text));
  addWaitOptions(addClaimOptions(command)).action(
    async (name: string, flags: ClaimFlags & Pick<AcquireFlags, 'wait' | 'quiet'>) => {
      const claim = { holder: holderOf(flags), token: flags.token };
      const limit = limitOf(flags);
      const work = async (box: Signalbox, signal: AbortSignal): Promise<void> => {
        const lock = box.lock(name);
        await refuseAttached(box, { kind: 'lock', name }, claim);
        const want = { lock: name };
        const outcome = await patiently(box, want, claim.holder, { ...flags, json: command.isJson }, (onWaiting) =>
          lock.upgrade(claim, { ...waitOptions(given({ wait: limit.leftMs }), onWaiting), signal }),
        );
        tellMode(command, lock.resource, claim, 'exclusive', outcome);
      };
      await withBox(command, work, { limit });
    },
  );
}

function downgrade(command: Command): void {
  command
    .about(`turn an exclusive hold into a shared one

Example:
  signalbox lock downgrade docs --holder agent:7 --token "$TOKEN"

Nobody gets the lock in between; waiting readers join. The token stays the same. Exit codes: 76 the hold was lost,
77 another holder has it.`)
    .argument('<name>', 'of the lock', (text: string) => lockName(text));
  addClaimOptions(command).action(async (name: string, flags: ClaimFlags) => {
    const claim = { holder: holderOf(flags), token: flags.token };
    await withBox(command, async (box) => {
      const lock = box.lock(name);
      await refuseAttached(box, { kind: 'lock', name }, claim);
      tellMode(command, lock.resource, claim, 'shared', await lock.downgrade(claim));
    });
  });
}

function tellMode(command: Command, resource: string, claim: HoldClaim, mode: LockMode, outcome: ModeOutcome): void {
  if (outcome.kind === 'lost') throw lostHold(resource);
  if (!('token' in outcome)) throw notOwner(resource, claim, outcome.kind);
  const { token } = outcome;
  const told = mode === 'exclusive' ? String(token) : `${resource}: shared from now on`;
  command.answer({ resource, holder: claim.holder, token, mode }, told);
}
