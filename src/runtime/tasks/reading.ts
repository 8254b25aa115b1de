/** From keys to tasks. */
import {
  type Json,
  NO_BOOKKEEPING,
  type Task,
  type TaskBookkeeping,
  type TaskData,
  type Terms,
  termsOf,
  unpublished,
} from '../../core/index.ts';
import {
  always,
  type KeyValue,
  type Operation,
  type OperationResult,
  pairIn,
  readPages,
  type ReadResult,
  type Revision,
} from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { bookkeepingOf } from './bookkeeping.ts';
import { ALL_TASKS, partOf, taskKeys } from './keys.ts';

/** So many keys are read at first; then so many that an answer has about this size. Each read costs etcd a walk over all. */
const FIRST_PAGE = 500;
const LARGEST_PAGE = 10_000;
const PAGE_CHARACTERS = 1024 * 1024;

/** The task with one of its keys as it is now. */
export function withPart(task: Task, pair: KeyValue): Task {
  switch (partOf(pair.key)?.part) {
    case 'data':
      return { ...task, data: new ReadData(pair) };
    case 'owner': {
      const { createRevision: token, modRevision: mod, lease } = pair;
      return { ...task, owner: { holder: pair.value.text, token, mod, lease } };
    }
    case 'status':
      return { ...task, status: { word: pair.value.text, mod: pair.modRevision } };
    case 'signalbox':
      return { ...task, bookkeeping: new ReadBook(pair) };
    case undefined:
      return task;
  }
}

type Content = Pick<TaskData, 'json' | 'terms' | 'problem'>;

/** Of those that are done nobody wants to know what they were. */
class ReadData implements TaskData {
  readonly published: Revision;
  readonly mod: Revision;
  readonly #pair: KeyValue;
  #content: Content | undefined;

  constructor(pair: KeyValue) {
    this.published = pair.createRevision;
    this.mod = pair.modRevision;
    this.#pair = pair;
  }

  get json(): Json | undefined {
    return this.#read().json;
  }

  get terms(): Terms {
    return this.#read().terms;
  }

  get problem(): string | undefined {
    return this.#read().problem;
  }

  #read(): Content {
    this.#content ??= contentOf(this.#pair);
    return this.#content;
  }
}

/** What another program has written need not be what it should be. */
function contentOf(pair: KeyValue): Content {
  try {
    const json = pair.value.json as Json;
    const { terms, problem } = termsOf(json);
    return { json, terms, problem };
  } catch {
    return { json: undefined, ...termsOf(undefined), problem: 'its data is not JSON' };
  }
}

/** Whoever follows many tasks looks into few books. */
class ReadBook {
  readonly mod: Revision;
  readonly #pair: KeyValue;
  #entry: TaskBookkeeping | undefined;

  constructor(pair: KeyValue) {
    this.mod = pair.modRevision;
    this.#pair = pair;
  }

  get entry(): TaskBookkeeping {
    this.#entry ??= readBook(this.#pair);
    return this.#entry;
  }
}

function readBook(pair: KeyValue): TaskBookkeeping {
  try {
    return bookkeepingOf(pair.value.json);
  } catch {
    return NO_BOOKKEEPING;
  }
}

export function readsOf(id: string): readonly Operation[] {
  return Object.values(taskKeys(id)).map((key) => ({ do: 'read', key }));
}

/** From results that the reads of `readsOf` are among. */
export function taskIn(id: string, results: readonly OperationResult[]): Task {
  const parts = Object.values(taskKeys(id)).flatMap((key) => pairIn(results, key) ?? []);
  return parts.reduce(withPart, unpublished(id));
}

export async function readTasks(
  runtime: Runtime,
  ids: readonly string[],
): Promise<{ readonly tasks: readonly Task[]; readonly revision: Revision }> {
  const { results, revision } = await runtime.store.transaction(always(ids.flatMap(readsOf)), runtime.stopped);
  runtime.saw(revision);
  return { tasks: ids.map((id) => taskIn(id, results)), revision };
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
  for await (const { pairs, more, revision } of readPages(store, ALL_TASKS, nextLimit, stopped)) {
    yield { last: more ? pairs.at(-1)?.key : undefined, revision, pairs };
  }
}

/** As many as fit into one answer if they are about as long as those on the last page. */
function nextLimit(page: ReadResult | undefined): number {
  if (page === undefined) return FIRST_PAGE;
  const { pairs } = page;
  const characters = pairs.reduce((sum, { value }) => sum + value.text.length, 0) / Math.max(1, pairs.length);
  return Math.max(1, Math.min(LARGEST_PAGE, Math.floor(PAGE_CHARACTERS / Math.max(1, characters))));
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
