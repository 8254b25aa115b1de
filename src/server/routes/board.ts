/** Operations for a live page: everything at once, some resources again, and the history of one. */
import { z } from 'zod';
import { troublesOf } from '../../core/troubles.ts';
import { Failure, shown } from '../../failure.ts';
import { crewJson } from '../../json/member.ts';
import { pipelineJson } from '../../json/pipeline.ts';
import { countsOf, type Everything, lookAtEverything } from '../../json/status.ts';
import { lockJson, semaphoreJson } from '../../json/survey.ts';
import { time } from '../../json/time.ts';
import { taskJson } from '../../json/task.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';
import { lineStream } from '../entry-stream.ts';
import { type Call, ok, type Operation, operation } from '../operation.ts';
import { answer, anyObject } from '../schemas.ts';
import { shared } from '../shared.ts';
import { list } from './events.ts';

const MOST_TASKS = 2_000;
const MOST_RESOURCES = 100;
/** A reader parses a line in one go, and draws its page between two of them. */
const RESOURCES_PER_LINE = 50;

const count = z.int().min(0);

export const board: readonly Operation[] = [
  operation({
    ...{ id: 'board', method: 'get', path: '/v1/board', tag: 'overview', role: 'viewer' },
    summary: 'Everything that a live page shows',
    description:
      'The whole state, what this token allows, and `since`: follow the events from there to miss nothing. Locks and ' +
      'semaphores are as of `revision`, the rest is as of `since`: of those, leave out the events up to it. Tasks are without ' +
      `data and result, at most ${MOST_TASKS} of them: unfinished and failed ones first. \`holds=false\` leaves out locks and ` +
      'semaphores, to read the rest again, because some changes make no event, such as a driver that died.',
    query: z.strictObject({ holds: z.enum(['true', 'false']).optional() }),
    answers: answer(
      'Everything.',
      z.looseObject({
        since: count,
        revision: count,
        at: z.string(),
        store: z.object({ engine: z.string(), name: z.string() }),
        token: z.object({ name: z.string(), role: z.string(), holders: z.array(z.string()).nullable() }),
        allowsCommands: z.boolean(),
        counts: z.object({ pending: count, running: count, complete: count, failed: count }),
        locks: z.array(anyObject).optional(),
        semaphores: z.array(anyObject).optional(),
        tasks: z.array(anyObject),
        pipelines: z.array(anyObject),
        members: z.array(anyObject),
        coordinator: z.string().nullable(),
        malformed: z.array(anyObject),
        troubles: z
          .array(z.looseObject({ kind: z.string(), key: z.string(), subject: z.string(), says: z.string() }))
          .describe('Problems of the store itself, in words: keys that cannot be read, and warnings of the witness.'),
      }),
    ),
    async run(call) {
      const seen = await look(call.box);
      const { locks, semaphores, at } = seen.everything.survey;
      return ok({
        ...allButHolds(call, seen),
        ...(call.query.holds !== 'false' && {
          locks: locks.map((one) => lockJson(one, at)),
          semaphores: semaphores.map((one) => semaphoreJson(one, at)),
        }),
      });
    },
  }),
  operation({
    ...{ id: 'board.lines', method: 'get', path: '/v1/board/lines', tag: 'overview', role: 'viewer' },
    summary: 'Everything that a live page shows, in lines',
    description:
      'The same as `/v1/board`, as JSON Lines, for a reader that must not stop while it parses a large store. The first line is ' +
      `what \`/v1/board?holds=false\` answers; each one after it has up to ${RESOURCES_PER_LINE} \`locks\` or \`semaphores\`. The ` +
      'last line is `{"isWhole":true}`: a stream that ends without it broke off, so begin again.',
    answers: { 200: { description: 'The lines.', type: 'application/jsonl', isStream: true } },
    run: async (call) => lineStream(boardLines(call, await look(call.box)), call.signal),
  }),
  operation({
    ...{ id: 'resources', method: 'get', path: '/v1/resources', tag: 'overview', role: 'viewer' },
    summary: 'Show some locks and semaphores',
    description:
      `Up to ${MOST_RESOURCES} of them, each as of its own \`revision\`. A lock that was never used is free. \`malformed\`: those ` +
      'that cannot be read, and why.',
    query: z.strictObject({
      resource: list.meta({ description: 'Such as `lock/main` or `semaphore/gpu`; repeatable.' }),
    }),
    answers: answer('The locks and semaphores.', {
      at: z.string(),
      locks: z.array(anyObject),
      semaphores: z.array(anyObject),
      malformed: z.array(z.object({ resource: z.string(), why: z.string() })),
    }),
    async run({ box, query: { resource = [] } }) {
      if (resource.length > MOST_RESOURCES) {
        throw new Failure('invalid', `${resource.length} resources are asked for; expected at most ${MOST_RESOURCES}`);
      }
      const locks: object[] = [];
      const semaphores: object[] = [];
      const malformed: object[] = [];
      for (const one of new Set(resource)) {
        const [, kind, name] = /^(lock|semaphore)\/(.+)$/s.exec(one) ?? [];
        if (kind === undefined || name === undefined) {
          throw new Failure('invalid', `resource is ${shown(one)}; expected lock/NAME or semaphore/NAME`);
        }
        const found = await box.survey({ resource: { kind: kind as 'lock' | 'semaphore', name } }).catch(readable);
        if (found instanceof Failure) {
          malformed.push({ resource: one, why: found.message });
          continue;
        }
        const { revision, at } = found;
        locks.push(...found.locks.map((lock) => ({ revision, ...lockJson(lock, at) })));
        semaphores.push(...found.semaphores.map((semaphore) => ({ revision, ...semaphoreJson(semaphore, at) })));
      }
      return ok({ at: new Date().toISOString(), locks, semaphores, malformed });
    },
  }),
];

/** One resource that cannot be read must not keep its reader from the others. */
function readable(error: unknown): Failure {
  if (!Failure.is(error, 'corrupt')) throw error;
  return error;
}

type AnyCall = Call<unknown, unknown, unknown>;

interface Look {
  /** The state includes every change up to this revision. */
  readonly since: number;
  readonly everything: Everything;
}

function allButHolds(
  { caller: { name, role, holders }, allowsCommands, store }: AnyCall,
  { since, everything }: Look,
): object {
  const { survey, tasks, pipelines, crew, malformed, witness } = everything;
  return {
    since,
    ...{ revision: survey.revision, at: time(survey.at) },
    store,
    token: { name, role, holders: holders ?? null },
    allowsCommands,
    counts: countsOf(tasks),
    tasks: mostTelling(tasks).map((task) => ({ ...taskJson(task), data: null, result: null })),
    pipelines: pipelines.map((one) => ({ ...pipelineJson(one), isDriven: one.isDriven })),
    ...crewJson(crew),
    malformed,
    troubles: troublesOf(malformed, witness),
  };
}

async function* boardLines(call: AnyCall, seen: Look): AsyncGenerator<string, void> {
  const { locks, semaphores, at } = seen.everything.survey;
  yield JSON.stringify(allButHolds(call, seen));
  for (const some of partsOf(locks)) yield JSON.stringify({ locks: some.map((one) => lockJson(one, at)) });
  for (const some of partsOf(semaphores)) {
    yield JSON.stringify({ semaphores: some.map((one) => semaphoreJson(one, at)) });
  }
  yield JSON.stringify({ isWhole: true });
}

function* partsOf<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let first = 0; first < all.length; first += RESOURCES_PER_LINE)
    yield all.slice(first, first + RESOURCES_PER_LINE);
}

/** Reading everything is expensive, so pages that ask meanwhile share one answer, which names its revision. */
const look = shared(async (box): Promise<Look> => {
  const { revision: since } = await box.health();
  return { since, everything: await lookAtEverything(box) };
});

const IN_ORDER = ['running', 'failed', 'pending', 'complete'];

function mostTelling(tasks: readonly TaskView[]): readonly TaskView[] {
  if (tasks.length <= MOST_TASKS) return tasks;
  const latest = (task: TaskView): number => task.endedAt ?? task.publishedAt ?? 0;
  const rank = ({ status }: TaskView): number => IN_ORDER.indexOf(status);
  return [...tasks].sort((one, other) => rank(one) - rank(other) || latest(other) - latest(one)).slice(0, MOST_TASKS);
}
