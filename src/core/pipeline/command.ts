/** What a pipeline is asked, what it answers, and what it asks its driver to do next. */
import type { GuardOutcome } from '../guard/guard.ts';
import type { Event, Token } from '../machine.ts';
import type { Choice, VoidAnswer } from './question.ts';
import { type ExpectedPipeline, hasEnded, type PipelineRecord, type PipelineStep } from './record.ts';
import type { Phase, PhaseHold, Runbook } from './runbook.ts';

export type PipelineCommand = { readonly command: string } & (
  | { readonly kind: 'start'; readonly id: string; readonly by: string }
  /** A process has the driver's hold, and nothing that an earlier driver began is still running. */
  | { readonly kind: 'drive'; readonly holder: string; readonly token: Token }
  | {
      readonly kind: 'cancel';
      readonly by: string;
      readonly reason: string;
      /** The pipeline as the caller saw it; one that has moved on since stays as it is. */
      readonly expected?: ExpectedPipeline;
    }
  /** Starts it again from this phase, after it has failed. */
  | { readonly kind: 'reopen'; readonly from: string; readonly by: string }
  | ({ readonly token: Token } & DriverCommand)
);

export type DriverCommand =
  /** What came of an `evaluate`; `isHeld`: the holds of the phase are there already. */
  | {
      readonly kind: 'judged';
      readonly when: 'before' | 'after';
      readonly outcomes: readonly GuardOutcome[];
      readonly isHeld?: boolean;
      /** How often the driver polls inputs that no event announces; shown to people. */
      readonly pollMs?: number;
    }
  /** The holds of the phase cannot be had at once. */
  | { readonly kind: 'waits'; readonly resources: readonly string[] }
  /** They cannot be had at all: more slots than there are, or a deadlock. */
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'begun'; readonly tokens: Readonly<Record<string, Token>> }
  | { readonly kind: 'ended'; readonly result: PhaseResult }
  /** The pause before the next attempt is over. */
  | { readonly kind: 'rested' }
  /** What a person decided about the question of this number. */
  | { readonly kind: 'decided'; readonly question: number; readonly choice: Choice; readonly by: string };

export type PhaseResult =
  | { readonly kind: 'succeeded'; readonly outputs: Readonly<Record<string, string>> }
  /** In words: `exit code 3`, `timed out after 10 min`. */
  | { readonly kind: 'failed'; readonly why: string }
  /** The driver ended it because it was asked to stop. As if the driver had died, but no process is left behind. */
  | { readonly kind: 'stopped'; readonly why: string }
  /** The driver ended it because the pipeline was cancelled. */
  | { readonly kind: 'cancelled' };

export type PipelineOutcome =
  | { readonly kind: 'started' }
  /** There is a pipeline of this id. */
  | { readonly kind: 'exists' }
  | { readonly kind: 'missing' }
  /** What was asked has been done, or need not be. */
  | { readonly kind: 'ok' }
  /** Its driver ends the command first. */
  | { readonly kind: 'cancelling' }
  /** It is over, and nothing can be done about it. */
  | { readonly kind: 'over' }
  /** Another driver has taken over. */
  | { readonly kind: 'replaced' }
  /** The command does not fit the step that the pipeline is at. */
  | { readonly kind: 'misplaced' }
  | VoidAnswer;

/** What the driver is to do next. */
export type Effect =
  | { readonly kind: 'evaluate'; readonly when: 'before' | 'after'; readonly phase: Phase; readonly againMs?: number }
  | { readonly kind: 'acquire'; readonly phase: Phase; readonly holds: readonly PhaseHold[] }
  /** The driver has the holds of the phase: it sends `begun`, then runs the command. */
  | { readonly kind: 'begin'; readonly phase: Phase; readonly attempt: number }
  | { readonly kind: 'run'; readonly phase: Phase; readonly attempt: number }
  | { readonly kind: 'pause'; readonly ms: number }
  /** The driver can do nothing: the pipeline waits for a person. */
  | { readonly kind: 'ask'; readonly why: string }
  /** It is over. */
  | { readonly kind: 'leave' };

export interface PipelineTransition {
  /** The very same object if nothing changed. */
  readonly state: PipelineRecord | undefined;
  readonly outcome: PipelineOutcome;
  readonly events: readonly Event[];
  readonly effect: Effect;
}

export const LEAVE: Effect = { kind: 'leave' };

/** What is to be done about a pipeline as it stands. */
export function effectOf(runbook: Runbook, record: PipelineRecord): Effect {
  const { step, blocked } = record;
  if (hasEnded(record)) return LEAVE;
  if (blocked?.on === 'person') return { kind: 'ask', why: blocked.why };
  if (blocked?.on === 'backoff') return { kind: 'pause', ms: blocked.againMs };
  const phase = phaseAt(runbook, step);
  if (step.when === 'during') return { kind: 'run', phase, attempt: step.attempt };
  const againMs = blocked?.on === 'guard' ? blocked.againMs : undefined;
  return { kind: 'evaluate', when: step.when, phase, ...(againMs !== undefined && { againMs }) };
}

export function phaseAt(runbook: Runbook, { phase }: PipelineStep): Phase {
  return runbook.phases[phase] as Phase;
}
