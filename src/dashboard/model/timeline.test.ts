import { describe, expect, it } from 'vitest';
import { MOST_SHOWN, newerThan, newestRecorded, saidOf, standingOf, timelineOf } from './timeline.ts';
import type { Happening } from './types.ts';

function event(id: number, more: Partial<Happening> = {}): Happening {
  return { type: 'lock:acquired', resource: 'lock/main', holder: 'agent:1', at: id, id: `${id}.0`, ...more };
}
const ALL = { resource: '', holder: '', kind: '' };

describe('the timeline', () => {
  it('shows each event once, the newest first, whether the stream or the store told of it', () => {
    const found = timelineOf([event(3), event(2)], [event(1), event(2)], ALL);
    expect(found.map(({ id }) => id)).toEqual(['3.0', '2.0', '1.0']);
  });

  it('shows at most 500 events, also of those that fit a filter', () => {
    const past = Array.from({ length: 1200 }, (_, at) => event(at, { holder: `agent:${at % 2}` }));
    expect(timelineOf([], past, ALL)).toHaveLength(MOST_SHOWN);
    const odd = timelineOf([], past, { ...ALL, holder: 'AGENT:1' });
    expect([odd.length, odd[0]?.at, odd.at(-1)?.at]).toEqual([MOST_SHOWN, 1199, 201]);
  });

  it('filters by resource, holder and kind together', () => {
    const task = event(2, { type: 'task:claimed', resource: 'task/main' });
    const other = event(3, { holder: 'agent:2' });
    expect(timelineOf([other, task, event(1)], [], { resource: 'main', holder: ':1', kind: 'lock' })).toEqual([
      event(1),
    ]);
  });

  it('counts what is newer than the newest row', () => {
    expect(newerThan([event(1)], [event(3), event(2), event(1)])).toBe(2);
    expect(newerThan([event(1)], [event(1)])).toBe(0);
  });

  it('says who forced a lock and why, and names an event that it does not know', () => {
    const forced = event(1, { type: 'lock:forced', by: 'ann', reason: 'off' });
    expect(saidOf(forced)).toEqual({ sign: 'danger', words: 'was made to give up', tail: 'by ann (off)' });
    expect(saidOf(event(1, { type: 'lock:odd' }))).toEqual({ sign: 'pending', words: 'odd', tail: '' });
  });
});

describe('the record', () => {
  const entry = { resource: 'lock/main', seq: 5, time: 100, hash: 'ab' };
  const whole = { at: 200, covered: [entry], entries: 9, chains: 2, checkpoints: 0 };

  it('lists the newest entries in the order of their writes, whatever their clocks said', () => {
    const known = newestRecorded([], [entry, { ...entry, seq: 6, time: 900 }], 2);
    expect(known.map(({ seq }) => seq)).toEqual([6, 5]);
    expect(newestRecorded(known, [{ ...entry, seq: 7, time: 300 }], 2).map(({ seq }) => seq)).toEqual([7, 6]);
  });

  it('calls an entry verified only if a verification has read it and found nothing', () => {
    expect(standingOf(entry, undefined)).toBe('unknown');
    expect(standingOf({ ...entry }, whole)).toBe('clear');
    // Written while the verification ran, by a clock that is behind.
    expect(standingOf({ ...entry, seq: 6, time: 90 }, whole)).toBe('unknown');
    const [before, other] = [
      { ...entry, seq: 4 },
      { ...entry, resource: 'lock/b' },
    ];
    const finding = { resource: 'lock/main', seq: 5, why: 'changed' };
    const broken = { ...whole, covered: [before, entry, other], finding };
    expect([entry, before, other].map((one) => standingOf(one, broken))).toEqual(['danger', 'unknown', 'unknown']);
  });
});
