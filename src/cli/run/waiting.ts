/** What is told to somebody who waits: for what, behind whom, since when and why that one has it. */
import type { Json } from '../../core/index.ts';
import type { LockView } from '../../runtime/holds/lock.ts';
import type { HolderView } from '../../runtime/holds/resource.ts';
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
  /** Of those who wait. */
  readonly ahead: readonly string[];
}

const MOST_NAMED = 2;

/** Which of the wanted ones is waited for at this moment; undefined if none is. */
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
 * Who has what could not be had: first of all the one that was told, else the first that somebody has. `own`: the holder that
 * waited in vain. What it was granted too late for its answer is on its way back, and was in nobody's way.
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
 * What matters most comes first: on a narrow terminal the end is cut off. Without `sinceMs` it is for a log: moments and
 * not durations, so that it is the same text for as long as nothing has changed.
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

/** What `run` itself notes of its command. */
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
