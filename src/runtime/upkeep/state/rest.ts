/**
 * The part of the state that is not held by anybody: tasks, pipelines and keys of the bus. It is saved and loaded key by key.
 *
 * A task that a worker has is loaded as pending: in the other store that worker has no lease. The driver of a pipeline is
 * left out for the same reason, and with it the token that later drivers would have to exceed.
 */
import { isFinished, isOwned, type Json, NO_BOOKKEEPING } from '../../../core/index.ts';
import {
  type KeyValue,
  type Operation,
  prefixed,
  type ReadRange,
  readPages,
  readRange,
  type Transaction,
  Value,
} from '../../../store/index.ts';
import { encode, STATES } from '../../layout.ts';
import { pipelineKeys, pipelineOfState, pipelineResource } from '../../pipelines/keys.ts';
import type { Runtime } from '../../runtime.ts';
import { type Malformed, malformedBy } from '../../stored.ts';
import { TASKS, taskKeys, taskResource } from '../../tasks/keys.ts';
import { readAllTasks } from '../../tasks/reading.ts';
import type { SavedPipeline, SavedState, SavedTask } from './document.ts';
import type { Conflict } from './load.ts';

const PAGE = 500;
const PLAIN = '/';

export type Rest = Pick<SavedState, 'tasks' | 'pipelines' | 'keys'>;

export async function restOf(runtime: Runtime, malformed: (one: Malformed) => void): Promise<Rest> {
  return {
    tasks: await tasksOf(runtime),
    pipelines: await pipelinesOf(runtime, malformed),
    keys: await keysOf(runtime),
  };
}

/** In the order of publication, so that the older ones go first in the other store too. */
async function tasksOf(runtime: Runtime): Promise<readonly SavedTask[]> {
  const tasks = [...(await readAllTasks(runtime)).values()].filter(({ data }) => data !== undefined);
  tasks.sort((a, b) => (a.data?.published ?? 0) - (b.data?.published ?? 0));
  return tasks.map((task) => {
    const { id, data, owner, status } = task;
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
        record: (pair.value.json as { record: Json }).record,
        spec: kept === undefined ? null : (kept.value.json as Json),
        logs: Object.fromEntries(printed.map(({ key, value }) => [key.slice(logs.length), value.json as Json])),
      });
    } catch (error) {
      malformed(malformedBy(pair.key, error));
    }
  }
  return found;
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

/** One thing to be written, if there is no such thing yet. */
interface Planned {
  readonly resource: string;
  readonly key: string;
  readonly success: readonly Operation[];
}

function planOf({ tasks, pipelines, keys }: Rest): readonly Planned[] {
  return [
    ...tasks.map(plannedTask),
    ...pipelines.map(plannedPipeline),
    ...Object.entries(keys).map(([name, value]): Planned => {
      const key = PLAIN + name;
      return { resource: `key ${name}`, key, success: [{ do: 'put', key, value: Value.text(value) }] };
    }),
  ];
}

function plannedTask({ id, status, data, owner, bookkeeping }: SavedTask): Planned {
  const keys = taskKeys(id);
  const entry = { ...(bookkeeping as object), events: [] };
  return {
    resource: taskResource(id),
    key: keys.data,
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
  const { driver: _, ...rest } = record as { readonly driver?: Json };
  const fresh = { record: { ...rest, lastToken: 0 }, events: [] };
  return {
    resource: pipelineResource(id),
    key: keys.state,
    success: [
      { do: 'put', key: keys.state, value: encode(fresh) },
      ...(spec === null ? [] : [{ do: 'put', key: keys.spec, value: encode(spec) } as const]),
      ...Object.entries(logs).map(([name, log]) => ({ do: 'put', key: keys.logs + name, value: encode(log) }) as const),
    ],
  };
}

/** What is here already, and would have to be overwritten. */
export async function conflictsOf(runtime: Runtime, rest: Rest): Promise<readonly Conflict[]> {
  const plan = planOf(rest);
  const found: Conflict[] = [];
  for (let first = 0; first < plan.length; first += 100) {
    const some = plan.slice(first, first + 100);
    const success = some.map(({ key }): Operation & ReadRange & { readonly do: 'read' } => ({ do: 'read', key }));
    const { results } = await runtime.store.transaction({ compare: [], success, failure: [] }, runtime.stopped);
    for (const [place, result] of results.entries()) {
      const { resource } = some[place] as Planned;
      if (result.do === 'read' && result.pairs.length > 0) found.push({ resource, why: 'there is one already' });
    }
  }
  return found;
}

/** One after another, so that tasks keep their order. Answers what came into being here meanwhile. */
export async function loadRest(runtime: Runtime, rest: Rest): Promise<readonly Conflict[]> {
  const conflicts: Conflict[] = [];
  for (const { resource, key, success } of planOf(rest)) {
    const transaction: Transaction = {
      compare: [{ key, target: 'version', is: '=', than: 0 }],
      success,
      failure: [],
    };
    const { succeeded } = await runtime.store.transaction(transaction, runtime.stopped);
    if (!succeeded) conflicts.push({ resource, why: 'another process made one while this was written' });
  }
  return conflicts;
}
