/**
 * Finds the process behind the claim of a task. A task names its owner, not its process; but workers of the command line have
 * their host and pid in their names, and a survey lists the process of every session.
 */
import { identityFrom, isProvenGone } from '../../host/index.ts';
import type { SurveyedSession } from '../../runtime/observe/survey/index.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';

/** As `workerName` makes it. The holder that a user gave says nothing about the process. */
const WORKER = /^(?:run|work):(.+):(\d+):[0-9a-f]{6}$/s;

/** The lease of a worker that was killed while its command runs lasts its full time. */
export const OWNER_GONE = 'its process is gone; pending again when its lease ends';

type Owned = Pick<TaskView, 'status' | 'owner' | 'isLeased'>;

/** Whether the owner's process ran on this machine and has certainly ended, although its lease, and so its claim, still lasts. */
export function isOwnerGone(task: Owned, sessions: readonly SurveyedSession[]): boolean {
  const [, host, pid] = isClaimed(task) ? (WORKER.exec(task.owner ?? '') ?? []) : [];
  const own = sessions.filter((session) => session.host === host && session.pid === Number(pid));
  return own.length > 0 && own.every(isGone);
}

/**
 * Whether the task may be free soon because its owner has died. If the owner's name tells nothing about its process, any session
 * whose process is gone may be its own, until the lease of that session ends.
 */
export function mayComeBack(task: Owned, sessions: readonly SurveyedSession[]): boolean {
  if (!isClaimed(task)) return false;
  return WORKER.test(task.owner ?? '') ? isOwnerGone(task, sessions) : sessions.some(isGone);
}

/** Reads the sessions only if a worker has one of the tasks. */
export async function sessionsOfOwners(box: Signalbox, tasks: readonly Owned[]): Promise<readonly SurveyedSession[]> {
  return tasks.some(isClaimed) ? (await box.survey({ leases: false })).sessions : [];
}

function isClaimed({ status, owner, isLeased }: Owned): boolean {
  return status === 'running' && owner !== undefined && isLeased;
}

function isGone({ about }: SurveyedSession): boolean {
  const identity = identityFrom(about);
  return identity !== undefined && isProvenGone(identity);
}
