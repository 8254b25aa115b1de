/** Everything in a store at a glance, as JSON: on the command line and over HTTP. */
import type { WitnessWarnings } from '../core/troubles.ts';
import type { Survey } from '../runtime/observe/survey/index.ts';
import type { ListedPipeline } from '../runtime/pipelines/terms.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Malformed } from '../runtime/stored.ts';
import type { TaskView } from '../runtime/tasks/reading.ts';
import { type Crew, crewJson, crewOf } from './member.ts';
import { pipelineJson } from './pipeline.ts';
import { surveyJson } from './survey.ts';
import { taskJson } from './task.ts';

export interface Everything {
  readonly survey: Survey;
  readonly tasks: readonly TaskView[];
  readonly pipelines: readonly ListedPipeline[];
  readonly crew: Crew;
  readonly malformed: readonly Malformed[];
  readonly witness: WitnessWarnings;
}

export async function lookAtEverything(box: Signalbox): Promise<Everything> {
  const malformed: Malformed[] = [];
  const onMalformed = (one: Malformed): void => void malformed.push(one);
  const [survey, tasks, pipelines, crew, witness] = await Promise.all([
    box.survey(),
    box.tasks.list(),
    box.pipelines.list({ onMalformed }),
    crewOf(box, onMalformed),
    box.witness.warnings(),
  ]);
  return { survey, tasks, pipelines, crew, witness, malformed: [...survey.malformed, ...malformed] };
}

export function countsOf(tasks: readonly TaskView[]): Readonly<Record<TaskView['status'], number>> {
  const counts = { pending: 0, running: 0, complete: 0, failed: 0 };
  for (const { status } of tasks) counts[status] += 1;
  return counts;
}

/** Fields are only ever added; docs/cli.md lists them. */
export function statusJson({ survey, tasks, pipelines, crew, malformed }: Everything): object {
  return {
    ...surveyJson(survey),
    tasks: {
      counts: countsOf(tasks),
      running: tasks.filter(({ status }) => status === 'running').map(taskJson),
      failed: tasks.filter(({ status }) => status === 'failed').map(taskJson),
    },
    pipelines: pipelines.map((one) => ({ ...pipelineJson(one), isDriven: one.isDriven })),
    ...crewJson(crew),
    malformed,
  };
}
