/** Derives the OpenAPI 3.1 description from the schemas that check the requests. */
import { z } from 'zod';
import { KEY_HEADER, keptText } from './once.ts';
import type { Operation } from './operation.ts';
import { PROBLEM_TYPE, type ProblemCode, STATUS } from './problem.ts';

export const API_VERSION = '1';

const EVERYWHERE: readonly ProblemCode[] = [
  ...(['invalid-input', 'invalid', 'unauthenticated', 'wrong-role', 'foreign-holder', 'too-many-requests'] as const),
  ...(['unavailable', 'outcome-unknown'] as const),
];
const WITH_BODY: readonly ProblemCode[] = ['body-too-large', 'wrong-content-type'];
const WITH_KEY: readonly ProblemCode[] = ['key-reused', 'key-in-use', 'answer-not-kept'];

const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'code', 'detail'],
  properties: {
    type: { type: 'string', description: 'The place in /docs that explains it.' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string', description: 'One word for programs.' },
    detail: { type: 'string', description: 'What was wrong and what to do, for people.' },
  },
  additionalProperties: true,
};

export function openApi(operations: readonly Operation[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const one of operations) paths[one.path] = { ...paths[one.path], [one.method]: described(one) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'signalbox',
      version: API_VERSION,
      description: 'Locks, semaphores, tasks, guards, pipelines, members and events over HTTP.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: PROBLEM },
    },
  };
}

function described(one: Operation): object {
  const { id, tag, summary, description, role, params, query, body, answers } = one;
  const hasKey = one.method !== 'get' && one.isSecret !== true;
  const parameters = [
    ...parametersOf(params, 'path'),
    ...parametersOf(query, 'query'),
    ...(hasKey ? [keyParameter(id)] : []),
  ];
  return {
    ...{ operationId: id, tags: [tag], summary, description: `${description} Role: ${role}.`, 'x-role': role },
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: true, content: { 'application/json': { schema: schemaOf(body, 'input') } } },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, { description: told, schema, type = 'text/event-stream' }]) => [
          status,
          {
            description: told,
            content:
              schema === undefined
                ? { [type]: { schema: { type: 'string' } } }
                : { 'application/json': { schema: schemaOf(schema, 'output') } },
          },
        ]),
      ),
      ...problemsOf([
        ...EVERYWHERE,
        ...(body === undefined ? [] : WITH_BODY),
        ...(hasKey ? WITH_KEY : []),
        ...(one.problems ?? []),
      ]),
    },
  };
}

function keyParameter(operation: string): object {
  return {
    name: KEY_HEADER,
    in: 'header',
    required: false,
    description: `The server carries out the same request with the same key once, and repeats its answer ${keptText(operation)}.`,
    schema: { type: 'string', minLength: 1, maxLength: 200 },
  };
}

function problemsOf(codes: readonly ProblemCode[]): Record<string, object> {
  const byStatus = new Map<number, string[]>();
  for (const code of codes) {
    const status = STATUS[code] as number;
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const content = { [PROBLEM_TYPE]: { schema: { $ref: '#/components/schemas/Problem' } } };
  return Object.fromEntries(
    [...byStatus].map(([status, all]) => [String(status), { description: [...new Set(all)].join(', '), content }]),
  );
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
  readonly required?: readonly string[];
}

function parametersOf(schema: z.ZodType | undefined, where: 'path' | 'query'): readonly object[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as ObjectSchema;
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    ...{ name, in: where, required: required.includes(name) },
    ...(description !== undefined && { description }),
    schema: rest,
  }));
}

export function schemaOf(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return plain;
}
