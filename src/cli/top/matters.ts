/**
 * What needs a person, the most urgent first: lost holds, what cannot be read, pipelines that wait for a person or for
 * nobody, long waits, failures, and deadlocks that were resolved.
 */
import { hasEnded } from '../../core/index.ts';
import { type Trouble, troublesOf } from '../../core/troubles.ts';
import type { SurveyedHold, SurveyedLock, SurveyedSemaphore } from '../../runtime/observe/survey/index.ts';
import type { ListedPipeline } from '../../runtime/pipelines/terms.ts';
import { blockedLines } from '../pipeline/words.ts';
import { goneTold } from '../waiting.ts';
import type { Board, Deadlock } from './board.ts';
import { waitTold } from './holds.ts';
import type { Row, Section, Seen } from './row.ts';

type Used = SurveyedLock | SurveyedSemaphore;

/** A wait is long if it exceeds both: a time that people notice, and several times what is usual for the resource. */
const LONG_WAIT_MS = 60_000;
const TIMES_USUAL = 3;
/** What ended longer ago has been seen. */
const RECENT_MS = 3_600_000;

export function mattersOf(board: Board, seen: Seen): Section {
  const { survey, malformed, pipelines, witness } = seen.everything;
  const used: readonly Used[] = [...survey.locks, ...survey.semaphores];
  const rows = [
    ...used.flatMap(lostHolds),
    ...troublesOf(malformed, witness).map(troubled),
    ...pipelines.flatMap((one) => stuck(one, seen.now)),
    ...used.flatMap((one) => longWaits(one, seen.now, board.usualWaits.get(one.resource) ?? 0)),
    ...failures(seen),
    ...resolved(board.deadlocks),
  ];
  return {
    title: 'Needs you',
    told: rows.length === 0 ? '' : String(rows.length),
    rows,
    empty: 'all clear: nothing waits for a person',
  };
}

/** Stale holds that only a person may end: where the next in line gets a stale hold, nobody has to do anything. */
function lostHolds(one: Used): readonly Row[] {
  if (one.onStale !== 'alert') return [];
  const holds: readonly SurveyedHold[] = one.holds;
  return holds
    .filter(({ isStale }) => isStale)
    .map((hold) => ({
      id: `matter/lost/${one.resource}/${hold.id}`,
      about: one.resource,
      mark: '✗',
      colour: 'red' as const,
      cells: ['lost hold', `${one.resource}: ${hold.holder} ${lostTold(hold)}; a person decides: b breaks it`],
      right: waitTold(one.waiting),
      since: hold.acquiredAt,
    }));
}

function lostTold(hold: SurveyedHold): string {
  switch (hold.health) {
    case 'process-gone':
      return `is gone: ${goneTold(hold)}`;
    case 'slow':
      return 'has held it for longer than it may';
    case 'overdue':
    case 'renewed':
    case 'silent':
      return 'is silent: its lease has ended';
  }
}

function troubled({ kind, subject, says, command, at }: Trouble): Row {
  const cells = [kind, `${subject}${says}; see: ${command}`];
  const look =
    kind === 'filling' ? ({ mark: '◆', colour: 'yellow' } as const) : ({ mark: '✗', colour: 'red' } as const);
  return { id: `matter/${kind}`, ...look, cells, ...(at !== undefined && { since: at }) };
}

function stuck(pipeline: ListedPipeline, now: number): readonly Row[] {
  if (hasEnded(pipeline)) return [];
  const { id, blocked, isDriven, startedAt } = pipeline;
  const about = `pipeline/${id}`;
  const row = (kind: string, text: string, since: number): readonly Row[] => [
    { id: `matter/${kind}/${about}`, about, mark: '▲', colour: 'yellow', cells: [kind, `${about}: ${text}`], since },
  ];
  if (blocked?.on === 'person') return row('decide', blocked.why, blocked.since);
  if (!isDriven)
    return row('no driver', `no process drives it; signalbox pipeline resume ${id}`, blocked?.since ?? startedAt);
  const isStuck = blocked?.on === 'guard' && blocked.guards.some(({ outlook }) => outlook === 'stuck');
  return isStuck ? row('stuck', blockedLines(blocked, now)[0] ?? '', blocked.since) : [];
}

function longWaits(one: Used, now: number, usualMs: number): readonly Row[] {
  const [longest, ...more] = one.waiting
    .filter(({ since }) => now - since > Math.max(LONG_WAIT_MS, usualMs * TIMES_USUAL))
    .sort((a, b) => a.since - b.since);
  if (longest === undefined) return [];
  const others = more.length === 0 ? '' : ` and ${more.length} more`;
  const holder = one.holds[0];
  const reason = holder?.reason === undefined || holder.reason === '' ? '' : ` (${holder.reason})`;
  const behind = holder === undefined ? '' : ` behind ${holder.holder}${reason}`;
  const text = `${one.resource}: ${longest.holder}${others} wait${more.length === 0 ? 's' : ''}${behind}`;
  return [
    {
      id: `matter/wait/${one.resource}`,
      about: one.resource,
      mark: '◆',
      colour: 'yellow',
      cells: ['long wait', text],
      right: waitTold(one.waiting),
      since: longest.since,
    },
  ];
}

/** Pipelines one by one; tasks together, because a bad change makes many of them fail. */
function failures({ everything: { pipelines, tasks }, now }: Seen): readonly Row[] {
  const isRecent = ({ endedAt = 0 }: { readonly endedAt?: number | undefined }): boolean => now - endedAt < RECENT_MS;
  const ended = pipelines.filter((one) => one.state === 'failed' && isRecent(one));
  const failed = tasks.filter((task) => task.status === 'failed' && isRecent(task));
  const newest = failed.reduce((last, task) => ((task.endedAt ?? 0) >= (last?.endedAt ?? 0) ? task : last), failed[0]);
  const rows: Row[] = ended.map(({ id, reason = '', endedAt }) => ({
    id: `matter/failed/pipeline/${id}`,
    about: `pipeline/${id}`,
    mark: '✗',
    colour: 'red',
    cells: ['failed', `pipeline/${id}: ${reason}`],
    since: endedAt,
  }));
  if (newest === undefined) return rows;
  const more = failed.length === 1 ? '' : ` (${failed.length} tasks have failed)`;
  const text = `task/${newest.id}: ${newest.reason ?? 'no reason was given'}${more}`;
  const about = `task/${newest.id}`;
  return [
    ...rows,
    { id: 'matter/failed/tasks', about, mark: '✗', colour: 'red', cells: ['failed', text], since: newest.endedAt },
  ];
}

/** The newest of each circle: a program that runs into one usually does so again. */
function resolved(deadlocks: readonly Deadlock[]): readonly Row[] {
  const circleOf = ({ cycle }: Deadlock): string =>
    cycle
      .map(({ resource }) => resource)
      .sort()
      .join('\n');
  const circles = new Map<string, Deadlock[]>();
  for (const one of deadlocks) circles.set(circleOf(one), [...(circles.get(circleOf(one)) ?? []), one]);
  return [...circles].flatMap(([key, [newest, ...more]]) => {
    if (newest === undefined) return [];
    const { cycle, resource, holder, at } = newest;
    const circle = [...cycle, ...cycle.slice(0, 1)].map((one) => one.holder).join(' → ');
    const times = more.length === 0 ? '' : `, ${more.length + 1} times in an hour`;
    const text = `resolved${times}: ${holder} gave way at ${resource} (${circle})`;
    return [{ id: `matter/deadlock/${key}`, about: resource, mark: '↻', cells: ['deadlock', text], since: at }];
  });
}
