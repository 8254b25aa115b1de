/** A pipeline as JSON. Fields are only ever added; docs/cli.md lists them. */
import { currentPhase, type PipelineRecord } from '../../core/index.ts';
import { timeOf } from '../events.ts';

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
      startedAt: began === undefined ? null : timeOf(began),
      endedAt: over === undefined ? null : timeOf(over),
    })),
    blocked: blocked === undefined ? null : { ...blocked, since: timeOf(blocked.since) },
    driver: driver === undefined ? null : { ...driver, since: timeOf(driver.since) },
    outputs,
    startedBy,
    startedAt: timeOf(startedAt),
    endedAt: endedAt === undefined ? null : timeOf(endedAt),
    cancel: cancel === undefined ? null : { ...cancel, at: timeOf(cancel.at) },
    reason: reason ?? null,
  };
}
