/** A pipeline as JSON. Fields are only ever added; docs/cli.md lists them. */
import { given } from '../core/given.ts';
import { currentPhase, type PipelineRecord } from '../core/index.ts';
import { msOf, time } from './time.ts';

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

type Shown = Readonly<Record<string, unknown>>;
export type PipelineJson = Shown & { readonly pipeline: string; readonly isDriven: boolean };

/** The record from which `pipelineJson` made this, as far as it shows it: without the parts that only drivers need. */
export function pipelineFrom({ pipeline: id, phase: _, revision: _revision, ...json }: PipelineJson): PipelineRecord & {
  readonly isDriven: boolean;
} {
  const { phases, blocked, driver, cancel, startedAt, endedAt, reason, ...rest } = json;
  const dated = (field: string, value: unknown): Shown | undefined =>
    value === null ? undefined : { ...(value as Shown), [field]: msOf((value as Shown)[field] as string) };
  const known = {
    blocked: dated('since', blocked),
    driver: dated('since', driver),
    cancel: dated('at', cancel),
    endedAt: msOf(endedAt as string),
    reason: reason ?? undefined,
  };
  return {
    ...rest,
    id,
    phases: (phases as readonly Shown[]).map(({ startedAt: began, endedAt: over, ...one }) =>
      given({ ...one, startedAt: msOf(began as string), endedAt: msOf(over as string) }),
    ),
    startedAt: msOf(startedAt as string),
    ...given(known),
  } as unknown as PipelineRecord & { readonly isDriven: boolean };
}
