/** What the outcomes of a phase's guards mean for the pipeline: it goes on, it is blocked, or it fails. */
import { type Guard, type GuardOutcome, type OnFailure, wakesOn } from '../guard/guard.ts';
import { missingText } from '../guard/explain.ts';
import { polledInputs } from '../guard/wake.ts';
import { type Event, event, type Moment, unreachable } from '../machine.ts';
import type { Blocked, BlockingGuard } from './record.ts';
import type { Phase } from './runbook.ts';

export type Judgement = { readonly events: readonly Event[] } & (
  | { readonly kind: 'passes'; readonly warnings: readonly string[] }
  | { readonly kind: 'blocks'; readonly blocked: Omit<Extract<Blocked, { on: 'guard' }>, 'since'> }
  | { readonly kind: 'fails'; readonly why: string }
);

const MOST_REASONS = 20;
const LONGEST_REASON = 500;

export function judge(
  phase: Phase,
  when: 'before' | 'after',
  outcomes: readonly GuardOutcome[],
  holder: string,
  at: Moment,
  pollMs?: number,
): Judgement {
  const guards = when === 'before' ? phase.pre : phase.post;
  const judged = guards.map((guard) => ({ guard, ...findingOf(guard, outcomes) }));
  const events = judged.map(({ guard, reasons, isPassed }) =>
    event(isPassed ? 'guard:passed' : 'guard:failed', { holder }, at, {
      guard: guard.id,
      phase: phase.name,
      ...(!isPassed && { reasons, action: actionKind(actionOf(guard)) }),
    }),
  );
  const open = judged.filter(({ isPassed }) => !isPassed);
  const hopeless = open.find(({ guard, outlook }) => isFatal(actionOf(guard), outlook));
  if (hopeless !== undefined) {
    return { kind: 'fails', why: failureTold(phase, hopeless.guard, hopeless.outlook, hopeless.reasons), events };
  }
  const blocking = open.filter(({ guard }) => actionOf(guard) !== 'warn');
  if (blocking.length > 0) return { kind: 'blocks', blocked: blockedOn(blocking, pollMs), events };
  const warnings = open.map(({ guard, reasons }) => `guard ${guard.id}: ${reasons.join('; ')}`);
  return { kind: 'passes', warnings, events };
}

interface Finding {
  readonly isPassed: boolean;
  readonly reasons: readonly string[];
  readonly outlook: BlockingGuard['outlook'];
}

/** A guard that was not judged has not passed. */
function findingOf(guard: Guard, outcomes: readonly GuardOutcome[]): Finding {
  const outcome = outcomes.find(({ guard: id }) => id === guard.id);
  if (outcome?.kind === 'passed') return { isPassed: true, reasons: [], outlook: 'open' };
  if (outcome?.kind === 'failed') return { isPassed: false, reasons: short(outcome.reasons), outlook: outcome.outlook };
  const reasons = outcome === undefined ? ['it was not judged'] : short(outcome.missing.map(missingText));
  return { isPassed: false, reasons, outlook: 'unknown' };
}

function blockedOn(
  blocking: readonly (Finding & { readonly guard: Guard })[],
  pollMs: number | undefined,
): Omit<Extract<Blocked, { on: 'guard' }>, 'since'> {
  const pauses = blocking.flatMap(({ guard }) => {
    const action = actionOf(guard);
    return typeof action === 'object' && 'retry' in action ? [action.retry] : [];
  });
  const polled = [...new Set(blocking.flatMap(({ guard }) => polledInputs(guard.condition).map(({ key }) => key)))];
  return {
    on: 'guard',
    guards: blocking.map(({ guard, reasons, outlook }) => ({ id: guard.id, reasons, outlook })),
    wakeOn: [...new Set(blocking.flatMap(({ guard }) => wakesOn(guard)))],
    polled,
    ...(polled.length > 0 && pollMs !== undefined && { pollMs }),
    ...(pauses.length > 0 && { againMs: Math.min(...pauses) }),
  };
}

function actionOf({ onFailure = 'block' }: Guard): OnFailure {
  return onFailure;
}

/** An input that could not be read fails nothing: the next attempt may read it. */
function isFatal(action: OnFailure, outlook: Finding['outlook']): boolean {
  if (outlook === 'unknown' || action === 'warn') return false;
  // Waiting for what can never come true would mean waiting for ever, without a word.
  return outlook === 'never' || (typeof action === 'object' && 'fail' in action);
}

function failureTold(
  phase: Phase,
  { id, onFailure }: Guard,
  outlook: Finding['outlook'],
  reasons: readonly string[],
): string {
  const own = typeof onFailure === 'object' && 'fail' in onFailure && onFailure.fail !== '' ? `${onFailure.fail} ` : '';
  const never = outlook === 'never' ? 'can never pass: ' : '';
  const told = `phase ${phase.name}, guard ${id}: ${never}${reasons.join('; ')}`;
  return own === '' ? told : `${own}(${told})`;
}

/** What is to be done about a failure, in one word. */
export function actionKind(action: OnFailure): 'block' | 'warn' | 'retry' | 'fail' {
  if (action === 'block' || action === 'warn') return action;
  if ('retry' in action) return 'retry';
  return 'fail' in action ? 'fail' : unreachable(action);
}

/** The reasons become part of the record, and a list of issues may be very long. */
export function short(reasons: readonly string[]): readonly string[] {
  const first = reasons.slice(0, MOST_REASONS).map(cut);
  return reasons.length > MOST_REASONS ? [...first, `and ${reasons.length - MOST_REASONS} more`] : first;
}

/** Text from outside has no limit either. */
export function cut(reason: string): string {
  return reason.length > LONGEST_REASON ? `${reason.slice(0, LONGEST_REASON)}…` : reason;
}
