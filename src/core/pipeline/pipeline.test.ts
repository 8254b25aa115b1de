import { describe, expect, it } from 'vitest';
import type { Guard, GuardOutcome } from '../guard/guard.ts';
import type { Moment } from '../machine.ts';
import { type DriverCommand, effectOf, type PipelineCommand, type PipelineTransition } from './command.ts';
import { pipelineTransition } from './pipeline.ts';
import type { PipelineRecord } from './record.ts';
import { backoffMs, LONGEST_BACKOFF_MS, type Phase, type Runbook } from './runbook.ts';

const at: Moment = { now: 1_000, revision: 1, gone: () => false };
let commands = 0;

function aPhase(settings: Partial<Phase> = {}): Phase {
  return {
    name: 'build',
    run: { shell: 'make' },
    pre: [],
    post: [],
    holds: [],
    retries: 0,
    backoffMs: 1_000,
    idempotent: false,
    env: {},
    ...settings,
  };
}

function runbookOf(...phases: readonly Partial<Phase>[]): Runbook {
  return { name: 'release', env: {}, phases: phases.map(aPhase) };
}

type Ask = PipelineCommand extends infer Each ? (Each extends PipelineCommand ? Omit<Each, 'command'> : never) : never;

/** A pipeline that is told one thing after another. */
class Told {
  readonly runbook: Runbook;
  record: PipelineRecord | undefined;

  constructor(...phases: readonly Partial<Phase>[]) {
    this.runbook = runbookOf(...phases);
    this.tell({ kind: 'start', id: 'r-1', by: 'ann' });
    this.drive(1);
  }

  tell(ask: Ask): PipelineTransition {
    const command = { ...ask, command: `c-${++commands}` } as PipelineCommand;
    const told = pipelineTransition(this.runbook, this.record, command, at);
    this.record = told.state;
    return told;
  }

  drive(token: number): PipelineTransition {
    return this.tell({ kind: 'drive', holder: `w${token}`, token });
  }

  by(token: number, command: DriverCommand): PipelineTransition {
    return this.tell({ ...command, token });
  }

  fail(why: string): PipelineTransition {
    this.by(1, { kind: 'begun', tokens: {} });
    return this.by(1, { kind: 'ended', result: { kind: 'failed', why } });
  }
}

describe('a driver that was replaced', () => {
  it('has to leave, not to run what its successor runs: otherwise it would run twice', () => {
    const pipeline = new Told({});
    pipeline.drive(2);
    pipeline.by(2, { kind: 'begun', tokens: {} });
    const { outcome, effect } = pipeline.by(1, { kind: 'begun', tokens: {} });
    expect([outcome, effect]).toEqual([{ kind: 'replaced' }, { kind: 'leave' }]);
    expect(pipeline.drive(1)).toMatchObject({ outcome: { kind: 'replaced' }, effect: { kind: 'leave' } });
  });
});

describe('a phase that is refused its holds and may fail', () => {
  it('leaves nothing behind that says it still waits for them', () => {
    const holds = [{ lock: 'main' }];
    const pipeline = new Told({ holds, onFailure: 'warn' }, { name: 'deploy' });
    pipeline.by(1, { kind: 'waits', resources: ['lock/main'] });
    const { events } = pipeline.by(1, { kind: 'refused', why: 'deadlock' });
    expect(pipeline.record).toMatchObject({ state: 'running', step: { when: 'before', phase: 1 } });
    expect(pipeline.record).not.toHaveProperty('blocked');
    expect(events.map(({ type }) => type)).toEqual(['pipeline:resumed']);
  });
});

describe('a phase that a person runs again', () => {
  const rerun = (pipeline: Told): PipelineTransition =>
    pipeline.by(1, { kind: 'decided', question: pipeline.record?.lastQuestion ?? 0, choice: 'rerun', by: 'ann' });

  it('is at its next attempt if it had failed', () => {
    const pipeline = new Told({ onFailure: 'block' });
    pipeline.fail('exit code 1');
    rerun(pipeline);
    expect(pipeline.record?.step.attempt).toBe(2);
    pipeline.fail('exit code 1');
    expect(pipeline.record?.blocked).toMatchObject({ why: expect.stringContaining('(tried 2 times)') as string });
  });

  it('is at the same attempt if it was interrupted, and has all its retries', () => {
    const pipeline = new Told({ retries: 1 });
    pipeline.by(1, { kind: 'begun', tokens: {} });
    pipeline.by(1, { kind: 'ended', result: { kind: 'stopped', why: 'its driver was stopped' } });
    rerun(pipeline);
    expect(pipeline.record?.step.attempt).toBe(1);
    expect(pipeline.fail('exit code 1').effect).toEqual({ kind: 'pause', ms: 1_000 });
  });
});

describe('a phase that was interrupted', () => {
  it('is not said to run while a person is asked, nor after the pipeline was cancelled', () => {
    const pipeline = new Told({});
    pipeline.by(1, { kind: 'begun', tokens: {} });
    pipeline.drive(2);
    expect(pipeline.record).toMatchObject({ state: 'blocked', phases: [{ state: 'interrupted', endedAt: at.now }] });
    pipeline.tell({ kind: 'cancel', by: 'ann', reason: 'enough' });
    expect(pipeline.record).toMatchObject({ state: 'cancelled', phases: [{ state: 'interrupted' }] });
  });
});

describe('a phase that runs again', () => {
  it('has not ended yet, although it did before', () => {
    const pipeline = new Told({ retries: 1 });
    pipeline.fail('exit code 1');
    pipeline.by(1, { kind: 'rested' });
    pipeline.by(1, { kind: 'begun', tokens: {} });
    expect(pipeline.record?.phases[0]).toMatchObject({ state: 'running', runs: 2, ended: 'exit code 1' });
    expect(pipeline.record?.phases[0]).not.toHaveProperty('endedAt');
  });
});

describe('the record of a pipeline', () => {
  it('does not grow with every attempt, however often and at whatever length it is warned', () => {
    const guard: Guard = { id: 'quiet', condition: { lockFree: 'main' }, onFailure: 'warn' };
    const pipeline = new Told({ pre: [guard], onFailure: { retry: 10 } });
    const sizes = Array.from({ length: 60 }, (_, turn) => {
      const reasons = [`held by ${String(turn).padStart(2_000, 'x')}`];
      const outcome: GuardOutcome = { kind: 'failed', guard: 'quiet', action: 'warn', reasons, outlook: 'open' };
      pipeline.by(1, { kind: 'judged', when: 'before', outcomes: [outcome] });
      pipeline.fail(`error ${'y'.repeat(100_000)}`);
      pipeline.by(1, { kind: 'rested' });
      return JSON.stringify(pipeline.record).length;
    });
    expect(Math.max(...sizes)).toBeLessThan(20_000);
  });

  it('is the very same when a guard fails for the same reasons again', () => {
    const guard: Guard = { id: 'quiet', condition: { lockFree: 'main' } };
    const pipeline = new Told({ pre: [guard] });
    const reasons = ['lock "main" is held by ci'];
    const outcomes: GuardOutcome[] = [{ kind: 'failed', guard: 'quiet', action: 'block', reasons, outlook: 'open' }];
    pipeline.by(1, { kind: 'judged', when: 'before', outcomes });
    const { record } = pipeline;
    pipeline.by(1, { kind: 'judged', when: 'before', outcomes });
    expect(pipeline.record).toBe(record);
  });
});

describe('an answer that got lost', () => {
  it('is found again by who asked: starting twice with one command is starting once', () => {
    const runbook = runbookOf({});
    const start = { kind: 'start', id: 'r-1', by: 'ann', command: 'c' } as const;
    const { state } = pipelineTransition(runbook, undefined, start, at);
    expect(pipelineTransition(runbook, state, start, at)).toMatchObject({ state, outcome: { kind: 'started' } });
    const other = pipelineTransition(runbook, state, { ...start, command: 'd' }, at);
    expect([other.state, other.outcome]).toEqual([state, { kind: 'exists' }]);
  });

  it('is marked by the command that wrote it, apart for drivers and for others', () => {
    const pipeline = new Told({});
    pipeline.by(1, { kind: 'begun', tokens: {} });
    const driven = pipeline.record?.lastDriven;
    pipeline.tell({ kind: 'cancel', by: 'ann', reason: 'enough' });
    expect(pipeline.record).toMatchObject({ lastDriven: driven, last: `c-${commands}` });
  });
});

describe('what is to be done about a pipeline that is not there', () => {
  it('is nothing', () => {
    const { state, outcome, effect } = pipelineTransition(
      runbookOf({}),
      undefined,
      { kind: 'drive', holder: 'w', token: 1, command: 'c' },
      at,
    );
    expect([state, outcome, effect]).toEqual([undefined, { kind: 'missing' }, { kind: 'leave' }]);
  });
});

describe('the pause before another attempt', () => {
  it('doubles each time, up to a minute, and is never shorter than asked for', () => {
    const pauses = (first: number) =>
      [2, 3, 4, 9, 2_000].map((attempt) => backoffMs(aPhase({ backoffMs: first }), attempt));
    expect(pauses(1_000)).toEqual([1_000, 2_000, 4_000, LONGEST_BACKOFF_MS, LONGEST_BACKOFF_MS]);
    expect(pauses(90_000)).toEqual([90_000, 90_000, 90_000, 90_000, 90_000]);
    expect(pauses(0)).toEqual([0, 0, 0, 0, 0]);
  });

  it('is kept as it was when another driver takes over', () => {
    const pipeline = new Told({ retries: 1, backoffMs: 5_000 });
    pipeline.fail('exit code 1');
    expect(pipeline.drive(2).effect).toEqual({ kind: 'pause', ms: 5_000 });
    expect(effectOf(pipeline.runbook, pipeline.record as PipelineRecord)).toEqual({ kind: 'pause', ms: 5_000 });
  });
});
