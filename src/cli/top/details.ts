/** The page of one thing: everything that is known of it, and what happened to it lately. */
import { hasEnded } from '../../core/index.ts';
import type { Everything } from '../../json/status.ts';
import { joined, type Paint, printable } from '../output.ts';
import { wrapped } from '../pipeline/columns.ts';
import { pictureOf } from '../pipeline/picture.ts';
import { howToGoOn } from '../pipeline/words.ts';
import { factLines } from '../table.ts';
import { taskLines } from '../task/show.ts';
import { whoLines } from '../who-table.ts';
import type { Board } from './board.ts';
import { isIssue, issueLines } from './github.ts';
import { slotBar } from './holds.ts';
import { age } from './row.ts';
import { eventTold } from './work.ts';

const MOST_EVENTS = 30;

export interface Page {
  readonly width: number;
  readonly now: number;
  readonly paint: Paint;
}

export function detailLines(board: Board, about: string, page: Page): readonly string[] {
  const { everything, github } = board;
  const { paint } = page;
  // What happened to an issue is on the issue itself: no event of the store tells of it.
  if (github !== undefined && isIssue(about)) {
    const issue = issueLines(github, about, page);
    return [paint('bold', `Issue #${about.slice(about.indexOf('/') + 1)}`), '', ...(issue ?? ['It is not locked.'])];
  }
  const found = everything === undefined ? undefined : linesAbout(everything, about, page);
  const isNamed = found?.some((line) => line.includes(printable(about))) === true;
  return [
    ...(isNamed ? [] : [paint('bold', printable(about)), '']),
    ...(found ?? ['It is not there any more.']),
    '',
    paint('bold', 'Lately'),
    ...historyOf(board, about, page),
  ];
}

function linesAbout(everything: Everything, about: string, page: Page): readonly string[] | undefined {
  const { survey, tasks, pipelines, crew } = everything;
  const slash = about.indexOf('/');
  const [kind, name] = [about.slice(0, slash), about.slice(slash + 1)];
  const { width, paint, now } = page;
  switch (kind) {
    case 'lock':
    case 'semaphore': {
      const locks = survey.locks.filter(({ resource }) => resource === about);
      const semaphores = survey.semaphores.filter(({ resource }) => resource === about);
      const [semaphore] = semaphores;
      const bar = semaphore === undefined ? [] : [`${slotBar(semaphore, width - 14)} slots in use`, ''];
      return [...bar, ...whoLines({ ...survey, at: now, locks, semaphores }, { width, paint })];
    }
    case 'task': {
      const task = tasks.find(({ id }) => id === name);
      return task && taskLines(task, survey.sessions, now).flatMap((line) => broken(line, width));
    }
    case 'pipeline': {
      const pipeline = pipelines.find(({ id }) => id === name);
      if (pipeline === undefined) return undefined;
      const { isDriven } = pipeline;
      const picture = pictureOf(pipeline, { ...page, height: Number.POSITIVE_INFINITY, printed: [], isDriven });
      const canGoOn = pipeline.state === 'failed' || (!hasEnded(pipeline) && !isDriven);
      const next = canGoOn ? ['', ...howToGoOn(pipeline).flatMap((line) => broken(line, width))] : [];
      const log = `Its output: signalbox pipeline status ${name} --log`;
      return [...picture.map(({ text }) => text), ...next, '', ...broken(log, width)];
    }
    case 'member': {
      const member = crew.members.find(({ id }) => id === name);
      if (member === undefined) return undefined;
      const { joinedAt, assets, metadata, weight, incarnation } = member;
      const facts: readonly (readonly [string, string])[] = [
        ['member for', age(now - joinedAt)],
        ['role', crew.coordinator === name ? 'coordinator' : ''],
        ['owns', assets.map(({ id }) => id).join(', ')],
        ['metadata', metadata === undefined ? '' : JSON.stringify(metadata)],
        ['weight', weight === 1 ? '' : String(weight)],
        ['incarnation', String(incarnation)],
      ];
      return factLines(facts).flatMap((line) => broken(line, width));
    }
    default:
      return undefined;
  }
}

function historyOf({ events }: Board, about: string, { width, now, paint }: Page): readonly string[] {
  const own = events.filter(({ resource }) => resource === about).slice(0, MOST_EVENTS);
  if (own.length === 0) return [paint('dim', 'Nothing has happened to it since top began to listen.')];
  return own.flatMap((event) => {
    const told = joined([event.holder, eventTold(event)]);
    const [first = '', ...more] = broken(`${event.type}  ${told}`, width - 12);
    return [`${age(now - event.at).padStart(7)} ago  ${first}`, ...more.map((line) => `${' '.repeat(13)}${line}`)];
  });
}

/** Breaks between words, and not in the middle of what a user may want to copy. */
function broken(text: string, width: number): readonly string[] {
  return wrapped(printable(text), Math.max(12, width - 2));
}
