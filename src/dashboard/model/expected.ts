/** Whether what somebody was asked about is still so. The server checks it too: this says so before anything is sent. */
import type { Pipeline, State, Task } from './types.ts';

type Known<T extends 'tasks' | 'pipelines'> = Pick<State, T> | undefined;

/** What is asked about a task is meant for its present attempt: one that was claimed since is another matter. */
export function claimedSince(asked: Task, state: Known<'tasks'>): string | undefined {
  const now = state?.tasks.get(asked.id);
  if (now === undefined) return undefined;
  if (now.status === asked.status && now.attempts === asked.attempts && now.token === asked.token) return undefined;
  const owner = now.owner === null ? '' : `, with ${now.owner}`;
  return `It has changed since you opened this: it is ${now.status} now${owner}. Nothing was done.`;
}

/** To resume a pipeline is meant for the state in which it stands. */
export function movedOn(asked: Pipeline, state: Known<'pipelines'>): string | undefined {
  const now = state?.pipelines.get(asked.id);
  if (now === undefined) return undefined;
  if (now.state === asked.state && now.phase === asked.phase && now.isDriven === asked.isDriven) return undefined;
  const driven = now.isDriven ? `, and ${now.driver ?? 'another process'} drives it` : '';
  const where = `it is ${now.state} at ${now.phase ?? 'its end'} now${driven}`;
  return `It has moved on since you opened this: ${where}. Nothing was done.`;
}
