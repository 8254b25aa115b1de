/** Sorts tasks into the columns of the board, and finds what else their pages say. */
import { visible } from './text.ts';
import type { State, Task } from './types.ts';

export const COLUMNS = ['waiting', 'ready', 'running', 'done', 'failed'] as const;
export type Column = (typeof COLUMNS)[number];

/** The tasks that this task still depends on. Completing a task sends no event to the tasks that wait for it. */
export function waitsOn({ tasks }: Pick<State, 'tasks'>, task: Task): readonly string[] {
  return task.dependsOn.filter((id) => {
    const known = tasks.get(id);
    return known === undefined ? task.blockedBy.includes(id) : known.status !== 'complete';
  });
}

export function columnOf(state: Pick<State, 'tasks'>, task: Task, now: number): Column {
  switch (task.status) {
    case 'running':
    case 'failed':
      return task.status;
    case 'complete':
      return 'done';
    case 'pending':
      return waitsOn(state, task).length > 0 || (task.retryAt ?? 0) > now ? 'waiting' : 'ready';
  }
}

export type TaskBoard = Readonly<Record<Column, readonly Task[]>>;

function hasText({ id, owner, capabilities, reason }: Task, wanted: string): boolean {
  return [id, owner ?? '', reason ?? '', ...capabilities].some((text) => text.toLowerCase().includes(wanted));
}

/** Sorts each column in the order in which it is read: what comes next, what has run longest, what ended last. */
export function taskBoard(state: Pick<State, 'tasks'>, text: string, now: number): TaskBoard {
  const found: Record<Column, Task[]> = { waiting: [], ready: [], running: [], done: [], failed: [] };
  const wanted = text.trim().toLowerCase();
  for (const task of state.tasks.values()) {
    if (wanted === '' || hasText(task, wanted)) found[columnOf(state, task, now)].push(task);
  }
  const published = ({ publishedAt }: Task): number => publishedAt ?? 0;
  const ended = ({ endedAt }: Task): number => endedAt ?? 0;
  found.waiting.sort((one, other) => published(one) - published(other));
  found.ready.sort((one, other) => other.priority - one.priority || published(one) - published(other));
  found.running.sort((one, other) => (one.claimedAt ?? 0) - (other.claimedAt ?? 0));
  found.done.sort((one, other) => ended(other) - ended(one));
  found.failed.sort((one, other) => ended(other) - ended(one));
  return found;
}

/** The tasks that wait for this task. */
export function dependentsOf({ tasks }: Pick<State, 'tasks'>, id: string): readonly Task[] {
  return [...tasks.values()].filter(({ dependsOn }) => dependsOn.includes(id));
}

/** When the present state of a task began. */
export function ageOf({ status, claimedAt, endedAt, publishedAt }: Task): number | null {
  if (status === 'running') return claimedAt ?? publishedAt;
  return status === 'pending' ? publishedAt : (endedAt ?? publishedAt);
}

// oxlint-disable-next-line no-control-regex
const COLOURS = /\u001b\[[0-9;?]*[A-Za-z]/g;

/** Cleans text of several lines: removes terminal colours and shows invisible characters by their code. */
export function shownText(text: string, most = 20_000): string {
  const end = text.length > most ? `…\n${text.slice(-most)}` : text;
  return end.replace(COLOURS, '').replace(/\t/g, '    ').split(/\r?\n/).map(visible).join('\n');
}
