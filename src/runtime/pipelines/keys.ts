/**
 * The keys of pipelines. Their states are next to those of members, and carry events as records do.
 *
 *     s/pipeline/<id>          its record, with the events of the write that made it
 *     b/<id>                   its spec: the runbook, and where and how it runs. Written once
 *     l/<id>/<phase>/<run>     the output of the command of a phase; of long output the beginning and the end
 */
import { nameProblem } from '../../core/index.ts';
import { refuseInvalid } from '../../failure.ts';
import { type KeyRange, prefixed } from '../../store/index.ts';
import { nameIn, STATES } from '../layout.ts';

const PIPELINES = `${STATES}pipeline/`;
export const ALL_PIPELINES: KeyRange = prefixed(PIPELINES);

/** The name of the driver's lock is longer than the id, and must still be a valid name. */
export const LONGEST_ID = 180;

export interface PipelineKeys {
  readonly state: string;
  readonly spec: string;
  readonly logs: string;
}

export function pipelineKeys(id: string): PipelineKeys {
  const path = encodeURIComponent(id);
  return { state: PIPELINES + path, spec: `b/${path}`, logs: `l/${path}/` };
}

export function pipelineOfState(key: string): string {
  return nameIn(key, key.slice(PIPELINES.length));
}

export function logKey({ logs }: PipelineKeys, phase: number, run: number): string {
  return `${logs}${String(phase).padStart(3, '0')}/${String(run).padStart(6, '0')}`;
}

/** The locks of drivers begin with it. */
export const DRIVERS = 'pipeline:';

/** The name of the driver's lock: its holder drives the pipeline. */
export function driverLock(id: string): string {
  return DRIVERS + id;
}

/** The name that people see, like `lock/main` and `task/42`. */
export function pipelineResource(id: string): string {
  return `pipeline/${id}`;
}

export function checkedId(id: unknown): string {
  const isTooLong = typeof id === 'string' && id.length > LONGEST_ID;
  refuseInvalid(isTooLong ? `the id of a pipeline has at most ${LONGEST_ID} characters` : nameProblem(id, 'pipeline'));
  return id as string;
}
