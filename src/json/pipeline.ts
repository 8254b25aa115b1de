/** A pipeline as JSON. Fields are only ever added; docs/cli.md lists them. */
import { currentPhase, type PipelineRecord } from '../core/index.ts';
import { time } from './time.ts';

export function pipelineJson(record: PipelineRecord): object {
  const { id, name, state, step, phases, blocked, driver, outputs, startedBy, startedAt, endedAt, cancel, reason } =
    record;
  return {
    pipeline: id,
    name,
    state,
    phase: currentPhase(record),
    step,
    phases: phases.map(({ startedAt: began, endedAt: over, ...phase }) => ({
      ...phase,
      startedAt: time(began),
      endedAt: time(over),
    })),
    blocked: blocked === undefined ? null : { ...blocked, since: time(blocked.since) },
    driver: driver === undefined ? null : { ...driver, since: time(driver.since) },
    outputs,
    startedBy,
    startedAt: time(startedAt),
    endedAt: time(endedAt),
    cancel: cancel === undefined ? null : { ...cancel, at: time(cancel.at) },
    reason: reason ?? null,
  };
}
