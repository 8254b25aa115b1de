/** The common part of `lock` and `sem`: detached holds, acquired, renewed and released by hand. */
import { userInfo } from 'node:os';
import type { Command } from './command.ts';
import type { WaitOptions } from '../runtime/holds/wait-limits.ts';
import {
  type ClaimReleaseOutcome,
  type DetachedHold,
  type DetachedOptions,
  type HoldClaim,
  isReentry,
  type RenewOutcome,
} from '../runtime/holds/terms.ts';
import type { Want } from '../runtime/holds/wants.ts';
import type { SurveyedHold } from '../runtime/observe/survey/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { given, numberArgument, type ResourceArgument } from './arguments.ts';
import { type Json, spoken, TICKET_MS } from '../core/index.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { handOver, jsonText, plural, printable, tell } from './output.ts';
import { WaitLimit } from './opening.ts';
import { lookAtWait, refusalTold } from './waiting.ts';
import { jsonArgument } from './task/arguments.ts';
import { Voice } from './run/voice.ts';

export interface AcquireFlags {
  readonly holder?: string;
  readonly ttl?: number;
  /** False means: give up at once. */
  readonly wait?: number | false;
  readonly priority?: number;
  readonly reason?: string;
  readonly sensitive?: true;
  readonly metadata?: Json;
  readonly maxHold?: number;
  readonly stealStale?: true;
  readonly force?: true;
  /** Keeps the place in line when the time is up; a text: goes on with that ticket. */
  readonly ticket?: true | string;
  readonly pid?: number;
  readonly quiet?: true;
  readonly json?: boolean;
}

export interface ClaimFlags {
  readonly holder?: string;
  readonly token: number;
  readonly ttl?: number;
}

export function addAcquireOptions(command: Command): Command {
  return addWaitOptions(addHolder(command))
    .limit('--ttl', 'the hold is stale after this time without a renewal (default: 60s)')
    .option('--ticket [ticket]', 'keep the place in line for 60 s when the time is up; with a ticket, go on with it')
    .option('--pid <pid>', 'release it as soon as this process has ended, such as $PPID', numberArgument)
    .option('--priority <number>', 'from -100 to 100; higher goes first', numberArgument)
    .option('--reason <text>', 'why you hold it; waiters get to see it')
    .option('--metadata <json>', 'anything else to keep with the hold: JSON, @FILE, or - for stdin', jsonArgument)
    .option('--sensitive', 'the witness enters only hashes of the reason and the metadata')
    .limit('--max-hold', 'the hold ends after this time, even if it is renewed')
    .option('--steal-stale', 'take a stale hold even if a person should decide (configure --on-stale alert)')
    .option('--force', 'take it from its holder, for administrators; needs --reason');
}

export function addClaimOptions(command: Command): Command {
  return addHolder(command).requiredOption('--token <number>', 'the token that acquire printed', numberArgument);
}

export function addWaitOptions(command: Command): Command {
  return command
    .duration('--wait', 'wait at most this long (default: no limit)')
    .option('--no-wait', 'give up at once if it is taken')
    .option('-q, --quiet', 'do not report waiting');
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

export function detachedOptions(
  flags: AcquireFlags,
  onWaiting: () => void,
  signal: AbortSignal,
): DetachedOptions & { readonly holder: string } {
  const { ttl, wait, priority, reason, metadata, sensitive, maxHold, pid } = flags;
  // A ticket is a place in line: its request always joins it.
  const gaveUpAtOnce = flags.ticket === undefined && (wait === false || wait === 0);
  const taking = takingBy(flags);
  const holder = holderOf(flags);
  return {
    holder,
    signal,
    ...(flags.ticket === undefined && waitOptions(taking === undefined && gaveUpAtOnce ? {} : flags, onWaiting)),
    ...given({
      pid,
      ticketMs: ttl !== undefined && ttl > TICKET_MS ? TICKET_MS : undefined,
      ttlMs: ttl,
      strategy: taking ?? (gaveUpAtOnce ? ('fail-fast' as const) : undefined),
      priority,
      reason,
      metadata,
      sensitive,
      maxHoldMs: maxHold,
    }),
  };
}

/** The time of `--wait`, from now on. */
export function limitOf({ wait }: Pick<AcquireFlags, 'wait'>): WaitLimit {
  return new WaitLimit(wait === false ? 0 : wait);
}

/** Without `--wait`, there is no limit. */
export function waitOptions({ wait }: Pick<AcquireFlags, 'wait'>, onWaiting: () => void): WaitOptions {
  return { onWaiting, ...given({ waitMs: wait === false ? 0 : wait }) };
}

/** How to take a hold from others; undefined if only free ones are wanted. */
function takingBy({ force, stealStale, reason }: AcquireFlags): 'force' | 'steal-stale' | undefined {
  if (force && stealStale) {
    throw new CliExit(EXIT.usage, '--force and --steal-stale exclude each other: --force takes any hold, stale or not');
  }
  if (force && (reason === undefined || reason === '')) {
    throw new CliExit(EXIT.usage, '--force needs --reason: the holder that loses it gets to see why');
  }
  return force ? 'force' : stealStale ? 'steal-stale' : undefined;
}

/** Reports the wait of `acquire`, and says who holds it if it is refused. */
export async function patiently<T>(
  box: Signalbox,
  want: Want,
  holder: string,
  { wait, quiet, json }: Pick<AcquireFlags, 'wait' | 'quiet' | 'json'>,
  acquire: (onWaiting: () => void) => Promise<T>,
): Promise<T> {
  const voice = new Voice(quiet === true || json === true ? 'never' : 'now-and-then');
  const look = lookAtWait(box, [want], (waiter) => waiter === holder);
  try {
    return await acquire(() => voice.waiting(look));
  } catch (error) {
    throw await refusalTold(box, [want], holder, error, wait === false ? 0 : wait);
  } finally {
    voice.done();
  }
}

/** The holder had it already: without this, nothing would say that no second hold was made. */
export function tellKept({ resource, holder, outcome, ...hold }: DetachedHold & { readonly weight?: number }): void {
  const slots = plural(hold.weight ?? 1, 'slot');
  const told = {
    extended: 'held it already; the same hold, renewed',
    upgraded: 'was a reader and is the writer now; the same hold, renewed, with a new token',
    'already-held': `had ${slots} already; the same hold, renewed`,
    increased: `now has ${slots}; the same hold, renewed`,
  };
  const what = told[outcome as keyof typeof told];
  if (what !== undefined) tell(printable(`signalbox: ${resource}: ${holder} ${what}`));
}

/**
 * Prints the token. If the output is closed, or we are interrupted, it releases the hold, which no one would know of, unless its
 * holder had it before.
 */
export async function handOut(
  command: Command,
  hold: DetachedHold,
  details: object,
  signal: AbortSignal,
  release: (claim: HoldClaim) => Promise<unknown>,
): Promise<void> {
  const { resource, holder, token, outcome, ttlMs, renewWithinMs, maxHoldMs, endsWithPid } = hold;
  try {
    signal.throwIfAborted();
    const times = { ttlMs, renewWithinMs, ...given({ maxHoldMs, endsWithPid }) };
    const json = { resource, holder, token, outcome, ...times, ...details };
    handOver(command.isJson ? jsonText(json) : String(token));
  } catch (error) {
    const isKept = isReentry(hold);
    if (!isKept) await release({ holder, token });
    if (error instanceof CliExit) throw error;
    const then = isKept ? `; ${holder} still has the hold that it had` : ', so the hold was released';
    throw new CliExit(EXIT.notAcquired, `${resource}: the token could not be printed${then}`);
  }
}

export function tellRenewed(command: Command, resource: string, claim: HoldClaim, outcome: RenewOutcome): void {
  const { holder, token } = claim;
  switch (outcome.kind) {
    case 'refreshed': {
      const { kind, ttlMs, renewWithinMs } = outcome;
      const told = `renewed for ${spoken(ttlMs)}; renew it again within ${spoken(renewWithinMs)}`;
      return command.answer({ resource, holder, token, outcome: kind, ttlMs, renewWithinMs }, `${resource}: ${told}`);
    }
    case 'attached': {
      const { kind, ttlMs } = outcome;
      const told = `${resource}: held by a running process, which renews it itself`;
      return command.answer({ resource, holder, token, outcome: kind, ttlMs }, told);
    }
    case 'lost':
      throw lostHold(resource);
    case 'not-owner':
      throw notOwner(resource, claim, outcome.kind);
  }
}

export function tellReleased(
  command: Command,
  resource: string,
  claim: ReleaseClaim,
  outcome: ClaimReleaseOutcome,
): void {
  const { holder, token } = claim;
  if (outcome.kind === 'ambiguous') {
    const tokens = outcome.tokens.join(', ');
    const what = `${resource}: ${holder} has ${outcome.tokens.length} holds, with the tokens ${tokens}`;
    throw new CliExit(EXIT.usage, `${what}; name one with --token`, { outcome: outcome.kind, tokens: outcome.tokens });
  }
  if (outcome.kind !== 'released') throw notOwner(resource, claim, outcome.kind);
  command.answer({ resource, holder, token: token ?? null, outcome: outcome.kind }, `${resource}: released`);
}

/** The token may be left out if the holder has one hold. */
export type ReleaseClaim = Pick<HoldClaim, 'holder'> & Partial<Pick<HoldClaim, 'token'>>;

export function notOwner(resource: string, { holder, token }: ReleaseClaim, outcome: string): CliExit {
  const free = outcome === 'already-free' ? ': it is free' : '';
  const by = token === undefined ? '' : ` with token ${token}`;
  return new CliExit(EXIT.notPermitted, `${resource}: ${holder} does not hold it${by}${free}`, { outcome });
}

export function lostHold(resource: string, why = 'its lease ended'): CliExit {
  const what = `${resource}: the hold was lost because ${why}; acquire it again`;
  return new CliExit(EXIT.lost, what, { outcome: 'lost' });
}

/** Why a renewal found the hold lost, as far as the store still shows it. */
export async function lossOf(box: Signalbox, of: ResourceArgument, { token }: HoldClaim): Promise<CliExit> {
  // The loss is certain, whether or not the store can still be asked for its reason.
  const holds = await holdsOf(box, of, true).catch(() => []);
  const { health, maxHoldMs } = holds.find((hold) => hold.token === token) ?? {};
  const isLimit = health === 'slow' && maxHoldMs !== undefined;
  const why = isLimit ? `it was held for its --max-hold of ${spoken(maxHoldMs)}` : undefined;
  return lostHold(`${of.kind}/${of.name}`, why);
}

/** `leases`: with the state of their leases, each of which costs a request. */
export async function holdsOf(
  box: Pick<Signalbox, 'survey'>,
  resource: ResourceArgument,
  leases: boolean,
): Promise<readonly SurveyedHold[]> {
  const { locks, semaphores } = await box.survey({ resource, leases });
  return [...locks, ...semaphores].flatMap((one): readonly SurveyedHold[] => one.holds);
}

/**
 * Refuses to release by hand what a process holds for itself. Inside a run, SIGNALBOX_HOLDER names the run. Without this check, a
 * script that acquires and releases the run's own lock by hand would take it from the run in the middle of its command.
 */
export async function refuseAttached(box: Signalbox, of: ResourceArgument, claim: ReleaseClaim): Promise<void> {
  if (!(await isAttached(box, of, claim))) return;
  const whose = claim.holder.startsWith('run:') ? 'a run' : 'a process';
  const message = `${of.kind}/${of.name}: held by ${whose}, which releases it itself when it ends`;
  throw new CliExit(EXIT.notPermitted, message, { outcome: 'attached' });
}

/** Whether the hold depends on the session of a living process, and not on a lease of its own. */
export async function isAttached(box: Signalbox, of: ResourceArgument, claim: ReleaseClaim): Promise<boolean> {
  const isMeant = ({ holder, token }: SurveyedHold): boolean =>
    holder === claim.holder && (claim.token === undefined || token === claim.token);
  return (await holdsOf(box, of, false)).some((hold) => isMeant(hold) && hold.isAttached && !hold.isStale);
}

/** Who asks for what only a person decides, unless the user says so. */
export function person(): string {
  return process.env['SIGNALBOX_HOLDER'] || loginHolder();
}

function loginHolder(): string {
  try {
    return `user:${userInfo().username}`;
  } catch {
    // In containers a user id may have no name.
    return `user:${process.getuid?.() ?? 'unknown'}`;
  }
}

/** `token`: the newest that the user had seen. */
export function nothingBroken(token: number | undefined): string {
  return token === undefined
    ? 'it is not held, so there is nothing to break'
    : `nothing that was granted up to token ${token} is still held, so nothing was broken`;
}
