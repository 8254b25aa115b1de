/** Rows of tasks, pipelines, members and events. */
import { blockerTold, currentPhase, hasEnded, type PhaseRecord } from '../../core/index.ts';
import { countsOf } from '../../json/status.ts';
import { LEADERS } from '../../runtime/members/lead.ts';
import type { SignalboxEvent } from '../../runtime/observe/event-types.ts';
import type { ListedPipeline } from '../../runtime/pipelines/terms.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';
import { type Colour, joined } from '../output.ts';
import { blockedLines, shownState } from '../pipeline/words.ts';
import { counted } from './holds.ts';
import type { Row, Section, Seen } from './row.ts';

const TASK_ORDER: readonly TaskView['status'][] = ['failed', 'running', 'pending', 'complete'];
const TASK_MARKS: Readonly<Record<TaskView['status'], string>> = {
  failed: '✗',
  running: '●',
  pending: '○',
  complete: '✓',
};

/** Rows that need attention come first; finished ones follow, newest first. */
export function tasksOf({ everything: { tasks } }: Seen, isFull: boolean): Section {
  const counts = countsOf(tasks);
  const shown = TASK_ORDER.flatMap((status) => {
    const some = tasks.filter((task) => task.status === status);
    if (status !== 'complete') return some;
    return isFull ? some.sort((one, other) => (other.endedAt ?? 0) - (one.endedAt ?? 0)) : [];
  });
  return {
    title: 'Tasks',
    told: counted(TASK_ORDER.map((status) => `${counts[status]} ${status}`)),
    rows: shown.map(taskRow),
    empty: 'none open; try: signalbox task publish build-1',
    key: '4',
  };
}

function taskRow(task: TaskView): Row {
  const { id, status, owner, claimedAt, endedAt, publishedAt, blockedBy } = task;
  const isBlocked = status === 'pending' && blockedBy.length > 0;
  return {
    id: `task/${id}`,
    about: `task/${id}`,
    mark: isBlocked ? '◌' : TASK_MARKS[status],
    colour: status === 'failed' ? 'red' : status === 'complete' ? 'dim' : undefined,
    cells: [
      id,
      status === 'running' ? `running on ${owner ?? 'nobody'}` : isBlocked ? 'pending, blocked' : status,
      taskWhy(task),
    ],
    since: status === 'running' ? claimedAt : (endedAt ?? publishedAt),
  };
}

function taskWhy({ status, reason, blockedBy, capabilities, attempts, isLeased, priority }: TaskView): string {
  return joined([
    blockedBy.map(blockerTold).join('; '),
    status === 'failed' || status === 'pending' ? (reason ?? '') : '',
    status === 'running' && !isLeased ? 'its owner has no lease' : '',
    attempts > 1 ? `attempt ${attempts}` : '',
    priority === 0 ? '' : `priority ${priority}`,
    status === 'pending' && capabilities.length > 0 ? `needs ${capabilities.join(', ')}` : '',
  ]);
}

const STATE_MARKS: Readonly<Record<string, readonly [string, Colour?]>> = {
  running: ['●'],
  pending: ['○'],
  blocked: ['▲', 'yellow'],
  stopped: ['▲', 'yellow'],
  failed: ['✗', 'red'],
  cancelled: ['–', 'dim'],
  done: ['✓', 'dim'],
};

export function pipelinesOf({ everything: { pipelines }, now }: Seen, isFull: boolean): Section {
  const open = pipelines.filter((one) => !hasEnded(one));
  const over = pipelines.filter(hasEnded).reverse();
  const failed = over.filter(({ state }) => state === 'failed');
  const done = over.filter(({ state }) => state === 'done').length;
  return {
    title: 'Pipelines',
    told: counted([`${open.length} under way`, `${failed.length} failed`, `${done} done`]),
    rows: [...open, ...(isFull ? over : failed)].map((one) => pipelineRow(one, now)),
    empty: 'none under way; try: signalbox pipeline run release.yaml',
    key: '5',
  };
}

function pipelineRow(pipeline: ListedPipeline, now: number): Row {
  const { id, phases, blocked, reason = '', isDriven, startedAt, endedAt } = pipeline;
  const state = shownState(pipeline, isDriven);
  const [mark, colour] = STATE_MARKS[state] ?? ['?'];
  const phase = currentPhase(pipeline);
  const isLeft = !isDriven && !hasEnded(pipeline) && blocked?.on !== 'person';
  const why = blocked === undefined ? reason : (blockedLines(blocked, now)[0] ?? '');
  return {
    id: `pipeline/${id}`,
    about: `pipeline/${id}`,
    mark,
    colour,
    cells: [
      id,
      `${trackOf(phases, pipeline)} ${state}${phase === null ? '' : ` at ${phase}`}`,
      joined([isLeft ? 'no process drives it' : '', why]),
    ],
    since: blocked?.since ?? endedAt ?? startedAt,
  };
}

/** One character for each phase; of many phases the numbers. */
function trackOf(phases: readonly PhaseRecord[], pipeline: ListedPipeline): string {
  const over = phases.filter(({ state }) => state === 'done' || state === 'skipped').length;
  if (phases.length > 12) return `${over}/${phases.length}`;
  const at = hasEnded(pipeline) || pipeline.state === 'pending' ? -1 : pipeline.step.phase;
  const signs = phases.map(({ state }, place) => (place === at ? '▸' : (PHASE_SIGNS[state] ?? '·')));
  return signs.join('─');
}

const PHASE_SIGNS: Partial<Record<PhaseRecord['state'], string>> = {
  done: '✓',
  skipped: '↷',
  failed: '✗',
  interrupted: '✗',
  cancelled: '✗',
};

export function membersOf({ everything: { crew, survey } }: Seen): Section {
  const leads = survey.locks.filter(({ name, holds }) => name.startsWith(LEADERS) && holds.length > 0);
  const members = crew.members.map(({ id, joinedAt, assets, metadata }): Row => {
    const isCoordinator = id === crew.coordinator;
    const owned = assets.map((asset) => asset.id).join(', ');
    return {
      id: `member/${id}`,
      about: `member/${id}`,
      mark: isCoordinator ? '◆' : '●',
      cells: [id, isCoordinator ? 'coordinator' : '', owned === '' ? metadataTold(metadata) : `owns ${owned}`],
      since: joinedAt,
    };
  });
  const leaders = leads.map(({ name, resource, holds: [hold] }): Row => {
    const cells = [name.slice(LEADERS.length), `led by ${hold?.holder ?? ''}`, `epoch ${hold?.token ?? ''}`];
    return { id: `leader/${name}`, about: resource, mark: '★', cells, since: hold?.acquiredAt };
  });
  return {
    title: 'Members',
    told: counted([`${members.length} alive`, `${leaders.length} led`]),
    rows: [...members, ...leaders],
    empty: 'none; try: signalbox members join agent-1 -- sleep 30',
    key: '6',
  };
}

function metadataTold(metadata: unknown): string {
  return metadata === undefined || metadata === null ? '' : JSON.stringify(metadata);
}

export function eventsOf(events: readonly SignalboxEvent[]): Section {
  return {
    title: 'Events',
    told: events.length === 0 ? '' : 'the newest first',
    rows: events.map((event, at) => eventRow(event, events.length - at)),
    empty: 'nothing has happened yet',
    key: '7',
  };
}

/** `place`: counts events that have no id of their own. */
function eventRow(event: SignalboxEvent, place: number): Row {
  const { type, resource, holder, at, id } = event;
  const isBad = /:(?:deadlock|failed|forced|reclaimed|stale)$/.test(type);
  return {
    id: `event/${id ?? `${at}/${place}`}`,
    about: resource === '*' ? undefined : resource,
    mark: isBad ? '!' : '·',
    colour: isBad ? 'yellow' : undefined,
    cells: [type, resource, joined([holder, eventTold(event)])],
    since: at,
  };
}

export function eventTold(event: SignalboxEvent): string {
  const { type: _, resource: _resource, holder: _holder, at: _at, id: _id, ...details } = event;
  return Object.entries(details)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' · ');
}
