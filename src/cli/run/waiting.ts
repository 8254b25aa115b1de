/** Describes a wait: for what, behind whom, and since when and why the holder has it. */
import type { Json } from '../../core/index.ts';
import type { LockView } from '../../runtime/holds/lock.ts';
import type { HolderView } from '../../runtime/holds/terms.ts';
import type { SemaphoreView } from '../../runtime/holds/semaphore.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { Want } from '../../runtime/holds/together.ts';
import { spoken } from '../../core/index.ts';
import { resourceOf } from './request.ts';

export interface Wait {
  readonly resource: string;
  /** From 1. */
  readonly place: number;
  readonly holders: readonly Pick<HolderView, 'holder' | 'acquiredAt' | 'reason' | 'metadata' | 'isStale'>[];
  /** The waiters before us. */
  readonly ahead: readonly string[];
}

const MOST_NAMED = 2;

/** The resource that the run is waiting for now; undefined if there is none. */
export async function currentWait(
  box: Signalbox,
  wants: readonly Want[],
  isOurs: (holder: string) => boolean,
): Promise<Wait | undefined> {
  for (const want of wants) {
    const view = await viewOf(box, want);
    const place = view.waiting.findIndex(({ holder }) => isOurs(holder));
    if (place < 0) continue;
    const ahead = view.waiting.slice(0, place).map(({ holder }) => holder);
    return { resource: resourceOf(want), place: place + 1, holders: view.holders, ahead };
  }
  return undefined;
}

/**
 * Finds who holds what the run could not get: the resource that the refusal named, else the first that is held. `own` is
 * the holder that waited in vain; its own late grants are being given back and blocked no one.
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
    const holders = (await viewOf(box, want)).holders.filter(({ holder }) => holder !== own);
    const since = (at: number): string => `for ${spoken(now - at)}`;
    if (holders.length > 0) return { resource: resourceOf(want), told: heldBy(holders, [], since) };
  }
  return undefined;
}

function viewOf(box: Signalbox, want: Want): Promise<Pick<LockView | SemaphoreView, 'holders' | 'waiting'>> {
  return ('lock' in want ? box.lock(want.lock) : box.semaphore(want.semaphore)).inspect();
}

/**
 * The most important part comes first, because a narrow terminal cuts off the end. Without `sinceMs` the text is for a log:
 * it has times instead of durations, so that it stays the same until something changes.
 */
export function waitTold({ resource, place, holders, ahead }: Wait, now: number, sinceMs?: number): string {
  const so = sinceMs === undefined ? '' : ` ${spoken(sinceMs)}`;
  const line = place === 1 ? 'next in line' : `${ordinal(place)} in line`;
  const since = (at: number): string =>
    sinceMs === undefined ? `since ${new Date(at).toISOString()}` : `for ${spoken(now - at)}`;
  return `waiting${so} for ${resource}, ${line}; ${heldBy(holders, ahead, since)}`;
}

function heldBy(holders: Wait['holders'], ahead: readonly string[], since: (at: number) => string): string {
  if (holders.length === 0) return ahead.length === 0 ? 'about to be granted' : `${ahead[0]} goes first`;
  const named = holders.slice(0, MOST_NAMED).map(({ holder, acquiredAt, reason, metadata, isStale }) => {
    const why = reason ?? commandIn(metadata);
    const stale = isStale ? ', stale' : '';
    return `${holder}${why === undefined ? '' : ` (${why})`} ${since(acquiredAt)}${stale}`;
  });
  const more = holders.length - named.length;
  return `held by ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** The note that `run` keeps about its command. */
function commandIn(metadata: Json | undefined): string | undefined {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return undefined;
  const { command } = metadata as { readonly command?: Json };
  return typeof command === 'string' ? command : undefined;
}

function ordinal(place: number): string {
  const ends = ['th', 'st', 'nd', 'rd'];
  const teen = place % 100 > 10 && place % 100 < 14;
  return `${place}${(teen ? undefined : ends[place % 10]) ?? 'th'}`;
}
