/**
 * A survey for people: a table with one row for each hold and each waiter. A terminal too narrow for it gets the same as a
 * list. What says why (the reason) and what runs where is never cut.
 */
import { homedir } from 'node:os';
import type {
  Survey,
  SurveyedHold,
  SurveyedLock,
  SurveyedSemaphore,
  SurveyedSession,
  SurveyedWaiter,
} from '../runtime/observe/survey/index.ts';
import { type Drain, type Json, spoken } from '../core/index.ts';
import { ownProcess } from '../json/own-process.ts';
import type { TaskView } from '../runtime/tasks/reading.ts';
import { type Colour, joined, printable } from './output.ts';
import { wrapped } from './pipeline/columns.ts';
import { quoted } from './pipeline/words.ts';
import { cut, type Layout, type Row, tableLines } from './table.ts';
import { isOwnerGone, OWNER_GONE } from './task/owner.ts';
import { commandIn, goneTold, personDecides, uncollectedTold } from './waiting.ts';

/** A space at which no line is broken. */
const UNBROKEN = '\u00a0';
const HEADER = ['RESOURCE', 'WHO', 'SINCE', 'TOKEN', 'AS', 'STATE'];

/** One hold or waiter. */
interface Entry {
  readonly who: string;
  /** Undefined if it is not known: a worker that is not signalbox leaves no time. */
  readonly since: number | undefined;
  readonly token: string;
  readonly as: string;
  readonly state: string;
  readonly isWaiting: boolean;
  readonly reason: string;
  /** Small facts, shown in one line if they fit. */
  readonly facts: readonly string[];
  /** What a person has to know about it. */
  readonly trouble: string;
  readonly colour: Colour | undefined;
}

type Used = SurveyedLock | SurveyedSemaphore;

/** What is held by one name. */
interface Group {
  readonly resource: string;
  readonly entries: readonly Entry[];
}

/** `tasks`: the ones that a worker has. */
export function whoLines(survey: Survey, layout: Layout, tasks: readonly TaskView[] = []): string[] {
  const inUse = [...survey.locks, ...survey.semaphores].filter(isTold);
  const all = [
    ...inUse.map((one) => ({ resource: one.resource, entries: entriesOf(one) })),
    ...tasks.map((task) => taskGroup(task, isOwnerGone(task, survey.sessions))),
  ];
  if (all.length === 0) return ['Nothing is held or waited for.'];
  const rows = rowsOf(all, survey.at, layout);
  const columns = HEADER.map((title, at) => Math.max(title.length, ...rows.map(({ cells }) => cells[at]?.length ?? 0)));
  const isTooWide = columns.reduce((sum, one) => sum + one + 2, -2) > layout.width;
  return isTooWide ? asList(all, survey.at, layout) : tableLines(HEADER, rows, layout);
}

/** Whether there is something to tell: a hold, a waiter, or that nothing is granted. */
export function isTold(one: Used): boolean {
  return one.holds.length + one.waiting.length > 0 || ('drained' in one && one.drained !== undefined);
}

function rowsOf(all: readonly Group[], at: number, layout: Layout): readonly (Row & { cells: readonly string[] })[] {
  return all.flatMap((one) =>
    one.entries.map((entry, place) => ({
      // Named once, so that the eye finds where the next resource begins.
      cells: [
        place === 0 ? one.resource : '',
        entry.who,
        entry.since === undefined ? '' : since(entry.since, at, layout),
        entry.token,
        entry.as,
        entry.state,
      ],
      note: [entry.trouble, entry.reason, factsTold(entry.facts)],
      paint: painted(entry, layout),
    })),
  );
}

function asList(all: readonly Group[], at: number, layout: Layout): string[] {
  const { width, paint } = layout;
  const indented = (text: string, by: number): readonly string[] =>
    wrapped(printable(text), Math.max(20, width - by - 1)).map((line) => ' '.repeat(by) + line);
  return all.flatMap((one) => [
    paint('bold', cut(printable(one.resource), width)),
    ...one.entries.flatMap((entry) => {
      const time = entry.since === undefined ? '' : spoken(at - entry.since);
      const held = time === '' ? entry.state : `for ${time}, ${entry.state}`;
      const state = entry.isWaiting ? entry.state.replace('waiting', `waiting ${time}`) : held;
      const head = `${entry.who}  ${state}`;
      const token = entry.token === '' ? '' : `token ${entry.token}`;
      const facts = factsTold([entry.as, ...entry.facts, token]);
      const notes = [entry.trouble, entry.reason, facts].filter((note) => note !== '');
      return [
        ...indented(head, 2).map(painted(entry, layout)),
        ...notes.flatMap((note) => indented(note, 4).map((line) => paint('dim', line))),
      ];
    }),
  ]);
}

function taskGroup({ id, owner = '', claimedAt, token, attempts, isLeased }: TaskView, isGone: boolean): Group {
  const entry: Entry = {
    who: owner,
    since: claimedAt,
    token: String(token ?? ''),
    as: 'task',
    state: isLeased ? `attempt ${Math.max(1, attempts)}` : 'no lease: stays until it is freed',
    isWaiting: false,
    reason: '',
    facts: [],
    trouble: isGone ? OWNER_GONE : '',
    colour: isGone ? COLOURS['process-gone'] : undefined,
  };
  return { resource: `task/${id}`, entries: [entry] };
}

function entriesOf(one: Used): readonly Entry[] {
  const capacity = 'capacity' in one ? one.capacity : undefined;
  const decides = one.onStale === 'alert' ? personDecides(one.resource) : '';
  const drain = 'drained' in one && one.drained !== undefined ? [drainEntry(one.drained, one.name)] : [];
  return [...drain, ...one.holds.map((hold) => holdEntry(hold, capacity, decides)), ...one.waiting.map(waiterEntry)];
}

/** Stands first: it is why nobody in the queue gets anything. */
function drainEntry({ by, at, reason }: Drain, name: string): Entry {
  return {
    ...{ who: by, since: at, token: '', as: 'drain', state: 'drained: grants nothing new', isWaiting: false },
    ...{ reason, facts: [], trouble: `to undo it: signalbox sem drain ${quoted(name)} --undo`, colour: 'yellow' },
  };
}

type AnyHold = SurveyedHold & { mode?: string; weight?: number; slots?: readonly number[] };

/** `decides`: what to do if the hold is stale and no process may take it. */
function holdEntry(hold: AnyHold, capacity: number | undefined, decides: string): Entry {
  const { slots: numbers = [] } = hold;
  const slots = numbers.length === 0 ? '' : `slot${numbers.length === 1 ? '' : 's'} ${slotRuns(numbers)}`;
  const isGone = hold.health === 'process-gone';
  const isLeft = isGone || hold.orphans.length > 0;
  const where = hold.isAttached
    ? placeOf(hold.session, isLeft)
    : placeOf(ownProcess(hold.takenBy, hold.metadata), true);
  return {
    who: hold.holder,
    since: hold.acquiredAt,
    token: String(hold.token),
    as: capacity === undefined ? (hold.mode ?? '') : `${hold.weight} of ${capacity}`,
    state: stateOf(hold),
    isWaiting: false,
    reason: hold.reason ?? '',
    facts: [
      slots,
      hold.isCollected === false ? 'its turn is kept for the ticket; nothing runs yet' : commandOf(hold.metadata),
      ...where,
      hold.isAttached ? '' : 'detached',
      hold.endsWithPid === undefined ? '' : `ends with pid ${hold.endsWithPid}`,
    ],
    trouble: joined([isLeft ? goneTold(hold) : '', hold.isStale ? decides : ''], '; '),
    colour: COLOURS[hold.health],
  };
}

function waiterEntry(waiter: SurveyedWaiter): Entry {
  const priority = waiter.priority === 0 ? '' : `priority ${waiter.priority}`;
  const wants = waiter.isGrowing ? 'wants more than it has' : '';
  return {
    who: `${waiter.position}. ${waiter.holder}`,
    since: waiter.since,
    token: '',
    as: waiter.mode ?? (waiter.weight === undefined ? '' : `wants ${waiter.weight}`),
    state: waitingText(waiter),
    isWaiting: true,
    reason: waiter.reason ?? '',
    facts: [
      priority,
      wants,
      commandOf(waiter.metadata),
      ...placeOf(ownProcess(waiter.session, waiter.metadata), false),
    ],
    trouble: '',
    colour: undefined,
  };
}

/** `0-5,9`. */
function slotRuns(numbers: readonly number[]): string {
  const runs: { from: number; to: number }[] = [];
  for (const slot of [...numbers].sort((one, other) => one - other)) {
    const last = runs.at(-1);
    if (last?.to === slot - 1) last.to = slot;
    else runs.push({ from: slot, to: slot });
  }
  return runs.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`)).join(',');
}

/** Names the waiter directly ahead in the queue, or else the holder. */
function waitingText({ waitsFor }: SurveyedWaiter): string {
  const nearest = waitsFor.at(-1);
  return nearest === undefined ? 'waiting' : `waiting behind ${nearest}`;
}

export function stateOf({ health, lease, isAttached, isCollected }: SurveyedHold): string {
  switch (health) {
    case 'renewed':
      if (lease === undefined) return 'held';
      if (isCollected === false) return uncollectedTold(lease);
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

export const COLOURS: Partial<Record<SurveyedHold['health'], Colour>> = {
  overdue: 'yellow',
  slow: 'yellow',
  silent: 'red',
  'process-gone': 'red',
};

function painted({ colour }: Entry, { paint }: Layout): (text: string) => string {
  return (text) => (colour === undefined ? text : paint(colour, text));
}

/** The program that a `run` runs. */
function commandOf(metadata: Json | undefined): string {
  const command = commandIn(metadata);
  return command === undefined ? '' : `runs ${command}`;
}

/** `ada in ~/src/app`, `pid 4711 on build-3`. The pid of a process that has ended helps no one. */
function placeOf(session: SurveyedSession | undefined, hasEnded: boolean): readonly string[] {
  if (session === undefined) return [];
  const { user = '', directory, host, pid } = session;
  const where = directory === undefined ? user : `${user} in ${short(directory)}`.trimStart();
  const process = pid === undefined || hasEnded ? '' : `pid ${pid}`;
  return [where, joined([process, host === undefined ? '' : `on ${host}`], ' ')];
}

function short(directory: string): string {
  const home = homedir();
  return directory === home || directory.startsWith(`${home}/`) ? `~${directory.slice(home.length)}` : directory;
}

function since(ms: number, at: number, { width }: Layout): string {
  const ago = spoken(at - ms);
  return Number.isFinite(width) ? ago : `${new Date(ms).toISOString()} (${ago})`;
}

/** In a row, that breaks between facts and not inside one: a space that does not break is printed as any other. */
function factsTold(facts: readonly string[]): string {
  return joined(
    facts.map((fact) => fact.replaceAll(' ', UNBROKEN)),
    `${UNBROKEN}· `,
  );
}
