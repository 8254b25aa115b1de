/** The common part of `lock` and `sem`: detached holds, acquired, renewed and released by hand. */
import type { Command } from 'commander';
import { NotAcquired } from '../runtime/refusal.ts';
import type {
  ClaimReleaseOutcome,
  DetachedHold,
  DetachedOptions,
  HoldClaim,
  RenewOutcome,
} from '../runtime/holds/resource.ts';
import type { Want } from '../runtime/holds/together.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { durationArgument, given, numberArgument } from './arguments.ts';
import { spoken } from '../core/index.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { handOver, jsonText, print, printable, printJson, tell } from './output.ts';
import { isJson } from './store.ts';
import { currentWait, waitTold } from './waiting.ts';

export interface AcquireFlags {
  readonly holder?: string;
  readonly ttl?: number;
  /** False means: give up at once. */
  readonly wait?: number | false;
  readonly priority?: number;
  readonly reason?: string;
  readonly maxHold?: number;
}

export interface ClaimFlags {
  readonly holder?: string;
  readonly token: number;
  readonly ttl?: number;
}

export function addAcquireOptions(command: Command): Command {
  return addHolder(command)
    .option('--ttl <duration>', 'the hold is stale after this time without a renewal (default: 60s)', durationArgument)
    .option('--wait <duration>', 'wait at most this long (default: no limit)', durationArgument)
    .option('--no-wait', 'give up at once if it is taken')
    .option('--priority <number>', 'from -100 to 100; higher goes first', numberArgument)
    .option('--reason <text>', 'why you hold it; waiters get to see it')
    .option('--max-hold <duration>', 'the hold ends after this time, even if it is renewed', durationArgument);
}

export function addClaimOptions(command: Command): Command {
  return addHolder(command).requiredOption('--token <number>', 'the token that acquire printed', numberArgument);
}

export function addHolder(command: Command, who = 'who holds it (default: $SIGNALBOX_HOLDER)'): Command {
  return command.option('--holder <id>', who);
}

export function holderOf(flags: { readonly holder?: string }): string {
  const holder = flags.holder ?? process.env['SIGNALBOX_HOLDER'];
  if (holder !== undefined && holder !== '') return holder;
  const what = '--holder is missing: renew and release need it to find this hold';
  throw new CliExit(EXIT.usage, `${what}\n  use: --holder ID, or SIGNALBOX_HOLDER in the environment`);
}

/** People at a terminal are told what they wait for. */
export function detachedOptions(box: Signalbox, flags: AcquireFlags, want: Want, signal: AbortSignal): DetachedOptions {
  const { ttl, wait, priority, reason, maxHold } = flags;
  const gaveUpAtOnce = wait === false || wait === 0;
  const holder = holderOf(flags);
  const tellWait = async (): Promise<void> => {
    const found = await currentWait(box, [want], (waiter) => waiter === holder);
    if (found !== undefined) tell(printable(`signalbox: ${waitTold(found, Date.now(), 0).replace(' 0 ms', '')}`));
  };
  return {
    holder,
    signal,
    // The wait itself reports what is wrong.
    onWaiting: () => void tellWait().catch(() => undefined),
    ...given({
      ttlMs: ttl,
      waitMs: gaveUpAtOnce || wait === undefined ? undefined : wait,
      strategy: gaveUpAtOnce ? ('fail-fast' as const) : undefined,
      priority,
      reason,
      maxHoldMs: maxHold,
    }),
  };
}

/** Shows the time that the user gave. The library reports what was left of it when the wait began. */
export async function patiently<T>(flags: AcquireFlags, acquiring: Promise<T>): Promise<T> {
  try {
    return await acquiring;
  } catch (error) {
    if (!(error instanceof NotAcquired) || error.refusal.kind !== 'timed-out' || !flags.wait) throw error;
    throw new NotAcquired(error.resource, { kind: 'timed-out', waitedMs: flags.wait });
  }
}

/** Prints the token. If the output is closed, or we are interrupted, it releases the hold, which no one would know of. */
export async function handOut(
  command: Command,
  hold: DetachedHold,
  details: object,
  signal: AbortSignal,
  release: (claim: HoldClaim) => Promise<unknown>,
): Promise<void> {
  const { resource, holder, token, ttlMs } = hold;
  try {
    signal.throwIfAborted();
    const json = { resource, holder, token, ttlMs, ...details };
    handOver(isJson(command) ? jsonText(json) : String(token));
  } catch (error) {
    await release({ holder, token });
    if (error instanceof CliExit) throw error;
    throw new CliExit(EXIT.notAcquired, `${resource}: the token could not be printed, so the hold was released`);
  }
}

export function tellRenewed(command: Command, resource: string, claim: HoldClaim, outcome: RenewOutcome): void {
  const { holder, token } = claim;
  switch (outcome.kind) {
    case 'refreshed':
      if (isJson(command)) printJson({ resource, holder, token, outcome: outcome.kind, ttlMs: outcome.ttlMs });
      else print(`${resource}: renewed for ${spoken(outcome.ttlMs)}`);
      return;
    case 'attached':
      if (isJson(command)) printJson({ resource, holder, token, outcome: outcome.kind, ttlMs: outcome.ttlMs });
      else print(`${resource}: held by a running process, which renews it itself`);
      return;
    case 'lost':
      throw new CliExit(EXIT.lost, `${resource}: the hold was lost because its lease ended; acquire it again`, {
        outcome: outcome.kind,
      });
    case 'not-owner':
      throw notOwner(resource, claim, outcome.kind);
  }
}

export function tellReleased(command: Command, resource: string, claim: HoldClaim, outcome: ClaimReleaseOutcome): void {
  const { holder, token } = claim;
  if (outcome.kind !== 'released') throw notOwner(resource, claim, outcome.kind);
  if (isJson(command)) printJson({ resource, holder, token, outcome: outcome.kind });
  else print(`${resource}: released`);
}

function notOwner(resource: string, { holder, token }: HoldClaim, outcome: string): CliExit {
  const free = outcome === 'already-free' ? ': it is free' : '';
  return new CliExit(EXIT.notOwner, `${resource}: ${holder} does not hold it with token ${token}${free}`, { outcome });
}
