// The GitHub of our tests, put to GitHub's own description of its API. That is 400 MB as a package, so it is not installed:
//
//     npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz package/generated/api.github.com.json
//     SIGNALBOX_GITHUB_API=package/generated/api.github.com.json npx vitest run test/adapters/description.test.ts

import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { FakeGitHub } from '../support/github/server.ts';

const file = process.env['SIGNALBOX_GITHUB_API'];

const ANSWERS = [
  ['/repos/{owner}/{repo}/issues', '/repos/acme/rocket/issues?state=all'],
  ['/repos/{owner}/{repo}/issues/{issue_number}', '/repos/acme/rocket/issues/1'],
  ['/repos/{owner}/{repo}/issues/{issue_number}', '/repos/acme/rocket/issues/2'],
  ['/repos/{owner}/{repo}/issues/{issue_number}', '/repos/acme/rocket/issues/9'],
  ['/repos/{owner}/{repo}/issues/{issue_number}', '/repos/acme/rocket/issues/10'],
  ['/repos/{owner}/{repo}/milestones', '/repos/acme/rocket/milestones?state=all'],
  ['/search/issues', '/search/issues?q=tree+repo:acme/rocket'],
] as const;

interface Description {
  readonly paths: Readonly<
    Record<string, { readonly get: { readonly parameters: readonly object[]; readonly responses: Responses } }>
  >;
}
type Responses = Readonly<Record<string, object>>;

describe.skipIf(file === undefined)("GitHub's own description", () => {
  it.each(ANSWERS)('of %s fits the answer to %s', async (path, address) => {
    const description = JSON.parse(readFileSync(file ?? '', 'utf8')) as Description;
    const github = await FakeGitHub.start();
    try {
      github.set({ number: 1, title: 'tree', labels: ['bug'], assignees: ['ana'], milestone: 'v1' });
      github.set({ number: 2, title: 'tree', isPull: true, isClosed: true });
      github.gone.add(10);
      const response = await fetch(github.url + address);
      const { parameters, responses } = description.paths[path]?.get ?? { parameters: [], responses: {} };
      const known = parameters.map((each) => resolved(description, each) as { name: string; in: string });
      for (const [name] of new URL(response.url).searchParams) expect(known.map((each) => each.name)).toContain(name);
      const answer = resolved(description, responses[response.status] ?? {}) as Answer;
      const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
      const fits = ajv.compile(inlined(description, answer.content['application/json'].schema) as object);
      fits(await response.json());
      expect(fits.errors ?? []).toEqual([]);
    } finally {
      await github.stop();
    }
  });
});

interface Answer {
  readonly content: { readonly 'application/json': { readonly schema: object } };
}

function resolved(description: Description, value: object): object {
  if (!('$ref' in value) || typeof value.$ref !== 'string') return value;
  const keys = value.$ref.slice('#/'.length).split('/');
  return keys.reduce((found: object, key) => (found as Record<string, object>)[key] as object, description);
}

/** With what it refers to in place; and where `nullable` is said, which is not JSON Schema, with null. */
function inlined(description: Description, schema: unknown, depth = 0): unknown {
  if (Array.isArray(schema)) return schema.map((each) => inlined(description, each, depth));
  if (typeof schema !== 'object' || schema === null) return schema;
  // Deep down issues contain repositories and apps, which we have none of.
  if (depth > 12) return {};
  const { nullable, example: _, ...rest } = resolved(description, schema) as Record<string, unknown>;
  const inner = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [key, inlined(description, value, depth + 1)]),
  );
  return nullable === true ? { anyOf: [{ type: 'null' }, inner] } : inner;
}
