/** How events and answers change tasks, pipelines and members. */
import type { Draft } from './apply.ts';
import { isKnown, isOutdated, merged, revisionOf } from './as-of.ts';
import { numberOrNull, pipelineIn, taskIn, textIn, textOrNull, textsIn } from './read.ts';
import { kindAndName } from './text.ts';
import type { Counts, Happening, Member, Pipeline, PipelineState, State, Task, TaskStatus } from './types.ts';

const STATUS: Readonly<Record<string, TaskStatus>> = {
  'task:published': 'pending',
  'task:claimed': 'running',
  'task:released': 'pending',
  'task:requeued': 'pending',
  'task:completed': 'complete',
  'task:failed': 'failed',
};

/** Only the record of the witness has this event. The live page reads the tasks again to notice it. */
export const FORGOTTEN = 'task:forgotten';

/** The status before an event, for a task that the page does not list: all tasks are counted, but not all are listed. */
function statusBefore(event: Happening): TaskStatus | undefined {
  switch (event.type) {
    case 'task:claimed':
      return 'pending';
    case 'task:released':
    case 'task:completed':
    case 'task:failed':
      return 'running';
    case 'task:requeued':
      return typeof event['was'] === 'string' ? (event['was'] as TaskStatus) : 'running';
    default:
      return undefined;
  }
}

function moved(counts: Counts, from: TaskStatus | undefined, to: TaskStatus | undefined): Counts {
  if (from === to) return counts;
  return {
    ...counts,
    ...(from !== undefined && { [from]: Math.max(0, counts[from] - 1) }),
    ...(to !== undefined && { [to]: counts[to] + 1 }),
  };
}

export function taskAfter(draft: Draft, id: string, event: Happening): void {
  const before = draft.tasks.get(id);
  if (event.type === FORGOTTEN) {
    draft.tasks.delete(id);
    draft.unread.delete(`task/${id}`);
    draft.counts = moved(draft.counts, before?.status, undefined);
    return;
  }
  const status = STATUS[event.type];
  const revision = revisionOf(event.id);
  if (status === undefined || isKnown(before, revision, draft.workRevision)) return;
  const isEnd = status === 'complete' || status === 'failed';
  draft.tasks.set(id, {
    ...(before ?? unknownTask(id, event)),
    ...{ revision, readAt: 0, status },
    owner: status === 'running' ? event.holder : null,
    token: status === 'running' ? numberOrNull(event['token']) : null,
    claimedAt: status === 'running' ? event.at : (before?.claimedAt ?? null),
    endedAt: isEnd ? event.at : null,
    attempts: numberOrNull(event['attempts']) ?? before?.attempts ?? 0,
    reason: (status === 'failed' ? textOrNull(event['reason']) : null) ?? before?.reason ?? null,
  });
  draft.counts = moved(draft.counts, before === undefined ? statusBefore(event) : before.status, status);
  draft.unread.add(`task/${id}`);
}

function unknownTask(id: string, { at, holder }: Happening): Task {
  return { ...taskIn({ task: id, publishedBy: holder }, 0, 0), publishedAt: at };
}

/** Removes a resource: the server answered that it did not exist at this revision. */
export function forgotten(state: State, resource: string, revision: number): State {
  const [kind, id] = kindAndName(resource);
  const isTask = kind === 'task';
  if (isOutdated({ revision }, (isTask ? state.tasks : state.pipelines).get(id))) return state;
  const next = read(state, resource);
  const others = <T>(all: ReadonlyMap<string, T>): Map<string, T> => new Map([...all].filter(([one]) => one !== id));
  if (!isTask) return { ...next, pipelines: others(state.pipelines) };
  const counts = moved(state.counts, state.tasks.get(id)?.status, undefined);
  return { ...next, tasks: others(state.tasks), counts };
}

/** Nothing that events have told about this is unread any more. */
function read(state: State, resource: string): State {
  return { ...state, unread: new Set([...state.unread].filter((one) => one !== resource)) };
}

export function taskRead(state: State, task: Task): State {
  const before = state.tasks.get(task.id);
  if (isOutdated(task, before)) return state;
  // A task that was not listed is counted already.
  const counts = before === undefined ? state.counts : moved(state.counts, before.status, task.status);
  return { ...read(state, `task/${task.id}`), counts, tasks: new Map(state.tasks).set(task.id, task) };
}

/**
 * Takes over tasks, pipelines, members and unreadable records that were all read again: no event tells of a driver that
 * died, a task that was forgotten, or a record that was damaged.
 */
export function workRead(state: State, work: State): State {
  const { workRevision: revision } = work;
  if (revision < state.workRevision) return state;
  const tasks = merged(state.tasks, work.tasks, revision);
  const all = Object.values(work.counts).reduce((sum, one) => sum + one, 0);
  let { counts } = work;
  for (const [id, task] of tasks) {
    if (task.revision <= revision) continue;
    const was = work.tasks.get(id)?.status;
    // If not all tasks are listed, this one may have been there before: the next read tells.
    if (was !== undefined || work.tasks.size >= all) counts = moved(counts, was, task.status);
  }
  const pipelines = merged(state.pipelines, work.pipelines, revision);
  const hasMembers = state.membersRevision <= revision;
  const isUnread = (name: string): boolean => {
    if (name === 'members') return !hasMembers;
    if (name === 'witness') return false;
    const [kind, id] = kindAndName(name);
    if (kind === 'task') return isOutdated({ revision }, tasks.get(id));
    return kind !== 'pipeline' || isOutdated({ revision }, pipelines.get(id));
  };
  return {
    ...state,
    ...{ workRevision: revision, tasks, counts, pipelines, troubles: work.troubles },
    ...(hasMembers && { members: work.members, coordinator: work.coordinator, membersRevision: revision }),
    unread: new Set([...state.unread].filter(isUnread)),
  };
}

export function membersRead(
  state: State,
  revision: number,
  members: readonly Member[],
  coordinator: string | null,
): State {
  if (revision < state.membersRevision) return state;
  const byId = new Map(members.map((one) => [one.id, one]));
  return { ...read(state, 'members'), coordinator, membersRevision: revision, members: byId };
}

const STATE: Readonly<Record<string, PipelineState>> = {
  'pipeline:started': 'pending',
  'pipeline:phase': 'running',
  'pipeline:blocked': 'blocked',
  'pipeline:resumed': 'running',
  'pipeline:done': 'done',
  'pipeline:failed': 'failed',
  'pipeline:cancelled': 'cancelled',
};

export function pipelineAfter(draft: Draft, id: string, event: Happening): void {
  const state = STATE[event.type];
  const revision = revisionOf(event.id);
  const known = draft.pipelines.get(id);
  if (isKnown(known, revision, draft.workRevision)) return;
  const before = known ?? unknownPipeline(id, event);
  const isOver = state === 'done' || state === 'failed' || state === 'cancelled';
  draft.pipelines.set(id, {
    ...before,
    ...{ revision, readAt: 0 },
    state: state ?? before.state,
    phase: textOrNull(event['phase']) ?? before.phase,
    blocked: state === 'blocked' ? blockedBy(event) : null,
    isDriven: isOver ? false : state === 'running' || before.isDriven,
    isCancelling: before.isCancelling || event.type === 'pipeline:cancelling',
    endedAt: isOver ? event.at : null,
    reason: textOrNull(event['reason']) ?? before.reason,
  });
  draft.unread.add(`pipeline/${id}`);
}

function blockedBy(event: Happening): NonNullable<Pipeline['blocked']> {
  const { on, reasons, question } = event;
  return { on: textIn(on, 'guard'), reasons: textsIn(reasons), since: event.at, question: numberOrNull(question) };
}

function unknownPipeline(id: string, { name, holder, at }: Happening): Pipeline {
  return { ...pipelineIn({ pipeline: id, name, startedBy: holder, isDriven: true }), startedAt: at };
}

export function pipelineRead(state: State, pipeline: Pipeline): State {
  if (isOutdated(pipeline, state.pipelines.get(pipeline.id))) return state;
  const pipelines = new Map(state.pipelines).set(pipeline.id, pipeline);
  return { ...read(state, `pipeline/${pipeline.id}`), pipelines };
}
