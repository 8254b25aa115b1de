/** Rows of locks and semaphores: who holds them, since when and why, and who waits. */
import type {
  SurveyedHold,
  SurveyedLock,
  SurveyedSemaphore,
  SurveyedWaiter,
} from '../../runtime/observe/survey/index.ts';
import { joined } from '../output.ts';
import { LEADERS } from '../../runtime/members/lead.ts';
import { DRIVERS } from '../../runtime/pipelines/keys.ts';
import { commandIn } from '../waiting.ts';
import { COLOURS, isTold as isInUse, stateOf } from '../who-table.ts';
import { age, type Row, type Section, type Seen } from './row.ts';

type Used = SurveyedLock | SurveyedSemaphore;

/** More waiters are counted. */
const MOST_WAITERS = 6;
/** More slots are a bar without letters. */
const MOST_SLOTS = 24;
const BAR = 16;

export { isInUse };

/** `isFull`: every waiter has a line, and what is free is shown too. */
export function locksOf({ everything: { survey }, now }: Seen, isFull: boolean): Section {
  const used = survey.locks.filter((lock) => isInUse(lock) && (isFull || !isInternal(lock)));
  const free = survey.locks.length - used.length;
  const isWaitedFor = ({ waiting }: Used): boolean => waiting.length > 0;
  const shown = isFull
    ? [...used, ...survey.locks.filter((lock) => !isInUse(lock))]
    : [...used.filter(isWaitedFor), ...used.filter((lock) => !isWaitedFor(lock))];
  return {
    title: 'Locks',
    told: counted([
      `${used.filter(({ holds }) => holds.length > 0).length} held`,
      waitersOf(used),
      isFull ? `${free} free` : '',
    ]),
    rows: shown.map((lock) => lockRow(lock, now, isFull)),
    empty: 'none held; try: signalbox run --lock main -- sleep 30',
    key: '2',
  };
}

export function semaphoresOf({ everything: { survey }, now }: Seen, isFull: boolean): Section {
  const shown = isFull ? survey.semaphores : survey.semaphores.filter(isInUse);
  return {
    title: 'Semaphores',
    told: counted([`${survey.semaphores.filter(isInUse).length} in use`, waitersOf(survey.semaphores)]),
    rows: shown.map((semaphore) => semaphoreRow(semaphore, now, isFull)),
    empty: 'none in use; try: signalbox run --sem builds=2/8 -- sleep 30',
    key: '3',
  };
}

/** The lock of a pipeline's driver or of a leader, which the overview shows with pipelines and members. */
function isInternal({ name }: SurveyedLock): boolean {
  return name.startsWith(LEADERS) || name.startsWith(DRIVERS);
}

function lockRow(lock: SurveyedLock, now: number, isFull: boolean): Row {
  const { holds, waiting, resource, name } = lock;
  const isShared = holds.length > 0 && holds.every(({ mode }) => mode === 'shared');
  const worst = worstOf(holds);
  const free = isFull && waiting.length === 0 ? 'free' : '';
  const mark = holds.length === 0 ? '○' : isShared ? '▨' : '■';
  return {
    id: resource,
    about: resource,
    mark: worst === undefined ? mark : (SIGNS[worst.health] ?? mark),
    colour:
      worst === undefined ? (holds.length === 0 && waiting.length === 0 ? 'dim' : undefined) : COLOURS[worst.health],
    cells: [name, holdersOf(holds, isShared) || free, whyOf(holds, worst)],
    right: waitTold(waiting),
    since: oldest(holds),
    below: isFull ? [...otherHolds(holds, now), ...queueLines(waiting, now)] : queueLine(waiting, now),
  };
}

function semaphoreRow(semaphore: SurveyedSemaphore, now: number, isFull: boolean): Row {
  const { holds, waiting, resource, name, usedSlots, capacity, drained } = semaphore;
  const worst = worstOf(holds);
  const mark = usedSlots === 0 ? '○' : usedSlots >= capacity ? '■' : '◧';
  return {
    id: resource,
    about: resource,
    mark: worst === undefined ? mark : (SIGNS[worst.health] ?? mark),
    colour: worst === undefined ? (isInUse(semaphore) ? undefined : 'dim') : COLOURS[worst.health],
    cells: [name, (width) => slotBar(semaphore, width), slotHolders(semaphore)],
    right: joined([drained && 'drained', waitTold(waiting)], ', '),
    below: isFull ? [...otherHolds(holds, now, 0), ...queueLines(waiting, now)] : queueLine(waiting, now),
  };
}

/** A letter for each slot, the same for all slots of one hold; a bar for many slots, or where there is little room. */
export function slotBar({ capacity, usedSlots, holds }: SurveyedSemaphore, width: number): string {
  const numbers = `${usedSlots}/${capacity}`;
  const room = width - numbers.length - 3;
  if (capacity > MOST_SLOTS || capacity > room) {
    const length = Math.min(BAR, room);
    if (length < 2) return numbers;
    const filled = Math.min(length, Math.max(usedSlots > 0 ? 1 : 0, Math.round((usedSlots / capacity) * length)));
    return `[${'█'.repeat(filled)}${'·'.repeat(length - filled)}] ${numbers}`;
  }
  const slots = Array.from({ length: capacity }, () => '·');
  for (const [at, hold] of holds.entries()) {
    for (const slot of hold.slots) if (slot < capacity) slots[slot] = letterOf(at);
  }
  return `[${slots.join('')}] ${numbers}`;
}

function letterOf(at: number): string {
  return 'abcdefghijklmnopqrstuvwxyz'[at] ?? '#';
}

function slotHolders({ holds, capacity }: SurveyedSemaphore): string {
  return holds
    .map(({ holder, weight }, at) => {
      const letter = capacity > MOST_SLOTS ? '' : `${letterOf(at)} `;
      return `${letter}${holder}${weight === 1 ? '' : ` ×${weight}`}`;
    })
    .join(', ');
}

const SEVERITY: readonly SurveyedHold['health'][] = ['overdue', 'slow', 'silent', 'process-gone'];
const SIGNS: Partial<Record<SurveyedHold['health'], string>> = {
  overdue: '!',
  slow: '!',
  silent: '✗',
  'process-gone': '✗',
};

/** The hold with the greatest trouble; undefined if all are renewed. */
function worstOf(holds: readonly SurveyedHold[]): SurveyedHold | undefined {
  return holds
    .filter(({ health }) => health !== 'renewed')
    .sort((one, other) => SEVERITY.indexOf(other.health) - SEVERITY.indexOf(one.health))[0];
}

function holdersOf(holds: readonly SurveyedHold[], isShared: boolean): string {
  const [first, second] = holds;
  if (first === undefined) return '';
  const rest = holds.length - 2;
  const who = second === undefined ? first.holder : `${first.holder}, ${second.holder}${rest > 0 ? ` +${rest}` : ''}`;
  return isShared ? `${who} (shared)` : who;
}

function whyOf(holds: readonly SurveyedHold[], worst: SurveyedHold | undefined): string {
  const [first] = holds;
  const reason = holds.find((hold) => hold.reason !== undefined && hold.reason !== '')?.reason ?? '';
  const isKept = first?.isCollected === false;
  const command = first === undefined || isKept ? undefined : commandIn(first.metadata);
  const what = reason === '' && command !== undefined ? `runs ${command}` : reason;
  const told = worst ?? (isKept ? first : undefined);
  return joined([told && stateOf(told), what]);
}

function oldest(holds: readonly SurveyedHold[]): number | undefined {
  return holds.length === 0 ? undefined : Math.min(...holds.map(({ acquiredAt }) => acquiredAt));
}

/** `from`: the holds before it are in the row itself. */
function otherHolds(
  holds: readonly (SurveyedHold & { readonly weight?: number })[],
  now: number,
  from = 1,
): readonly string[] {
  if (holds.length <= 1) return [];
  return holds.slice(from).map(({ holder, acquiredAt, reason = '', weight }) => {
    const slots = weight === undefined ? '' : ` ×${weight}`;
    return `  ${holder}${slots} for ${age(now - acquiredAt)}${reason === '' ? '' : ` · ${reason}`}`;
  });
}

/** One line for the whole queue. */
function queueLine(waiting: readonly SurveyedWaiter[], now: number): readonly string[] {
  if (waiting.length === 0) return [];
  const shown = waiting.slice(0, MOST_WAITERS).map((waiter) => waiterTold(waiter, now));
  const rest = waiting.length - shown.length;
  return [`└ ${shown.join(', ')}${rest > 0 ? `, +${rest}` : ''}`];
}

function queueLines(waiting: readonly SurveyedWaiter[], now: number): readonly string[] {
  const shown = waiting.slice(0, MOST_WAITERS).map((waiter) => `└ ${waiterTold(waiter, now)}`);
  const rest = waiting.length - shown.length;
  return rest > 0 ? [...shown, `└ ${rest} more wait`] : shown;
}

function waiterTold(
  { holder, position, since, reason = '', mode, weight, priority }: SurveyedWaiter,
  now: number,
): string {
  const wants = mode === 'shared' ? ' shared' : weight !== undefined && weight > 1 ? ` ×${weight}` : '';
  const first = priority === 0 ? '' : ` priority ${priority}`;
  return `${position}. ${holder}${wants}${first} ${age(now - since)}${reason === '' ? '' : ` (${reason})`}`;
}

export function waitTold(waiting: readonly unknown[]): string | undefined {
  return waiting.length === 0 ? undefined : `${waiting.length} waiting`;
}

function waitersOf(all: readonly Used[]): string {
  const count = all.reduce((sum, { waiting }) => sum + waiting.length, 0);
  return count === 0 ? '' : `${count} waiting`;
}

export function counted(parts: readonly string[]): string {
  return parts.filter((part) => part !== '' && !part.startsWith('0 ')).join(', ');
}
