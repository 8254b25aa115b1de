/**
 * Counts what happened in slices of five seconds, a ring of one hour. Every chart and figure of the page is a sum of slices.
 *
 *     events of a batch ──▶ the last slice, or a new one ──▶ sums over parts of a window ──▶ a rate, a quantile, a total
 */
import { HOUR_MS, quantile } from './time.ts';
import type { Happening, Sample, Slice, State, Tally } from './types.ts';

export const SLICE_MS = 5_000;
export const REMEMBERED_MS = HOUR_MS;
const MOST_SLICES = REMEMBERED_MS / SLICE_MS;

/** Bins per doubling: a time read back from its bin is off by at most 5 %. */
const FINENESS = 8;

const COUNTS = ['events', 'grants', 'conflicts', 'releases', 'refusals', 'reclaims'] as const;

type Open = { -readonly [Key in keyof Slice]: Slice[Key] };

const GRANTS: ReadonlySet<string> = new Set(['lock:acquired', 'semaphore:acquired', 'task:claimed']);
const RELEASES: ReadonlySet<string> = new Set([
  ...['lock:released', 'semaphore:released', 'task:released', 'task:completed', 'task:failed'],
]);

const NO_TIMES: Tally = { sum: 0, bins: new Map() };

function emptySlice(at: number): Slice {
  return {
    ...{ at, events: 0, grants: 0, conflicts: 0, releases: 0, refusals: 0, reclaims: 0 },
    ...{ waits: NO_TIMES, holds: NO_TIMES },
  };
}

function sliceOf(at: number): number {
  return Math.floor(at / SLICE_MS) * SLICE_MS;
}

function binOf(ms: number): number {
  return ms < 1 ? 0 : 1 + Math.floor(Math.log2(ms) * FINENESS);
}

/** The middle of the bin, with the two digits that are known. */
function timeOf(bin: number): number {
  return bin === 0 ? 0 : Number((2 ** ((bin - 0.5) / FINENESS)).toPrecision(2));
}

function joined(one: Tally, other: Tally): Tally {
  if (other.bins.size === 0) return one;
  const bins = new Map(one.bins);
  for (const [bin, count] of other.bins) bins.set(bin, (bins.get(bin) ?? 0) + count);
  return { sum: one.sum + other.sum, bins };
}

function tallied(before: Tally, samples: readonly Sample[]): Tally {
  const bins = new Map(before.bins);
  let { sum } = before;
  for (const { ms } of samples) {
    sum += ms;
    bins.set(binOf(ms), (bins.get(binOf(ms)) ?? 0) + 1);
  }
  return { sum, bins };
}

function added(one: Slice, other: Slice): Slice {
  const sum: Open = { ...one, waits: joined(one.waits, other.waits), holds: joined(one.holds, other.holds) };
  for (const what of COUNTS) sum[what] += other[what];
  return sum;
}

export interface Batch {
  readonly events: readonly Happening[];
  /** The waits and holds that ended in this batch. */
  readonly waits: readonly Sample[];
  readonly holds: readonly Sample[];
  /**
   * The server's time. A machine whose clock is ahead sends future times; counted as such, they would push out the hour
   * that is kept.
   */
  readonly now: number;
  /** Whether this is history: then no slice is complete, and each event is counted in the slice of its own time. */
  readonly isPast?: boolean;
}

/** Adds a batch to `slices`. Events come in the order of the store, but carry the times of several clocks. */
export function counted(
  slices: readonly Slice[],
  { events, waits, holds, now, isPast = false }: Batch,
): readonly Slice[] {
  if (events.length === 0) return slices;
  const last = slices.at(-1);
  const open: Open[] = last === undefined ? [] : [{ ...last }];
  const begins = new Map<number, Open>();
  /** Earlier slices are complete, so an event with an earlier time is counted in the newest slice. */
  const sliceFor = (at: number): Open => {
    const begin = sliceOf(Math.min(at, now));
    const known = begins.get(begin) ?? (isPast ? undefined : open.findLast((slice) => begin <= slice.at));
    const slice = known ?? { ...emptySlice(begin) };
    if (known === undefined) open.push(slice);
    begins.set(begin, slice);
    return slice;
  };
  for (const { at, type } of events) {
    const slice = sliceFor(at);
    slice.events++;
    if (GRANTS.has(type)) slice.grants++;
    else if (RELEASES.has(type)) slice.releases++;
    else if (type.endsWith(':queued')) slice.conflicts++;
    else if (type.endsWith(':reclaimed')) slice.reclaims++;
    else if (type.endsWith(':deadlock')) slice.refusals++;
  }
  const tally = (what: 'waits' | 'holds', samples: readonly Sample[]): void => {
    const ended = new Map<Open, Sample[]>();
    for (const one of samples) {
      const slice = sliceFor(one.at);
      ended.set(slice, ended.get(slice) ?? []);
      ended.get(slice)?.push(one);
    }
    for (const [slice, times] of ended) slice[what] = tallied(slice[what], times);
  };
  tally('waits', waits);
  tally('holds', holds);
  return bounded([...slices.slice(0, -1), ...open]);
}

function bounded(slices: readonly Slice[]): readonly Slice[] {
  const oldest = (slices.at(-1)?.at ?? 0) - REMEMBERED_MS;
  return slices.filter(({ at }, place) => at > oldest && place >= slices.length - MOST_SLICES);
}

/**
 * Counts the events before the page was opened, as the store remembers them. `past` is in the order of the store, but
 * its times need not be: a member whose lease ended left no time, so the server gives that event the time at which it
 * was read.
 */
export function countedBefore(slices: readonly Slice[], past: readonly Happening[], now: number): readonly Slice[] {
  const [waits, holds]: readonly [Sample[], Sample[]] = [[], []];
  const begun = new Map<string, number>();
  const end = (key: string, { resource, at }: Happening, into: Sample[]): void => {
    const since = begun.get(key);
    if (since !== undefined) into.push({ resource, at, ms: Math.max(0, at - since) });
    begun.delete(key);
  };
  for (const event of past) {
    const { type, resource, holder, at } = event;
    const [request, hold] = [`${resource}\nasked\n${holder}`, `${resource}\nheld\n${String(event['token'])}`];
    if (type.endsWith(':queued')) begun.set(request, at);
    else if (type.endsWith(':acquired')) {
      end(request, event, waits);
      begun.set(hold, at);
    } else if (/^(lock|semaphore):(released|reclaimed|forced)$/.test(type)) end(hold, event, holds);
  }
  return merged(slices, counted([], { events: past, waits, holds, now, isPast: true }));
}

/** Counts denied requests: each met another holder, and did not get the resource. */
export function withDenials(slices: readonly Slice[], count: number, at: number): readonly Slice[] {
  return merged(slices, [{ ...emptySlice(sliceOf(at)), conflicts: count, refusals: count }]);
}

function merged(one: readonly Slice[], other: readonly Slice[]): readonly Slice[] {
  const sums = new Map<number, Slice>();
  for (const slice of [...one, ...other]) {
    sums.set(slice.at, added(sums.get(slice.at) ?? emptySlice(slice.at), slice));
  }
  return bounded([...sums.values()].sort((first, second) => first.at - second.at));
}

/** A stretch of time in equal parts; the last part is the present one. */
export interface Window {
  readonly from: number;
  readonly partMs: number;
  readonly parts: number;
}

/** The parts begin at whole multiples of their length, so that a value stays in its part as time goes on. */
export function windowAt(now: number, spanMs: number, parts: number): Window {
  const partMs = spanMs / parts;
  return { from: (Math.floor(now / partMs) + 1) * partMs - spanMs, partMs, parts };
}

const MOST_BARS = 120;

/** A bar covers whole slices, and begins at a multiple of its length, so that it grows instead of flickering. */
export function barsOver(first: number, last: number): Window {
  const partMs = Math.max(1, Math.ceil((last - first) / MOST_BARS / SLICE_MS)) * SLICE_MS;
  const from = Math.floor(first / partMs) * partMs;
  return { from, partMs, parts: Math.max(1, Math.ceil((last - from) / partMs)) };
}

export function partsOf(slices: readonly Slice[], { from, partMs, parts }: Window): readonly Slice[] {
  const sums = Array.from({ length: parts }, (_, place) => emptySlice(from + place * partMs));
  for (const slice of slices) {
    const place = Math.floor((slice.at - from) / partMs);
    const sum = sums[place];
    if (sum !== undefined) sums[place] = added(sum, slice);
  }
  return sums;
}

export function total(slices: readonly Slice[]): Slice {
  return slices.reduce(added, emptySlice(0));
}

/** The rate per second over the last ten seconds and the elapsed part of the present slice. */
export function rate(slices: readonly Slice[], what: 'events' | 'grants', now: number): number {
  const from = (Math.floor(now / SLICE_MS) - 2) * SLICE_MS;
  const sum = slices.reduce((all, slice) => (slice.at >= from ? all + slice[what] : all), 0);
  return (sum * 1000) / (now - from);
}

/** The time that this share of all samples did not exceed; undefined if there was none. */
export function quantileOf({ bins }: Tally, share: number): number | undefined {
  const all = [...bins].sort(([one], [other]) => one - other);
  const place = Math.floor(all.reduce((sum, [, count]) => sum + count, 0) * share);
  let passed = 0;
  for (const [bin, count] of all) {
    passed += count;
    if (passed > place) return timeOf(bin);
  }
  return undefined;
}

/** The mean time from request to grant, including requests that were granted at once; undefined without a grant. */
export function meanWait({ grants, waits }: Slice): number | undefined {
  return grants === 0 ? undefined : waits.sum / grants;
}

/** The usual wait for a resource: of its own waits if there were some, else of all. */
export function usualWait({ waits }: Pick<State, 'waits'>, resource: string): number | undefined {
  const own = waits.filter((one) => one.resource === resource);
  return quantile(
    (own.length >= 3 ? own : waits).map(({ ms }) => ms),
    0.5,
  );
}
