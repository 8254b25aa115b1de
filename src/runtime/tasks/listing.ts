/** Lists tasks: all of them in the order of publication, or a page at a time in the order of their ids. */
import { statusOf, type Task, type TaskStatus } from '../../core/index.ts';
import { readPages } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { ALL_TASKS, partOf, taskKeys } from './keys.ts';
import {
  READ_AT_ONCE,
  readAllTasks,
  readManyTasks,
  readTasks,
  shownStatusOf,
  statusIn,
  type TaskView,
  viewOf,
} from './reading.ts';

/** Which tasks to list. */
export interface ListOptions {
  /** Only those with this status. */
  readonly status?: TaskStatus;
  /** At most this number, in the order of their ids: the next page begins after the last id of this one. */
  readonly limit?: number;
  /** Only tasks whose ids come after this one. */
  readonly after?: string;
}

export async function listTasks(runtime: Runtime, options: ListOptions): Promise<readonly TaskView[]> {
  const isWanted = (task: Task): boolean =>
    task.data !== undefined && (options.status === undefined || shownStatusOf(task) === options.status);
  if (options.limit !== undefined || options.after !== undefined) return pageOfTasks(runtime, options, isWanted);
  const tasks = await readAllTasks(runtime);
  return [...tasks.values()]
    .filter(isWanted)
    .sort((a, b) => (a.data?.published ?? 0) - (b.data?.published ?? 0))
    .map((task) => viewOf(task, statusIn(tasks)));
}

/** The place of a task is that of its data key: keys of other tasks may stand between it and the rest of its keys. */
async function pageOfTasks(
  runtime: Runtime,
  { after, limit = Number.POSITIVE_INFINITY }: ListOptions,
  isWanted: (task: Task) => boolean,
): Promise<readonly TaskView[]> {
  const range = after === undefined ? ALL_TASKS : { ...ALL_TASKS, key: `${taskKeys(after).data}\0` };
  const found: Task[] = [];
  for await (const { pairs } of readPages(runtime.store, range, 4 * READ_AT_ONCE, runtime.stopped)) {
    const ids = pairs.flatMap(({ key }) => {
      const part = partOf(key);
      return part?.part === 'data' ? part.id : [];
    });
    for (let first = 0; first < ids.length && found.length < limit; first += READ_AT_ONCE) {
      const { tasks } = await readTasks(runtime, ids.slice(first, first + READ_AT_ONCE));
      found.push(...tasks.filter(isWanted));
    }
    if (found.length >= limit) break;
  }
  const page = found.slice(0, limit);
  const status = statusIn(await dependenciesOf(runtime, page));
  return page.map((task) => viewOf(task, status));
}

function dependenciesOf(runtime: Runtime, tasks: readonly Task[]): Promise<ReadonlyMap<string, Task>> {
  const pending = tasks.filter((task) => statusOf(task) === 'pending');
  return readManyTasks(runtime, [...new Set(pending.flatMap(({ data }) => data?.terms.dependsOn ?? []))]);
}
