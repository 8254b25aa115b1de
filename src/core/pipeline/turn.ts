/** One command at a pipeline: the record it finds, the changes it can make to it, and the transitions it can end in. */
import { type Event, event, type Moment, NONE, unreachable } from '../machine.ts';
import { effectOf, LEAVE, type PipelineOutcome, type PipelineTransition } from './command.ts';
import { cut } from './judge.ts';
import type { Blocked, PhaseRecord, PipelineRecord, PipelineStep } from './record.ts';
import type { Runbook } from './runbook.ts';

const MOST_WARNINGS = 20;

export interface Turn {
  readonly runbook: Runbook;
  readonly record: PipelineRecord;
  readonly written: Pick<PipelineRecord, 'lastDriven'> | Pick<PipelineRecord, 'last'>;
  readonly at: Moment;
}

export function withRecord(turn: Turn, record: PipelineRecord): Turn {
  return { ...turn, record };
}

// The record

export function driverOf({ driver, startedBy }: PipelineRecord): string {
  return driver?.holder ?? startedBy;
}

export function inStep(record: PipelineRecord, when: PipelineStep['when']): PipelineRecord {
  return { ...record, step: { ...record.step, when } };
}

/** Changes the phase that the record is at. */
export function withPhase(record: PipelineRecord, change: Partial<PhaseRecord>): PipelineRecord {
  const phases = record.phases.map((phase, at) => (at === record.step.phase ? { ...phase, ...change } : phase));
  return { ...record, phases };
}

export function withWarnings(record: PipelineRecord, warnings: readonly string[]): PipelineRecord {
  const { warnings: before = [], warningsDropped = 0 } = record.phases[record.step.phase] as PhaseRecord;
  const fresh = warnings.map(cut).filter((warning) => !before.includes(warning));
  if (fresh.length === 0) return record;
  // A phase that is tried again and again may have another warning every time.
  const all = [...before, ...new Set(fresh)];
  const dropped = warningsDropped + Math.max(0, all.length - MOST_WARNINGS);
  return withPhase(record, {
    warnings: all.slice(-MOST_WARNINGS),
    ...(dropped > 0 && { warningsDropped: dropped }),
  });
}

export function freed({ blocked: _, ...record }: PipelineRecord): PipelineRecord {
  return { ...record, state: 'running' };
}

// The end of a turn

/** The event to emit when it is no longer blocked. */
export function resumption({ record, at }: Turn): readonly Event[] {
  if (record.blocked === undefined) return NONE;
  const phase = record.phases[record.step.phase]?.name ?? '';
  return [event('pipeline:resumed', { holder: driverOf(record) }, at, { phase })];
}

type BlockedOn = Blocked extends infer Each ? (Each extends Blocked ? Omit<Each, 'since'> : never) : never;

/** If it is blocked on the same reason as before, the record stays as it was and no event is repeated. */
export function blockedOn(
  turn: Turn,
  record: PipelineRecord,
  on: BlockedOn,
  events: readonly Event[] = NONE,
): PipelineTransition {
  const { at } = turn;
  const { since, ...before } = turn.record.blocked ?? { since: at.now };
  if (record === turn.record && JSON.stringify(before) === JSON.stringify(on)) {
    return { ...unchanged(turn, { kind: 'ok' }), events };
  }
  const blocked = { since: turn.record.blocked?.on === on.on ? since : at.now, ...on } as Blocked;
  const phase = record.phases[record.step.phase]?.name ?? '';
  const told = event('pipeline:blocked', { holder: driverOf(record) }, at, {
    phase,
    on: on.on,
    reasons: reasonsOf(on),
    ...(on.on === 'person' && { question: on.question }),
  });
  return moved(turn, { ...record, state: 'blocked', blocked }, [...events, told]);
}

function reasonsOf(blocked: BlockedOn): readonly string[] {
  switch (blocked.on) {
    case 'guard':
      return blocked.guards.flatMap(({ reasons }) => reasons);
    case 'holds':
      return [`waiting for ${blocked.resources.join(', ')}`];
    case 'backoff':
    case 'person':
      return [blocked.why];
    default:
      return unreachable(blocked);
  }
}

export function moved(turn: Turn, record: PipelineRecord, events: readonly Event[] = NONE): PipelineTransition {
  const state: PipelineRecord = { ...record, ...turn.written };
  return { state, outcome: { kind: 'ok' }, events, effect: effectOf(turn.runbook, state) };
}

export function after(transition: PipelineTransition, events: readonly Event[]): PipelineTransition {
  return { ...transition, events: [...events, ...transition.events] };
}

export function unchanged({ runbook, record }: Turn, outcome: PipelineOutcome): PipelineTransition {
  return { state: record, outcome, events: NONE, effect: effectOf(runbook, record) };
}

/** Leaves the effect to the successor: a replaced driver that got `run` would run the command a second time. */
export function replaced(turn: Turn): PipelineTransition {
  return { ...unchanged(turn, { kind: 'replaced' }), effect: LEAVE };
}

export function misplaced(turn: Turn): PipelineTransition {
  return unchanged(turn, { kind: 'misplaced' });
}
