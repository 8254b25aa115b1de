import { describe, expect, it } from 'vitest';
import { applied, boardRead, refreshed, resynced } from './apply.ts';
import { boardIn, resourceIn } from './read.ts';
import type { Happening, State } from './types.ts';

const NOW = 1_800_000_000_000;

function board(more: object = {}): State {
  return boardIn({ since: 10, revision: 10, at: new Date(NOW).toISOString(), ...more });
}

function event(type: string, revision: number, more: object = {}): Happening {
  return { type, resource: 'lock/main', holder: 'a', at: NOW + revision, id: `${revision}.0`, ...more };
}

function main(state: State): object | undefined {
  const one = state.resources.get('lock/main');
  return one && { holds: one.holds.map(({ holder }) => holder), waiting: one.waiting.map(({ holder }) => holder) };
}

describe('events', () => {
  it('make a lock held, waited for, handed over and free', () => {
    let state = applied(board(), [
      event('lock:acquired', 11, { token: 1 }),
      event('lock:queued', 12, { holder: 'b', priority: 0 }),
    ]);
    expect(main(state)).toEqual({ holds: ['a'], waiting: ['b'] });
    state = applied(state, [
      event('lock:released', 13, { token: 1 }),
      event('lock:acquired', 13, { holder: 'b', token: 2, id: '13.1' }),
    ]);
    expect(main(state)).toEqual({ holds: ['b'], waiting: [] });
    expect([...state.unread]).toEqual(['lock/main']);
    expect(state.waits).toEqual([{ resource: 'lock/main', at: NOW + 13, ms: 1 }]);
    expect(state.slices.map(({ holds }) => holds.sum)).toEqual([2]);
    state = applied(state, [event('lock:forced', 14, { holder: 'b', token: 2, by: 'ann', reason: 'gone' })]);
    expect(main(state)).toEqual({ holds: [], waiting: [] });
    expect(state.revision).toBe(14);
  });

  it('that the snapshot already has are left out, so that nothing is applied twice', () => {
    const locks = [{ name: 'main', token: 1, holds: [{ holder: 'a', token: 1 }], waiting: [] }];
    const before = board({ locks });
    const state = applied(before, [event('lock:acquired', 9, { token: 1 }), event('lock:queued', 10, { holder: 'b' })]);
    expect(main(state)).toEqual({ holds: ['a'], waiting: [] });
    expect(main(applied(state, [event('lock:queued', 11, { holder: 'b' })]))).toEqual({ holds: ['a'], waiting: ['b'] });
    // Of a lock that was not there at all, likewise.
    expect(applied(board(), [event('lock:acquired', 10, { token: 1 })]).resources.size).toBe(0);
  });

  it('come in groups of one revision, all of which count', () => {
    const state = applied(board(), [
      event('lock:acquired', 11, { token: 1 }),
      event('lock:released', 12, { token: 1, id: '12.0' }),
      event('lock:acquired', 12, { token: 2, holder: 'b', id: '12.1' }),
    ]);
    expect(main(state)).toEqual({ holds: ['b'], waiting: [] });
  });

  it('put the higher priority first', () => {
    const state = applied(board(), [
      event('lock:queued', 11, { holder: 'b', priority: 0 }),
      event('lock:queued', 12, { holder: 'c', priority: 5 }),
    ]);
    expect(main(state)).toEqual({ holds: [], waiting: ['c', 'b'] });
  });

  it('tell of a deadlock, and take the victim out of the queue', () => {
    const cycle = [{ holder: 'a', resource: 'lock/main', blockedBy: 'b' }];
    const state = applied(board(), [event('lock:queued', 11), event('lock:deadlock', 12, { cycle })]);
    expect(main(state)).toEqual({ holds: [], waiting: [] });
    expect(state.deadlocks).toMatchObject([{ id: '12.0', victim: 'a', cycle }]);
  });

  it('keep at most 500 entries, the newest first', () => {
    const many = Array.from({ length: 700 }, (_, place) => event('lock:acquired', 11 + place, { token: place }));
    const { entries } = applied(board(), many);
    expect([entries.length, entries[0]?.id]).toEqual([500, '710.0']);
  });

  it('count tasks once for each change of their status', () => {
    const of = (type: string, revision: number): Happening => event(type, revision, { resource: 'task/t' });
    let state = applied(board(), [of('task:published', 11)]);
    expect(state.counts).toEqual({ pending: 1, running: 0, complete: 0, failed: 0 });
    state = applied(state, [of('task:claimed', 12), of('task:claimed', 12)]);
    expect(state.counts).toEqual({ pending: 0, running: 1, complete: 0, failed: 0 });
    expect(state.tasks.get('t')).toMatchObject({ status: 'running', owner: 'a' });
    state = applied(state, [of('task:completed', 13)]);
    expect(state.counts).toEqual({ pending: 0, running: 0, complete: 1, failed: 0 });
  });

  it('of pipelines say what blocks them', () => {
    const of = (type: string, revision: number, more = {}): Happening =>
      event(type, revision, { resource: 'pipeline/p', ...more });
    const state = applied(board(), [
      of('pipeline:started', 11),
      of('pipeline:blocked', 12, { phase: 'merge', on: 'guard', reasons: ['x'] }),
    ]);
    expect(state.pipelines.get('p')).toMatchObject({
      state: 'blocked',
      phase: 'merge',
      blocked: { on: 'guard', reasons: ['x'] },
    });
    expect(applied(state, [of('pipeline:resumed', 13)]).pipelines.get('p')).toMatchObject({
      state: 'running',
      blocked: null,
    });
  });
});

describe('what is read again', () => {
  it('replaces what events said, unless the events are newer', () => {
    const state = applied(board(), [event('lock:queued', 12, { holder: 'b' })]);
    const read = (revision: number) =>
      resourceIn('lock', { name: 'main', token: 1, revision, holds: [], waiting: [] }, 0, NOW);
    expect(main(refreshed(state, [read(11)], NOW))).toEqual({ holds: [], waiting: ['b'] });
    const after = refreshed(state, [read(12)], NOW);
    expect(main(after)).toEqual({ holds: [], waiting: [] });
    expect(after.unread.size).toBe(0);
    // The stream may still be behind what was read.
    expect(main(applied(after, [event('lock:queued', 12, { holder: 'c' })]))).toEqual({ holds: [], waiting: [] });
  });

  it('is what is held or waited for: events tell everything of a free lock', () => {
    const taken = applied(board(), [event('lock:acquired', 12, { token: 2 })]);
    expect([...taken.unread]).toEqual(['lock/main']);
    expect([...applied(taken, [event('lock:released', 13, { token: 2 })]).unread]).toEqual([]);
    const waited = applied(taken, [
      event('lock:queued', 13, { holder: 'b' }),
      event('lock:released', 14, { token: 2 }),
    ]);
    expect([...waited.unread]).toEqual(['lock/main']);
  });

  it('keeps what events have told since the whole board was read, and nothing else', () => {
    const taken = (name: string, revision: number) =>
      event('lock:acquired', revision, { resource: `lock/${name}`, token: 3 });
    const before = applied(board(), [taken('forgotten', 12), taken('known', 13), taken('later', 21)]);
    const locks = ['known', 'later'].map((name) => ({ name, token: 9, holds: [], waiting: [] }));
    const state = boardRead(before, board({ since: 19, revision: 20, locks }));
    expect([...state.resources.values()].map(({ name, token }) => [name, token])).toEqual([
      ['known', 9],
      ['later', 3],
    ]);
    expect([...state.unread]).toEqual(['lock/later']);
    // The stream may be behind what was read, and tells of what was forgotten.
    expect([...applied(state, [taken('forgotten', 18), taken('known', 18)]).resources.values()].length).toBe(2);
    expect(boardRead(state, board({ since: 14, revision: 15, locks: [] })).resources).toBe(state.resources);
  });

  it('keeps deadlocks and entries when the whole board is read again', () => {
    const cycle = [{ holder: 'a', resource: 'lock/main', blockedBy: 'b' }];
    const before = applied(board(), [event('lock:deadlock', 12, { cycle })]);
    const state = resynced(before, board({ revision: 20 }));
    expect([state.revision, state.deadlocks.length, state.entries.length, state.unread.size]).toEqual([20, 1, 1, 0]);
  });
});

describe('the board', () => {
  it('is shown as far as it can be read, whatever else is in it', () => {
    const state = boardIn({
      locks: [{ name: 'x', holds: [{ holder: 7, token: 'no' }, null], waiting: 'no' }],
      tasks: null,
    });
    expect(state.resources.get('lock/x')).toMatchObject({
      holds: [{ holder: '', token: 0 }, { holder: '' }],
      waiting: [],
    });
    expect(boardIn(null).resources.size).toBe(0);
  });
});
