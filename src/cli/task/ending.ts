/** `signalbox task renew|release|complete|fail`: ends or renews a claim that its token or its holder names. */
import type { Command } from '../command.ts';
import { type ClaimName, type Json, type NotOwner, spoken } from '../../core/index.ts';
import type { EndOutcome } from '../../runtime/tasks/claim.ts';
import { given, numberArgument } from '../arguments.ts';
import { person } from '../holding.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { printable } from '../output.ts';
import { jsonArgument, taskId } from './arguments.ts';

interface ClaimFlags {
  readonly holder?: string;
  readonly token?: number;
}

function withClaim(command: Command): Command {
  return command
    .argument('<id>', 'of the task', taskId)
    .option('--token <number>', 'the token that claim printed', numberArgument)
    .option('--holder <id>', 'who claimed it (default, without a token: $SIGNALBOX_HOLDER)');
}

function claimOf(id: string, { holder, token }: ClaimFlags): ClaimName {
  const fromEnvironment = token === undefined ? process.env['SIGNALBOX_HOLDER'] || undefined : undefined;
  const claim = given({ holder: holder ?? fromEnvironment, token });
  if (Object.keys(claim).length > 0) return claim;
  const what = `task/${id}: --token or --holder is missing: it says which claim is meant`;
  const accepted = 'use: --token NUMBER, --holder ID, or SIGNALBOX_HOLDER in the environment';
  throw new CliExit(EXIT.usage, `${what}\n  ${accepted}`);
}

export function renew(command: Command): void {
  withClaim(command)
    .about(`extend a claim by its full time

Example:
  signalbox task renew build-7 --token "$TOKEN"

Exit codes: 76 the claim was lost, 77 another worker has the task.`)
    .inStore(async ({ box }, id: string, flags: ClaimFlags) => {
      const outcome = await box.tasks.renew(id, claimOf(id, flags));
      const { kind, ...times } = outcome;
      if (outcome.kind === 'lost') {
        const what = `task/${id}: the claim was lost because its time was over; claim it again`;
        throw new CliExit(EXIT.lost, what, { outcome: kind });
      }
      if (outcome.kind === 'not-owner')
        throw new CliExit(EXIT.notPermitted, `task/${id}: another worker has it`, { outcome: kind });
      const isAttached = outcome.kind === 'attached';
      const told = isAttached
        ? 'held by a running process, which renews it itself'
        : `renewed for ${spoken(outcome.ttlMs)}`;
      command.answer({ task: id, outcome: kind, ...times }, `task/${id}: ${told}`);
    });
}

export function release(command: Command): void {
  withClaim(command)
    .option('--force', 'take it from its owner; for administrators, with --reason')
    .option('--reason <text>', 'with --force: why; the owner gets to see it')
    .about(`give a task back, so that another worker can claim it

Examples:
  signalbox task release build-7 --token "$TOKEN"
  signalbox task release build-7 --force --reason 'worker:9 was switched off'

Exit code 77, and no change, if you do not have it. With --force: 1 if no worker has it, or if another claim than that
of --token has it; --holder then says who frees it (default: $SIGNALBOX_HOLDER, or user:NAME).`)
    .inStore(async ({ box }, id: string, flags: ClaimFlags & { force?: true; reason?: string }) => {
      if (flags.force !== true) {
        if (flags.reason !== undefined) throw new CliExit(EXIT.usage, '--reason needs --force');
        return tellEnd(command, id, await box.tasks.release(id, claimOf(id, flags)));
      }
      const { token, holder = person(), reason = '' } = flags;
      if (reason === '') throw new CliExit(EXIT.usage, '--force needs a --reason');
      const outcome = await box.tasks.forceRelease(id, { holder, reason, ...given({ token }) });
      if (outcome.kind === 'not-claimed') {
        const why =
          outcome.status === undefined
            ? 'there is no such task'
            : outcome.status === 'running'
              ? `token ${token ?? ''} does not have it any more: another claim does`
              : `no worker has it: it is ${outcome.status}`;
        throw new CliExit(EXIT.no, `task/${id}: ${why}`, { outcome: outcome.kind });
      }
      const { owner } = outcome;
      const taken = { task: id, outcome: outcome.kind, owner, by: holder, reason };
      command.answer(taken, printable(`task/${id}: taken from ${owner}`));
    });
}

export function complete(command: Command): void {
  withClaim(command)
    .option('--result <json>', 'the result: JSON, @FILE, or - for stdin', jsonArgument)
    .about(`end a task as complete

Examples:
  signalbox task complete build-7 --token "$TOKEN"
  signalbox task complete build-7 --holder agent:7 --result '{"image":"app:7"}'

If the claim was lost before, nothing changes: exit code 77.`)
    .inStore(async ({ box }, id: string, flags: ClaimFlags & { result?: Json }) => {
      tellEnd(command, id, await box.tasks.complete(id, claimOf(id, flags), flags.result));
    });
}

export function fail(command: Command): void {
  withClaim(command)
    .requiredOption('--reason <text>', 'why')
    .option('--no-retry', 'do not try it again, even if retries are left')
    .about(`end a task as failed, or have it tried again

Examples:
  signalbox task fail build-7 --token "$TOKEN" --reason 'out of memory'
  signalbox task fail build-7 --token "$TOKEN" --reason 'no such commit' --no-retry

While retries are left (task publish --retries) it is pending again; after that it has failed.
If the claim was lost before, nothing changes: exit code 77.`)
    .inStore(async ({ box }, id: string, flags: ClaimFlags & { reason: string; retry: boolean }) => {
      const { reason, retry } = flags;
      tellEnd(command, id, await box.tasks.fail(id, claimOf(id, flags), reason, { retry }));
    });
}

const TOLD: Readonly<Record<Exclude<EndOutcome['kind'], 'not-owner'>, string>> = {
  released: 'released',
  completed: 'complete',
  failed: 'failed',
  retried: 'pending again',
};

function tellEnd(command: Command, id: string, outcome: EndOutcome): void {
  if (outcome.kind === 'not-owner') throw notOwner(id, outcome);
  const { kind, ...details } = outcome;
  const when = outcome.kind === 'retried' && outcome.backoffMs > 0 ? ` in ${spoken(outcome.backoffMs)}` : '';
  command.answer({ task: id, outcome: kind, ...details }, `task/${id}: ${TOLD[kind]}${when}`);
}

function notOwner(id: string, { kind, owner, status }: NotOwner): CliExit {
  const whose = owner === undefined ? `no worker has it: it is ${status}` : `${owner} has it, and it is ${status}`;
  const details = { outcome: kind, owner: owner ?? null, status };
  return new CliExit(EXIT.notPermitted, `task/${id}: not yours; ${whose}`, details);
}
