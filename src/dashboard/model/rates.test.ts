import { describe, expect, it } from 'vitest';
import { countedPast, deniedUpTo, resynced } from './apply.ts';
import { pathsOf, scaleOf, summaryOf, timeMarks } from './chart.ts';
import {
  barsOver,
  counted,
  countedBefore,
  meanWait,
  partsOf,
  quantileOf,
  rate,
  SLICE_MS,
  total,
  windowAt,
} from './rates.ts';
import { boardIn } from './read.ts';
import type { Happening, Sample, Slice } from './types.ts';

const NOW = 1_800_000_000_000;

function told(type: string, after: number, more: object = {}): Happening {
  return { type, resource: 'lock/x', holder: 'a', at: NOW + after, id: '1.0', ...more };
}

function ended(after: number, ms: number): Sample {
  return { resource: 'lock/x', at: NOW + after, ms };
}

function count(slices: readonly Slice[], events: readonly Happening[], more: object = {}): readonly Slice[] {
  return counted(slices, { events, waits: [], holds: [], now: Infinity, ...more });
}

describe('slices', () => {
  it('count what became of requests, and average the time to acquire over all that were granted', () => {
    const events = [
      ...[told('lock:acquired', 0), told('lock:queued', 500), told('lock:released', 1000), told('lock:acquired', 1000)],
      ...[told('lock:reclaimed', 2000), told('semaphore:deadlock', 3000), told('task:failed', 3500)],
    ];
    const whole = total(count([], events, { waits: [ended(1000, 500)] }));
    expect(whole).toMatchObject({ events: 7, grants: 2, conflicts: 1, releases: 2, reclaims: 1, refusals: 1 });
    expect(meanWait(whole)).toBe(250);
    expect(meanWait(total([]))).toBe(undefined);
  });

  it('go on where the last batch ended, and put an event of a slow clock into the newest', () => {
    const first = count([], [told('lock:acquired', 0)]);
    const second = count(first, [
      told('lock:acquired', 4000),
      told('lock:acquired', 6000),
      told('lock:acquired', -9000),
    ]);
    expect(second.map(({ grants }) => grants)).toEqual([2, 2]);
    expect(first.map(({ grants }) => grants)).toEqual([1]);
  });

  it('count the past in the slices of its own times, whatever event of a later time comes first', () => {
    const past = [told('lock:acquired', -60_000), told('member:left', 0), told('lock:acquired', -30_000)];
    const slices = countedBefore([], past, NOW);
    expect(slices.map(({ at, events }) => [at - NOW, events])).toEqual([
      [-60_000, 1],
      [-30_000, 1],
      [0, 1],
    ]);
  });

  it('are a ring of one hour, however much happens', () => {
    let slices: readonly Slice[] = [];
    for (let place = 0; place < 1_000; place++) {
      const at = place * SLICE_MS;
      slices = count(slices, [told('lock:acquired', at)], { waits: [ended(at, place), ended(at, 3)] });
    }
    expect(slices).toHaveLength(720);
    expect(slices.at(-1)?.at).toBe(NOW + 999 * SLICE_MS);
    // Of times nothing is kept but how many fell into which bin.
    const crowd = count([], [told('lock:acquired', 0)], {
      waits: Array.from({ length: 50_000 }, (_, place) => ended(0, place)),
    });
    expect(crowd[0]?.waits.bins.size).toBeLessThan(140);
  });

  it('keep the time of a sample, of a batch that is an hour long too', () => {
    const [first, , third] = partsOf(
      count([], [told('lock:acquired', 0), told('lock:acquired', 10_000)], {
        holds: [ended(0, 100), ended(10_000, 900), ended(10_000, 900)],
      }),
      { from: NOW, partMs: SLICE_MS, parts: 3 },
    );
    expect([first?.holds.sum, third?.holds.sum]).toEqual([100, 1800]);
  });

  it('tell quantiles within five percent', () => {
    const waits = Array.from({ length: 1000 }, (_, place) => ended(0, place + 1));
    const { waits: tally } = total(count([], [told('lock:acquired', 0)], { waits }));
    expect(Math.abs((quantileOf(tally, 0.5) ?? 0) / 500 - 1)).toBeLessThan(0.05);
    expect(Math.abs((quantileOf(tally, 0.95) ?? 0) / 950 - 1)).toBeLessThan(0.05);
    expect(quantileOf(total([]).waits, 0.5)).toBe(undefined);
  });

  it('give the rate of the last seconds', () => {
    const slices = count([], [told('lock:acquired', 0), told('lock:acquired', 100), told('lock:acquired', 6000)]);
    expect(rate(slices, 'grants', NOW + 10_000)).toBeCloseTo(0.3);
    expect(rate(slices, 'grants', NOW + 60_000)).toBe(0);
  });
});

describe('requests that were denied without a wait', () => {
  it('are conflicts that failed, from the first count on that the page has read', () => {
    const board = boardIn({ since: 10, revision: 10, at: new Date(NOW).toISOString() });
    const first = deniedUpTo(board, 40, NOW);
    expect(first.slices).toEqual([]);
    const second = deniedUpTo(resynced(first, board), 43, NOW + 30_000);
    expect(total(second.slices)).toMatchObject({ conflicts: 3, refusals: 3, grants: 0 });
    expect(deniedUpTo(second, 43, NOW + 60_000).slices).toBe(second.slices);
  });
});

describe('what happened before the page was opened', () => {
  const past = [
    ...[told('lock:acquired', -20_000, { token: 1 }), told('lock:queued', -19_000, { holder: 'b' })],
    ...[told('lock:released', -10_000, { token: 1 }), told('lock:acquired', -10_000, { holder: 'b', token: 2 })],
  ];

  it('is counted with its waits and holds, beside what happened since', () => {
    const live = count([], [told('lock:acquired', 0)]);
    const slices = countedBefore(live, past, NOW);
    expect(slices.map(({ at, grants }) => [at - NOW, grants])).toEqual([
      [-20_000, 1],
      [-10_000, 1],
      [0, 1],
    ]);
    const { waits, holds } = total(slices);
    expect([waits.sum, holds.sum]).toEqual([9_000, 10_000]);
  });

  it('stays when the board is read again, and so does the time from which everything is known', () => {
    const board = boardIn({ since: 10, revision: 10, at: new Date(NOW).toISOString() });
    expect(board.countedFrom).toBe(NOW);
    const state = countedPast(board, past, { from: NOW - 60_000, now: NOW });
    const later = resynced(state, { ...board, countedFrom: NOW + 5000 });
    expect([later.countedFrom, total(later.slices).grants]).toEqual([NOW - 60_000, 2]);
  });
});

describe('a chart', () => {
  it('has parts that stay where they are as time goes on, the last of which is the present one', () => {
    const one = windowAt(NOW + 1, 300_000, 60);
    expect(one).toEqual({ from: NOW - 295_000, partMs: 5000, parts: 60 });
    expect(windowAt(NOW + 4_999, 300_000, 60)).toEqual(one);
    const parts = partsOf(count([], [told('lock:acquired', 1000), told('lock:acquired', -400_000)]), one);
    expect(parts.findIndex(({ grants }) => grants > 0)).toBe(59);
  });

  it('has bars of whole slices, few enough to be seen', () => {
    expect(barsOver(NOW - 300_000, NOW)).toEqual({ from: NOW - 300_000, partMs: 5000, parts: 60 });
    const day = barsOver(NOW - 86_400_000, NOW);
    expect(day.partMs % SLICE_MS).toBe(0);
    expect(day.parts).toBeLessThanOrEqual(121);
    expect(day.from + day.parts * day.partMs).toBeGreaterThanOrEqual(NOW);
  });

  it('has round marks, with units that fit the values', () => {
    const marks = (values: readonly number[], unit: 'per' | 'ms' | 'of'): readonly string[] => {
      const { marks: all, told: say } = scaleOf([values], unit);
      return all.map(say);
    };
    expect(marks([3.7, 1], 'per')).toEqual(['0/s', '1/s', '2/s', '3/s', '4/s']);
    expect(marks([0.2], 'per')).toEqual(['0/min', '5/min', '10/min', '15/min']);
    expect(marks([90, 1500], 'ms')).toEqual(['0 ms', '500 ms', '1.0 s', '1.5 s']);
    expect(marks([100_000], 'ms')).toEqual(['0 ms', '30.0 s', '1m 00s', '1m 30s', '2m 00s']);
    expect(marks([3], 'of')).toEqual(['0', '1', '2', '3']);
    expect(marks([], 'of')).toEqual(['0', '1']);
  });

  it('has a mark for whole minutes', () => {
    const marks = timeMarks({ from: NOW, partMs: 5000, parts: 60 });
    expect(marks.map(({ at }) => (at - NOW) / 60_000)).toEqual([0, 1, 2, 3, 4]);
    // Where the value of that minute is drawn: the twelfth of 60.
    expect(marks[1]?.share).toBeCloseTo(12 / 59);
    expect(timeMarks({ from: NOW, partMs: 60_000, parts: 60 }).length).toBeLessThanOrEqual(6);
  });

  it('leaves a gap where nothing was measured, and draws a value that stands alone', () => {
    expect(pathsOf([undefined, 1, undefined, 2, 0], 2)).toEqual({ lines: 'M3 0.0L4 100.0', dots: 'M1 50.0h0' });
  });

  it('says in words what it shows', () => {
    const values = [1, 5, undefined];
    const line = { label: 'Grants', values };
    const text = summaryOf(
      [line, { label: 'Failed', values: [] }],
      { from: NOW, partMs: 5000, parts: 3 },
      scaleOf([values], 'of'),
    );
    expect(text).toMatch(/^Grants: last 5, highest 5 at \d\d:\d\d:05\. Failed: nothing measured$/);
  });
});
