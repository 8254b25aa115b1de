/** Reads pipelines: one by its id, all of them, and their logs. */
import { hostname } from 'node:os';
import type { PipelineState } from '../../core/guard/inputs.ts';
import type { PipelineRecord } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { always, type KeyValue, type Operation, pairIn, prefixed, readPages } from '../../store/index.ts';
import { surveyOf } from '../observe/survey/index.ts';
import type { Runtime } from '../runtime.ts';
import { type ListOptions, readEach } from '../stored.ts';
import { send } from '../write/write-once.ts';
import { recordIn } from './feed.ts';
import { ALL_PIPELINES, driverLock, pipelineKeys, pipelineResource } from './keys.ts';
import { type PhaseLog, phaseLogIn, spoolsOf, withSpooled } from './log.ts';
import { type RunSpec, runSpecIn } from './run-spec.ts';
import type { ListedPipeline } from './terms.ts';

const PAGE = 100;
/** A small page, because logs are long. */
const LOGS_PAGE = 10;

export interface FoundPipeline {
  readonly record: PipelineRecord | undefined;
  readonly spec: RunSpec | undefined;
  /** The mod revision of the record; 0 if there is none. */
  readonly mod: number;
}

export async function readPipeline(runtime: Runtime, id: string): Promise<FoundPipeline> {
  const { state, spec } = pipelineKeys(id);
  const reads = [state, spec].map((key): Operation => ({ do: 'read', key }));
  const { results } = await send(runtime, always(reads));
  const statePair = pairIn(results, state);
  const specPair = pairIn(results, spec);
  return {
    record: statePair === undefined ? undefined : recordIn(statePair),
    spec: specPair === undefined ? undefined : runSpecIn(specPair),
    mod: statePair?.modRevision ?? 0,
  };
}

/** In the order in which they were started. */
export async function readRecords(
  runtime: Runtime,
  onMalformed?: ListOptions['onMalformed'],
): Promise<readonly PipelineRecord[]> {
  const found: { record: PipelineRecord; created: number }[] = [];
  for await (const { pairs } of readPages(runtime.store, ALL_PIPELINES, PAGE, runtime.stopped)) {
    const read = (pair: KeyValue) => ({ record: recordIn(pair), created: pair.createRevision });
    found.push(...readEach(pairs, read, onMalformed));
  }
  // Several may start within a millisecond, and an import keeps the times of the store that it came from.
  found.sort((a, b) => a.record.startedAt - b.record.startedAt || a.created - b.created);
  return found.map(({ record }) => record);
}

/** The records, each with whether a process drives it. */
export async function readPipelines(
  runtime: Runtime,
  wantedState: PipelineState | undefined,
  onMalformed: ListOptions['onMalformed'],
): Promise<readonly ListedPipeline[]> {
  const records = await readRecords(runtime, onMalformed);
  const wanted = records.filter(({ state }) => wantedState === undefined || state === wantedState);
  return Promise.all(wanted.map(async (record) => ({ ...record, isDriven: await isDriven(runtime, record) })));
}

/** Phase by phase; of each phase, the last few runs. */
export async function readLogs(
  runtime: Runtime,
  id: string,
  onMalformed: ListOptions['onMalformed'],
): Promise<readonly PhaseLog[]> {
  const { record } = await readPipeline(runtime, id);
  const spooled = spoolsOf(record);
  const found: PhaseLog[] = [];
  for await (const { pairs } of readPages(runtime.store, prefixed(pipelineKeys(id).logs), LOGS_PAGE, runtime.stopped)) {
    found.push(...readEach(pairs, phaseLogIn, onMalformed));
  }
  return withSpooled(found, spooled, record);
}

/** Whether a process drives the pipeline now. */
export async function isDriven(runtime: Runtime, { id, driver }: PipelineRecord): Promise<boolean> {
  if (driver === undefined) return false;
  // The lease of a killed driver lasts for a while. Where its process is seen to be gone, there is no driver.
  const { locks } = await surveyOf(runtime, { resource: { kind: 'lock', name: driverLock(id) } });
  const holds = locks.flatMap((lock) => lock.holds);
  return holds.some(({ token, isStale, health }) => token === driver.token && !isStale && health !== 'process-gone');
}

export function missing(id: string): Failure {
  return new Failure(
    'not-found',
    `${pipelineResource(id)}: there is no such pipeline any more; it was removed meanwhile`,
  );
}

export function defaultHolder(): string {
  return `user:${hostname()}:${process.pid}`;
}
