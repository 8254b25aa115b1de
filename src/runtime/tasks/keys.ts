/**
 * The keys of tasks. They are in the plain zone, and an id stands in them as it is: a worker in another language builds
 * them by putting strings together. Two ids never share a key, because the part after the last slash is one of four words:
 * `a/owner` as an id has its owner at `…/a/owner/owner`.
 */
import { nameProblem } from '../../core/index.ts';
import { prefixed } from '../../store/index.ts';

/** The plain key is `/tasks/`; one slash more says that it is a plain key. */
export const TASKS = '//tasks/';
export const ALL_TASKS = prefixed(TASKS);

export type TaskPart = 'data' | 'owner' | 'status' | 'signalbox';

const PARTS: readonly string[] = ['data', 'owner', 'status', 'signalbox'] satisfies TaskPart[];

export type TaskKeys = Readonly<Record<TaskPart, string>>;

export function taskKeys(id: string): TaskKeys {
  const base = `${TASKS}${id}/`;
  return { data: `${base}data`, owner: `${base}owner`, status: `${base}status`, signalbox: `${base}signalbox` };
}

/** Undefined for what others may have put there that is no part of a task. */
export function partOf(key: string): { readonly id: string; readonly part: TaskPart } | undefined {
  const slash = key.lastIndexOf('/');
  if (slash <= TASKS.length) return undefined;
  const part = key.slice(slash + 1);
  const id = key.slice(TASKS.length, slash);
  if (!PARTS.includes(part) || !isName(id)) return undefined;
  return { id, part: part as TaskPart };
}

/** The keys of a task come together, and are asked about together. */
let lastName = '';

function isName(id: string): boolean {
  if (id === lastName) return true;
  if (nameProblem(id) !== undefined) return false;
  lastName = id;
  return true;
}

/** As people read it, beside `lock/main` and `semaphore/agents`. */
export function taskResource(id: string): string {
  return `task/${id}`;
}
