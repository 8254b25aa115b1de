/** Describes a wait, in the same words everywhere: for what, behind whom, and since when and why the holder has it. */
import { type Drain, drainTold, type Json, type LockMode, type OnStale, spoken } from '../core/index.ts';
import { isRecord } from '../core/shape.ts';
import type { Want } from '../runtime/holds/wants.ts';
import type { SurveyedHold, SurveyedLock, SurveyedSemaphore, SurveyedWaiter } from '../runtime/observe/survey/index.ts';
import { behindTold, NotAcquired } from '../runtime/refusal.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { ResourceArgument } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { quoted } from './pipeline/words.ts';
import type { LookedAt } from './run/voice.ts';
import { PlaceKept, withTicket } from './ticket.ts';
import { joined } from './output.ts';

export type WaitHolder = Pick<SurveyedHold, 'holder' | 'acquiredAt' | 'reason' | 'metadata' | 'isStale'> &
  Partial<Pick<SurveyedHold, 'health' | 'lease' | 'orphans' | 'isCollected'>>;

/** The request that goes first, although what this one wants is not held. `weight`, `free`: of a semaphore. */
interface Behind {
  readonly holder: string;
  readonly weight?: number;
  readonly free?: number;
}

export interface Wait {
  readonly resource: string;
  /** From 1. */
  readonly place: number;
  readonly holders: readonly WaitHolder[];
  /** The waiters before us. */
  readonly ahead: readonly string[];
  /** No hold is in our way, only this request: it came first, and may be a ticket that nobody uses now. */
  readonly behind?: Behind;
  /** Under `alert` a stale hold is not given to the next in line. */
  readonly onStale?: OnStale;
  /** Nothing is granted, however much is free. */
  readonly drained?: Drain | undefined;
}

const MOST_NAMED = 2;

export function argumentOf(want: Want): ResourceArgument {
  return 'lock' in want ? { kind: 'lock', name: want.lock } : { kind: 'semaphore', name: want.semaphore };
}

/** `lock/main`, as the store and people name it. */
export function resourceOf(want: Want): string {
  const { kind, name } = argumentOf(want);
  return `${kind}/${name}`;
}

/** What `Voice.waiting` shows of a wait. */
export function lookAtWait(
  box: Signalbox,
  wants: readonly Want[],
  isOurs: (holder: string) => boolean,
): (sinceMs: number) => Promise<LookedAt | undefined> {
  return async (sinceMs) => {
    const found = await currentWait(box, wants, isOurs);
    if (found === undefined) return undefined;
    const now = Date.now();
    const told = { line: waitTold(found, now, sinceMs), lasting: waitTold(found, now) };
    return { ...told, noted: waitTold(found, now, undefined, false) };
  };
}

/** The resource that we are waiting for now; undefined if there is none. */
async function currentWait(
  box: Signalbox,
  wants: readonly Want[],
  isOurs: (holder: string) => boolean,
): Promise<Wait | undefined> {
  for (const want of wants) {
    const found = await surveyed(box, want);
    const own = found.waiting.find(({ holder }) => isOurs(holder));
    if (own === undefined) continue;
    const ahead = found.waiting.slice(0, own.position - 1);
    return {
      resource: found.resource,
      place: own.position,
      holders: found.holds,
      onStale: found.onStale,
      drained: found.drained,
      ahead: ahead.map(({ holder }) => holder),
      ...behindIn(found, own, ahead),
    };
  }
  return undefined;
}

/** `asked`: what we want. `ahead`: the waiters before us. */
function behindIn(
  { holds, onStale, availableSlots: free }: Surveyed,
  asked: { readonly mode?: LockMode | undefined; readonly weight?: number | undefined },
  [first]: readonly SurveyedWaiter[],
): { readonly behind?: Behind } {
  if (first === undefined) return {};
  const { holder, weight = 1 } = first;
  if (free !== undefined) return (asked.weight ?? 1) <= free ? { behind: { holder, weight, free } } : {};
  const isInTheWay = (hold: Surveyed['holds'][number]): boolean =>
    !(hold.isStale && onStale === 'reclaim') && (asked.mode !== 'shared' || hold.mode !== 'shared');
  return holds.some(isInTheWay) ? {} : { behind: { holder } };
}

/**
 * Finds who holds what we could not get: the resource that the refusal named, else the first that is held. `own` is the
 * holder that waited in vain; its own late grants are being given back and blocked no one, unlike a stale hold of its own.
 */
export async function currentHolders(
  box: Signalbox,
  wants: readonly Want[],
  refused: string,
  own: string,
): Promise<{ readonly resource: string; readonly told: string } | undefined> {
  const now = Date.now();
  const first = [...wants].sort(
    (one, other) => Number(resourceOf(other) === refused) - Number(resourceOf(one) === refused),
  );
  for (const want of first) {
    const found = await surveyed(box, want);
    const { resource, holds, onStale, drained } = found;
    if (drained !== undefined) return { resource, told: drainTold(drained) };
    const others = found.waiting.filter(({ holder }) => holder !== own);
    const { behind } = behindIn(found, want, others);
    if (behind !== undefined) return { resource, told: behindSaid(behind) };
    const holders = holds.filter(({ holder, isStale }) => holder !== own || isStale);
    const since = (at: number): string => `for ${spoken(now - at)}`;
    if (holders.length > 0)
      return { resource, told: heldBy({ resource, place: 1, holders, ahead: [], onStale }, since) };
  }
  return undefined;
}

/**
 * The refusal in the words of the command line: who holds it, since when and why, and what keeps it held. `waitMs`: the time
 * that the user gave; the library reports what was left of it when the wait began.
 */
export async function refusalTold(
  box: Signalbox,
  wants: readonly Want[],
  own: string,
  error: unknown,
  waitMs = 0,
): Promise<unknown> {
  if (!(error instanceof NotAcquired)) return error;
  const { resource, refusal } = error;
  const isTimedOut = refusal.kind === 'timed-out';
  if (!isTimedOut && refusal.kind !== 'busy' && refusal.kind !== 'full') return error;
  // If the store does not answer, the rest of the message is still true.
  const who = await currentHolders(box, wants, resource, own).catch(() => undefined);
  if (!isTimedOut && (who === undefined || ('behind' in refusal && refusal.behind !== undefined))) return error;
  const what = isTimedOut
    ? `not granted${waitMs === 0 ? '' : ` within ${spoken(waitMs)}`}`
    : refusal.kind === 'full'
      ? `only ${refusal.free} free`
      : '';
  const isDrained = refusal.kind === 'full' && refusal.drained !== undefined;
  const told = joined([isDrained ? '' : what, who?.told], '; ');
  const refused = new CliExit(EXIT.notAcquired, `${who?.resource ?? resource}: ${told}`, {
    resource,
    refusal: isTimedOut && waitMs > 0 ? { ...refusal, waitedMs: waitMs } : refusal,
  });
  return error instanceof PlaceKept ? withTicket(refused, error.ticket) : refused;
}

/** The store ends the lease of a process that is gone within this time, if a process waits for it. */
const SEEN_GONE_MS = 2000;

/**
 * Asks without waiting. If a holder's process is gone, and nothing of it is left, the hold is as good as free: only no process
 * has noticed yet. So it asks again, and waits until one has.
 */
export async function atOnceOrAfterTheDead<T>(
  box: Signalbox,
  wants: readonly Want[],
  ask: (waitMs: number) => Promise<T>,
): Promise<T> {
  try {
    return await ask(0);
  } catch (error) {
    if (!(error instanceof NotAcquired) || !['busy', 'full', 'timed-out'].includes(error.refusal.kind)) throw error;
    const found = await Promise.all(wants.map((want) => surveyed(box, want).catch(() => undefined)));
    const holds = found.flatMap((one) => one?.holds ?? []);
    if (!holds.some(({ health, orphans }) => health === 'process-gone' && orphans.length === 0)) throw error;
    // The first refusal is the answer to what was asked.
    return ask(SEEN_GONE_MS).catch(() => Promise.reject(error));
  }
}

type Surveyed = Pick<SurveyedLock, 'resource' | 'waiting' | 'onStale'> & {
  readonly holds: readonly (SurveyedHold & { readonly mode?: LockMode })[];
  readonly availableSlots?: number;
  readonly drained?: Drain | undefined;
};

/** The lease of each hold costs a request, and of many holders only a few are named. */
const MOST_LEASES = 10;

/**
 * Asks for the state of leases only where it matters when they end: if a process is gone, or for a detached hold, which may be a
 * turn that nobody has collected.
 */
async function surveyed(box: Signalbox, want: Want): Promise<Surveyed> {
  const resource = argumentOf(want);
  const one = async (leases: boolean): Promise<SurveyedLock | SurveyedSemaphore> => {
    const { locks, semaphores } = await box.survey({ resource, leases });
    return [...locks, ...semaphores][0] as SurveyedLock | SurveyedSemaphore;
  };
  const found = await one(false);
  const holds: readonly SurveyedHold[] = found.holds;
  const isGone = holds.some(({ health }) => health === 'process-gone');
  const mayBeKept = holds.length <= MOST_LEASES && holds.some(({ isAttached }) => !isAttached);
  return isGone || mayBeKept ? one(true) : found;
}

/**
 * The most important part comes first, because a narrow terminal cuts off the end. Without `sinceMs` the text is for a log: it
 * has times instead of durations. `isLasting`: it stays the same until something changes, so it says of no lease how long it lasts.
 */
export function waitTold(wait: Wait, now: number, sinceMs?: number, isLasting = sinceMs === undefined): string {
  const { resource, place } = wait;
  const so = sinceMs === undefined ? '' : ` ${spoken(sinceMs)}`;
  const line = place === 1 ? 'next in line' : `${ordinal(place)} in line`;
  const since = (at: number): string =>
    sinceMs === undefined ? `since ${new Date(at).toISOString()}` : `for ${spoken(now - at)}`;
  return `waiting${so} for ${resource}, ${line}; ${heldBy(wait, since, isLasting)}`;
}

function heldBy(
  { resource, holders, ahead, behind, onStale, drained }: Wait,
  since: (at: number) => string,
  isLasting = false,
): string {
  if (drained !== undefined) return drainTold(drained);
  if (behind !== undefined) return behindSaid(behind);
  if (holders.length === 0) return ahead.length === 0 ? 'about to be granted' : `behind ${ahead[0]}`;
  const named = holders.slice(0, MOST_NAMED).map((hold) => {
    const why = hold.reason ?? commandIn(hold.metadata);
    const stale = hold.isStale ? ', stale' : '';
    const kept = hold.isCollected === false && !hold.isStale ? `, ${uncollectedTold(hold.lease, isLasting)}` : '';
    return `${hold.holder}${why === undefined ? '' : ` (${why})`} ${since(hold.acquiredAt)}${stale}${kept}`;
  });
  const more = holders.length - named.length;
  const gone = holders.find(({ health }) => health === 'process-gone');
  const end = gone === undefined ? '' : `; ${goneTold(gone, isLasting)}`;
  const decides = onStale === 'alert' && holders.some(({ isStale }) => isStale) ? `; ${personDecides(resource)}` : '';
  return `held by ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}${end}${decides}`;
}

function behindSaid({ holder, weight, free }: Behind): string {
  if (weight !== undefined && free !== undefined) return behindTold({ holder, weight }, free);
  return `behind ${holder}, which waits and goes first`;
}

/** Of a ticket whose turn has come: nothing runs yet. `isLasting` as in `goneTold`. */
export function uncollectedTold(lease: SurveyedHold['lease'], isLasting = false): string {
  const lapses = lease === undefined || isLasting ? 'lapses with its lease' : `lapses in ${spoken(lease.remainingMs)}`;
  return `not collected yet: its turn ${lapses}`;
}

/** What to do about a stale hold that no process may take. */
export function personDecides(resource: string): string {
  const slash = resource.indexOf('/');
  const command = resource.startsWith('lock/') ? 'lock' : 'sem';
  return `a person decides: signalbox ${command} break ${quoted(resource.slice(slash + 1))} --reason WHY`;
}

/**
 * Why a hold lasts although its process is gone, or what became of its command after its lease. `isLasting`: leaves out what
 * changes from second to second.
 */
export function goneTold(
  { health, lease, orphans = [] }: Pick<WaitHolder, 'health' | 'lease' | 'orphans'>,
  isLasting = false,
): string {
  const [pid] = orphans;
  const rest = pid === undefined ? '' : ` but its command still runs (pid ${pid})`;
  if (health === 'silent' && pid !== undefined)
    return `its lease has ended,${rest}; the next holder ends the command before it begins`;
  const ends = lease === undefined || isLasting ? '' : ` in ${spoken(lease.remainingMs)}`;
  return `its process is gone${rest}; ${ends === '' ? 'the hold lasts until its lease ends' : `its lease ends${ends}`}`;
}

/** The note that `run` keeps about its command. */
export function commandIn(metadata: Json | undefined): string | undefined {
  const { command } = isRecord(metadata) ? metadata : {};
  return typeof command === 'string' ? command : undefined;
}

function ordinal(place: number): string {
  const ends = ['th', 'st', 'nd', 'rd'];
  const teen = place % 100 > 10 && place % 100 < 14;
  return `${place}${(teen ? undefined : ends[place % 10]) ?? 'th'}`;
}
