/** Turns events into sentences, and says whether the record vouches for them. */
import type { Aspect } from './needs.ts';
import type { Happening } from './types.ts';

export const MOST_SHOWN = 500;
export const EVENT_KINDS = ['lock', 'semaphore', 'task', 'pipeline', 'member'] as const;

export type EventSign = Aspect | 'clear' | 'pending';

/** The sign of an event, and the verb between the actor and the resource. */
const SAID: Readonly<Record<string, readonly [EventSign, string]>> = {
  acquired: ['held', 'got'],
  claimed: ['held', 'claimed'],
  started: ['held', 'started'],
  phase: ['held', 'entered a phase of'],
  resumed: ['held', 'resumed'],
  queued: ['pending', 'waits for'],
  published: ['pending', 'published'],
  requeued: ['pending', 'queued again'],
  released: ['clear', 'released'],
  completed: ['clear', 'completed'],
  done: ['clear', 'finished'],
  joined: ['clear', 'joined'],
  left: ['free', 'left'],
  forgotten: ['free', 'forgot'],
  downgraded: ['shared', 'now shares'],
  resized: ['shared', 'resized'],
  drained: ['danger', 'drained'],
  undrained: ['clear', 'undid the drain of'],
  stale: ['danger', 'went silent, and still holds'],
  reclaimed: ['danger', 'went silent and lost'],
  forced: ['danger', 'was made to give up'],
  deadlock: ['danger', 'was refused, to break a deadlock over'],
  failed: ['danger', 'failed'],
  blocked: ['danger', 'is blocked in'],
};

export interface Said {
  readonly sign: EventSign;
  readonly words: string;
  /** Who forced it, and why, if the event says so. */
  readonly tail: string;
}

export function saidOf(event: Happening): Said {
  const what = event.type.slice(event.type.indexOf(':') + 1);
  const [sign, words] = SAID[what] ?? ['pending', what];
  const { by, reason } = event as { readonly by?: unknown; readonly reason?: unknown };
  const tail = [typeof by === 'string' && `by ${by}`, typeof reason === 'string' && reason !== '' && `(${reason})`];
  return { sign, words, tail: tail.filter(Boolean).join(' ') };
}

export interface EventFilter {
  /** Part of the name of a resource, or of a holder. */
  readonly resource: string;
  readonly holder: string;
  readonly kind: string;
}

/** Merges the events of the stream with older ones from the store, newest first, each once. */
export function timelineOf(
  entries: readonly Happening[],
  past: readonly Happening[],
  { resource, holder, kind }: EventFilter,
): readonly Happening[] {
  const [part, who] = [resource.trim().toLowerCase(), holder.trim().toLowerCase()];
  const seen = new Set<string>();
  const found: Happening[] = [];
  for (const event of [...entries, ...past.toReversed()]) {
    if (found.length === MOST_SHOWN) break;
    if (seen.has(event.id)) continue;
    seen.add(event.id);
    const fits =
      (kind === '' || event.type.startsWith(`${kind}:`)) &&
      event.resource.toLowerCase().includes(part) &&
      event.holder.toLowerCase().includes(who);
    if (fits) found.push(event);
  }
  return found;
}

/** How many of `now` are newer than the newest that is shown. */
export function newerThan(shown: readonly Happening[], now: readonly Happening[]): number {
  const [first] = shown;
  const place = now.findIndex(({ id }) => id === first?.id);
  return place < 0 ? now.length : place;
}

export interface Recorded {
  readonly resource: string;
  readonly seq: number;
  readonly time: number;
  readonly hash: string;
}

export interface Verified {
  /** By the server's clock. */
  readonly at: number;
  /** The entries that were surely written before it began. */
  readonly covered: readonly Recorded[];
  readonly entries: number;
  readonly chains: number;
  readonly checkpoints: number;
  readonly finding?: { readonly resource?: string; readonly seq?: number; readonly why: string };
}

/** Newest first. `later` is in the order of the writes, because the clocks behind the times of entries may differ. */
export function newestRecorded(
  known: readonly Recorded[],
  later: readonly Recorded[],
  most: number,
): readonly Recorded[] {
  return [...later.toReversed(), ...known].slice(0, most);
}

function keyOf({ resource, seq, hash }: Recorded): string {
  return `${seq} ${hash} ${resource}`;
}

/**
 * A verification that began before an entry was written may not have read it. After something wrong was found, it says nothing
 * of what it had not read.
 */
export function standingOf(entry: Recorded, verified: Verified | undefined): 'clear' | 'danger' | 'unknown' {
  if (verified === undefined || !verified.covered.some((one) => keyOf(one) === keyOf(entry))) return 'unknown';
  const { resource, seq } = entry;
  const { finding } = verified;
  if (finding === undefined) return 'clear';
  return finding.resource === resource && seq >= (finding.seq ?? 0) ? 'danger' : 'unknown';
}
