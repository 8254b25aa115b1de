/**
 * What can be said in a story.
 *
 *     ci-1 acquires                      waits in the queue if it has to
 *     ci-1 tries                         fails fast
 *     ci-1 steals                        takes a stale hold, even one that a person should look at
 *     ci-1 forces                        takes it from whoever has it
 *         … shared                       as a reader
 *         … 2                            two slots; … 2 of 4: believing that there are four
 *         … , priority 5                 … , stealing     … , at most 60s     … , because "it is stuck"
 *     ci-1 asks again                    for the same, because the answer got lost
 *     ci-1 releases                      … #1: with this token instead of its own
 *     ci-1 renews                        … #1
 *     ci-1 extends                       its hold hangs on a longer lease from now on
 *     ci-1 upgrades                      … , or fails fast        … , stealing
 *     ci-1 downgrades
 *     ci-1 gives up                      cancels what it asked for last
 *     ci-1 is the victim of a deadlock with ci-2
 *     admin breaks it, because "it is stuck"
 *     tick      maintenance      settle
 *     stale holds wait for a person      stale holds are reclaimed
 *     resize to 3
 *     ci-1's lease ends                  its session is gone, with all that hangs on it
 *     ci-1's extended lease ends
 *     ci-1's time is up                  its hold is older than it may be
 *     ci-1 starts again                  with a new session
 *     10s pass
 */
export interface Wish {
  readonly shared: boolean;
  readonly weight?: number;
  readonly capacity?: number;
  readonly priority: number;
  readonly stealing: boolean;
  readonly atMostMs?: number;
  readonly because?: string;
}

export type Line =
  | {
      readonly kind: 'asks';
      readonly who: string;
      readonly how: 'acquires' | 'tries' | 'steals' | 'forces';
      readonly wish: Wish;
    }
  | { readonly kind: 'releases' | 'renews'; readonly who: string; readonly token?: number }
  | { readonly kind: 'upgrades'; readonly who: string; readonly wait: boolean; readonly stealing: boolean }
  | { readonly kind: 'extends' | 'downgrades' | 'asks again' | 'gives up'; readonly who: string }
  | { readonly kind: 'starts again'; readonly who: string }
  | { readonly kind: 'deadlock'; readonly who: string; readonly other: string }
  | { readonly kind: 'breaks'; readonly who: string; readonly because: string }
  | { readonly kind: 'tick' | 'maintenance' | 'settle' }
  | { readonly kind: 'on stale'; readonly onStale: 'alert' | 'reclaim' }
  | { readonly kind: 'resize'; readonly capacity: number }
  | { readonly kind: 'ends'; readonly who: string; readonly what: 'lease' | 'extended lease' | 'limit' }
  | { readonly kind: 'passes'; readonly ms: number };

export function parseLine(text: string): Line {
  for (const [pattern, read] of GRAMMAR) {
    const found = pattern.exec(text);
    if (found !== null) return read(found.slice(1).map((part) => part ?? ''));
  }
  throw new Error(`no story goes like this: ${text}`);
}

const WHO = '([\\w-]+)';
const said = (pattern: string): RegExp => new RegExp(`^${pattern}$`);

const GRAMMAR: readonly (readonly [RegExp, (parts: readonly string[]) => Line])[] = [
  [said('(tick|maintenance|settle)'), ([kind]) => ({ kind: kind as 'tick' | 'maintenance' | 'settle' })],
  [said('stale holds wait for a person'), () => ({ kind: 'on stale', onStale: 'alert' })],
  [said('stale holds are reclaimed'), () => ({ kind: 'on stale', onStale: 'reclaim' })],
  [said('resize to (\\S+)'), ([capacity]) => ({ kind: 'resize', capacity: Number(capacity) })],
  [said('(\\d+)s pass'), ([seconds]) => ({ kind: 'passes', ms: Number(seconds) * 1000 })],
  [
    said(`${WHO}'s (lease|extended lease) ends`),
    ([who = '', what]) => ({ kind: 'ends', who, what: what as 'lease' | 'extended lease' }),
  ],
  [said(`${WHO}'s time is up`), ([who = '']) => ({ kind: 'ends', who, what: 'limit' })],
  [
    said(`${WHO} (releases|renews)(?: #(\\d+))?`),
    ([who = '', kind, token]) => ({
      kind: kind as 'releases' | 'renews',
      who,
      ...(token !== '' && { token: Number(token) }),
    }),
  ],
  [
    said(`${WHO} upgrades(, or fails fast)?(, stealing)?`),
    ([who = '', fast, stealing]) => ({ kind: 'upgrades', who, wait: fast === '', stealing: stealing !== '' }),
  ],
  [
    said(`${WHO} (extends|downgrades|asks again|gives up)`),
    ([who = '', kind]) => ({
      kind: kind as 'extends' | 'downgrades' | 'asks again' | 'gives up' | 'starts again',
      who,
    }),
  ],
  [said(`${WHO} starts again`), ([who = '']) => ({ kind: 'starts again', who })],
  [
    said(`${WHO} is the victim of a deadlock with ${WHO}`),
    ([who = '', other = '']) => ({ kind: 'deadlock', who, other }),
  ],
  [said(`${WHO} breaks it, because "(.*)"`), ([who = '', because = '']) => ({ kind: 'breaks', who, because })],
  [
    said(`${WHO} (acquires|tries|steals|forces)( shared)?(?: (-?[\\w.]+)(?: of (\\S+?))?)?(, .*)?`),
    ([who = '', how, shared, weight, capacity, more = '']) => ({
      kind: 'asks',
      who,
      how: how as 'acquires' | 'tries' | 'steals' | 'forces',
      wish: {
        shared: shared !== '',
        ...(weight !== '' && { weight: Number(weight) }),
        ...(capacity !== '' && { capacity: Number(capacity) }),
        ...parseMore(more),
      },
    }),
  ],
];

function parseMore(more: string): Pick<Wish, 'priority' | 'stealing' | 'atMostMs' | 'because'> {
  const wish: { priority: number; stealing: boolean; atMostMs?: number; because?: string } = {
    priority: 0,
    stealing: false,
  };
  for (const part of more.split(', ').slice(1)) {
    const [, priority, seconds, because] =
      /^(?:priority (-?\d+)|at most (\d+)s|because "(.*)"|stealing)$/.exec(part) ?? refuse(part);
    if (priority !== undefined) wish.priority = Number(priority);
    else if (seconds !== undefined) wish.atMostMs = Number(seconds) * 1000;
    else if (because !== undefined) wish.because = because;
    else wish.stealing = true;
  }
  return wish;
}

function refuse(part: string): never {
  throw new Error(`nobody acquires like this: ${part}`);
}
