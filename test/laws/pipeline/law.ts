/**
 * What must be true of every step that a pipeline takes, whatever is said to it, by whomever, and whoever died. The laws
 * keep an account of their own, from what was said and heard, so that a wrong machine cannot be wrong in the same way.
 */
import type { GuardOutcome, OnFailure } from '../../../src/core/guard/guard.ts';
import type { Moment, Token } from '../../../src/core/machine.ts';
import type { PipelineCommand, PipelineTransition } from '../../../src/core/pipeline/command.ts';
import type { pipelineTransition } from '../../../src/core/pipeline/pipeline.ts';
import type { PipelineRecord } from '../../../src/core/pipeline/record.ts';
import type { Phase, Runbook } from '../../../src/core/pipeline/runbook.ts';

export type Transition = typeof pipelineTransition;

/** One step, and what went before it. */
export interface Seen {
  readonly transition: Transition;
  readonly runbook: Runbook;
  readonly before: PipelineRecord | undefined;
  readonly command: PipelineCommand;
  readonly at: Moment;
  readonly step: PipelineTransition;
  readonly past: Past;
}

/** What happened so far, by the account of the laws. */
export interface Past {
  /** The largest with which a driver was let in. */
  readonly token: Token;
  /** The numbers of all questions to a person, the last one last. */
  readonly questions: readonly number[];
  readonly phases: readonly PhasePast[];
}

export interface PhasePast {
  /**
   * `running`: nobody has said that its command ended. `interrupted`: its driver was lost or stopped meanwhile.
   * `waived`: it failed or was refused its holds, and that was let pass.
   */
  readonly is: 'fresh' | 'running' | 'failed' | 'interrupted' | 'succeeded' | 'waived' | 'rerun' | 'skipped';
  readonly runs: number;
  /** How often it failed or was refused its holds. */
  readonly failures: number;
}

/** What is wrong, if anything is. */
export type Law = (seen: Seen) => string | undefined;

/** Laws by the sentence that each of them is. */
export type Laws = { readonly [sentence: string]: Law };

export function isOver(record: PipelineRecord | undefined): boolean {
  return record !== undefined && ['done', 'failed', 'cancelled'].includes(record.state);
}

export function hasChanged({ before, step }: Seen): boolean {
  return step.state !== before;
}

/** The phase that the command found the pipeline at. */
export function placeOf({ before }: Seen): number {
  return before?.step.phase ?? 0;
}

export function phaseOf(seen: Seen): Phase {
  return seen.runbook.phases[placeOf(seen)] as Phase;
}

export function pastOf(seen: Seen): PhasePast {
  return seen.past.phases[placeOf(seen)] as PhasePast;
}

export function tells({ step }: Seen, type: string): boolean {
  return step.events.some((event) => event.type === type);
}

/** What becomes of a command that failed once more. */
export function fateOf({ retries, onFailure }: Phase, failures: number): 'again' | 'warn' | 'block' | 'fail' {
  if (failures <= retries) return 'again';
  if (onFailure === undefined) return 'fail';
  if (typeof onFailure === 'string') return onFailure;
  return 'retry' in onFailure ? 'again' : 'fail';
}

/** What the guards come to: as bad as the worst of them. */
export function verdictOf(phase: Phase, when: 'before' | 'after', outcomes: readonly GuardOutcome[]): Verdict {
  const guards = when === 'before' ? phase.pre : phase.post;
  const verdicts = guards.map(({ id, onFailure = 'block' }) =>
    verdictOn(
      onFailure,
      outcomes.find(({ guard }) => guard === id),
    ),
  );
  return verdicts.includes('fails') ? 'fails' : verdicts.includes('blocks') ? 'blocks' : 'passes';
}

type Verdict = 'passes' | 'blocks' | 'fails';

function verdictOn(onFailure: OnFailure, outcome: GuardOutcome | undefined): Verdict {
  if (outcome?.kind === 'passed' || onFailure === 'warn') return 'passes';
  if (outcome?.kind !== 'failed') return 'blocks';
  const isFatal = outcome.outlook === 'never' || (typeof onFailure === 'object' && 'fail' in onFailure);
  return isFatal ? 'fails' : 'blocks';
}

/** As the environment of a command would have it. */
export function areOutputs(outputs: Readonly<Record<string, string>>): boolean {
  return Object.keys(outputs).every((name) => /^(?!SIGNALBOX_)[A-Za-z_]\w*$/.test(name));
}
