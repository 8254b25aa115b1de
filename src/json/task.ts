/** A task as JSON, on the command line and over HTTP. */
import type { TaskView } from '../runtime/tasks/reading.ts';
import { msOf, time } from './time.ts';

/** Fields are only ever added; docs/cli.md lists them. */
export function taskJson(view: TaskView): object {
  const { id, status, data, capabilities, priority, dependsOn, retries, backoffMs, lossLimit } = view;
  const { blockedBy, owner, token, isLeased } = view;
  return {
    task: id,
    status,
    data: data ?? null,
    capabilities,
    priority,
    dependsOn,
    retries,
    backoffMs,
    lossLimit,
    blockedBy,
    owner: owner ?? null,
    token: token ?? null,
    isLeased,
    attempts: view.attempts,
    failures: view.failures,
    losses: view.losses,
    retryAt: time(view.retryAt),
    result: view.result ?? null,
    reason: view.reason ?? null,
    publishedAt: time(view.publishedAt),
    publishedBy: view.publishedBy ?? null,
    claimedAt: time(view.claimedAt),
    endedAt: time(view.endedAt),
  };
}

export type TaskJson = Readonly<Record<string, unknown>> & { readonly task: string };

const TIMES = ['retryAt', 'publishedAt', 'claimedAt', 'endedAt'];

/** The task from which `taskJson` made this. */
export function taskFrom({ task: id, revision: _, ...json }: TaskJson): TaskView {
  const read = ([name, value]: [string, unknown]): [string, unknown] =>
    TIMES.includes(name) ? [name, msOf(value as string)] : [name, value ?? undefined];
  return { ...Object.fromEntries(Object.entries(json).map(read)), id } as unknown as TaskView;
}
