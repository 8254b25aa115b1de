import { describe, expect, it } from 'vitest';
import type { PhaseRecord, PipelineRecord } from '../../core/index.ts';
import { changesOf, howToGoOn } from './words.ts';

const AT = 1_000_000;

function record(rest: Partial<PipelineRecord>, phase: Partial<PhaseRecord> = {}): PipelineRecord {
  return {
    version: 2,
    lastQuestion: 0,
    id: 'r7',
    name: 'r',
    state: 'running',
    step: { when: 'before', phase: 0, attempt: 1 },
    phases: [{ name: 'a', state: 'waiting', runs: 0, ...phase }],
    lastToken: 1,
    outputs: {},
    startedBy: 'u',
    startedAt: AT,
    last: 'x',
    ...rest,
  };
}

const free = record({});
const holds = { on: 'holds', resources: ['lock/m'], since: AT } as const;
const during = record({ step: { when: 'during', phase: 0, attempt: 1 } }, { state: 'running', runs: 1, startedAt: AT });

describe('changes in words', () => {
  it.each<[string, PipelineRecord | undefined, PipelineRecord, readonly string[]]>([
    ['it was started', undefined, record({ state: 'pending' }), ['pipeline/r7: started']],
    ['it was taken over', undefined, free, ['pipeline/r7: driven from here, at a']],
    ['a phase begins', free, during, ['a: begins']],
    [
      'a phase begins again',
      during,
      record({ step: { when: 'during', phase: 0, attempt: 2 } }, { state: 'running', runs: 2 }),
      ['a: begins (run 2)'],
    ],
    [
      'it was taken over while it waited: nothing is known yet of now',
      undefined,
      record({
        state: 'blocked',
        blocked: {
          ...{ on: 'guard', since: AT, wakeOn: ['lock:released'], polled: ['file:go'], pollMs: 2_000 },
          guards: [{ id: 'g', reasons: ['no file', 'no lock'], outlook: 'open' }],
        } as unknown as PipelineRecord['blocked'] & object,
      }),
      [
        'pipeline/r7: driven from here, at a',
        'a: was blocked: g: no file',
        'a:   g: no lock',
        'a:   checks at once, and again after lock:released; every 2 s at file:go',
      ],
    ],
    [
      'it was taken over while a person has to decide',
      undefined,
      record({ state: 'blocked', blocked: { on: 'person', why: 'rerun or skip', since: AT, question: 4 } }),
      ['pipeline/r7: driven from here, at a', 'a: blocked: rerun or skip'],
    ],
    ['it waits', free, record({ state: 'blocked', blocked: holds }), ['a: blocked: waiting for lock/m']],
    [
      'it still waits for the same',
      record({ state: 'blocked', blocked: holds }),
      record({ state: 'blocked', blocked: { ...holds, since: AT + 1 } }),
      [],
    ],
    ['it waits no longer', record({ state: 'blocked', blocked: holds }), free, ['a: continues']],
    [
      'it is run again later',
      during,
      record(
        { state: 'blocked', blocked: { on: 'backoff', why: 'exit code 3', againMs: 5_000, since: AT } },
        { runs: 1 },
      ),
      ['a: blocked: exit code 3; again in 5 s'],
    ],
    ['it was warned of', free, record({}, { warnings: ['the tests are red'] }), ['a: warning: the tests are red']],
    [
      'it is done',
      during,
      record({ state: 'done', endedAt: AT + 3_000 }, { state: 'done', runs: 1, startedAt: AT, endedAt: AT + 2_000 }),
      ['a: done after 2 s', 'pipeline/r7: done after 3 s'],
    ],
    [
      'it failed',
      during,
      record(
        { state: 'failed', endedAt: AT + 3_000, reason: 'phase a: exit code 3' },
        { state: 'failed', runs: 1, ended: 'exit code 3' },
      ),
      ['a: failed: exit code 3', 'pipeline/r7: failed after 3 s: phase a: exit code 3'],
    ],
    ['nothing', free, free, []],
  ])('%s', (_, before, after, lines) => {
    expect(changesOf(before, after)).toEqual(lines);
  });
});

describe('how to go on', () => {
  it('is a command that a shell takes as it is, whatever the id', () => {
    expect(howToGoOn(record({ id: "it's; rm -rf $HOME" }))[0]).toBe(
      `continue it: signalbox pipeline resume 'it'\\''s; rm -rf $HOME'`,
    );
    expect(howToGoOn(record({ id: 'r7' }))).toEqual([
      'continue it: signalbox pipeline resume r7',
      'or end it for good: signalbox pipeline cancel r7',
    ]);
  });

  it('is a choice, if a person has to decide', () => {
    expect(howToGoOn(record({ blocked: { on: 'person', why: 'x', since: AT, question: 4 } })).slice(0, 2)).toEqual([
      'run the phase again: signalbox pipeline resume r7 --rerun --question 4',
      'or treat it as done: signalbox pipeline resume r7 --skip --question 4',
    ]);
  });
});
