import { describe, expect, it } from 'vitest';
import { NO_TERMS, type Terms } from '../../core/index.ts';
import { ClaimableTasks, TaskQueue } from './claimable-tasks.ts';
import { CandidatePicker } from './workers.ts';

const data = (published: number, terms: Partial<Terms> = {}): Parameters<ClaimableTasks['add']>[1] => ({
  json: null,
  terms: { ...NO_TERMS, ...terms },
  problem: undefined,
  published,
  mod: published,
});

const all = (lines: ClaimableTasks, has: readonly string[] = []): readonly string[] =>
  lines.best(has, 100, () => false);

describe('the line of tasks', () => {
  it('stays in order of age, whatever comes and goes', () => {
    const line = new TaskQueue();
    const live = new Map<string, number>();
    // A fixed walk through adding and taking, so that places are used again and swept out.
    let seed = 7;
    const next = (below: number): number => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return seed % below;
    };
    for (let step = 0; step < 5000; step++) {
      const n = next(400);
      if (live.has(`t${n}`) || next(3) === 0) {
        line.delete(`t${n}`);
        live.delete(`t${n}`);
      } else {
        line.add(`t${n}`, n);
        live.set(`t${n}`, n);
      }
      if (step % 100 !== 0) continue;
      const expected = [...live].sort(([, a], [, b]) => a - b).map(([id]) => id);
      expect(line.first(5000, () => false).map(({ id }) => id)).toEqual(expected);
      expect(line.size).toBe(expected.length);
    }
  });

  it('gives the oldest of the highest priority that fit, and never mixes priorities', () => {
    const lines = new ClaimableTasks();
    lines.add('old', data(1));
    lines.add('gpu', data(2, { capabilities: ['gpu'] }));
    lines.add('new', data(3));
    lines.add('urgent', data(4, { priority: 5, capabilities: ['rust'] }));
    expect(all(lines)).toEqual(['old', 'new']);
    expect(all(lines, ['gpu'])).toEqual(['old', 'gpu', 'new']);
    expect(all(lines, ['gpu', 'rust'])).toEqual(['urgent']);
    expect(lines.best(['rust'], 100, (id) => id === 'urgent')).toEqual(['old', 'new']);
    expect(lines.best([], 1, () => false)).toEqual(['old']);
    lines.delete('old');
    lines.add('old', data(1));
    expect(all(lines)).toEqual(['old', 'new']);
    for (const id of ['old', 'new', 'gpu', 'urgent']) lines.delete(id);
    expect([all(lines, ['gpu', 'rust']), lines.size]).toEqual([[], 0]);
  });
});

describe('the spread of workers over tasks', () => {
  it('is none for a worker that meets nobody, and grows with those it meets', () => {
    const spread = new CandidatePicker('p');
    for (let time = 0; time < 100; time++) spread.won();
    expect([spread.width, spread.pauseMs(), spread.pick(['a'])]).toEqual([1, 0, 'a']);
    for (let time = 0; time < 20; time++) spread.lost();
    expect(spread.width).toBe(256);
    for (let time = 0; time < 2000; time++) spread.won();
    expect(spread.width).toBe(1);
  });

  it('lets processes choose differently', () => {
    const best = Array.from({ length: 64 }, (_, n) => n);
    const picks = Array.from({ length: 16 }, (_, n) => new CandidatePicker(`process ${n}`).pick(best));
    expect(new Set(picks).size).toBeGreaterThan(10);
  });
});
