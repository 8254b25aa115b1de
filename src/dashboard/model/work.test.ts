import { describe, expect, it } from 'vitest';
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
