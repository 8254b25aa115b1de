/** How events change tasks and pipelines. */
import type { Draft } from './apply.ts';
import type { Happening, Pipeline, PipelineState, State, Task, TaskStatus } from './types.ts';

const STATUS: Readonly<Record<string, TaskStatus>> = {
  'task:published': 'pending',
  'task:claimed': 'running',
  'task:released': 'pending',
  'task:requeued': 'pending',
  'task:completed': 'complete',
  'task:failed': 'failed',
};

export function taskAfter(draft: Draft, id: string, event: Happening): void {
  const status = STATUS[event.type];
  if (status === undefined) return;
  const before = draft.tasks.get(id);
  const isEnd = status === 'complete' || status === 'failed';
  draft.tasks.set(id, {
    ...(before ?? unknownTask(id, event)),
    status,
    owner: status === 'running' ? event.holder : null,
    token: status === 'running' && typeof event['token'] === 'number' ? event['token'] : null,
    claimedAt: status === 'running' ? event.at : (before?.claimedAt ?? null),
    endedAt: isEnd ? event.at : null,
    attempts: typeof event['attempts'] === 'number' ? event['attempts'] : (before?.attempts ?? 0),
    reason: status === 'failed' && typeof event['reason'] === 'string' ? event['reason'] : (before?.reason ?? null),
  });
  if (before?.status !== status) {
    const counts = { ...draft.counts };
    if (before !== undefined) counts[before.status] = Math.max(0, counts[before.status] - 1);
    counts[status] += 1;
    draft.counts = counts;
  }
  draft.unread.add(`task/${id}`);
}

function unknownTask(id: string, event: Happening): Task {
  return {
    ...{ id, status: 'pending', capabilities: [], priority: 0, dependsOn: [], blockedBy: [], owner: null, token: null },
    ...{ attempts: 0, failures: 0, losses: 0, retries: 0, retryAt: null, reason: null },
    ...{ publishedAt: event.at, publishedBy: event.holder === '' ? null : event.holder },
    ...{ claimedAt: null, endedAt: null },
  };
}

/** The server answered that it is no longer there. */
export function forgotten(state: State, resource: string): State {
  const id = resource.slice(resource.indexOf('/') + 1);
  const unread = new Set(state.unread);
  unread.delete(resource);
  if (resource.startsWith('task/')) {
    const gone = state.tasks.get(id);
    if (gone === undefined) return { ...state, unread };
    const tasks = new Map(state.tasks);
    tasks.delete(id);
    const counts = { ...state.counts, [gone.status]: Math.max(0, state.counts[gone.status] - 1) };
    return { ...state, tasks, counts, unread };
  }
  const pipelines = new Map(state.pipelines);
  pipelines.delete(id);
  return { ...state, pipelines, unread };
}

export function taskRead(state: State, task: Task): State {
  const before = state.tasks.get(task.id);
  const counts = { ...state.counts };
  if (before?.status !== task.status) {
    if (before !== undefined) counts[before.status] = Math.max(0, counts[before.status] - 1);
    counts[task.status] += 1;
  }
  const unread = new Set(state.unread);
  unread.delete(`task/${task.id}`);
  return { ...state, counts, unread, tasks: new Map(state.tasks).set(task.id, task) };
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
  const before = draft.pipelines.get(id) ?? unknownPipeline(id, event);
  const phase = typeof event['phase'] === 'string' ? event['phase'] : before.phase;
  const isOver = state === 'done' || state === 'failed' || state === 'cancelled';
  draft.pipelines.set(id, {
    ...before,
    state: state ?? before.state,
    phase,
    blocked: state === 'blocked' ? blockedBy(event) : null,
    isDriven: isOver ? false : state === 'running' || before.isDriven,
    isCancelling: before.isCancelling || event.type === 'pipeline:cancelling',
    endedAt: isOver ? event.at : null,
    reason: typeof event['reason'] === 'string' ? event['reason'] : before.reason,
  });
  draft.unread.add(`pipeline/${id}`);
}

function blockedBy(event: Happening): NonNullable<Pipeline['blocked']> {
  const reasons = Array.isArray(event['reasons']) ? (event['reasons'] as readonly unknown[]) : [];
  return {
    on: typeof event['on'] === 'string' ? event['on'] : 'guard',
    reasons: reasons.filter((one): one is string => typeof one === 'string'),
    since: event.at,
    question: typeof event['question'] === 'number' ? event['question'] : null,
  };
}

function unknownPipeline(id: string, event: Happening): Pipeline {
  return {
    ...{ id, name: typeof event['name'] === 'string' ? event['name'] : '', state: 'pending', phase: null, phases: [] },
    ...{ blocked: null, driver: null, isDriven: true, startedBy: event.holder, startedAt: event.at, endedAt: null },
    ...{ isCancelling: false, reason: null },
  };
}

export function pipelineRead(state: State, pipeline: Pipeline): State {
  const unread = new Set(state.unread);
  unread.delete(`pipeline/${pipeline.id}`);
  return { ...state, unread, pipelines: new Map(state.pipelines).set(pipeline.id, pipeline) };
}
