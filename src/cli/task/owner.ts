/** Finds the process behind the claim of a task: the task names its session, and a survey lists the process of every session. */
import { identityFrom, isProvenGone } from '../../host/index.ts';
import type { SurveyedSession } from '../../runtime/observe/survey/index.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';

/** The lease of a worker that was killed while its command runs lasts its full time. */
export const OWNER_GONE = 'its process is gone; pending again when its lease ends';

type Owned = Pick<TaskView, 'session'>;

/** Whether the owner's process ran on this machine and has certainly ended, although its lease, and so its claim, still lasts. */
export function isOwnerGone(task: Owned, sessions: readonly SurveyedSession[]): boolean {
  const own = sessions.find(({ id }) => id === task.session);
  const identity = own === undefined ? undefined : identityFrom(own.about);
  return identity !== undefined && isProvenGone(identity);
}

/** Reads the sessions only if one of the tasks has a worker that a session keeps. */
export async function sessionsOfOwners(box: Signalbox, tasks: readonly Owned[]): Promise<readonly SurveyedSession[]> {
  return tasks.some(({ session }) => session !== undefined) ? (await box.survey({ leases: false })).sessions : [];
}
