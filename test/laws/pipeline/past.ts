/** The account that the laws keep. */
import type { PhaseResult, PipelineCommand } from '../../../src/core/pipeline/command.ts';
import type { Runbook } from '../../../src/core/pipeline/runbook.ts';
import {
  areOutputs,
  fateOf,
  hasChanged,
  type Past,
  pastOf,
  type PhasePast,
  phaseOf,
  placeOf,
  type Seen,
} from './law.ts';

export function beginning({ phases }: Runbook): Past {
  return { token: 0, questions: [], phases: phases.map(() => ({ is: 'fresh', runs: 0, failures: 0 })) };
}

/** What was not accepted has not happened. */
export function remember(seen: Seen): Past {
  const { past, command } = seen;
  if (!hasChanged(seen)) return past;
  const token = command.kind === 'drive' ? Math.max(past.token, command.token) : past.token;
  const place = placeOf(seen);
  const { blocked } = seen.step.state ?? {};
  const isNew = blocked?.on === 'person' && !past.questions.includes(blocked.question);
  const questions = isNew ? [...past.questions, blocked.question] : past.questions;
  return {
    token,
    questions,
    phases: past.phases.map((phase, at) => (at === place ? after(seen, phase, command) : phase)),
  };
}

function after(seen: Seen, phase: PhasePast, command: PipelineCommand): PhasePast {
  switch (command.kind) {
    case 'drive':
      return phase.is === 'running' ? { ...phase, is: 'interrupted' } : phase;
    case 'begun':
      return { ...phase, is: 'running', runs: phase.runs + 1 };
    case 'ended':
      return ended(seen, phase, command.result);
    case 'refused':
      return failed(seen, phase);
    case 'decided':
      return { ...phase, is: command.choice === 'rerun' ? 'rerun' : 'skipped' };
    case 'start':
    case 'cancel':
    case 'reopen':
    case 'judged':
    case 'waits':
    case 'rested':
      return phase;
  }
}

function ended(seen: Seen, phase: PhasePast, result: PhaseResult): PhasePast {
  if (result.kind === 'stopped') return { ...phase, is: 'interrupted' };
  if (result.kind === 'cancelled') return phase;
  return hasSucceeded(result) ? { ...phase, is: 'succeeded' } : failed(seen, phase);
}

export function hasSucceeded(result: PhaseResult): boolean {
  return result.kind === 'succeeded' && areOutputs(result.outputs);
}

function failed(seen: Seen, phase: PhasePast): PhasePast {
  const failures = phase.failures + 1;
  return { ...phase, failures, is: fateOf(phaseOf(seen), failures) === 'warn' ? 'waived' : 'failed' };
}

/** How often the phase has failed, if this command says that it did once more. */
export function failuresBy(seen: Seen): number | undefined {
  const { command } = seen;
  const isFailure =
    command.kind === 'refused' ||
    (command.kind === 'ended' &&
      (command.result.kind === 'failed' || (command.result.kind === 'succeeded' && !hasSucceeded(command.result))));
  return isFailure ? pastOf(seen).failures + 1 : undefined;
}
