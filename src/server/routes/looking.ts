/** Operations that show the whole store: who holds what, everything at a glance, metrics. */
import { crewJson, crewOf } from '../../json/member.ts';
import { lookAtEverything, statusJson } from '../../json/status.ts';
import { surveyJson } from '../../json/survey.ts';
import { taskJson } from '../../json/task.ts';
import { PROMETHEUS_TYPE } from '../../metrics/index.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { answer, anyObject } from '../schemas.ts';

export const looking: readonly Operation[] = [
  operation({
    ...{ id: 'status', method: 'get', path: '/v1/status', tag: 'overview', role: 'viewer' },
    summary: 'Everything at a glance',
    description: 'Locks, semaphores, tasks, pipelines and members: what `signalbox status --json` prints.',
    answers: answer('Everything.', anyObject),
    run: async ({ box }) => ok(statusJson(await lookAtEverything(box))),
  }),
  operation({
    ...{ id: 'who', method: 'get', path: '/v1/who', tag: 'overview', role: 'viewer' },
    summary: 'Who holds what, and who waits',
    description: 'What `signalbox who --json` prints: locks, semaphores, running tasks and members.',
    answers: answer('Who holds what.', anyObject),
    async run({ box }) {
      const survey = await box.survey();
      const [running, crew] = await Promise.all([box.tasks.list({ status: 'running' }), crewOf(box)]);
      return ok({ ...surveyJson(survey), tasks: running.map(taskJson), ...crewJson(crew) });
    },
  }),
  operation({
    ...{ id: 'metrics', method: 'get', path: '/metrics', tag: 'overview', role: 'viewer' },
    summary: 'Metrics for Prometheus',
    description: 'Counts and timings of this server, and the holds of the whole store; docs/metrics.md lists them.',
    answers: { 200: { description: 'The text format of Prometheus.', type: PROMETHEUS_TYPE } },
    run: async ({ figures }) => new Response(await figures.text(), { headers: { 'Content-Type': PROMETHEUS_TYPE } }),
  }),
];
