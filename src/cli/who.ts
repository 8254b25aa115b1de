/** `signalbox who`: who holds what, since when, why, and who waits for whom. */
import type { Command } from './command.ts';
import { Failure } from '../failure.ts';
import { resourceKeys } from '../runtime/layout.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Survey } from '../runtime/observe/survey/index.ts';
import type { TaskView } from '../runtime/tasks/reading.ts';
import { type NamedResource, resourceArgument } from './arguments.ts';
import { look } from './read-only.ts';
import { type Crew, crewJson, crewOf } from '../json/member.ts';
import { whoMemberLines } from './members/list.ts';
import { print, printable, printJson, warnOf } from './output.ts';
import { surveyJson } from '../json/survey.ts';
import { screenLayout } from './table.ts';
import { taskJson } from '../json/task.ts';
import { type Shown, watched } from './watch.ts';
import { isTold, whoLines } from './who-table.ts';

const EXAMPLES = `
Examples:
  signalbox who
  signalbox who main-branch
  signalbox who lock/main-branch
  signalbox who --watch
  signalbox who --json | jq -r .coordinator
  signalbox who --json | jq '.locks[] | select(.waiting | length > 3) | .name'

States of a hold:
  renewed        its lease was renewed in time
  overdue        its process should have renewed it by now; the lease still runs
  slow           it is renewed, but past its --max-hold: stale
  silent         its lease has ended, nothing is heard of it: stale
  process gone   its process ran on this machine and has ended; what it started may still run until its lease ends`;

export function define(command: Command): void {
  command
    .argument('[resource]', 'only this one: NAME, lock/NAME or semaphore/NAME', resourceArgument)
    .option('-w, --watch', 'show it again whenever it changes, until Ctrl-C')
    .addHelpText('after', EXAMPLES)
    .action(async (resource: NamedResource | undefined, { watch }: { watch?: true }) => {
      if (watch) return watched(command, async (box) => shownOf(await asked(box, resource)));
      const looked = await look(command, (box) => asked(box, resource));
      const { url, missing } = looked;
      const { survey: found, tasks = [], crew } = looked.found;
      if (command.isJson) return printJson(shownOf(looked.found).json());
      warnOf(found.malformed);
      if (missing !== undefined) return print(printable(`${missing} Nothing is held or waited for.`));
      const layout = screenLayout();
      const isInUse = [...found.locks, ...found.semaphores].some(isTold);
      if (!isInUse && tasks.length === 0) print(printable(nothing(resource, url)));
      else for (const line of whoLines(found, layout, tasks)) print(line);
      for (const line of whoMemberLines(crew, found, layout)) print(line);
    });
}

interface Asked {
  readonly survey: Survey;
  /** Undefined for a question about one lock, which is not about tasks, nor about members. */
  readonly tasks: readonly TaskView[] | undefined;
  readonly crew: Crew | undefined;
}

async function asked(box: Signalbox, resource: NamedResource | undefined): Promise<Asked> {
  const survey = await surveyed(box, resource);
  if (resource !== undefined) return { survey, tasks: undefined, crew: undefined };
  return { survey, tasks: await box.tasks.list({ status: 'running' }), crew: await crewOf(box) };
}

function shownOf({ survey, tasks, crew }: Asked): Shown {
  return {
    lines: (layout) => [...whoLines(survey, layout, tasks), ...whoMemberLines(crew, survey, layout)],
    json: () => ({
      ...surveyJson(survey),
      ...(tasks !== undefined && { tasks: tasks.map(taskJson) }),
      ...crewJson(crew),
    }),
  };
}

async function surveyed(box: Signalbox, resource: NamedResource | undefined): Promise<Survey> {
  if (resource === undefined) return box.survey();
  if (resource.kind !== undefined) return box.survey({ resource });
  // Both kinds, at one revision.
  const all = await box.survey();
  const isMeant = ({ name }: { readonly name: string }): boolean => name === resource.name;
  // It may not be free: a key that cannot be read may hold it.
  const unreadable = all.malformed.find(({ key }) => isOf(key, resource.name));
  if (unreadable !== undefined) throw new Failure('corrupt', unreadable.why);
  return { ...all, locks: all.locks.filter(isMeant), semaphores: all.semaphores.filter(isMeant) };
}

function isOf(key: string, name: string): boolean {
  return (['lock', 'semaphore'] as const).some((kind) => {
    const { record, queue } = resourceKeys(kind, name);
    return key === record || key.startsWith(queue);
  });
}

/** Says that the requested resource is not held; others may be. */
function nothing(resource: NamedResource | undefined, url: string): string {
  if (resource === undefined) return `Nothing is held or waited for in ${url}.`;
  const { kind, name } = resource;
  if (kind !== undefined) return `${kind}/${name} is neither held nor waited for in ${url}.`;
  return `Neither lock/${name} nor semaphore/${name} is held or waited for in ${url}.`;
}
