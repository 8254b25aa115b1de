/** From keys to tasks. */
import { type Json, NO_BOOK, type Task, type TaskBook, termsOf, unpublished } from '../../core/index.ts';
import type { KeyValue, Operation, OperationResult, ReadResult, Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { ALL_TASKS, partOf, taskKeys } from './keys.ts';

/** So many keys are read at a time: an answer has to fit into one message. */
const PAGE = 1000;

/** The task with one of its keys as it is now. */
export function withPart(task: Task, pair: KeyValue): Task {
  switch (partOf(pair.key)?.part) {
    case 'data':
      return { ...task, data: { ...readData(pair), published: pair.createRevision, mod: pair.modRevision } };
    case 'owner': {
      const { createRevision: token, modRevision: mod, lease } = pair;
      return { ...task, owner: { holder: pair.value.text, token, mod, lease } };
    }
    case 'status':
      return { ...task, status: { word: pair.value.text, mod: pair.modRevision } };
    case 'signalbox':
      return { ...task, book: { entry: readBook(pair), mod: pair.modRevision } };
    case undefined:
      return task;
  }
}

/** What another program has written need not be what it should be. */
function readData(pair: KeyValue): Pick<NonNullable<Task['data']>, 'json' | 'terms' | 'problem'> {
  try {
    const json = pair.value.json as Json;
    const { terms, problem } = termsOf(json);
    return { json, terms, problem };
  } catch {
    return { json: undefined, ...termsOf(undefined), problem: 'its data is not JSON' };
  }
}

function readBook(pair: KeyValue): TaskBook {
  try {
    const book = pair.value.json as Partial<TaskBook> | null;
    if (typeof book !== 'object' || book === null) return NO_BOOK;
    const { attempts, events } = book;
    return { ...book, attempts: Number.isSafeInteger(attempts) ? (attempts as number) : 0, events: listed(events) };
  } catch {
    return NO_BOOK;
  }
}

function listed<T>(events: readonly T[] | undefined): readonly T[] {
  return Array.isArray(events) ? events : [];
}

export function readsOf(id: string): readonly Operation[] {
  return Object.values(taskKeys(id)).map((key) => ({ do: 'read', key }));
}

/** From the results of `readsOf`, which begin at `first`. */
export function taskIn(id: string, results: readonly OperationResult[], first = 0): Task {
  const reads = results.slice(first, first + 4) as readonly ReadResult[];
  return reads.flatMap(({ pairs }) => pairs).reduce(withPart, unpublished(id));
}

export async function readTasks(
  runtime: Runtime,
  ids: readonly string[],
): Promise<{ readonly tasks: readonly Task[]; readonly revision: Revision }> {
  const { store, stopped } = runtime;
  const success = ids.flatMap(readsOf);
  const { results, revision } = await store.transaction({ compare: [], success, failure: [] }, stopped);
  runtime.saw(revision);
  return { tasks: ids.map((id, place) => taskIn(id, results, 4 * place)), revision };
}

/** One page of all keys of tasks; each may be of a later revision than the one before. */
export interface Page {
  /** The last key that it tells about; undefined for the last page, which tells about all that come after. */
  readonly last: string | undefined;
  readonly revision: Revision;
  readonly pairs: readonly KeyValue[];
}

export async function* taskPages(runtime: Runtime): AsyncIterable<Page> {
  const { store, stopped } = runtime;
  let from: string | undefined = ALL_TASKS.key;
  while (from !== undefined) {
    const read: Operation = { do: 'read', key: from, end: ALL_TASKS.end, limit: PAGE };
    const { results, revision } = await store.transaction({ compare: [], success: [read], failure: [] }, stopped);
    const { pairs, more } = results[0] as ReadResult;
    const last: string | undefined = more ? pairs.at(-1)?.key : undefined;
    yield { last, revision, pairs };
    from = last === undefined ? undefined : `${last}\0`;
  }
}

/** All tasks, read page by page. */
export async function readAllTasks(runtime: Runtime): Promise<ReadonlyMap<string, Task>> {
  const tasks = new Map<string, Task>();
  for await (const { pairs } of taskPages(runtime)) {
    for (const pair of pairs) {
      const id = partOf(pair.key)?.id;
      if (id !== undefined) tasks.set(id, withPart(tasks.get(id) ?? unpublished(id), pair));
    }
  }
  return tasks;
}
