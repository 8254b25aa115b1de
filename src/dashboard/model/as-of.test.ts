import { describe, expect, it } from 'vitest';
import { applied, MOST_PIPELINES, MOST_TASKS } from './apply.ts';
import { forgotten, membersRead, pipelineRead, taskRead, workRead } from './apply-tasks.ts';
import { claimedSince, movedOn } from './expected.ts';
import { mattersOf } from './needs.ts';
import { boardIn, memberIn, pipelineIn, taskIn } from './read.ts';
import type { Happening, State } from './types.ts';

const NOW = 1_800_000_000_000;
const AT = new Date(NOW).toISOString();

function board(since: number, more: object = {}): State {
  return boardIn({ since, revision: since, at: AT, ...more });
}

function event(type: string, revision: number, more: object = {}): Happening {
  const resource = `${type.slice(0, type.indexOf(':'))}/x`;
  return { type, resource, holder: 'a', at: NOW + revision, id: `${revision}.0`, ...more };
}

const task = (status: string, more: object = {}): object => ({ task: 'x', status, publishedAt: AT, ...more });
const pipeline = (state: string, more: object = {}): object => ({
  ...{ pipeline: 'x', state, phase: 'merge', phases: [], startedAt: AT, isDriven: true },
  ...more,
});
const members = (state: State): readonly string[] => [...state.members.keys()];

describe('an answer that is older than what events have told', () => {
  it('changes no task, which is still to be read', () => {
    const state = applied(board(10, { tasks: [task('pending')], counts: { pending: 1 } }), [
      event('task:claimed', 12, { token: 12 }),
      event('task:completed', 15, { token: 12 }),
    ]);
    const after = taskRead(state, taskIn(task('running', { revision: 13 }), 0, NOW));
    expect(after.tasks.get('x')?.status).toBe('complete');
    expect(after.counts).toEqual({ pending: 0, running: 0, complete: 1, failed: 0 });
    expect(after.unread.has('task/x')).toBe(true);
    expect(taskRead(state, taskIn(task('complete', { revision: 15 }), 0, NOW)).unread.has('task/x')).toBe(false);
  });

  it('forgets no task that was published again since', () => {
    const state = applied(board(10), [event('task:published', 15)]);
    expect(forgotten(state, 'task/x', 14).tasks.has('x')).toBe(true);
    expect(forgotten(state, 'task/x', 15)).toMatchObject({ counts: { pending: 0 } });
  });

  it('changes no pipeline', () => {
    const state = applied(board(10, { pipelines: [pipeline('running')] }), [event('pipeline:done', 15)]);
    expect(
      pipelineRead(state, pipelineIn(pipeline('running', { revision: 14 }), 0, NOW)).pipelines.get('x')?.state,
    ).toBe('done');
  });

  it('brings back no member that has left', () => {
    const state = applied(board(10, { members: [{ id: 'm1' }] }), [event('member:left', 15, { holder: 'm2' })]);
    const both = [{ id: 'm1' }, { id: 'm2' }].map(memberIn);
    expect(members(membersRead(state, 14, both, 'm1'))).toEqual(['m1']);
    expect(membersRead(state, 14, both, 'm1').unread.has('members')).toBe(true);
    expect(members(membersRead(state, 15, both, 'm1'))).toEqual(['m1', 'm2']);
  });

  it('changes nothing of the rest when everything is read again', () => {
    const state = applied(board(10, { tasks: [task('pending')], counts: { pending: 1 } }), [
      event('task:claimed', 15, { token: 15 }),
      event('pipeline:started', 16),
    ]);
    const after = workRead(state, board(12, { tasks: [task('pending')], counts: { pending: 1 } }));
    expect(after.tasks.get('x')?.status).toBe('running');
    expect(after.pipelines.has('x')).toBe(true);
    expect(after.counts).toEqual({ pending: 0, running: 1, complete: 0, failed: 0 });
    expect([...after.unread].sort()).toEqual(['pipeline/x', 'task/x']);
    expect(workRead(after, board(11)).workRevision).toBe(12);
  });
});

describe('an event that was read already', () => {
  it('is left out, so that nothing goes back to what it was', () => {
    const state = board(20, {
      ...{ tasks: [task('complete')], counts: { complete: 1 }, pipelines: [pipeline('done', { endedAt: AT })] },
    });
    const after = applied(state, [
      event('task:claimed', 18, { token: 18 }),
      event('pipeline:phase', 19, { phase: 'merge' }),
      event('member:joined', 20),
    ]);
    expect(after.tasks.get('x')?.status).toBe('complete');
    expect(after.pipelines.get('x')?.state).toBe('done');
    expect(after.counts.complete).toBe(1);
    expect(after.unread.size).toBe(0);
  });
});

describe('what somebody was asked about', () => {
  it('is over when the task has changed hands, and when the pipeline goes on without them', () => {
    const held = board(10, { tasks: [task('running', { token: 9, owner: 'w1', attempts: 1 })] });
    const asked = held.tasks.get('x')!;
    expect(claimedSince(asked, held)).toBeUndefined();
    const handed = applied(held, [
      event('task:released', 11, { attempts: 0 }),
      event('task:claimed', 12, { token: 12, holder: 'w2', attempts: 1 }),
    ]);
    expect(claimedSince(asked, handed)).toContain('it is running now, with w2. Nothing was done');
    const left = board(10, { pipelines: [pipeline('running', { isDriven: false })] });
    const line = left.pipelines.get('x')!;
    expect(movedOn(line, left)).toBeUndefined();
    expect(movedOn(line, applied(left, [event('pipeline:resumed', 11)]))).toContain('another process drives it');
  });
});

describe('counts of tasks', () => {
  it('stay right for tasks that are not listed, because the server counts all and lists some', () => {
    const counts = { pending: 5_000, running: 10, complete: 90_000, failed: 3 };
    const one = (type: string, revision: number, more: object = {}): Happening =>
      event(type, revision, { resource: `task/unlisted-${revision}`, ...more });
    const state = applied(board(10, { counts }), [
      one('task:claimed', 11),
      one('task:completed', 12),
      one('task:requeued', 13, { was: 'failed' }),
      one('task:published', 14),
    ]);
    expect(state.counts).toEqual({ pending: 5_001, running: 10, complete: 90_001, failed: 2 });
    const read = taskRead(state, taskIn({ task: 'never-listed', status: 'complete', revision: 15 }, 0, NOW));
    expect(read.counts).toEqual(state.counts);
  });

  it('are those of the server when everything is read again, and a task that was forgotten goes', () => {
    const state = applied(board(10, { tasks: [task('complete')], counts: { complete: 1 } }), []);
    const after = workRead(state, board(30, { counts: { complete: 0 } }));
    expect([after.tasks.size, after.counts.complete]).toEqual([0, 0]);
  });
});

describe('a page that stays open', () => {
  it('keeps a bounded number of finished tasks and pipelines, and all that are not finished', () => {
    const last = 11 + MOST_TASKS;
    const events = Array.from({ length: last - 10 }, (_, place): readonly Happening[] => {
      const revision = 11 + place;
      return [
        event('task:completed', revision, { resource: `task/t${revision}` }),
        event('pipeline:done', revision, { resource: `pipeline/p${revision}` }),
      ];
    });
    const state = applied(board(10, { tasks: [task('pending')] }), events.flat());
    expect(state.tasks.size).toBeLessThanOrEqual(MOST_TASKS);
    expect(state.pipelines.size).toBeLessThanOrEqual(MOST_PIPELINES);
    expect(state.tasks.has('x')).toBe(true);
    expect(state.tasks.has(`t${last}`)).toBe(true);
    // What it has left out is not read again either.
    expect(state.unread.size).toBe(state.tasks.size - 1 + state.pipelines.size);
  });

  it('keeps a bounded number of tasks that nobody takes, and all that run', () => {
    const published = Array.from({ length: 2 * MOST_TASKS }, (_, place) =>
      event('task:published', 12 + place, { resource: `task/t${place}` }),
    );
    const state = applied(board(10), [event('task:claimed', 11, { resource: 'task/x' }), ...published]);
    expect(state.tasks.size).toBeLessThanOrEqual(MOST_TASKS);
    expect(state.tasks.has('x')).toBe(true);
    expect(state.counts.pending).toBe(2 * MOST_TASKS);
    expect(state.unread.size).toBe(state.tasks.size);
  });
});

describe('what no event tells', () => {
  it('shows when everything is read again: a driver that died, a record that cannot be read, what the witness warns of', () => {
    const state = board(10, { pipelines: [pipeline('running')] });
    expect(mattersOf(state, NOW)).toEqual([]);
    const after = workRead(
      state,
      board(11, {
        pipelines: [pipeline('running', { isDriven: false })],
        troubles: [
          { kind: 'filling', key: 'f', subject: 'The record', says: ' fills', command: 'signalbox witness export' },
          { kind: 'unreadable', key: 'u', subject: 'a key', says: ' cannot be read', command: 'signalbox doctor' },
          { kind: 'damaged', key: 'd', subject: 'lock/main', says: ': …', command: 'signalbox witness verify' },
        ],
      }),
    );
    expect(mattersOf(after, NOW).map(({ kind, copies }) => `${kind} ${copies ?? ''}`)).toEqual([
      'damaged signalbox witness verify',
      'unreadable signalbox doctor',
      'driver ',
      'filling signalbox witness export',
    ]);
  });

  it('is asked for as soon as an event of the witness comes', () => {
    const warned = event('witness:damaged', 12, { resource: 'witness/size', chain: 'lock/main', why: 'changed' });
    expect([...applied(board(10), [warned]).unread]).toEqual(['witness']);
    expect(workRead(applied(board(10), [warned]), board(12)).unread.size).toBe(0);
  });
});
