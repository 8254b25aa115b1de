/**
 * The part of the state that no holder has: tasks, pipelines and keys of the bus. It is saved and loaded key by key.
 *
 * A task that a worker has is loaded as pending: in the other store that worker has no lease. The driver of a pipeline is
 * left out for the same reason, and with it the token that later drivers would have to exceed.
 */
import { isFinished, isOwned, type Json, NO_BOOKKEEPING, unreadableIn, isRecord } from '../../../core/index.ts';
import {
  always,
  type KeyValue,
  type Operation,
  type OperationResult,
  prefixed,
  readPages,
  readRange,
  type Transaction,
  Value,
} from '../../../store/index.ts';
import { Failure } from '../../../failure.ts';
import { corrupt, decode, encode, STATES } from '../../layout.ts';
import { pipelineKeys, pipelineOfState, pipelineResource } from '../../pipelines/keys.ts';
import type { Runtime } from '../../runtime.ts';
import { type Malformed, malformedBy } from '../../stored.ts';
import { TASKS, taskKeys, taskResource } from '../../tasks/keys.ts';
import { readAllTasks } from '../../tasks/reading.ts';
import type { SavedPipeline, SavedState, SavedTask } from './document.ts';
import type { Deed } from '../../write/witnessed-commit.ts';
import { persistently, sendWitnessed } from '../../write/write-once.ts';
import { chunksOf } from './chunks.ts';
import type { Conflict } from './load.ts';

const PAGE = 500;
const PLAIN = '/';

export type Rest = Pick<SavedState, 'tasks' | 'pipelines' | 'keys'>;

export async function restOf(runtime: Runtime, malformed: (one: Malformed) => void): Promise<Rest> {
  return {
    tasks: await tasksOf(runtime, malformed),
    pipelines: await pipelinesOf(runtime, malformed),
    keys: await keysOf(runtime),
  };
}

/**
 * In the order of publication, so that the older ones go first in the other store too. Leaves out a task whose status or data
 * cannot be read: here no worker claims it, but in the other store it would be pending, and a worker would.
 */
async function tasksOf(runtime: Runtime, malformed: (one: Malformed) => void): Promise<readonly SavedTask[]> {
  const tasks = [...(await readAllTasks(runtime)).values()].filter(({ data }) => data !== undefined);
  tasks.sort((a, b) => (a.data?.published ?? 0) - (b.data?.published ?? 0));
  return tasks.flatMap((task) => {
    const { id, data, owner, status } = task;
    const problem = unreadableIn(task);
    if (problem !== undefined) {
      const key = data?.problem === undefined ? taskKeys(id).status : taskKeys(id).data;
      malformed(malformedBy(key, corrupt(key, problem)));
      return [];
    }
    const { claim: _, events: _events, retryAt: _at, ...bookkeeping } = task.bookkeeping?.entry ?? NO_BOOKKEEPING;
    const isOver = isFinished(task);
    return {
      id,
      status: isOver ? (status?.word as 'complete' | 'failed') : 'pending',
      data: data?.json ?? null,
      ...(isOver && isOwned(task) && { owner: owner?.holder as string }),
      bookkeeping: bookkeeping as unknown as Json,
    };
  });
}

async function pipelinesOf(runtime: Runtime, malformed: (one: Malformed) => void): Promise<readonly SavedPipeline[]> {
  const { store, stopped } = runtime;
  const found: SavedPipeline[] = [];
  for (const pair of await allPairs(runtime, prefixed(`${STATES}pipeline/`))) {
    try {
      const id = pipelineOfState(pair.key);
      const { spec, logs } = pipelineKeys(id);
      const [kept] = (await readRange(store, { key: spec }, stopped)).pairs;
      const printed = await allPairs(runtime, prefixed(logs));
      found.push({
        id,
        record: recordIn(pair),
        spec: kept === undefined ? null : decode<Json>(kept),
        logs: Object.fromEntries(printed.map((log) => [log.key.slice(logs.length), decode<Json>(log)])),
      });
    } catch (error) {
      malformed(malformedBy(pair.key, error));
    }
  }
  return found;
}

function recordIn(pair: KeyValue): Json {
  const document = decode<unknown>(pair);
  if (!isRecord(document) || !isRecord(document['record'])) throw corrupt(pair.key, 'it has no record');
  return undriven(document['record'] as Json);
}

/** Tokens of one store say nothing in another, where a driver with a smaller one would be taken for an earlier driver. */
function undriven(record: Json): Json {
  const { driver: _, ...rest } = record as { readonly driver?: Json };
  return { ...rest, lastToken: 0 };
}

/** Where other programs use the same store, its plain keys are theirs as well, and are not ours to save. */
async function keysOf(runtime: Runtime): Promise<Readonly<Record<string, string>>> {
  if (runtime.store.historyIsShared === true) return {};
  const pairs = await allPairs(runtime, prefixed(PLAIN));
  return Object.fromEntries(
    pairs.filter(({ key }) => !key.startsWith(TASKS)).map(({ key, value }) => [key.slice(PLAIN.length), value.text]),
  );
}

async function allPairs({ store, stopped }: Runtime, range: ReturnType<typeof prefixed>): Promise<readonly KeyValue[]> {
  const found: KeyValue[] = [];
  for await (const { pairs } of readPages(store, range, PAGE, stopped)) found.push(...pairs);
  return found;
}

/** One item to write unless it exists. */
interface Planned {
  readonly resource: string;
  readonly key: string;
  /** Too large for one transaction, and of no use without the rest: written first, in parts. */
  readonly before: readonly Put[];
  readonly success: readonly Put[];
}

type Put = Extract<Operation, { readonly do: 'put' }>;

function planOf({ tasks, pipelines, keys }: Rest): readonly Planned[] {
  return [
    ...tasks.map(plannedTask),
    ...pipelines.map(plannedPipeline),
    ...Object.entries(keys).map(([name, value]): Planned => {
      const key = PLAIN + name;
      return { resource: `key ${name}`, key, before: [], success: [{ do: 'put', key, value: Value.text(value) }] };
    }),
  ];
}

function plannedTask({ id, status, data, owner, bookkeeping }: SavedTask): Planned {
  const keys = taskKeys(id);
  // The end of its chain in the other store is not that of its chain here.
  const { head: _head, ...kept } = bookkeeping as { readonly head?: Json };
  const entry = { ...kept, events: [] };
  return {
    resource: taskResource(id),
    key: keys.data,
    before: [],
    success: [
      { do: 'put', key: keys.data, value: Value.text(JSON.stringify(data)) },
      { do: 'put', key: keys.status, value: Value.text(status) },
      { do: 'put', key: keys.signalbox, value: encode(entry) },
      // Without an owner key other programs would claim a finished task.
      ...(status === 'pending'
        ? []
        : [{ do: 'put', key: keys.owner, value: Value.text(owner ?? 'signalbox') } as const]),
    ],
  };
}

function plannedPipeline({ id, record, spec, logs }: SavedPipeline): Planned {
  const keys = pipelineKeys(id);
  // Files of earlier versions have the driver.
  const fresh = { record: undriven(record), events: [] };
  return {
    resource: pipelineResource(id),
    key: keys.state,
    before: Object.entries(logs).map(([name, log]) => ({ do: 'put', key: keys.logs + name, value: encode(log) })),
    success: [
      { do: 'put', key: keys.state, value: encode(fresh) },
      ...(spec === null ? [] : [{ do: 'put', key: keys.spec, value: encode(spec) } as const]),
    ],
  };
}

/** Items that exist here with other contents: a load would have to overwrite them. */
export async function conflictsOf(runtime: Runtime, rest: Rest): Promise<readonly Conflict[]> {
  const plan = planOf(rest);
  const found: Conflict[] = [];
  for (let first = 0; first < plan.length; first += 100) {
    const some = plan.slice(first, first + 100);
    const { results } = await runtime.store.transaction(always(some.map(readOf)), runtime.stopped);
    for (const [place, result] of results.entries()) {
      const planned = some[place] as Planned;
      if (result.do !== 'read' || result.pairs.length === 0) continue;
      const { results: whole } = await runtime.store.transaction(always(planned.success.map(readOf)), runtime.stopped);
      if (!isLoaded(planned, whole)) found.push({ resource: planned.resource, why: 'there is one already' });
    }
  }
  return found;
}

/**
 * One after another, so that tasks keep their order. Answers what came into being here meanwhile, and how much was loaded.
 * What an interrupted load has written is equal, and counts as loaded: the load can be repeated.
 */
export async function loadRest(
  runtime: Runtime,
  rest: Rest,
): Promise<{ readonly conflicts: readonly Conflict[]; readonly loaded: number }> {
  const conflicts: Conflict[] = [];
  const plan = planOf(rest);
  let loaded = 0;
  for (const planned of plan) {
    try {
      if (await isWritten(runtime, planned)) loaded += 1;
      else conflicts.push({ resource: planned.resource, why: 'another process made one while this was written' });
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const before = `${loaded} of ${plan.length} tasks, pipelines and keys were loaded before it; they stay, and the load can be repeated`;
      throw new Failure(error.code, `${planned.resource}: ${error.message} (${before})`, { cause: error });
    }
  }
  return { conflicts, loaded };
}

/** Harmless to repeat: the second time it finds what the first has written. */
function isWritten(runtime: Runtime, planned: Planned): Promise<boolean> {
  const { key, before, success } = planned;
  const compare: Transaction['compare'] = [{ key, target: 'version', is: '=', than: 0 }];
  return persistently(runtime, runtime.giveUpAt(), async () => {
    for (const some of chunksOf(before, ({ value }) => value.text))
      await runtime.store.transaction({ compare, success: some, failure: [] }, runtime.stopped);
    const write = { compare, success, failure: success.map(readOf) };
    const { succeeded, results } = await sendWitnessed(runtime, write, deedsOf(runtime, planned));
    return succeeded || isLoaded(planned, results);
  });
}

/** Keys of the bus are not entered, however they are written. */
function deedsOf(runtime: Runtime, { resource }: Planned): readonly Deed[] {
  if (!resource.startsWith('task/') && !resource.startsWith('pipeline/')) return [];
  return [{ resource, actor: runtime.sender.id, command: 'import', outcome: 'imported' }];
}

/** Whether the keys have exactly the values that would be written. */
function isLoaded({ success }: Planned, results: readonly OperationResult[]): boolean {
  return success.every(({ value }, place) => {
    const result = results[place];
    return result?.do === 'read' && result.pairs[0]?.value.text === value.text;
  });
}

function readOf({ key }: { readonly key: string }): Operation {
  return { do: 'read', key };
}
