/** Rates and times over the last minutes, from the events themselves. */
import { quantile } from './time.ts';
import type { Happening, Sample, Second, State } from './types.ts';

export const REMEMBERED_SECONDS = 240;

/** `seconds` with these events counted in. Events come in the order of the store, and their times by several clocks. */
export function sampled(seconds: readonly Second[], events: readonly Happening[]): readonly Second[] {
  const next = [...seconds];
  for (const { at, type } of events) {
    const second = Math.floor(at / 1000) * 1000;
    const last = next.at(-1);
    const isGrant = type === 'lock:acquired' || type === 'semaphore:acquired' || type === 'task:claimed';
    const isRefusal = type.endsWith(':deadlock') || type.endsWith(':forced') || type === 'task:failed';
    const [conflicts, reclaims] = [type.endsWith(':queued') ? 1 : 0, type.endsWith(':reclaimed') ? 1 : 0];
    const counted = { events: 1, grants: isGrant ? 1 : 0, refusals: isRefusal ? 1 : 0, conflicts, reclaims };
    if (last === undefined || second > last.at) next.push({ at: second, ...counted });
    else {
      next[next.length - 1] = {
        at: last.at,
        events: last.events + 1,
        grants: last.grants + counted.grants,
        refusals: last.refusals + counted.refusals,
        conflicts: last.conflicts + conflicts,
        reclaims: last.reclaims + reclaims,
      };
    }
  }
  const newest = next.at(-1)?.at ?? 0;
  return next.filter(({ at }) => at > newest - REMEMBERED_SECONDS * 1000);
}

/** Per second over the last seconds before `now`. */
export function rate(
  seconds: readonly Second[],
  what: 'events' | 'grants' | 'refusals',
  now: number,
  over = 10,
): number {
  let sum = 0;
  for (const second of seconds) if (second.at > now - over * 1000 - 1000) sum += second[what];
  return sum / over;
}

/** `parts` sums that cover the remembered time up to `now`, the oldest first. */
export function series(
  seconds: readonly Second[],
  what: 'events' | 'grants' | 'refusals',
  now: number,
  parts = 48,
): readonly number[] {
  const width = (REMEMBERED_SECONDS * 1000) / parts;
  const sums = Array.from({ length: parts }, () => 0);
  for (const second of seconds) {
    const place = parts - 1 - Math.floor((now - second.at) / width);
    if (place >= 0 && place < parts) sums[place] = (sums[place] as number) + second[what];
  }
  return sums;
}

/** The 95th percentile in each of `parts` pieces of the remembered time; undefined where nothing ended. */
export function quantiles(samples: readonly Sample[], now: number, parts = 24): readonly (number | undefined)[] {
  const width = (REMEMBERED_SECONDS * 1000) / parts;
  const groups = Array.from({ length: parts }, (): number[] => []);
  for (const { at, ms } of samples) groups[parts - 1 - Math.floor((now - at) / width)]?.push(ms);
  return groups.map((group) => quantile(group, 0.95));
}

export function recentQuantile(samples: readonly Sample[], now: number, part = 0.95): number | undefined {
  const recent = samples.filter(({ at }) => at > now - REMEMBERED_SECONDS * 1000).map(({ ms }) => ms);
  return quantile(recent, part);
}

/** The five figures of a fleet, over the remembered time. */
export interface Figures {
  readonly acquisitions: number;
  readonly conflicts: number;
  /** From request to grant, of those granted at once too; undefined without a grant. */
  readonly averageMs: number | undefined;
  readonly failed: number;
  readonly staleClaimed: number;
}

export function figuresOf({ seconds, waits }: Pick<State, 'seconds' | 'waits'>, now: number): Figures {
  const from = now - REMEMBERED_SECONDS * 1000;
  const sum = (what: 'grants' | 'conflicts' | 'refusals' | 'reclaims'): number =>
    seconds.reduce((all, second) => (second.at > from ? all + second[what] : all), 0);
  const waited = waits.reduce((all, { at, ms }) => (at > from ? all + ms : all), 0);
  const acquisitions = sum('grants');
  return {
    ...{ acquisitions, conflicts: sum('conflicts'), failed: sum('refusals'), staleClaimed: sum('reclaims') },
    averageMs: acquisitions === 0 ? undefined : waited / acquisitions,
  };
}

/** The usual wait for a resource: of its own waits if there were some, else of all. */
export function usualWait({ waits }: Pick<State, 'waits'>, resource: string): number | undefined {
  const own = waits.filter((one) => one.resource === resource);
  return quantile(
    (own.length >= 3 ? own : waits).map(({ ms }) => ms),
    0.5,
  );
}
