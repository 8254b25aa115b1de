/** Starting a failed pipeline again, from the phase that failed or from one before it. */
import { type Event, event, type Moment } from '../machine.ts';
import { shown } from '../shown.ts';
import type { PipelineRecord } from './record.ts';

export interface Reopened {
  readonly record: PipelineRecord;
  readonly event: Event;
}

/** What is wrong with starting again from this phase; undefined if nothing is. */
export function reopenProblem({ id, state, phases, step }: PipelineRecord, from: string): string | undefined {
  if (state !== 'failed') return `pipeline/${id} is ${state}; only a failed pipeline can start again from a phase`;
  const begun = phases.slice(0, step.phase + 1).map(({ name }) => name);
  if (begun.includes(from)) return undefined;
  const isLater = phases.some(({ name }) => name === from);
  const what = isLater ? `phase ${shown(from)} comes after the one that failed` : `there is no phase ${shown(from)}`;
  return `pipeline/${id}: ${what}; it can start again from ${begun.join(', ')}`;
}

/** The phases from there on are as if they had never run, but for the count of their runs, which names their logs. */
export function reopened(failed: PipelineRecord, from: string, by: string, at: Moment): Reopened | undefined {
  if (reopenProblem(failed, from) !== undefined) return undefined;
  const { endedAt: _, reason: __, ...rest } = failed;
  const place = failed.phases.findIndex(({ name }) => name === from);
  const record: PipelineRecord = {
    ...rest,
    state: 'running',
    step: { when: 'before', phase: place, attempt: 1 },
    phases: failed.phases.map((phase, at) =>
      at < place ? phase : { name: phase.name, state: 'waiting', runs: phase.runs },
    ),
  };
  return {
    record,
    event: event('pipeline:resumed', { holder: by }, at, { phase: from, why: `${by} starts it again` }),
  };
}
