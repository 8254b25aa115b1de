/** Prints locks or semaphores and their state as a table. */
import type { SurveyedLock, SurveyedSemaphore } from '../runtime/observe/survey/index.ts';
import { type Layout, tableLines } from './table.ts';

export interface Summary {
  readonly name: string;
  readonly state: string;
  readonly holders: string;
  readonly waiting: number;
}

export function lockSummary({ name, holds, waiting }: SurveyedLock): Summary {
  const state = holds.some(({ isStale }) => isStale) ? 'stale' : (holds[0]?.mode ?? 'free');
  return { name, state, holders: holds.map(({ holder }) => holder).join(', '), waiting: waiting.length };
}

export function semaphoreSummary({ name, capacity, usedSlots, drained, holds, waiting }: SurveyedSemaphore): Summary {
  const stale = holds.some(({ isStale }) => isStale) ? ', stale' : '';
  const state = `${usedSlots} of ${capacity}${stale}${drained === undefined ? '' : ', drained'}`;
  const holders = holds.map(({ holder, weight }) => (weight === 1 ? holder : `${holder} ×${weight}`)).join(', ');
  return { name, state, holders, waiting: waiting.length };
}

export function listLines(kind: 'lock' | 'semaphore', all: readonly Summary[], layout: Layout): string[] {
  const header = [kind.toUpperCase(), kind === 'lock' ? 'STATE' : 'USED', 'HOLDERS', 'WAITING'];
  return tableLines(
    header,
    all.map(({ name, state, holders, waiting }) => ({ cells: [name, state, holders, String(waiting)] })),
    layout,
  );
}
