/** Checks that the subject of an open dialog is unchanged. The server checks too; the page says so before it sends anything. */
import type { Pipeline, State, Task } from './types.ts';

type Known<T extends 'tasks' | 'pipelines'> = Pick<State, T> | undefined;

/** A dialog about a task means its present attempt, not one that was claimed since. */
export function claimedSince(asked: Task, state: Known<'tasks'>): string | undefined {
  const now = state?.tasks.get(asked.id);
  if (now === undefined) return undefined;
  if (now.status === asked.status && now.attempts === asked.attempts && now.token === asked.token) return undefined;
  const owner = now.owner === null ? '' : `, with ${now.owner}`;
  return `It has changed since you opened this: it is ${now.status} now${owner}. Nothing was done.`;
}

/** A dialog about a pipeline means the state that the user saw. */
export function movedOn(asked: Pipeline, state: Known<'pipelines'>): string | undefined {
  const now = state?.pipelines.get(asked.id);
  if (now === undefined) return undefined;
  if (now.state === asked.state && now.phase === asked.phase && now.isDriven === asked.isDriven) return undefined;
  const driven = now.isDriven ? `, and ${now.driver ?? 'another process'} drives it` : '';
  const where = `it is ${now.state} at ${now.phase ?? 'its end'} now${driven}`;
  return `It has moved on since you opened this: ${where}. Nothing was done.`;
}
