import { describe, expect, it } from 'vitest';
import { crewOf, placeOf } from './crew.ts';
import { logsIn, lookOf, pipelinesShown, reasonsOf, wakesOf } from './line.ts';
import { boardIn, pipelineIn } from './read.ts';
import type { State } from './types.ts';
import { ageOf, columnOf, dependentsOf, shownText, taskBoard, waitsOn } from './work.ts';

const NOW = 1_800_000_000_000;
const at = (ms: number): string => new Date(NOW + ms).toISOString();

function board(...tasks: readonly object[]): State {
  return boardIn({ since: 1, revision: 1, at: at(0), tasks });
}

const ids = (some: readonly { readonly id: string }[]): readonly string[] => some.map(({ id }) => id);

describe('the board of tasks', () => {
  const state = board(
    { task: 'a', status: 'complete', endedAt: at(-5) },
    { task: 'b', status: 'pending', dependsOn: ['a'], blockedBy: ['a'], publishedAt: at(-9) },
    { task: 'c', status: 'pending', dependsOn: ['b', 'gone'], blockedBy: ['b', 'gone'], publishedAt: at(-8) },
    { task: 'd', status: 'pending', priority: 5, publishedAt: at(-7) },
    { task: 'e', status: 'pending', retryAt: at(60_000), publishedAt: at(-6) },
    { task: 'f', status: 'running', owner: 'agent:9', claimedAt: at(-4), publishedAt: at(-6) },
    { task: 'g', status: 'failed', reason: 'no disk', endedAt: at(-1) },
  );

  it('has a column for what waits, is ready, runs, is done and failed, each in its own order', () => {
    const { waiting, ready, running, done, failed } = taskBoard(state, '', NOW);
    expect([waiting, ready, running, done, failed].map(ids)).toEqual([['c', 'e'], ['d', 'b'], ['f'], ['a'], ['g']]);
  });

  it('knows that a dependency was completed before the task was read again', () => {
    const [b, c] = ['b', 'c'].map((id) => state.tasks.get(id)!);
    expect([waitsOn(state, b!), waitsOn(state, c!)]).toEqual([[], ['b', 'gone']]);
    expect(ids(dependentsOf(state, 'b'))).toEqual(['c']);
  });

  it('makes a task ready when its pause is over', () => {
    const e = state.tasks.get('e')!;
    expect([columnOf(state, e, NOW), columnOf(state, e, NOW + 60_001)]).toEqual(['waiting', 'ready']);
  });

  it('is filtered by id, owner and reason', () => {
    const found = (text: string): readonly string[] => Object.values(taskBoard(state, text, NOW)).flatMap(ids);
    expect([found('AGENT'), found('disk'), found('nothing')]).toEqual([['f'], ['g'], []]);
  });

  it('counts the age from the claim of a task that runs, and from the end of one that ended', () => {
    expect(['d', 'f', 'g'].map((id) => ageOf(state.tasks.get(id)!))).toEqual([NOW - 7, NOW - 4, NOW - 1]);
  });
});

describe('text of strangers', () => {
  it('keeps its lines, and nothing in it acts', () => {
    expect(shownText('a\tb\r\n\u001b[31mred\u001b[0m\n\u202eturned')).toBe('a    b\nred\n⟨202e⟩turned');
  });

  it('keeps its end if it is long', () => {
    expect(shownText(`${'x'.repeat(50)}end`, 5)).toBe('…\nxxend');
  });
});

describe('a pipeline', () => {
  it('has the reasons of all its guards, its holds, or why a person is asked', () => {
    const reasons = (blocked: object): unknown =>
      pipelineIn({ pipeline: 'p', state: 'blocked', blocked }).blocked?.reasons;
    const guards = [
      { id: 'one', reasons: ['a', 'b'] },
      { id: 'two', reasons: ['c'] },
    ];
    expect(reasons({ on: 'guard', guards })).toEqual(['a', 'b', 'c']);
    expect(reasons({ on: 'holds', resources: ['lock/m'] })).toEqual(['lock/m']);
    expect(reasons({ on: 'person', why: 'interrupted', question: 2 })).toEqual(['interrupted']);
  });
});

describe('the line of a pipeline', () => {
  const json = {
    ...{ pipeline: 'p', state: 'blocked', phase: 'merge', startedAt: at(-9), endedAt: null, driver: { holder: 'd' } },
    phases: [
      { name: 'build', state: 'done', runs: 2 },
      { name: 'merge', state: 'waiting', runs: 0 },
      { name: 'tag', state: 'waiting', runs: 0 },
    ],
    blocked: {
      ...{ on: 'guard', since: at(-5), wakeOn: ['lock:released'], polled: ['branch x'], pollMs: 10_000 },
      guards: [{ id: 'quiet', reasons: ['held by a', 'held by b'], outlook: 'open' }],
    },
    logs: [{ phase: 'build', run: 2, text: 'hello', leftOut: 3 }],
  };
  const one = pipelineIn(json);

  it('says of every phase whether it is done, stopped or to come', () => {
    expect(one.phases.map((phase) => lookOf(one, phase))).toEqual(['done', 'stopped', 'later']);
    const running = pipelineIn({ ...json, state: 'running', blocked: null });
    expect(running.phases.map((phase) => lookOf(running, phase))).toEqual(['done', 'now', 'later']);
  });

  it('lists every reason with its guard, and all that wakes it', () => {
    expect(reasonsOf(one, json).map(({ guard, reason }) => [guard, reason])).toEqual([
      ['quiet', 'held by a'],
      ['quiet', 'held by b'],
    ]);
    expect(wakesOf(one, json)).toEqual(['the event lock:released', 'branch x, looked at every 10s']);
    const asked = pipelineIn({ ...json, blocked: { on: 'person', why: 'interrupted', question: 1, since: at(0) } });
    expect(wakesOf(asked, {})).toEqual(['the answer of a person, and nothing else']);
    expect(logsIn(json)).toEqual([{ key: 'build 2', phase: 'build', run: 2, text: 'hello', leftOut: 3 }]);
  });

  it('comes first in the list if it is blocked, and is found by its phase', () => {
    const pipelines = [{ pipeline: 'old', state: 'done', startedAt: at(-3) }, json];
    const state = boardIn({ since: 1, revision: 1, at: at(0), pipelines });
    expect(ids(pipelinesShown(state, '', ''))).toEqual(['p', 'old']);
    expect([ids(pipelinesShown(state, 'MERGE', '')), ids(pipelinesShown(state, '', 'done'))]).toEqual([['p'], ['old']]);
  });
});

describe('the crew', () => {
  it('is in the order of the ids, knows coordinator, leaders and holds, and who left within the hour', () => {
    const lead = { name: 'lead:release', token: 3, holds: [{ holder: 'b:77', token: 3 }], waiting: [] };
    const members = [
      { id: 'b', assets: ['x'], joinedAt: at(-2) },
      { id: 'a', assets: [], joinedAt: at(-1) },
    ];
    const state: State = {
      ...boardIn({ since: 1, revision: 1, at: at(0), locks: [lead], members, coordinator: 'a' }),
      entries: [
        { type: 'member:left', resource: 'member/c', holder: 'c', at: NOW - 5, id: '3.0' },
        { type: 'member:left', resource: 'member/b', holder: 'b', at: NOW - 9, id: '2.0' },
      ],
    };
    const crew = crewOf(state, NOW);
    expect(crew.map(({ id, isCoordinator, holds, member }) => [id, isCoordinator, holds, member === null])).toEqual([
      ['a', true, 0, false],
      ['b', false, 1, false],
      ['c', false, 0, true],
    ]);
    expect(crew[1]?.leads).toMatchObject([{ name: 'release', epoch: 3 }]);
    expect(ids(crewOf(state, NOW + 3_600_000))).toEqual(['a', 'b']);
  });

  it('has its first at the top of the ring, and goes on clockwise', () => {
    const places = [0, 1, 2, 3].map((index) => placeOf(index, 4, 10));
    expect(places.map(({ side }) => side)).toEqual(['middle', 'start', 'middle', 'end']);
    expect(places[0]?.y).toBe(-10);
  });
});
