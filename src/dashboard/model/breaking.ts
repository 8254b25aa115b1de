/** Computes what a break does to whom, from what is held now and the token that was meant. */
import { usedOf } from './slots.ts';
import { duration, plural } from './time.ts';
import type { Hold, Resource, Waiter } from './types.ts';

export interface Will {
  readonly sign: 'danger' | 'held' | 'clear' | 'pending' | 'shared';
  readonly text: string;
}

/** The newest token of the resource's holds; 0 if nobody holds it. */
export function newestToken({ holds }: Resource): number {
  return Math.max(0, ...holds.map(({ token }) => token));
}

export interface Broken {
  readonly lose: readonly Hold[];
  /** The holders that got it after the token that was meant. */
  readonly keep: readonly Hold[];
  /** The waiters that get it at once, in this order. */
  readonly get: readonly Waiter[];
}

/** A break ends every hold up to the token; the queue is then served in its order, as far as there is room. */
export function brokenBy({ holds, waiting, kind, capacity, isDrained }: Resource, meant: number): Broken {
  const lose = holds.filter(({ token }) => token <= meant);
  const keep = holds.filter(({ token }) => token > meant);
  const isShared = (one: Hold | Waiter): boolean => one.mode === 'shared';
  const get: Waiter[] = [];
  let used = usedOf({ holds: keep });
  for (const waiter of lose.length === 0 || isDrained ? [] : waiting) {
    const inside = [...keep, ...get];
    const fits =
      kind === 'semaphore'
        ? used + waiter.weight <= capacity
        : inside.length === 0 || (isShared(waiter) && inside.every(isShared));
    if (!fits) break;
    used += waiter.weight;
    get.push(waiter);
  }
  return { lose, keep, get };
}

/** An event about a drain lacks its revision, and an undo without the revision could undo another drain. */
export function whyNotUndrained({ drained, readAt }: Resource): string | undefined {
  return drained?.revision === 0 && readAt === 0 ? 'The page has yet to read which drain this is' : undefined;
}

const MOST_NAMED = 5;

function loses(hold: Hold, of: Resource, now: number): string {
  const what =
    of.kind === 'semaphore' ? plural(hold.weight, 'slot') : hold.mode === 'shared' ? 'its share' : 'the hold';
  const had = `${hold.holder} loses ${what}, token ${hold.token}, which it has had for ${duration(now - hold.acquiredAt)}.`;
  // A holder that has held it for too long still renews its lease.
  if (!hold.isStale || hold.health === 'slow') return `${had} If it runs under signalbox run, its command is stopped.`;
  return `${had} Its lease has ended: if its command still runs, signalbox cannot stop it from here.`;
}

export function willBreak(of: Resource, meant: number, now: number): readonly Will[] {
  const { lose, keep, get } = brokenBy(of, meant);
  const [first, ...others] = get;
  const rest = of.waiting.length - get.length;
  const left = lose.length - MOST_NAMED;
  const stays = rest === 0 ? '' : ` ${rest} ${rest === 1 ? 'stays' : 'stay'} in the queue.`;
  const also =
    others.length === 0
      ? ''
      : ` So ${others.length === 1 ? 'does' : 'do'} ${plural(others.length, 'other')} behind it.`;
  const next =
    first !== undefined
      ? `${first.holder} gets it at once, with a token above ${of.token}.${also}${stays}`
      : of.waiting.length === 0
        ? `Nobody waits: ${keep.length > 0 ? 'what is broken' : 'it'} is free afterwards.`
        : `Nobody gets it yet${of.isDrained ? ', because it is drained' : ''}.${stays}`;
  return [
    ...lose.slice(0, MOST_NAMED).map((hold) => ({ sign: 'danger' as const, text: loses(hold, of, now) })),
    ...(left > 0 ? [{ sign: 'danger' as const, text: `${plural(left, 'other loses', 'others lose')} it too.` }] : []),
    ...(keep.length > 0
      ? [
          {
            sign: 'shared' as const,
            text: `${plural(keep.length, 'holder that got it since you opened this keeps', 'holders that got it since you opened this keep')} it.`,
          },
        ]
      : []),
    { sign: first === undefined ? 'clear' : 'held', text: next },
    {
      sign: 'clear',
      text: 'An event records the break, your token’s name and your reason; so does the witness, where it is on.',
    },
  ];
}

/** Why a break would no longer break anything; undefined as long as it would. */
export function hasChangedHands(of: Resource, meant: number): string | undefined {
  const { lose, keep } = brokenBy(of, meant);
  if (lose.length > 0) return undefined;
  const now = keep.length === 0 ? 'it is free now' : `token ${newestToken(of)} is held now`;
  return `It has changed hands since you opened this: what was granted up to token ${meant} is over, and ${now}. Nothing was broken.`;
}

/** What happens if the resource changes hands before the request arrives. */
export function ifItChanges({ kind, holds }: Resource): string {
  const isOne = kind === 'lock' && holds.every(({ mode }) => mode === 'exclusive');
  return isOne
    ? 'If it changes hands before you confirm, nothing happens: the token no longer fits.'
    : 'Everything granted up to this token is ended. What is granted later stays, even while this question is open.';
}
