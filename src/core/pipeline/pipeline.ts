/**
 * The pipeline: phases in order, each gated by guards, driven by one process at a time.
 *
 *     start      drive                    guards pass, holds are there       command succeeds
 *       ─▶ pending ─▶ before phase ─────────────────────────────▶ during ─────────────────▶ after phase ─▶ next … done
 *                      ▲     │ a guard fails, holds are taken       │ │                        │     ▲
 *                      │     ▼                                      │ │                        ▼     │
 *                      └─ blocked ◀── it fails, and has retries ────┘ │                      blocked ┘
 *                      └─ blocked, for a person ◀── its driver died ──┤
 *                         (rerun or skip)                             └─ fails for good ─▶ failed
 *
 *     failed ── reopen ─▶ before the phase that failed, or an earlier one
 *     cancel, from anywhere ─▶ cancelled; during a phase only once nothing of its command runs any more
 *
 * The transition returns the next thing to do as data, an `Effect`. The driver carries it out and decides nothing: the
 * result is its next command. A driver that takes over asks for the effect of the record as it finds it. Commands of a
 * driver carry the token of its hold, and a driver that was replaced is refused.
 */
import { event, type Moment, NONE, type Token, unreachable } from '../machine.ts';
import {
  type DriverCommand,
  type Effect,
  effectOf,
  LEAVE,
  phaseAt,
  type PhaseResult,
  type PipelineCommand,
  type PipelineTransition,
} from './command.ts';
import { actionKind, cut, judge, short } from './judge.ts';
import { withOutputs } from './outputs.ts';
import { nextQuestion, whyVoid } from './question.ts';
import { hasEnded, isAsExpected, type PhaseRecord, type PipelineRecord, RECORD_VERSION } from './record.ts';
import { reopened } from './reopen.ts';
import { backoffMs, type Runbook } from './runbook.ts';
import { fitted, fittedEvents } from './size.ts';
import {
  after,
  blockedOn,
  driverOf,
  freed,
  inStep,
  misplaced,
  moved,
  replaced,
  resumption,
  type Turn,
  unchanged,
  withPhase,
  withRecord,
  withWarnings,
} from './turn.ts';

export function pipelineTransition(
  runbook: Runbook,
  record: PipelineRecord | undefined,
  command: PipelineCommand,
  at: Moment,
): PipelineTransition {
  const step = stepOf(runbook, record, command, at);
  const { state } = step;
  if (state === record || state === undefined) return step;
  const small = fitted(state);
  const events = fittedEvents(step.events);
  if (small === state) return events === step.events ? step : { ...step, events };
  // The record before lost the same things: a guard that is looked at again and again would be written every time.
  if (record !== undefined && isSameButFor(small, record)) return { ...step, state: record, events: NONE };
  return { ...step, state: small, events };
}

function isSameButFor(one: PipelineRecord, other: PipelineRecord): boolean {
  const plain = ({ last: _, lastDriven: __, ...rest }: PipelineRecord): string => JSON.stringify(rest);
  return plain(one) === plain(other);
}

function stepOf(
  runbook: Runbook,
  record: PipelineRecord | undefined,
  command: PipelineCommand,
  at: Moment,
): PipelineTransition {
  if (command.kind === 'start') return start(runbook, record, command, at);
  if (record === undefined) return { state: record, outcome: { kind: 'missing' }, events: NONE, effect: LEAVE };
  const isDriver = 'token' in command;
  const turn: Turn = {
    runbook,
    record,
    written: isDriver ? { lastDriven: command.command } : { last: command.command },
    at,
  };
  if (command.kind === 'reopen') return reopen(turn, command);
  if (hasEnded(record)) return unchanged(turn, { kind: 'over' });
  if (command.kind === 'cancel') return cancel(turn, command);
  if (command.kind === 'drive') return drive(turn, command);
  if (command.token !== record.driver?.token) return replaced(turn);
  return driven(turn, command);
}

function driven(turn: Turn, command: DriverCommand): PipelineTransition {
  const { step, blocked } = turn.record;
  // While it waits for a person or for a pause to end, no result of a phase can arrive.
  const isResting = blocked?.on === 'person' || blocked?.on === 'backoff';
  const when = isResting ? 'never' : step.when;
  const mayAcquire = when === 'before' && phaseAt(turn.runbook, step).holds.length > 0;
  switch (command.kind) {
    case 'judged':
      return when === command.when ? judged(turn, command) : misplaced(turn);
    case 'waits':
      return mayAcquire ? waits(turn, command.resources) : misplaced(turn);
    case 'refused':
      return mayAcquire ? commandFailed(turn, command.why) : misplaced(turn);
    case 'begun':
      return when === 'before' ? begun(turn, command.tokens) : misplaced(turn);
    case 'ended':
      return when === 'during' ? ended(turn, command.result) : misplaced(turn);
    case 'rested':
      return blocked?.on === 'backoff' ? moved(turn, freed(turn.record), resumption(turn)) : misplaced(turn);
    case 'decided':
      return decided(turn, command);
    default:
      return unreachable(command);
  }
}

function start(
  runbook: Runbook,
  record: PipelineRecord | undefined,
  { id, by, command }: Extract<PipelineCommand, { kind: 'start' }>,
  at: Moment,
): PipelineTransition {
  if (record !== undefined) {
    const outcome = record.last === command ? ({ kind: 'started' } as const) : ({ kind: 'exists' } as const);
    return { state: record, outcome, events: NONE, effect: effectOf(runbook, record) };
  }
  const state: PipelineRecord = {
    version: RECORD_VERSION,
    id,
    name: runbook.name,
    state: 'pending',
    step: { when: 'before', phase: 0, attempt: 1 },
    phases: runbook.phases.map(({ name }) => ({ name, state: 'waiting', runs: 0 })),
    lastToken: 0,
    lastQuestion: 0,
    outputs: {},
    startedBy: by,
    startedAt: at.now,
    last: command,
  };
  const events = [event('pipeline:started', { holder: by }, at, { name: runbook.name })];
  return { state, outcome: { kind: 'started' }, events, effect: effectOf(runbook, state) };
}

// A driver takes over

function drive(turn: Turn, { holder, token }: Extract<PipelineCommand, { kind: 'drive' }>): PipelineTransition {
  const { record, at } = turn;
  if (token < record.lastToken) return replaced(turn);
  if (token === record.driver?.token) return unchanged(turn, { kind: 'ok' });
  const isFirst = record.state === 'pending';
  const driving: PipelineRecord = { ...record, driver: { holder, token, since: at.now }, lastToken: token };
  const began = { ...turn, record: driving };
  const takenOver = isFirst ? [] : [event('pipeline:resumed', { holder }, at, { why: 'a driver took over', token })];
  if (record.step.when === 'during') return after(interrupted(began, 'its driver was lost'), takenOver);
  if (record.blocked?.on === 'holds' || isFirst) return moved(began, freed(driving), takenOver);
  return moved(began, driving, takenOver);
}

/** The command had begun, and it is unknown how far it came. */
function interrupted(turn: Turn, why: string): PipelineTransition {
  const { record, runbook, at } = turn;
  if (record.cancel !== undefined) return finished(turn, 'cancelled', record.cancel.reason);
  const { name, idempotent } = phaseAt(runbook, record.step);
  const back = inStep(record, 'before');
  if (idempotent) return moved(turn, freed(withPhase(back, { state: 'waiting', ended: `interrupted: ${why}` })));
  const told =
    `phase ${name} had begun when ${why}, and nobody knows how far it came; it is not marked idempotent. ` +
    'Look, then resume with rerun (run it again) or skip (take it as done)';
  const phase = { state: 'interrupted', endedAt: at.now, ended: `interrupted: ${why}` } as const;
  return asks(turn, withPhase(back, phase), told);
}

/** Asks a person, under a number that no question had before. */
function asks(turn: Turn, record: PipelineRecord, why: string): PipelineTransition {
  const question = nextQuestion(record, turn.at);
  return blockedOn(turn, { ...record, lastQuestion: question }, { on: 'person', why, question });
}

function decided(turn: Turn, command: Extract<DriverCommand, { readonly kind: 'decided' }>): PipelineTransition {
  const { record, at } = turn;
  const { question, choice, by } = command;
  const isVoid = whyVoid(record, question);
  if (isVoid !== undefined) return unchanged(turn, isVoid);
  const { phase, attempt } = record.step;
  const told = [event('pipeline:resumed', { holder: by }, at, { why: `${by} decided: ${choice}` })];
  const answered = { ...freed(record), answered: { question, choice, by } };
  switch (choice) {
    case 'skip': {
      const skipped = withPhase(answered, { state: 'skipped', endedAt: at.now });
      return after(commandDone(withRecord(turn, skipped)), told);
    }
    case 'rerun': {
      // A phase that was interrupted has not failed.
      const next = record.phases[phase]?.state === 'failed' ? attempt + 1 : attempt;
      const again = { ...answered, step: { when: 'before', phase, attempt: next } } as const;
      return moved(turn, withPhase(again, { state: 'waiting' }), told);
    }
    default:
      return unreachable(choice);
  }
}

// Guards

function judged(
  turn: Turn,
  { when, outcomes, isHeld = false, pollMs }: Extract<DriverCommand, { readonly kind: 'judged' }>,
): PipelineTransition {
  const { runbook, record, at } = turn;
  const phase = phaseAt(runbook, record.step);
  const verdict = judge(phase, when, outcomes, driverOf(record), at, pollMs);
  if (verdict.kind === 'fails') {
    return after(
      finished(withRecord(turn, withPhase(record, { state: 'failed' })), 'failed', verdict.why),
      verdict.events,
    );
  }
  if (verdict.kind === 'blocks') return blockedOn(turn, record, verdict.blocked, verdict.events);
  const warned = verdict.warnings.length === 0 ? record : withWarnings(record, verdict.warnings);
  if (when === 'after') {
    return after(phaseDone(withRecord(turn, freed(warned))), [...verdict.events, ...resumption(turn)]);
  }
  // That the guards passed is not written by itself: the next command follows at once, and its write shows it.
  const { attempt } = record.step;
  const effect: Effect =
    isHeld || phase.holds.length === 0
      ? { kind: 'begin', phase, attempt }
      : { kind: 'acquire', phase, holds: phase.holds };
  if (warned === record) return { ...unchanged(turn, { kind: 'ok' }), events: verdict.events, effect };
  return { ...moved(turn, warned, verdict.events), effect };
}

function waits(turn: Turn, resources: readonly string[]): PipelineTransition {
  const { record } = turn;
  const phase = phaseAt(turn.runbook, record.step);
  const effect: Effect = { kind: 'acquire', phase, holds: phase.holds };
  return { ...blockedOn(turn, record, { on: 'holds', resources: short(resources) }), effect };
}

// The command

function begun(turn: Turn, tokens: Readonly<Record<string, Token>>): PipelineTransition {
  const { record, at, runbook } = turn;
  const { name } = phaseAt(runbook, record.step);
  const { attempt } = record.step;
  // Drops when an earlier run ended, which says nothing of this one.
  const { endedAt: _, ...before } = record.phases[record.step.phase] as PhaseRecord;
  const phase: PhaseRecord = {
    ...before,
    state: 'running',
    runs: before.runs + 1,
    startedAt: before.startedAt ?? at.now,
    ...(Object.keys(tokens).length > 0 && { tokens }),
  };
  const phases = record.phases.map((each, place) => (place === record.step.phase ? phase : each));
  const running = { ...inStep(freed(record), 'during'), phases };
  const who = { holder: driverOf(record) };
  return moved(turn, running, [...resumption(turn), event('pipeline:phase', who, at, { phase: name, attempt })]);
}

function ended(turn: Turn, result: PhaseResult): PipelineTransition {
  const { record, at } = turn;
  // Whatever became of the command, nobody wants the rest of a cancelled pipeline.
  if (record.cancel !== undefined || result.kind === 'cancelled') {
    return finished(turn, 'cancelled', record.cancel?.reason ?? 'cancelled');
  }
  switch (result.kind) {
    case 'stopped':
      return interrupted(turn, cut(result.why));
    case 'failed':
      return commandFailed(turn, result.why);
    case 'succeeded': {
      const merged = withOutputs(record.outputs, result.outputs);
      if (!merged.ok) return commandFailed(turn, merged.problem);
      const done = withPhase(record, { state: 'done', endedAt: at.now, ended: 'succeeded' });
      return commandDone(withRecord(turn, { ...done, outputs: merged.outputs }));
    }
    default:
      return unreachable(result);
  }
}

function commandFailed(turn: Turn, reason: string): PipelineTransition {
  const { runbook, record, at } = turn;
  const why = cut(reason);
  const phase = phaseAt(runbook, record.step);
  const { attempt } = record.step;
  const failed = withPhase(record, { state: 'failed', endedAt: at.now, ended: why });
  if (attempt <= phase.retries) return again(turn, failed, why, backoffMs(phase, attempt + 1));
  const tries = attempt === 1 ? '' : ` (tried ${attempt} times)`;
  const told = `phase ${phase.name}: ${why}${tries}`;
  const action = phase.onFailure ?? { fail: '' };
  const kind = actionKind(action);
  switch (kind) {
    case 'warn':
      // `freed`, because the phase may have been blocked on holds that were refused in the end.
      return after(commandDone(withRecord(turn, freed(withWarnings(failed, [told])))), resumption(turn));
    case 'block': {
      const person = `${told}. Look, then resume with rerun (run it again) or skip (take it as done)`;
      return asks(turn, inStep(failed, 'before'), person);
    }
    case 'retry':
      return again(turn, failed, why, (action as { readonly retry: number }).retry);
    case 'fail': {
      const message = (action as { readonly fail: string }).fail;
      return finished(withRecord(turn, failed), 'failed', message === '' ? told : `${message} (${told})`);
    }
    default:
      return unreachable(kind);
  }
}

function again(turn: Turn, record: PipelineRecord, why: string, againMs: number): PipelineTransition {
  const { phase, attempt } = record.step;
  const next: PipelineRecord = { ...record, step: { when: 'before', phase, attempt: attempt + 1 } };
  return blockedOn(turn, withPhase(next, { state: 'waiting' }), { on: 'backoff', why, againMs });
}

/** The last guards of the phase, if it has any, are still to pass. */
function commandDone(turn: Turn): PipelineTransition {
  const { runbook, record } = turn;
  if (phaseAt(runbook, record.step).post.length === 0) return phaseDone(turn);
  return moved(turn, inStep(record, 'after'));
}

function phaseDone(turn: Turn): PipelineTransition {
  const { runbook, record } = turn;
  const phase = record.step.phase + 1;
  if (phase === runbook.phases.length) return finished(turn, 'done');
  return moved(turn, { ...record, step: { when: 'before', phase, attempt: 1 } });
}

// Ending

function cancel(
  turn: Turn,
  { by, expected, ...asking }: Extract<PipelineCommand, { kind: 'cancel' }>,
): PipelineTransition {
  const { record, at } = turn;
  const reason = cut(asking.reason);
  if (!isAsExpected(record, expected)) return misplaced(turn);
  if (record.cancel !== undefined) return unchanged(turn, { kind: 'cancelling' });
  const asked: PipelineRecord = { ...record, cancel: { by, reason, at: at.now } };
  if (record.step.when !== 'during') return finished(withRecord(turn, asked), 'cancelled', reason);
  const told = [event('pipeline:cancelling', { holder: by }, at, { reason })];
  return { ...moved(turn, asked, told), outcome: { kind: 'cancelling' } };
}

function finished(turn: Turn, state: 'done' | 'failed' | 'cancelled', reason?: string): PipelineTransition {
  const { record, at } = turn;
  const { blocked: _, driver: __, ...rest } = record;
  const running = record.phases[record.step.phase]?.state === 'running';
  const last: PipelineRecord = {
    ...(state === 'cancelled' && running ? withPhase(rest, { state: 'cancelled', endedAt: at.now }) : rest),
    state,
    endedAt: at.now,
    ...(reason !== undefined && { reason }),
  };
  const who = { holder: state === 'cancelled' ? (record.cancel?.by ?? driverOf(record)) : driverOf(record) };
  const detail = {
    ...(state !== 'done' && { phase: record.phases[record.step.phase]?.name ?? '' }),
    ...(reason !== undefined && { reason }),
  };
  return moved(turn, last, [event(`pipeline:${state}`, who, at, detail)]);
}

function reopen(turn: Turn, { from, by }: Extract<PipelineCommand, { kind: 'reopen' }>): PipelineTransition {
  const { record, at } = turn;
  const opened = reopened(record, from, by, at);
  if (opened === undefined) return unchanged(turn, { kind: hasEnded(record) ? 'over' : 'misplaced' });
  return moved(turn, opened.record, [opened.event]);
}
