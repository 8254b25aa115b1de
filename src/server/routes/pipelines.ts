/** Pipelines over HTTP: look, resume, cancel, forget. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { currentPhase, type ExpectedPipeline, PIPELINE_STATES, type PipelineRecord } from '../../core/index.ts';
import type { PipelineState } from '../../core/guard/inputs.ts';
import { pipelineJson } from '../../json/pipeline.ts';
import type { ResumeOptions } from '../../runtime/pipelines/terms.ts';
import type { Malformed } from '../../runtime/stored.ts';
import { actorOf } from '../acting.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { Problem } from '../problem.ts';
import { answer, anyObject, holder, id, maybe, reason } from '../schemas.ts';
import { commandsOff } from './guards.ts';

const tag = 'pipelines';
const path = '/v1/pipelines/{id}';
const params = z.strictObject({ id });
const state = z.enum(PIPELINE_STATES as unknown as readonly [PipelineState, ...PipelineState[]]);
const listed = z.object({ pipelines: z.array(anyObject), malformed: z.array(anyObject) });
const expected = z
  .strictObject({
    startedAt: z.iso
      .datetime()
      .optional()
      .describe('When it was started, in case another one was started under its id since.'),
    state: state.optional(),
    phase: z.string().nullable().optional().describe('The phase that it is in or blocked at.'),
  })
  .describe('The pipeline as you saw it. If it has moved on since, it stays as it is, and the answer is 409.');

export const pipelines: readonly Operation[] = [
  operation({
    ...{ id: 'pipeline.list', method: 'get', path: '/v1/pipelines', tag, role: 'viewer' },
    summary: 'List pipelines',
    description:
      'In the order in which they were started. `malformed`: keys that were passed over because they cannot be read.',
    query: z.strictObject({ state: state.optional() }),
    answers: answer('The pipelines.', listed),
    async run({ box, query }) {
      const malformed: Malformed[] = [];
      const onMalformed = (one: Malformed): void => void malformed.push(one);
      const found = await box.pipelines.list({ ...given(query), onMalformed });
      return ok({ pipelines: found.map((one) => ({ ...pipelineJson(one), isDriven: one.isDriven })), malformed });
    },
  }),
  operation({
    ...{ id: 'pipeline.show', method: 'get', path, tag, role: 'viewer', params },
    summary: 'Show a pipeline',
    description:
      'Its phases, what it waits for, and the last output of its commands, with every change up to `revision`.',
    answers: answer('The pipeline.', z.looseObject({ revision: z.int(), pipeline: z.string(), state: z.string() })),
    problems: ['no-such-thing'],
    async run({ box, params: { id: pipeline } }) {
      const { revision } = await box.health();
      const found = await box.pipelines.show(pipeline);
      if (found === undefined) throw noSuchPipeline(pipeline, { revision });
      const logs = await box.pipelines.logs(pipeline);
      const { isDriven, cwd, host } = found;
      return ok({ revision, ...pipelineJson(found), isDriven, cwd, host, logs });
    },
  }),
  operation({
    ...{ id: 'pipeline.resume', method: 'post', path: `${path}/resume`, tag, role: 'administrator', params },
    summary: 'Go on with a pipeline',
    description:
      'This server drives it from now on and runs its commands, which needs `serve --allow-commands`. Answers as soon as the server ' +
      'drives it; events show its progress. A phase that was interrupted needs a `decision`.',
    body: z.strictObject({
      decision: z.enum(['rerun', 'skip']).optional(),
      question: maybe(z.int().min(1), 'The question that the decision answers; the open one if not given.'),
      from: z.string().optional().describe('Starts a failed pipeline again from this phase.'),
      expected: expected.optional(),
      by: holder.optional(),
    }),
    answers: answer('It goes on.', anyObject, 202),
    problems: ['no-such-thing', 'wrong-state', 'commands-off'],
    async run({ box, caller, allowsCommands, params: { id: pipeline }, body: { by, expected: seen, ...options } }) {
      if (!allowsCommands) throw commandsOff();
      const found = await box.pipelines.show(pipeline);
      if (found === undefined) throw noSuchPipeline(pipeline);
      const who = actorOf(caller, by);
      let went = (): void => undefined;
      const goesOn = new Promise<undefined>((resolve) => (went = () => resolve(undefined)));
      const driving = box.pipelines.resume(pipeline, {
        ...{ ...(given(options) as ResumeOptions), expected: expectedOf(seen), by: who, onChange: () => went() },
      });
      const ended = await Promise.race([driving, goesOn]);
      // A later error goes into the record of the pipeline.
      driving.catch(() => undefined);
      if (ended === undefined || ended.kind === 'left') return ok({ pipeline, outcome: 'resumed', by: who }, 202);
      const why = ended.kind === 'moved-on' ? standingOf(ended.record) : ended.kind;
      const what = `pipeline/${pipeline}: it was not resumed: ${why}`;
      throw new Problem('wrong-state', what, { pipeline, outcome: ended.kind });
    },
  }),
  operation({
    ...{ id: 'pipeline.cancel', method: 'post', path: `${path}/cancel`, tag, role: 'administrator', params },
    summary: 'End a pipeline for good',
    description: 'If one of its commands is running, its driver has to stop it first, and the answer is `cancelling`.',
    body: z.strictObject({ reason: reason.optional(), expected: expected.optional(), by: holder.optional() }),
    answers: answer('It is cancelled, or will be.', anyObject, 202),
    problems: ['no-such-thing', 'wrong-state'],
    async run({ box, caller, signal, params: { id: pipeline }, body }) {
      const who = actorOf(caller, body.by);
      const seen = expectedOf(body.expected);
      const within = AbortSignal.any([signal, AbortSignal.timeout(CANCEL_MS)]);
      const options = { by: who, reason: body.reason ?? '', expected: seen, signal: within };
      const record = await box.pipelines.cancel(pipeline, options);
      if (record === undefined) throw noSuchPipeline(pipeline);
      const refused = (why: string): Problem =>
        new Problem('wrong-state', `pipeline/${pipeline}: nothing was cancelled: ${why}`, {
          pipeline,
          state: record.state,
        });
      const { startedAt = record.startedAt } = seen;
      if (startedAt !== record.startedAt) throw refused('another one was started under this id');
      const isOurs = record.cancel?.by === who;
      if (record.state === 'cancelled' && isOurs) return ok({ pipeline, outcome: 'cancelled', by: who }, 202);
      if (record.cancel !== undefined && record.endedAt === undefined) {
        return ok({ pipeline, outcome: 'cancelling', by: record.cancel.by }, 202);
      }
      throw refused(record.endedAt === undefined ? standingOf(record) : `it is ${record.state} already`);
    },
  }),
  operation({
    ...{ id: 'pipeline.forget', method: 'delete', path, tag, role: 'administrator', params },
    summary: 'Delete a pipeline that has ended',
    description: 'With its logs; its id is free again.',
    answers: answer('Deleted.', { outcome: z.literal('forgotten'), pipeline: z.string() }),
    problems: ['no-such-thing', 'wrong-state'],
    async run({ box, caller, params: { id: pipeline } }) {
      if (await box.pipelines.forget(pipeline, { by: actorOf(caller, undefined) })) {
        return ok({ outcome: 'forgotten', pipeline });
      }
      const record = await box.pipelines.show(pipeline);
      if (record === undefined) throw noSuchPipeline(pipeline);
      const { state: now } = record;
      const what = `pipeline/${pipeline}: it is ${now} and has not ended; cancel it first`;
      throw new Problem('wrong-state', what, { pipeline, state: now });
    },
  }),
];

/** How long to wait for the driver to stop the command. */
const CANCEL_MS = 10_000;

function expectedOf({ startedAt, ...seen }: z.infer<typeof expected> = {}): ExpectedPipeline {
  return { ...given(seen), ...(startedAt !== undefined && { startedAt: Date.parse(startedAt) }) };
}

function standingOf(record: PipelineRecord): string {
  const phase = currentPhase(record);
  return `it has changed since you looked: it is ${record.state}${phase === null ? '' : ` at ${phase}`} now`;
}

function noSuchPipeline(pipeline: string, more: object = {}): Problem {
  return new Problem('no-such-thing', `there is no pipeline ${pipeline}`, { pipeline, ...more });
}
