/** The views of `top`: each is a list of sections, made of what the board shows. */
import type { Everything } from '../../json/status.ts';
import type { Board } from './board.ts';
import { issuesOf } from './github.ts';
import { isInUse, locksOf, semaphoresOf } from './holds.ts';
import { mattersOf } from './matters.ts';
import { printable } from '../output.ts';
import type { Row, Section, Seen } from './row.ts';
import { eventsOf, membersOf, pipelinesOf, tasksOf } from './work.ts';

export const VIEWS = ['overview', 'locks', 'semaphores', 'tasks', 'pipelines', 'members', 'events'] as const;
export type View = (typeof VIEWS)[number];

const SECTIONS: Readonly<Record<View, (seen: Seen, board: Board) => readonly Section[]>> = {
  overview: (seen, board) => [
    mattersOf(board, seen),
    locksOf(seen, false),
    ...githubOf(seen, board),
    ...[semaphoresOf, tasksOf, pipelinesOf].map((of) => of(seen, false)),
    membersOf(seen),
  ],
  locks: (seen, board) => [...githubOf(seen, board), locksOf(seen, true)],
  semaphores: (seen) => [semaphoresOf(seen, true)],
  tasks: (seen) => [tasksOf(seen, true)],
  pipelines: (seen) => [pipelinesOf(seen, true)],
  members: (seen) => [membersOf(seen)],
  events: (_, { events }) => [eventsOf(events)],
};

export function sectionsOf(board: Board, view: View, filter: string, now: number): readonly Section[] {
  const { everything } = board;
  return everything === undefined ? [] : filtered(SECTIONS[view]({ everything, now }, board), filter);
}

function githubOf({ now }: Seen, { github }: Board): readonly Section[] {
  return github === undefined ? [] : [issuesOf(github, now)];
}

const COUNTS: Partial<Record<View, (everything: Everything) => number>> = {
  locks: ({ survey }) => survey.locks.filter(isInUse).length,
  semaphores: ({ survey }) => survey.semaphores.filter(isInUse).length,
  tasks: ({ tasks }) => tasks.filter(({ status }) => status !== 'complete').length,
  pipelines: ({ pipelines }) => pipelines.filter(({ state }) => state !== 'done' && state !== 'cancelled').length,
  members: ({ crew }) => crew.members.length,
};

/** What is in use or open, for the tabs. */
export function countOf({ everything }: Board, view: View): number | undefined {
  return everything && COUNTS[view]?.(everything);
}

function filtered(sections: readonly Section[], filter: string): readonly Section[] {
  if (filter === '') return sections;
  const wanted = filter.toLowerCase();
  const hasIt = ({ id, cells, below = [] }: Row): boolean =>
    [id, ...cells, ...below].some((text) => typeof text === 'string' && printable(text).toLowerCase().includes(wanted));
  return sections.map((section) => {
    const rows = section.rows.filter(hasIt);
    const empty = section.rows.length === 0 ? section.empty : `None of ${section.rows.length} matches the filter.`;
    return { ...section, rows, empty, told: `${rows.length} of ${section.rows.length}` };
  });
}
