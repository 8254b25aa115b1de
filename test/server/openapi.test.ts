// The API tested by its own description: every operation, with bodies that fit the description and with bodies that do not.

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATIONS } from '../../src/server/index.ts';
import { codesOf, type Described, misfit, type Schema } from '../support/described.ts';
import { TestServer } from '../support/server.ts';

const name = fc.oneof(
  fc.constantFrom('a', 'b', 'main', 'a/b', '100%', 'x y'),
  fc.string({ minLength: 1, maxLength: 12 }).filter((text) => /^[!-~]+$/.test(text) && text !== '.' && text !== '..'),
);

/** A value that fits a schema. */
function fitting(schema: Schema, field = ''): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => fitting(one, field)));
  // Nothing here is to wait.
  if (field === 'waitMs') return fc.constant(0);
  switch (String(schema.type)) {
    case 'string':
      if (schema.format === 'date-time') return fc.constant('2026-01-02T03:04:05.678Z');
      return schema.pattern === '^[0-9a-f]{16}$' ? fc.constant('0123456789abcdef') : name;
    case 'integer':
    case 'number': {
      const least = schema.minimum ?? (schema.exclusiveMinimum === undefined ? 0 : schema.exclusiveMinimum + 1000);
      return fc.integer({ min: Math.max(least, -1e6), max: Math.min(schema.maximum ?? 1e6, 1e6) });
    }
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(fitting(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case 'object':
      return fittingObject(schema, field);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function fittingObject({ properties = {}, required = [] }: Schema, field: string): fc.Arbitrary<unknown> {
  if (field === 'condition')
    return fc.constantFrom({ lockFree: 'a' }, { taskDone: 'x' }, { not: { memberAlive: 'm' } });
  const fields = Object.fromEntries(Object.entries(properties).map(([key, schema]) => [key, fitting(schema, key)]));
  return fc.record(fields, { requiredKeys: [...required] });
}

let server: TestServer;
const described: { path: string; method: string; of: Described }[] = [];

beforeAll(async () => {
  // So many requests come from one token that its rate would be the test.
  server = await TestServer.on('memory:', { perSecond: 1e6 });
  const { body } = await server.get('/openapi.json', { token: '' });
  expect(body.openapi).toBe('3.1.0');
  for (const [path, methods] of Object.entries(body.paths as Record<string, Record<string, Described>>)) {
    for (const [method, of] of Object.entries(methods)) described.push({ path, method: method.toUpperCase(), of });
  }
});
afterAll(() => server.close());

/** Streams do not end; they have tests of their own. That each operation is also carried out is shown by the page about HTTP. */
const STREAMS = ['events', 'witness.watch', 'member.watch'];
const IDS = OPERATIONS.map(({ id }) => id).filter((id) => !STREAMS.includes(id));

describe('the description of the API', () => {
  it('names every operation once, and everything that it refers to', async () => {
    const ids = described.map(({ of }) => of.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect([...ids].sort()).toEqual(OPERATIONS.map(({ id }) => id).sort());
    for (const { path, of } of described) {
      const inPath = (of.parameters ?? []).filter((one) => one.in === 'path').map((one) => one.name);
      expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, found]) => found));
      expect(Object.keys(of.responses)).toEqual(expect.arrayContaining(['400', '401', '403', '429', '503']));
    }
  });

  it('is a page for people too, which needs nothing from elsewhere', async () => {
    const page = await server.fetch('GET', '/docs', undefined, { token: '' });
    const html = await page.text();
    for (const { id } of OPERATIONS) expect(html).toContain(`id="${id}"`);
    expect(html).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(html).not.toContain('<script');
    expect((await server.fetch('GET', '/docs.css', undefined, { token: '' })).headers.get('content-type')).toContain(
      'text/css',
    );
  });
});

function requestOf({ path, of }: (typeof described)[number]): fc.Arbitrary<{ path: string; body: unknown }> {
  const parameters = of.parameters ?? [];
  const inPath = fc.record(
    Object.fromEntries(
      parameters.filter((one) => one.in === 'path').map((one) => [one.name, fitting(one.schema, one.name)]),
    ),
  );
  const query = fc.record(
    Object.fromEntries(
      parameters.filter((one) => one.in === 'query').map((one) => [one.name, fitting(one.schema, one.name)]),
    ),
    { requiredKeys: [] },
  );
  const schema = of.requestBody?.content['application/json'].schema;
  return fc
    .record({ inPath, query, body: schema === undefined ? fc.constant(undefined) : fitting(schema) })
    .map((made) => {
      const filled = path.replace(/\{(\w+)\}/g, (_, key: string) =>
        encodeURIComponent(String((made.inPath as Record<string, unknown>)[key])),
      );
      const asked = new URLSearchParams(
        Object.entries(made.query).map(([key, value]) => [key, String(value)] as [string, string]),
      ).toString();
      return { path: asked === '' ? filled : `${filled}?${asked}`, body: made.body };
    });
}

it.each(STREAMS)('%s refuses a query that does not fit, before it begins to stream', async (id) => {
  const one = described.find(({ of }) => of.operationId === id) as (typeof described)[number];
  const has = (one.of.parameters ?? []).some((parameter) => parameter.in === 'query');
  const response = await server.fetch(one.method, `${one.path}?unheard=1`);
  expect([response.status, response.headers.get('content-type')]).toEqual(
    has ? [400, 'application/problem+json'] : [200, 'text/event-stream'],
  );
  await response.body?.cancel();
});

describe.each(IDS)('%s', (id) => {
  it('answers what it describes, to every request that fits', async () => {
    const one = described.find(({ of }) => of.operationId === id) as (typeof described)[number];
    await fc.assert(
      fc.asyncProperty(requestOf(one), async ({ path, body }) => {
        const { status, body: told, headers } = await server.ask(one.method, path, body);
        const answer = one.of.responses[String(status)];
        expect(
          answer,
          `${one.method} ${path} ${JSON.stringify(body)} → ${status} ${JSON.stringify(told)}`,
        ).toBeDefined();
        expect(status, JSON.stringify(told)).toBeLessThan(500);
        const type = headers.get('content-type') ?? '';
        const schema = answer?.content[type]?.schema as (Schema & { $ref?: string }) | undefined;
        expect(schema).toBeDefined();
        if (schema?.$ref === undefined) expect(misfit(schema ?? {}, told)).toBeUndefined();
        else
          expect(told).toMatchObject({
            type: expect.stringMatching(/^\/docs#/),
            status,
            code: expect.any(String),
            detail: expect.any(String),
          });
        if (status >= 400) expect(codesOf(one.of, status)).toContain((told as { code: string }).code);
      }),
      { numRuns: 12 },
    );
  });

  it('refuses a body or a query that does not fit, says where, and changes nothing', async () => {
    const one = described.find(({ of }) => of.operationId === id) as (typeof described)[number];
    const schema = one.of.requestBody?.content['application/json'].schema;
    const path = one.path.replace(/\{(\w+)\}/g, '0123456789abcdef');
    const before = (await server.box.health()).revision;
    if (schema === undefined) {
      if ((one.of.parameters ?? []).some((parameter) => parameter.in === 'query')) {
        expect(await server.ask(one.method, `${path}?unheard=1`)).toMatchObject({ status: 400 });
      }
    } else {
      const wrong = fc.oneof(
        fc.constantFrom('', '{', '[]', 'null', '7', '"x"', '{"unheard":1}').map((text) => text),
        ...Object.entries(schema.properties ?? {})
          .filter(([, of]) => of.type !== undefined || of.enum !== undefined)
          .map(([key, of]) =>
            fc.constantFrom({ odd: {} }, [[]], 'unheard of\n', -1.5).map((value) => {
              const fine = fc.sample(fitting(schema), 1)[0] as object;
              return misfit(of, value) === undefined ? '{"unheard":1}' : JSON.stringify({ ...fine, [key]: value });
            }),
          ),
      );
      await fc.assert(
        fc.asyncProperty(wrong, async (text) => {
          const isEmptyFine = text === '' && (schema.required ?? []).length === 0;
          if (isEmptyFine) return;
          const { status, body } = await server.ask(one.method, path, text);
          expect([status, body.code], `${text} → ${JSON.stringify(body)}`).toEqual([400, 'invalid-input']);
          expect(body.problems.length).toBeGreaterThan(0);
        }),
        { numRuns: 15 },
      );
    }
    expect((await server.box.health()).revision).toBe(before);
  });
});
