/** `signalbox status`: locks, slots, tasks, pipelines and members on one screen. */
import type { Command } from './command.ts';
import { hasEnded } from '../core/index.ts';
import type { ListedPipeline } from '../runtime/pipelines/terms.ts';
import type { TaskView } from '../runtime/tasks/reading.ts';
import { look } from './read-only.ts';
import { countsOf, type Everything, lookAtEverything, statusJson } from '../json/status.ts';
import { leaderLines, memberLines } from './members/list.ts';
import { print, printable, printJson, warnOf } from './output.ts';
import { listLines as pipelineLines } from './pipeline/status.ts';
import { type Layout, screenLayout } from './table.ts';
import { listLines as taskLines } from './task/show.ts';
import { type Shown, watched } from './watch.ts';
import { whoLines } from './who-table.ts';

const EXAMPLES = `
Examples:
  signalbox status
  signalbox status --watch                          redraws it whenever something changes
  signalbox status --json | jq '.tasks.counts'

It lists tasks that run or have failed, and pipelines that are not done. To see all of them:
signalbox task list, signalbox pipeline list. Who holds a lock, in more detail: signalbox who.`;

const INDENT = '  ';
/** Longer lists have commands of their own. */
const MOST_LISTED = 10;

export function define(command: Command): void {
  command
    .option('-w, --watch', 'show it again whenever it changes, until Ctrl-C')
    .addHelpText('after', EXAMPLES)
    .action(async ({ watch }: { watch?: true }) => {
      if (watch) return watched(command, async (box) => shownOf(await lookAtEverything(box)));
      const { found: all, missing } = await look(command, lookAtEverything);
      if (command.isJson) return printJson(shownOf(all).json());
      warnOf(all.malformed);
      if (missing !== undefined) return print(printable(`${missing} There are no locks, tasks, pipelines or members.`));
      for (const line of shownOf(all).lines(screenLayout())) print(line);
    });
}

function shownOf(all: Everything): Shown {
  return { lines: (layout) => linesOf(all, layout), json: () => statusJson(all) };
}

/** One part for each kind of thing. A part about nothing is a line. */
function linesOf({ survey, tasks, pipelines, crew }: Everything, whole: Layout): readonly string[] {
  const layout = { ...whole, width: whole.width - INDENT.length };
  const open = pipelines.filter(({ state }) => state !== 'done' && state !== 'cancelled');
  const notable = tasks.filter(({ status }) => status === 'running' || status === 'failed');
  return [
    ...part('Locks and slots', whoLines(survey, layout), layout),
    '',
    ...part(
      `Tasks${countsTold(tasks)}`,
      some(notable, (few) => taskLines(few, survey.sessions, layout)),
      layout,
    ),
    '',
    ...part(
      `Pipelines${endedTold(pipelines)}`,
      some(open, (few) => pipelineLines(few, layout)),
      layout,
    ),
    '',
    ...part(
      'Members',
      [...some(crew.members, (few) => memberLines(few, survey.at, layout)), ...leaderLines(survey)],
      layout,
    ),
  ];
}

function part(title: string, lines: readonly string[], { paint }: Layout): readonly string[] {
  const [only = 'None.'] = lines;
  const isNothing = lines.length === 0 || (lines.length === 1 && only.startsWith('Nothing'));
  if (isNothing) return [`${paint('bold', title)}${title.includes(':') ? '' : ': none'}`];
  return [paint('bold', title), ...lines.map((line) => INDENT + line)];
}

function some<T>(all: readonly T[], lines: (few: readonly T[]) => readonly string[]): readonly string[] {
  if (all.length === 0) return [];
  const rest = all.length - MOST_LISTED;
  return [...lines(all.slice(0, MOST_LISTED)), ...(rest > 0 ? [`… and ${rest} more`] : [])];
}

const STATUSES = ['pending', 'running', 'complete', 'failed'] as const;

function countsTold(tasks: readonly TaskView[]): string {
  const counts = countsOf(tasks);
  const told = STATUSES.filter((status) => counts[status] > 0).map((status) => `${counts[status]} ${status}`);
  return told.length === 0 ? '' : `: ${told.join(', ')}`;
}

function endedTold(pipelines: readonly ListedPipeline[]): string {
  const done = pipelines.filter(({ state }) => state === 'done').length;
  const going = pipelines.filter((one) => !hasEnded(one)).length;
  const failed = pipelines.filter(({ state }) => state === 'failed').length;
  const told = [`${going} under way`, `${done} done`, `${failed} failed`].filter((text) => !text.startsWith('0 '));
  return told.length === 0 ? '' : `: ${told.join(', ')}`;
}
