/**
 * Plain keys of the store over HTTP, for administrators only: tasks are claimed through such keys, and on etcd a key may be
 * anything beside the store, including other stores and their tokens.
 */
import { z } from 'zod';
import type { BusCompare, BusOperation } from '../../runtime/bus/bus.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { Problem } from '../problem.ts';
import { answer } from '../schemas.ts';

const tag = 'bus';
const path = '/v1/bus/{key}';
const key = z.string().min(1).max(1000).describe('The key; in a path, percent-encoded.');
const params = z.strictObject({ key });
const value = z.string().describe('Text, at most 1 MiB.');

const pair = z.object({
  key: z.string(),
  value: z.string(),
  createRevision: z.int(),
  modRevision: z.int(),
  version: z.int(),
});
const written = z.object({ key: z.string(), revision: z.int() });

const compare = z.union([
  z.strictObject({
    key,
    target: z.enum(['version', 'create', 'mod']),
    is: z.enum(['=', '!=', '<', '>']),
    than: z.int(),
  }),
  z.strictObject({ key, target: z.literal('value'), is: z.enum(['=', '!=']), than: z.string() }),
]);
const step = z.union([
  z.strictObject({ do: z.literal('put'), key, value }),
  z.strictObject({ do: z.literal('delete'), key }),
  z.strictObject({ do: z.literal('get'), key }),
]);

/** Keeps a small request from making the server read a hundred large values. */
const MOST_GETS = 10;
const steps = z
  .array(step)
  .max(100)
  .refine((all) => all.filter(({ do: what }) => what === 'get').length <= MOST_GETS, {
    message: `expected at most ${MOST_GETS} steps that get a key`,
  });

export const bus: readonly Operation[] = [
  operation({
    ...{ id: 'bus.get', method: 'get', path, tag, role: 'administrator', params },
    summary: 'Read a key',
    description: 'Its value and its revisions.',
    answers: answer('The key.', pair),
    problems: ['no-such-thing'],
    async run({ box, params: { key: which } }) {
      const [read] = (await box.bus.transaction([], [{ do: 'get', key: which }])).results;
      const found = read?.do === 'get' ? read.pair : null;
      if (found === null) throw new Problem('no-such-thing', `there is no key ${which}`, { key: which });
      return ok(found);
    },
  }),
  operation({
    ...{ id: 'bus.put', method: 'put', path, tag, role: 'administrator', params },
    summary: 'Write a key',
    description: 'With `ifAbsent` or `ifValue`, writes only if that condition holds: compare and swap.',
    body: z.strictObject({ value, ifAbsent: z.literal(true).optional(), ifValue: z.string().optional() }),
    answers: answer('Written.', written),
    problems: ['condition-failed'],
    async run({ box, params: { key: which }, body: { value: text, ifAbsent, ifValue } }) {
      const compares: BusCompare[] = [
        ...(ifAbsent === true ? [{ key: which, target: 'version', is: '=', than: 0 } as const] : []),
        ...(ifValue === undefined ? [] : [{ key: which, target: 'value', is: '=', than: ifValue } as const]),
      ];
      const put: BusOperation = { do: 'put', key: which, value: text };
      const { succeeded, revision } = await box.bus.transaction(compares, [put]);
      if (succeeded) return ok({ key: which, revision });
      const what = `${which} does not meet the condition; nothing was changed`;
      throw new Problem('condition-failed', what, { key: which });
    },
  }),
  operation({
    ...{ id: 'bus.delete', method: 'delete', path, tag, role: 'administrator', params },
    summary: 'Delete a key',
    description: 'Answers how many keys there were: 0 or 1.',
    answers: answer('Deleted.', { key: z.string(), deleted: z.int() }),
    async run({ box, params: { key: which } }) {
      return ok({ key: which, ...(await box.bus.delete(which)) });
    },
  }),
  operation({
    ...{ id: 'bus.transaction', method: 'post', path: '/v1/bus', tag, role: 'administrator' },
    summary: 'Compare, then write',
    description: 'Does `success` if every comparison holds, else `failure`; all or nothing.',
    body: z.strictObject({ compare: z.array(compare).max(100), success: steps, failure: steps.optional() }),
    answers: answer('What was done.', {
      succeeded: z.boolean(),
      revision: z.int(),
      results: z.array(z.looseObject({ do: z.string() })),
    }),
    async run({ box, body }) {
      return ok(await box.bus.transaction(body.compare, body.success, body.failure));
    },
  }),
];
