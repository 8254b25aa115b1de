/** A survey as a table for people: one row for each hold and each waiter. */
import type {
  Survey,
  SurveyedHold,
  SurveyedLock,
  SurveyedSemaphore,
  SurveyedSession,
  SurveyedWaiter,
} from '../runtime/observe/survey/index.ts';
import type { TaskView } from '../runtime/tasks/reading.ts';
import { spoken } from '../core/index.ts';
import { type Colour, printable } from './output.ts';
import { cut, type Layout, type Row, tableLines } from './table.ts';

const HEADER = ['RESOURCE', 'WHO', 'SINCE', 'TOKEN', 'AS', 'STATE'];

/** `tasks`: those that a worker has. */
export function whoLines(survey: Survey, layout: Layout, tasks: readonly TaskView[] = []): string[] {
  const inUse = [...survey.locks, ...survey.semaphores].filter((one) => one.holds.length + one.waiting.length > 0);
  if (inUse.length + tasks.length === 0) return ['Nothing is held or waited for.'];
  return tableLines(
    HEADER,
    [
      ...inUse.flatMap((one) => rowsOf(one, survey.at, layout)),
      ...tasks.map((task) => taskRow(task, survey.at, layout)),
    ],
    layout,
  );
}

/** A worker that is not signalbox leaves no time. */
function taskRow(task: TaskView, at: number, layout: Layout): Row {
  const { id, owner = '', claimedAt, token, attempts, isLeased } = task;
  const from = claimedAt === undefined ? '' : since(claimedAt, at, layout);
  const state = isLeased ? `attempt ${Math.max(1, attempts)}` : 'no lease: stays until it is freed';
  return { cells: [`task/${id}`, owner, from, String(token ?? ''), 'task', state] };
}

function rowsOf(one: SurveyedLock | SurveyedSemaphore, at: number, layout: Layout): readonly Row[] {
  const rows = [
    ...one.holds.map((hold) => holdRow(hold, 'capacity' in one ? one.capacity : undefined, at, layout)),
    ...one.waiting.map((waiter) => waiterRow(waiter, at, layout)),
  ];
  // Named once, so that the eye finds where the next resource begins.
  return rows.map((row, place) => ({ ...row, cells: [place === 0 ? one.resource : '', ...row.cells] }));
}

type AnyHold = SurveyedHold & { mode?: string; weight?: number; slots?: readonly number[] };

function holdRow(hold: AnyHold, capacity: number | undefined, at: number, layout: Layout): Row {
  const as = capacity === undefined ? (hold.mode ?? '') : `${hold.weight} of ${capacity}`;
  const slots = hold.slots === undefined ? '' : `slot${hold.slots.length === 1 ? '' : 's'} ${hold.slots.join(',')}`;
  return {
    cells: [hold.holder, since(hold.acquiredAt, at, layout), String(hold.token), as, stateOf(hold)],
    note: noteOf(hold.reason, [slots, processOf(hold), exact(hold.acquiredAt, layout)], layout),
    paint: painted(hold, layout),
  };
}

function waiterRow(waiter: SurveyedWaiter, at: number, layout: Layout): Row {
  const as = waiter.mode ?? (waiter.weight === undefined ? '' : `wants ${waiter.weight}`);
  const priority = waiter.priority === 0 ? '' : `priority ${waiter.priority}`;
  const wants = waiter.isGrowing ? 'wants more than it has' : '';
  return {
    cells: [`${waiter.position}. ${waiter.holder}`, since(waiter.since, at, layout), '', as, waitsText(waiter)],
    note: noteOf(waiter.reason, [priority, wants, place(waiter.session), exact(waiter.since, layout)], layout),
  };
}

/** Names the waiter directly ahead in the queue, or else the holder. */
function waitsText({ waitsFor }: SurveyedWaiter): string {
  const nearest = waitsFor.at(-1);
  return nearest === undefined ? 'waits' : `waits for ${nearest}`;
}

export function stateOf({ health, lease, isAttached }: SurveyedHold): string {
  switch (health) {
    case 'renewed':
      if (lease === undefined) return 'held';
      return isAttached ? `renewed ${spoken(lease.renewedMs)} ago` : `lasts ${spoken(lease.remainingMs)} more`;
    case 'overdue':
      return `overdue, renewed ${spoken(lease?.renewedMs ?? 0)} ago`;
    case 'slow':
      return 'slow: past its time limit';
    case 'silent':
      return 'silent: lease ended';
    case 'process-gone':
      return 'process gone';
  }
}

function painted({ health }: SurveyedHold, { paint }: Layout): (text: string) => string {
  const colours: Partial<Record<SurveyedHold['health'], Colour>> = {
    overdue: 'yellow',
    slow: 'yellow',
    silent: 'red',
    'process-gone': 'red',
  };
  const colour = colours[health];
  return (text) => (colour === undefined ? text : paint(colour, text));
}

function processOf({ isAttached, session }: SurveyedHold): string {
  return isAttached ? place(session) : 'detached';
}

function place(session: SurveyedSession | undefined): string {
  if (session?.pid === undefined) return session?.host ?? '';
  return `pid ${session.pid}${session.host === undefined ? '' : ` on ${session.host}`}`;
}

function since(ms: number, at: number, { width }: Layout): string {
  const ago = spoken(at - ms);
  return Number.isFinite(width) ? ago : `${iso(ms)} (${ago})`;
}

/** The full time, if the row only has room for a duration. */
function exact(ms: number, { width }: Layout): string {
  return Number.isFinite(width) ? `since ${iso(ms).replace('T', ' ').slice(0, 19)}Z` : '';
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** A long reason is cut first. */
function noteOf(reason: string | undefined, parts: readonly string[], { width }: Layout): string {
  const rest = parts.filter((part) => part !== '').join(' · ');
  if (reason === undefined || reason === '') return rest;
  return `${cut(printable(reason), Math.max(20, width - rest.length - 5))} · ${rest}`;
}
