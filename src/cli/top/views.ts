/** The views of `top`: each is a list of sections, made of what the board shows. */
import type { Board } from './board.ts';
import { issuesOf } from './github.ts';
import { isInUse, locksOf, semaphoresOf } from './holds.ts';
import { mattersOf } from './matters.ts';
import { printable } from '../output.ts';
import type { Row, Section } from './row.ts';
import { eventsOf, membersOf, pipelinesOf, tasksOf } from './work.ts';

export const VIEWS = ['overview', 'locks', 'semaphores', 'tasks', 'pipelines', 'members', 'events'] as const;
export type View = (typeof VIEWS)[number];

export function sectionsOf(board: Board, view: View, filter: string, now: number): readonly Section[] {
  const { everything } = board;
  if (everything === undefined) return [];
  const seen = { everything, now };
  const issues = board.github === undefined ? [] : [issuesOf(board.github, now)];
  switch (view) {
    case 'overview':
      return filtered(
        [
          mattersOf(board, seen),
          locksOf(seen, false),
          ...issues,
          ...[semaphoresOf, tasksOf, pipelinesOf].map((of) => of(seen, false)),
          membersOf(seen),
        ],
        filter,
      );
    case 'locks':
      return filtered([...issues, locksOf(seen, true)], filter);
    case 'semaphores':
      return filtered([semaphoresOf(seen, true)], filter);
    case 'tasks':
      return filtered([tasksOf(seen, true)], filter);
    case 'pipelines':
      return filtered([pipelinesOf(seen, true)], filter);
    case 'members':
      return filtered([membersOf(seen)], filter);
    case 'events':
      return filtered([eventsOf(board.events)], filter);
  }
}

/** What is in use or open, for the tabs. */
export function countOf(board: Board, view: View): number | undefined {
  const { everything } = board;
  if (everything === undefined) return undefined;
  const { survey, tasks, pipelines, crew } = everything;
  switch (view) {
    case 'locks':
      return survey.locks.filter(isInUse).length;
    case 'semaphores':
      return survey.semaphores.filter(isInUse).length;
    case 'tasks':
      return tasks.filter(({ status }) => status !== 'complete').length;
    case 'pipelines':
      return pipelines.filter(({ state }) => state !== 'done' && state !== 'cancelled').length;
    case 'members':
      return crew.members.length;
    case 'overview':
    case 'events':
      return undefined;
  }
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
