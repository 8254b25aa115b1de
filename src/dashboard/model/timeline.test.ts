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
  const whole = { at: 200, revision: 50, entries: 9, chains: 2, checkpoints: 0 };

  it('lists the newest entries of all chains', () => {
    const answer = { entries: [entry, { ...entry, seq: 6, time: 300 }, { ...entry, resource: 'lock/b', time: 200 }] };
    expect(newestRecorded([], answer, 2).map(({ time }) => time)).toEqual([300, 200]);
  });

  it('keeps what it knows of an entry that comes again, and has room for the newest', () => {
    const known = newestRecorded([], { entries: [entry, { ...entry, seq: 6, time: 300 }], revision: 50 }, 2);
    const later = {
      entries: [
        { ...entry, seq: 6, time: 300 },
        { ...entry, seq: 7, time: 400 },
      ],
      revision: 60,
    };
    expect(newestRecorded(known, later, 2)).toMatchObject([
      { seq: 7, asOf: 60 },
      { seq: 6, asOf: 50 },
    ]);
  });

  it('calls an entry verified only if a verification has read it and found nothing', () => {
    expect(standingOf({ ...entry, asOf: 50 }, undefined)).toBe('unknown');
    expect(standingOf({ ...entry, asOf: 50 }, whole)).toBe('clear');
    // Written while the verification ran, by a clock that is behind.
    expect(standingOf({ ...entry, asOf: 51 }, whole)).toBe('unknown');
    const broken = { ...whole, finding: { resource: 'lock/main', seq: 5, why: 'changed' } };
    expect(standingOf({ ...entry, asOf: 50 }, broken)).toBe('danger');
    expect(standingOf({ ...entry, seq: 4, asOf: 50 }, broken)).toBe('unknown');
    expect(standingOf({ ...entry, resource: 'lock/b', asOf: 50 }, broken)).toBe('unknown');
  });
});
