import { describe, expect, it } from 'vitest';
import type { PhaseRecord, PipelineRecord } from '../../core/index.ts';
import { unpainted } from '../output.ts';
import { columnsOf, fit, withoutEscapes, wrapped } from './columns.ts';
import { LastLines } from './last-lines.ts';
import { type Frame, pictureOf } from './picture.ts';

const AT = 1_000_000;
const phase = (name: string, rest: Partial<PhaseRecord> = {}): PhaseRecord => ({
  name,
  state: 'waiting',
  runs: 0,
  ...rest,
});
const done = (name: string): PhaseRecord => phase(name, { state: 'done', runs: 1, startedAt: AT, endedAt: AT + 3_000 });

function record(rest: Partial<PipelineRecord>): PipelineRecord {
  return {
    version: 2,
    lastQuestion: 0,
    id: 'release-7',
    name: 'release',
    state: 'running',
    step: { when: 'during', phase: 1, attempt: 1 },
    phases: [done('plan'), phase('merge', { state: 'running', runs: 1, startedAt: AT + 3_000 }), phase('deploy')],
    lastToken: 1,
    outputs: {},
    startedBy: 'user:a',
    startedAt: AT,
    last: 'x',
    ...rest,
  };
}

function drawn(of: PipelineRecord, frame: Partial<Frame> = {}): readonly string[] {
  const whole = {
    width: 60,
    height: Number.POSITIVE_INFINITY,
    paint: unpainted,
    now: AT + 12_000,
    printed: [],
    isDriven: true,
  };
  return pictureOf(of, { ...whole, ...frame }).map(({ text }) => text);
}

describe('the picture of a pipeline', () => {
  it('shows what became of each phase, and the last words of the one that runs', () => {
    expect(drawn(record({}), { printed: ['\x1b[31mred\x1b[0m', 'last'] })).toEqual([
      'release-7  running · 12 s',
      '  ✓ plan    3 s',
      '  ▸ merge   9 s',
      '      │ red',
      '      │ last',
      '  · deploy',
    ]);
  });

  it('says on which guard it is blocked, every reason, and what would wake it', () => {
    const blocked = record({
      state: 'blocked',
      step: { when: 'before', phase: 2, attempt: 1 },
      phases: [done('plan'), done('merge'), phase('deploy')],
      blocked: {
        since: AT + 6_000,
        on: 'guard',
        guards: [
          { id: 'deploy.pre', reasons: ['lock "deploy" is held by agent:7', 'issue 4 is open'], outlook: 'open' },
          { id: 'tests', reasons: ['no branch "x"'], outlook: 'stuck' },
        ],
        wakeOn: ['lock:released'],
        polled: ['issue:4'],
        pollMs: 2_000,
        againMs: 30_000,
      },
    });
    expect(drawn(blocked)).toEqual([
      'release-7  blocked · 12 s',
      '  ✓ plan    3 s',
      '  ✓ merge   3 s',
      '  ▸ deploy  blocked · 6 s',
      '      deploy.pre: lock "deploy" is held by agent:7',
      '      deploy.pre: issue 4 is open',
      '      tests: no branch "x" (cannot pass as things stand)',
      '      checks again after lock:released; every 2 s at',
      '        issue:4; in any case every 30 s',
    ]);
  });

  it('says why it failed, and that nobody drives one that was left', () => {
    const failed = phase('merge', {
      state: 'failed',
      runs: 2,
      startedAt: AT,
      endedAt: AT + 1_500,
      ended: 'exit code 3',
    });
    expect(
      drawn(
        record({
          state: 'failed',
          reason: 'phase merge: exit code 3',
          phases: [done('plan'), failed, phase('deploy')],
          endedAt: AT + 5_000,
        }),
        {
          printed: ['oh no'],
        },
      ),
    ).toEqual([
      'release-7  failed · 5 s',
      '  phase merge: exit code 3',
      '  ✓ plan    3 s',
      '  ✗ merge   2 s · run 2 · exit code 3',
      '      │ oh no',
      '  · deploy',
    ]);
    expect(drawn(record({}), { isDriven: false })[0]).toBe('release-7  stopped · 12 s · no process drives it');
  });

  it('keeps to the window: no line is wider, and what has no room is counted', () => {
    const phases = Array.from({ length: 60 }, (_, at) =>
      at < 30 ? done(`phase-${at}`) : phase(`phase-${at}-${'x'.repeat(50)}`),
    );
    const many = record({ phases, step: { when: 'during', phase: 30, attempt: 1 } });
    const lines = pictureOf(many, {
      width: 30,
      height: 10,
      paint: unpainted,
      now: AT,
      printed: ['wide '.repeat(20)],
      isDriven: true,
    });
    expect(lines).toHaveLength(10);
    expect(lines.filter(({ columns, text }) => columns > 30 || columns !== columnsOf(text))).toEqual([]);
    expect(lines[1]?.text).toMatch(/^ {2}… \d+ before$/);
    expect(lines.at(-1)?.text).toMatch(/^ {2}… \d+ more$/);
    expect(lines.some(({ text }) => text.startsWith('  ▸ phase-30'))).toBe(true);
  });

  it('is never higher than the window, however low that is', () => {
    for (let height = 1; height < 8; height++)
      expect(drawn(record({}), { height, printed: ['a', 'b', 'c'] }).length).toBeLessThanOrEqual(height);
  });

  it('lets nobody do anything to the terminal by a name or by what is printed', () => {
    const text = drawn(
      record({
        id: 'a\x1b[2Jb',
        phases: [phase('p\x07\x1b]0;x\x07q')],
        step: { when: 'during', phase: 0, attempt: 1 },
      }),
      { printed: ['\x1b[2J\x1b]0;t\x07gone\x9b'] },
    );
    expect(text.join('\n')).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  });
});

describe('text on a terminal', () => {
  it('is measured in columns, of which some letters take two', () => {
    expect(['abc', '日本', '🚦x', 'é'].map(columnsOf)).toEqual([3, 4, 3, 1]);
    expect(fit('日本語', 4)).toBe('日…');
    expect(fit('abcd', 4)).toBe('abcd');
  });

  it('is broken between words, and inside a word that is longer than a line', () => {
    expect(wrapped('one two three', 7)).toEqual(['one two', 'three']);
    expect(wrapped('muchtoolong a', 4)).toEqual(['much', 'tool', 'ong', 'a']);
  });

  it('is freed of what moves the cursor', () => {
    expect(withoutEscapes('\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07 \x1b(Bend\x1b')).toBe(
      'red link end\x1b',
    );
  });
});

describe('the last lines of a stream', () => {
  it('are those that one would see', () => {
    const lines = new LastLines();
    lines.add('one\ntw');
    lines.add('o\r\n10%\r50%\r');
    lines.add('100%');
    expect(lines.all).toEqual(['one', 'two', '100%']);
  });

  it('take little room, however much comes and however it is cut', () => {
    const lines = new LastLines();
    for (let at = 0; at < 1_000; at++) lines.add('x'.repeat(10_000));
    lines.add('\n'.repeat(100_000));
    expect(lines.all.join('').length).toBeLessThan(30_000);
  });
});
