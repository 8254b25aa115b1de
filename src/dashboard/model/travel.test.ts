import { describe, expect, it } from 'vitest';
import { mattersOf } from './needs.ts';
import { boardIn } from './read.ts';
import { boardAt, entriesIn, type RecordedEntry, timeIn, timeText, travelled } from './travel.ts';

const LIVE = boardIn({
  // The live board is far ahead of the numbers that the events of the record get.
  since: 99,
  at: '2026-01-01T00:10:00Z',
  revision: 99,
  semaphores: [{ name: 'gpu', capacity: 4, holds: [], waiting: [] }],
  tasks: [{ task: 't', status: 'complete', capabilities: ['rust'] }],
  pipelines: [{ pipeline: 'rel', name: 'release', state: 'done', phases: [{ name: 'build' }, { name: 'ship' }] }],
});

/** Seconds after the beginning. */
function entry(resource: string, seq: number, time: number, ...commands: object[]): RecordedEntry {
  return { resource, seq, time: time * 1000, commands: commands as RecordedEntry['commands'] };
}

function did(actor: string, command: string, event: string, detail: object = {}, more: object = {}): object {
  return { actor, command, outcome: 'done', events: event === '' ? [] : [event], detail, ...more };
}

const ACQUIRED = 'lock:acquired';
const LOCK = [
  entry('lock/main', 1, 10, did('a', 'acquire', ACQUIRED, { token: 1, mode: 'exclusive', reason: 'tests' })),
  entry(
    ...(['lock/main', 2, 20] as const),
    did('a', 'release', 'lock:released', { token: 1 }),
    did('b', 'acquire', ACQUIRED, { token: 2, mode: 'exclusive' }, { waitedMs: 5000 }),
  ),
  entry('lock/main', 3, 30, did('ops', 'break', 'lock:forced', { lost: [{ holder: 'b', token: 2, why: 'forced' }] })),
];

const at = (entries: readonly RecordedEntry[], seconds: number): ReturnType<typeof boardAt> =>
  boardAt(travelled(entries), seconds * 1000, LIVE);

function heldBy(entries: readonly RecordedEntry[], seconds: number, resource = 'lock/main'): readonly string[] {
  return (
    at(entries, seconds)
      .resources.get(resource)
      ?.holds.map(({ holder }) => holder) ?? ['unknown']
  );
}

describe('the board at an earlier time', () => {
  it('shows who held a lock then, since when and why', () => {
    expect([5, 10, 19, 20, 29, 30].map((time) => heldBy(LOCK, time).join())).toEqual([
      ...['unknown', 'a', 'a', 'b', 'b', ''],
    ]);
    const [hold] = at(LOCK, 15).resources.get('lock/main')?.holds ?? [];
    expect(hold).toMatchObject({ token: 1, acquiredAt: 10_000, reason: 'tests', mode: 'exclusive' });
  });

  it('shows a hold as lost from when it went stale, if its lock alerts', () => {
    const live = { ...LIVE, resources: new Map(LIVE.resources) };
    const main = boardIn({ since: 99, at: '2026-01-01T00:10:00Z', locks: [{ name: 'main', onStale: 'alert' }] });
    for (const [name, one] of main.resources) live.resources.set(name, one);
    const entries = [
      ...LOCK.slice(0, 1),
      entry('lock/main', 2, 20, did('maintainer', 'tick', 'lock:stale', { stale: [{ holder: 'a', token: 1 }] })),
      entry('lock/main', 3, 30, did('maintainer', 'tick', 'lock:stale')),
    ];
    const lost = (seconds: number): readonly string[] =>
      mattersOf(boardAt(travelled(entries), seconds * 1000, live), seconds * 1000).map(({ kind }) => kind);
    expect([lost(15), lost(25), lost(35)]).toEqual([[], ['lost'], ['lost']]);
    // An entry without the names of the stale holds tells of no holder.
    expect(travelled(entries).events.map(({ type, holder }) => `${type} ${holder}`)).toEqual([
      'lock:acquired a',
      'lock:stale a',
    ]);
  });

  it('shows a request that was granted later as waiting before', () => {
    const waiting = (time: number): unknown => at(LOCK, time).resources.get('lock/main')?.waiting;
    expect(waiting(14)).toEqual([]);
    expect(waiting(16)).toMatchObject([{ holder: 'b', since: 15_000 }]);
    expect(waiting(20)).toEqual([]);
  });

  it('gives slots as the semaphore did: the lowest that were free; a capacity that nobody changed is that of now', () => {
    const acquire = (who: string, token: number, weight: number): object =>
      did(who, 'acquire', 'semaphore:acquired', { token, weight });
    const entries = [
      entry('semaphore/gpu', 1, 10, acquire('x', 1, 2)),
      entry('semaphore/gpu', 2, 20, acquire('y', 2, 1)),
      entry('semaphore/gpu', 3, 30, did('x', 'release', 'semaphore:released', { token: 1 })),
      entry('semaphore/gpu', 4, 40, acquire('z', 4, 1)),
      entry('semaphore/gpu', 5, 50, acquire('y', 2, 3)),
      entry('semaphore/gpu', 6, 60, did('ops', 'drain', 'semaphore:drained', { reason: 'moves' })),
      entry('semaphore/gpu', 7, 70, did('ops', 'undrain', 'semaphore:undrained')),
      entry('semaphore/gpu', 8, 80, did('ops', 'resize', 'semaphore:resized', { capacity: 9 })),
    ];
    const of = (time: number): unknown => at(entries, time).resources.get('semaphore/gpu');
    expect(of(45)).toMatchObject({ capacity: 4, holds: [{ slots: [2] }, { holder: 'z', slots: [0] }] });
    expect(of(55)).toMatchObject({ isDrained: false, holds: [{ holder: 'z' }, { holder: 'y', slots: [2, 1, 3] }] });
    expect(of(65)).toMatchObject({ isDrained: true, drained: { by: 'ops', reason: 'moves' } });
    expect(of(85)).toMatchObject({ isDrained: false, capacity: 9 });
  });

  it('shows tasks, members and pipelines as far as the record tells', () => {
    const phase = (state: string, place: number, when: string): object => ({ state, phase: place, when, attempt: 1 });
    const entries = [
      entry('member/m1', 1, 5, did('m1', 'join', 'member:joined')),
      entry('member/m1', 2, 50, did('maintainer', 'observed', 'member:left')),
      entry('pipeline/rel', 1, 10, did('u', 'start', 'pipeline:started', phase('pending', 0, 'before'))),
      entry('pipeline/rel', 2, 20, did('d', 'begun', 'pipeline:phase', phase('running', 0, 'during'))),
      entry('pipeline/rel', 3, 30, did('d', 'ended', '', phase('running', 1, 'before'))),
      entry('pipeline/rel', 4, 40, did('d', 'ended', 'pipeline:done', phase('done', 1, 'during'))),
      entry('task/t', 1, 10, did('p', 'publish', 'task:published')),
      entry('task/t', 2, 20, did('w', 'claim', 'task:claimed', { attempt: 1 })),
      entry('task/t', 3, 30, did('w', 'complete', 'task:completed', { token: 4 })),
    ];
    const early = at(entries, 25);
    expect(early.tasks.get('t')).toMatchObject({ status: 'running', owner: 'w', capabilities: ['rust'] });
    expect([early.counts.running, early.coordinator, [...early.members.keys()]]).toEqual([1, 'm1', ['m1']]);
    expect(early.pipelines.get('rel')).toMatchObject({
      ...{ name: 'release', state: 'running', phase: 'build', startedBy: 'u' },
      phases: [
        { name: 'build', state: 'running', startedAt: 20_000 },
        { name: 'ship', state: 'pending' },
      ],
    });
    const late = at(entries, 60);
    expect([late.tasks.get('t')?.status, late.members.size, late.pipelines.get('rel')?.state]).toEqual([
      ...['complete', 0, 'done'],
    ]);
    expect(at(entries, 35).pipelines.get('rel')).toMatchObject({ phase: 'ship', phases: [{ endedAt: 30_000 }, {}] });
  });

  it('shows a task until it was forgotten or its keys were deleted, and as a new one if it was published again', () => {
    const entries = [
      entry('task/t', 1, 10, did('p', 'publish', 'task:published')),
      entry('task/t', 2, 20, did('w', 'claim', 'task:claimed', { attempt: 1 })),
      entry('task/t', 3, 30, did('w', 'complete', 'task:completed', { token: 4 })),
      entry('task/t', 4, 40, did('retention', 'forget', '')),
      entry('task/t', 5, 50, did('q', 'publish', 'task:published')),
      entry('task/u', 1, 15, did('p', 'publish', 'task:published')),
      entry('task/u', 2, 45, { ...did('', 'observed', ''), outcome: 'deleted-by-others' }),
    ];
    const shown = [35, 42, 47].map((time) => {
      const { tasks, counts } = at(entries, time);
      return [[...tasks.keys()].join(), counts.pending, counts.complete];
    });
    expect(shown).toEqual([
      ['t,u', 1, 1],
      ['u', 1, 0],
      ['', 0, 0],
    ]);
    expect(at(entries, 55).tasks.get('t')).toMatchObject({
      ...{ status: 'pending', attempts: 0, publishedAt: 50_000, publishedBy: 'q', claimedAt: null, endedAt: null },
    });
  });

  it('says where the record was trimmed, and when it begins', () => {
    const { trimmed, begins } = travelled([
      ...LOCK.slice(1),
      entry('task/t', 1, 3, did('p', 'publish', 'task:published')),
    ]);
    expect([trimmed, begins]).toEqual([['lock/main'], 3000]);
    expect(travelled([])).toMatchObject({ trimmed: [], begins: undefined, events: [] });
  });

  it('keeps the order of a chain whose writers have different clocks', () => {
    const [first, second] = LOCK as [RecordedEntry, RecordedEntry];
    expect(heldBy([first, { ...second, time: 1000 }], 10)).toEqual(['b']);
  });

  it('reads pages and times, and passes over what is malformed', () => {
    expect(
      entriesIn({ entries: [{ resource: 'lock/x', seq: 1, time: 5, commands: [1, {}] }, { seq: 2 }, null] }),
    ).toEqual([{ resource: 'lock/x', seq: 1, time: 5, commands: [{}, {}] }]);
    expect([timeIn('2026-11-17T14:32:08Z'), timeIn('soon'), timeIn(undefined)]).toEqual([
      1794925928000,
      undefined,
      undefined,
    ]);
    expect(timeText(1794925928000)).toBe('2026-11-17T14:32:08Z');
  });
});
