/** A task as users see it. */
import {
  type Blocker,
  blockersOf,
  claimEntryOf,
  isOwned,
  type Json,
  statusOf,
  type Task,
  type TaskStatus,
  type Token,
} from '../../core/index.ts';
import { ownCopy } from '../own-copy.ts';

export interface TaskView {
  readonly id: string;
  readonly status: TaskStatus;
  /** Undefined where another program has put something that is no JSON. */
  readonly data: Json | undefined;
  readonly capabilities: readonly string[];
  readonly priority: number;
  readonly dependsOn: readonly string[];
  readonly retries: number;
  /** Why nobody can claim it although it is pending. */
  readonly blockedBy: readonly Blocker[];
  /** Who does it, or did. */
  readonly owner: string | undefined;
  readonly token: Token | undefined;
  /** False for the owner of a task that runs on no lease: should it die, nobody notices, and a person has to free it. */
  readonly isLeased: boolean;
  readonly attempts: number;
  readonly result: Json | undefined;
  /** Why it failed, the last time it did. */
  readonly reason: string | undefined;
  /** Times are by the clocks of those who did it, and unknown of workers that are not signalbox. */
  readonly publishedAt: number | undefined;
  readonly publishedBy: string | undefined;
  readonly claimedAt: number | undefined;
  readonly endedAt: number | undefined;
}

/** `status` of the tasks that it depends on. */
export function viewOf(task: Task, status: (id: string) => TaskStatus | undefined): TaskView {
  const { data, owner, bookkeeping } = task;
  const now = statusOf(task);
  const { capabilities = [], priority = 0, dependsOn = [], retries = 0 } = data?.terms ?? {};
  const entry = bookkeeping?.entry;
  const isRunning = now === 'running';
  return {
    id: task.id,
    status: now,
    data: ownCopy(data?.json),
    capabilities,
    priority,
    dependsOn,
    retries,
    blockedBy: now === 'pending' ? blockersOf(task, status) : [],
    owner: isOwned(task) ? owner?.holder : undefined,
    token: isOwned(task) ? owner?.token : undefined,
    isLeased: isOwned(task) && owner?.lease !== null,
    attempts: entry?.attempts ?? 0,
    result: now === 'complete' ? entry?.result : undefined,
    reason: entry?.reason,
    publishedAt: entry?.publishedAt,
    publishedBy: entry?.publishedBy,
    claimedAt: claimEntryOf(task)?.at,
    endedAt: isRunning ? undefined : entry?.endedAt,
  };
}
