/**
 * The keys of tasks. They are plain keys and contain the id as it is, so that a worker in another language can build them
 * by joining strings. Two ids never share a key, because the part after the last slash is one of four words: the task
 * `a/owner` has its owner at `…/a/owner/owner`.
 */
import { nameProblem } from '../../core/index.ts';
import { prefixed } from '../../store/index.ts';

/** The plain key is `/tasks/`; the slash in front marks a plain key. */
export const TASKS = '//tasks/';
export const ALL_TASKS = prefixed(TASKS);

export type TaskPart = 'data' | 'owner' | 'status' | 'signalbox';

const PARTS: readonly string[] = ['data', 'owner', 'status', 'signalbox'] satisfies TaskPart[];

export type TaskKeys = Readonly<Record<TaskPart, string>>;

export function taskKeys(id: string): TaskKeys {
  const base = `${TASKS}${id}/`;
  return { data: `${base}data`, owner: `${base}owner`, status: `${base}status`, signalbox: `${base}signalbox` };
}

/** Undefined for a key that another program has put there and that is no part of a task. */
export function partOf(key: string): { readonly id: string; readonly part: TaskPart } | undefined {
  const slash = key.lastIndexOf('/');
  if (slash <= TASKS.length) return undefined;
  const part = key.slice(slash + 1);
  const id = key.slice(TASKS.length, slash);
  if (!PARTS.includes(part) || !isName(id)) return undefined;
  return { id, part: part as TaskPart };
}

/** The keys of a task arrive one after another, so remembering one id saves most checks. */
let lastName = '';

function isName(id: string): boolean {
  if (id === lastName) return true;
  if (nameProblem(id) !== undefined) return false;
  lastName = id;
  return true;
}

/** The name that people see, like `lock/main` and `semaphore/agents`. */
export function taskResource(id: string): string {
  return `task/${id}`;
}
