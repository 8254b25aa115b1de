/** The holds of one resource over time, from its events. */
import { inOrder } from './as-of.ts';
import { numberIn, textOrNull } from './read.ts';
import type { Happening, Hold } from './types.ts';
import { median } from './time.ts';

export interface PastHold {
  readonly holder: string;
  readonly token: number;
  readonly from: number;
  /** Undefined while the hold lasts. */
  readonly to: number | undefined;
  readonly end: 'released' | 'reclaimed' | 'forced' | undefined;
  readonly by: string | undefined;
}

export interface PastQueue {
  readonly at: number;
  readonly length: number;
}

export interface History {
  readonly holds: readonly PastHold[];
  readonly queue: readonly PastQueue[];
  readonly median: number | undefined;
  readonly longest: number | undefined;
}

/** The most events of one resource that the page keeps. */
const MOST_KEPT = 2_000;

/** `known`, oldest first, plus the later events of this resource in `entries`, newest first. */
export function continued(
  known: readonly Happening[],
  entries: readonly Happening[],
  resource: string,
): readonly Happening[] {
  const last = known.at(-1);
  const isLater = ({ id }: Happening): boolean => last === undefined || inOrder(last.id, id) < 0;
  const later = entries.filter((event) => event.resource === resource && isLater(event)).toReversed();
  return later.length === 0 ? known : [...known, ...later].slice(-MOST_KEPT);
}

function lasting(holder: string, token: number, from: number): PastHold {
  return { holder, token, from, to: undefined, end: undefined, by: undefined };
}

/** Events in the order of the store; those before `from` only decide what was held then. `held`: what is held now. */
export function historyOf(
  events: readonly Happening[],
  from: number,
  now: number,
  held: readonly Hold[] = [],
): History {
  const open = new Map<number, PastHold>();
  const holds: PastHold[] = [];
  const queue: PastQueue[] = [];
  const waiting = new Set<string>();
  const end = (token: number, at: number, how: NonNullable<PastHold['end']>, by: string | undefined): void => {
    const ended = open.get(token);
    open.delete(token);
    if (ended !== undefined) holds.push({ ...ended, to: at, end: how, by });
  };
  // Events from before the hour are not read: a hold of now, or one that ends within the hour, may have been granted before.
  const granted = events.filter(({ type }) => type.endsWith(':acquired'));
  const told = new Set(granted.map((event) => event['token']));
  for (const { holder, token, acquiredAt } of held)
    if (!told.has(token)) open.set(token, lasting(holder, token, acquiredAt));
  for (const event of events) {
    const what = event.type.slice(event.type.indexOf(':') + 1);
    const token = numberIn(event['token']);
    const waited = waiting.size;
    if (what === 'acquired') {
      waiting.delete(event.holder);
      // A reader that became the writer, or a holder that has more slots now, has one hold, with a new token.
      const before = [...open.values()].find(({ holder }) => holder === event.holder);
      if (before !== undefined) open.delete(before.token);
      open.set(token, lasting(event.holder, token, before?.from ?? event.at));
    } else if (what === 'released' || what === 'reclaimed' || what === 'forced') {
      end(token, event.at, what, textOrNull(event['by']) ?? undefined);
    } else if (what === 'queued') waiting.add(event.holder);
    else if (what === 'deadlock') waiting.delete(event.holder);
    if (waiting.size !== waited) queue.push({ at: event.at, length: waiting.size });
  }
  const all = [...holds, ...open.values()].filter(({ to }) => (to ?? now) >= from);
  const ended = all.flatMap(({ from: began, to }) => (to === undefined ? [] : [to - began]));
  return {
    holds: all.sort((one, other) => one.from - other.from),
    queue: queue.filter(({ at }) => at >= from),
    median: median(ended),
    longest: ended.length === 0 ? undefined : Math.max(...ended),
  };
}
