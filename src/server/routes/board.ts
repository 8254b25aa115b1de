/** What a live page reads: everything at once, some resources again, and what happened to one of them. */
import { z } from 'zod';
import { matches, patternProblem } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { crewJson } from '../../json/member.ts';
import { pipelineJson } from '../../json/pipeline.ts';
import { countsOf, lookAtEverything } from '../../json/status.ts';
import { lockJson, semaphoreJson, surveyJson } from '../../json/survey.ts';
import { taskJson } from '../../json/task.ts';
import type { EventPattern, SignalboxEvent } from '../../runtime/observe/event-types.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { anyObject } from '../schemas.ts';
import { list } from './events.ts';

const MOST_TASKS = 2_000;
const MOST_RESOURCES = 100;
const MOST_EVENTS = 1_000;

const count = z.int().min(0);

export const board: readonly Operation[] = [
  operation({
    ...{ id: 'board', method: 'get', path: '/v1/board', tag: 'overview', role: 'viewer' },
    summary: 'Everything that a live page shows',
    description:
      'The whole state, what this token allows, and `since`: follow the events from there, and nothing is missed. Locks and ' +
      'semaphores are as of `revision`: of those, leave out the events up to it. Tasks are without data and result, at most ' +
      `${MOST_TASKS} of them: unfinished and failed ones first.`,
    answers: {
      200: {
        description: 'Everything.',
        schema: z.looseObject({
          since: count,
          revision: count,
          at: z.string(),
          store: z.object({ engine: z.string(), name: z.string() }),
          token: z.object({ name: z.string(), role: z.string(), holders: z.array(z.string()).nullable() }),
          allowsCommands: z.boolean(),
          counts: z.object({ pending: count, running: count, complete: count, failed: count }),
          locks: z.array(anyObject),
          semaphores: z.array(anyObject),
          tasks: z.array(anyObject),
          pipelines: z.array(anyObject),
          members: z.array(anyObject),
          coordinator: z.string().nullable(),
          malformed: z.array(anyObject),
        }),
      },
    },
    async run({ box, caller: { name, role, holders }, allowsCommands, store }) {
      const { revision: since } = await box.health();
      const { survey, tasks, pipelines, crew, malformed } = await lookAtEverything(box);
      return ok({
        since,
        ...surveyJson(survey),
        store,
        token: { name, role, holders: holders ?? null },
        allowsCommands,
        counts: countsOf(tasks),
        tasks: mostTelling(tasks).map(slimTask),
        pipelines: pipelines.map((one) => ({ ...pipelineJson(one), isDriven: one.isDriven })),
        ...crewJson(crew),
        malformed,
      });
    },
  }),
  operation({
    ...{ id: 'resources', method: 'get', path: '/v1/resources', tag: 'overview', role: 'viewer' },
    summary: 'Show some locks and semaphores',
    description: `Up to ${MOST_RESOURCES} of them, each as of its own \`revision\`. One that was never used is free.`,
    query: z.strictObject({
      resource: list.meta({ description: 'Such as `lock/main` or `semaphore/gpu`; repeatable.' }),
    }),
    answers: {
      200: {
        description: 'The locks and semaphores.',
        schema: z.object({ at: z.string(), locks: z.array(anyObject), semaphores: z.array(anyObject) }),
      },
    },
    async run({ box, query: { resource = [] } }) {
      if (resource.length > MOST_RESOURCES) {
        throw new Failure('invalid', `${resource.length} resources are asked for; expected at most ${MOST_RESOURCES}`);
      }
      const locks: object[] = [];
      const semaphores: object[] = [];
      for (const one of new Set(resource)) {
        const [, kind, name] = /^(lock|semaphore)\/(.+)$/s.exec(one) ?? [];
        if (kind === undefined || name === undefined) {
          throw new Failure('invalid', `resource is ${shown(one)}; expected lock/NAME or semaphore/NAME`);
        }
        const found = await box.survey({ resource: { kind: kind as 'lock' | 'semaphore', name } });
        const { revision, at } = found;
        locks.push(...found.locks.map((lock) => ({ revision, ...lockJson(lock, at) })));
        semaphores.push(...found.semaphores.map((semaphore) => ({ revision, ...semaphoreJson(semaphore, at) })));
      }
      return ok({ at: new Date().toISOString(), locks, semaphores });
    },
  }),
  operation({
    ...{ id: 'history', method: 'get', path: '/v1/history', tag: 'events', role: 'viewer' },
    summary: 'Show what happened',
    description:
      `The last ${MOST_EVENTS} events that the store still remembers, oldest first. \`isWhole\` says whether nothing earlier ` +
      'is missing.',
    query: z.strictObject({
      pattern: list.meta({ description: 'Only these, such as `lock:*` or `lock:deadlock`; repeatable.' }),
      resource: list.meta({ description: 'Only of these, such as `lock/main`; repeatable.' }),
      since: z.coerce.number().optional().meta({ type: 'number', description: 'Milliseconds since 1970.' }),
    }),
    answers: {
      200: { description: 'The events.', schema: z.object({ isWhole: z.boolean(), events: z.array(anyObject) }) },
    },
    async run({ box, signal, query: { pattern: patterns = ['*'], resource = [], since = 0 } }) {
      for (const pattern of patterns) {
        const problem = patternProblem(pattern, 'pattern');
        if (problem !== undefined) throw new Failure('invalid', problem);
      }
      const events: SignalboxEvent[] = [];
      let isWhole = true;
      const over = new AbortController();
      const listener = {
        told(event: SignalboxEvent) {
          const isWanted = patterns.some((pattern) => matches(pattern, event.type));
          if (!isWanted || (resource.length > 0 && !resource.includes(event.resource))) return;
          events.push(event);
          if (events.length <= 2 * MOST_EVENTS) return;
          events.splice(0, MOST_EVENTS);
          isWhole = false;
        },
        forgotten: () => void (isWhole = false),
        caughtUp: () => over.abort(),
      };
      await box.eventsSince(
        patterns.length === 1 ? (patterns[0] as EventPattern) : '*',
        since,
        listener,
        AbortSignal.any([over.signal, signal]),
      );
      signal.throwIfAborted();
      const last = events.sort((one, other) => one.at - other.at).slice(-MOST_EVENTS);
      return ok({ isWhole: isWhole && last.length === events.length, events: last });
    },
  }),
];

const IN_ORDER = ['running', 'failed', 'pending', 'complete'];

function mostTelling(tasks: readonly TaskView[]): readonly TaskView[] {
  if (tasks.length <= MOST_TASKS) return tasks;
  const latest = (task: TaskView): number => task.endedAt ?? task.publishedAt ?? 0;
  const rank = ({ status }: TaskView): number => IN_ORDER.indexOf(status);
  return [...tasks].sort((one, other) => rank(one) - rank(other) || latest(other) - latest(one)).slice(0, MOST_TASKS);
}

function slimTask(task: TaskView): object {
  return { ...taskJson(task), data: null, result: null };
}
